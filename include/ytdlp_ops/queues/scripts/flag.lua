#!lua flags=allow-oom
--[[
  Adds members to a record in progress, if it is still as it was seen.

  KEYS[1] progress  HASH  item id -> record

  ARGV[1] item_id
  ARGV[2] seen     the record as the caller read it
  ARGV[3] members  JSON members

  Returns 1, or 0 when it changed meanwhile.
]]
local progress = KEYS[1]
local id, seen, members = ARGV[1], ARGV[2], ARGV[3]

local wrong = wrong_type(progress, 'hash')
if wrong then return wrong end

if redis.call('HGET', progress, id) ~= seen then return 0 end
redis.call('HDEL', progress, id) -- first a delete: see finish
redis.call('HSET', progress, id, with(seen, members))
return 1
