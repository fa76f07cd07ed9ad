#!lua flags=allow-oom
--[[
  Takes many ended items back into inboxes: the step move, many times in one call. A group (one item, or the
  formats of one video) goes whole or not at all; one that changed since it was seen stays where it is.

  KEYS[1]  source    HASH    item id -> record
  KEYS[2]  due       ZSET    item id -> due time, ms
  KEYS[3]  counters  HASH    name -> how often
  KEYS[4]  ledger    STRING  exists while a ledger archives this stage
  KEYS[5]  attempts  HASH    what the ledger has yet to archive: sha1 of record, blank, item id -> record
  KEYS[6…] next      LIST    inboxes to push to

  ARGV[1]  counter  the name that is counted
  ARGV[2…] a group: number of the inbox among `next`, element, number of items, then two an item: item_id, the
           record as the caller read it

  Returns how many items were moved.
]]
local source, due, counters, ledger, attempts = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local counter = ARGV[1]
local first_next, first_group = 5, 2

local wanted = {
  [source] = 'hash', [due] = 'zset', [counters] = 'hash', [ledger] = 'string', [attempts] = 'hash',
}
for at = first_next + 1, #KEYS do wanted[KEYS[at]] = 'list' end
local wrong = first_wrong_type(wanted)
if wrong then return wrong end

local remember = redis.call('GET', ledger)

local function is_as_seen(from, to)
  for at = from, to, 2 do
    if redis.call('HGET', source, ARGV[at]) ~= ARGV[at + 1] then return false end
  end
  return true
end

local moved, at = 0, first_group
while at < #ARGV do
  local inbox, element, items = KEYS[first_next + tonumber(ARGV[at])], ARGV[at + 1], tonumber(ARGV[at + 2])
  local from, to = at + 3, at + 2 + 2 * items
  if is_as_seen(from, to) then
    for each = from, to, 2 do -- first the deletes: see finish
      redis.call('HDEL', source, ARGV[each])
      redis.call('ZREM', due, ARGV[each])
      if remember then
        redis.call('HSET', attempts, redis.sha1hex(ARGV[each + 1]) .. ' ' .. ARGV[each], ARGV[each + 1])
      end
    end
    redis.call('RPUSH', inbox, element)
    moved = moved + items
  end
  at = to + 1
end
count(counters, counter, moved)
return moved
