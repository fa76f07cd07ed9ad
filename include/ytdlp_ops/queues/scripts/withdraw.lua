#!lua flags=allow-oom
--[[
  Takes every copy of a waiting element out of an inbox; its item is skipped, unless an older request has a record.

  KEYS[1] inbox     LIST  elements
  KEYS[2] skipped   HASH  item id -> record
  KEYS[3] counters  HASH  name -> how often
  KEYS[4…] others   HASH  the other places: item id -> record

  ARGV[1] element  as it waits there
  ARGV[2] item_id
  ARGV[3] record   JSON object

  Returns 1, or 0 when it waits there no more. Looks through the whole LIST: about 30 ms for a million.
]]
local inbox, skipped, counters = KEYS[1], KEYS[2], KEYS[3]
local element, id, record = ARGV[1], ARGV[2], ARGV[3]
local first_other = 4

local wanted = { [inbox] = 'list', [skipped] = 'hash', [counters] = 'hash' }
for at = first_other, #KEYS do wanted[KEYS[at]] = 'hash' end
local wrong = first_wrong_type(wanted)
if wrong then return wrong end

if redis.call('LREM', inbox, 0, element) == 0 then return 0 end
count(counters, 'withdrawn', 1)
if redis.call('HEXISTS', skipped, id) == 1 then return 1 end
for at = first_other, #KEYS do
  if redis.call('HEXISTS', KEYS[at], id) == 1 then return 1 end
end
redis.call('HSET', skipped, id, with(record, '"finished_at":"' .. iso(now_ms()) .. '"'))
count(counters, 'skipped:cancelled', 1)
return 1
