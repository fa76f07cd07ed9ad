#!lua flags=allow-oom
--[[
  Starts a claimed item: the claim's token is exchanged for the run's own, so that a second delivery of the
  same run finds that it does not own the item.

  KEYS[1] progress  HASH  item id -> record
  KEYS[2] leases    ZSET  item id -> lease deadline, ms

  ARGV[1] item_id
  ARGV[2] claim_token  from the claim
  ARGV[3] run_token    fresh, of this worker
  ARGV[4] lease_ms     the running lease
  ARGV[5] members      JSON members to add: who runs it

  Returns the record, the same again if asked twice; or nothing when the item is gone or another's.
]]
local progress, leases = KEYS[1], KEYS[2]
local id, claim_token, run_token, lease_ms, members = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

local wrong = first_wrong_type({ [progress] = 'hash', [leases] = 'zset' })
if wrong then return wrong end

local record = redis.call('HGET', progress, id)
local token = read(record).token
if token == run_token then return record end
if not record or token ~= claim_token then return false end

local now = now_ms()
local stamp = iso(now)
record = with(record, '"state":"running","token":"' .. run_token .. '","started_at":"' .. stamp
  .. '","heartbeat_at":"' .. stamp .. '",' .. members)
redis.call('ZREM', leases, id) -- first a delete: see finish
redis.call('HSET', progress, id, record)
redis.call('ZADD', leases, number(now + lease_ms), id)
return record
