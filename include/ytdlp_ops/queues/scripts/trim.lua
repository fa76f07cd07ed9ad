#!lua flags=allow-oom
--[[
  Forgets records, if they are still as they were seen.

  KEYS[1] source    HASH  item id -> record: result or skipped
  KEYS[2] counters  HASH  name -> how often

  ARGV[1…] two a record: item_id, the record as the caller read it

  Returns how many were forgotten.
]]
local source, counters = KEYS[1], KEYS[2]

local wrong = first_wrong_type({ [source] = 'hash', [counters] = 'hash' })
if wrong then return wrong end

local forgotten = 0
for at = 1, #ARGV, 2 do
  if redis.call('HGET', source, ARGV[at]) == ARGV[at + 1] then
    redis.call('HDEL', source, ARGV[at])
    forgotten = forgotten + 1
  end
end
count(counters, 'trimmed', forgotten)
return forgotten
