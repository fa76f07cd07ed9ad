#!lua flags=allow-oom
--[[
  Gives a time to an item that has none, if it is still there as it was seen.

  KEYS[1] source  HASH  item id -> record
  KEYS[2] times   ZSET  item id -> lease deadline or due time, ms

  ARGV[1] item_id
  ARGV[2] seen   the record as the caller read it
  ARGV[3] in_ms  from now on

  Returns 1, or 0 when it changed meanwhile or has a time.
]]
local source, times = KEYS[1], KEYS[2]
local id, seen, in_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])

local wrong = first_wrong_type({ [source] = 'hash', [times] = 'zset' })
if wrong then return wrong end

if redis.call('HGET', source, id) ~= seen or redis.call('ZSCORE', times, id) then return 0 end
redis.call('ZADD', times, number(now_ms() + in_ms), id)
return 1
