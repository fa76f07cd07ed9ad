#!lua flags=allow-oom
--[[
  Takes items out of a place as they were seen there, and puts one value where they go: an element into an
  inbox (one item, or the formats of one video), a record into another place, or nothing where a lease or due
  time has no record.

  Compares inside the write, so that a heartbeat, a finish or another sweeper that came meanwhile wins.

  KEYS[1] source    HASH  item id -> record
  KEYS[2] times     ZSET  item id -> lease deadline or due time, ms
  KEYS[3] target    LIST or HASH
  KEYS[4] counters  HASH  name -> how often

  ARGV[1] kind       what the target is: list or hash
  ARGV[2] value      element, or record (JSON object) of the first item, or empty
  ARGV[3] only_past  1: only what has a time, and a past one
  ARGV[4] counter    the name that is counted
  ARGV[5…] two an item: item_id, the record as the caller read it, empty where there was none

  Returns 1 if all were moved, 0 if any changed meanwhile or its time has not come: then none was.
]]
local source, times, target, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local kind, value, only_past, counter = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local first, each = 5, 2

local wrong = first_wrong_type({ [source] = 'hash', [times] = 'zset', [target] = kind, [counters] = 'hash' })
if wrong then return wrong end

local now = now_ms()
for at = first, #ARGV, each do
  local id, seen = ARGV[at], ARGV[at + 1]
  if (redis.call('HGET', source, id) or '') ~= seen then return 0 end
  if seen ~= '' and value == '' then return 0 end -- a record must go somewhere
  if only_past and tonumber(redis.call('ZSCORE', times, id) or math.huge) > now then return 0 end
end

for at = first, #ARGV, each do -- first the deletes: see finish
  redis.call('HDEL', source, ARGV[at])
  redis.call('ZREM', times, ARGV[at])
end
if value ~= '' and kind == 'list' then
  redis.call('RPUSH', target, value)
elseif value ~= '' then
  redis.call('HSET', target, ARGV[first], with(value, '"finished_at":"' .. iso(now) .. '"'))
end
count(counters, counter, (#ARGV - first + 1) / each)
return 1
