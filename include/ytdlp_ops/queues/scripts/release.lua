#!lua flags=allow-oom
--[[
  Hands an item back unchanged: to the head of its inbox, the attempt not counted. One that was cancelled
  meanwhile ends as skipped instead.

  KEYS[1] progress  HASH  item id -> record
  KEYS[2] leases    ZSET  item id -> lease deadline, ms
  KEYS[3] inbox     LIST  elements
  KEYS[4] skipped   HASH  item id -> record
  KEYS[5] counters  HASH  name -> how often

  ARGV[1] item_id
  ARGV[2] token      proof that the caller still owns the item
  ARGV[3] element    JSON object
  ARGV[4] cancelled  JSON object: its record in skipped, if it was cancelled
  ARGV[5] not_hosts  JSON object of hosts that shall not claim it, or empty: name -> unix ms
  ARGV[6] not_host   JSON string: one more, or empty
  ARGV[7] not_for_ms how long that one shall not

  Returns 1, or 0 when the item is gone or belongs to another token.
]]
local progress, leases, inbox, skipped, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, token, element, cancelled = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local not_hosts, not_host, not_for_ms = ARGV[5], ARGV[6], tonumber(ARGV[7])

local wrong = first_wrong_type({
  [progress] = 'hash', [leases] = 'zset', [inbox] = 'list', [skipped] = 'hash', [counters] = 'hash',
})
if wrong then return wrong end

local current = read(redis.call('HGET', progress, id))
if current.token ~= token then return 0 end

local now = now_ms()
redis.call('HDEL', progress, id)
redis.call('ZREM', leases, id)
if current.cancel_requested then
  local message = cjson.encode('cancelled: ' .. text_of(current.cancel_requested))
  redis.call('HSET', skipped, id, with(cancelled, '"message":' .. message .. ',"finished_at":"' .. iso(now) .. '"'))
  count(counters, 'skipped:cancelled', 1)
  return 1
end
if not_host ~= '' then
  element = with(element, '"not_hosts":' .. with(not_hosts, not_host .. ':' .. number(now + not_for_ms)))
end
redis.call('LPUSH', inbox, element)
count(counters, 'released', 1)
return 1
