#!lua flags=allow-oom
--[[
  Puts shorter records in the place of longer ones, if those are still as they were seen.

  KEYS[1] source  HASH  item id -> record

  ARGV[1…] three a record: item_id, the record as the caller read it, the one to put there

  Returns how many were replaced.
]]
local source = KEYS[1]

local wrong = wrong_type(source, 'hash')
if wrong then return wrong end

local replaced = 0
for at = 1, #ARGV, 3 do
  local id, seen, record = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if redis.call('HGET', source, id) == seen then
    redis.call('HDEL', source, id) -- first a delete: see finish
    redis.call('HSET', source, id, record)
    replaced = replaced + 1
  end
end
return replaced
