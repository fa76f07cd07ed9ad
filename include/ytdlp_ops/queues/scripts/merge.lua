#!lua flags=allow-oom
--[[
  Makes one record of two that an item has in two places, if both are still as they were seen.

  KEYS[1] keep  HASH  item id -> record
  KEYS[2] drop  HASH  item id -> record
  KEYS[3] due   ZSET  item id -> due time, ms

  ARGV[1] item_id
  ARGV[2] kept     the record in `keep` as the caller read it
  ARGV[3] dropped  the record in `drop` as the caller read it
  ARGV[4] record   JSON object for `keep`

  Returns 1, or 0 when one of them changed meanwhile.
]]
local keep, drop, due = KEYS[1], KEYS[2], KEYS[3]
local id, kept, dropped, record = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local wrong = first_wrong_type({ [keep] = 'hash', [drop] = 'hash', [due] = 'zset' })
if wrong then return wrong end

if redis.call('HGET', keep, id) ~= kept or redis.call('HGET', drop, id) ~= dropped then return 0 end
redis.call('HDEL', drop, id)
redis.call('ZREM', due, id)
redis.call('HSET', keep, id, record)
return 1
