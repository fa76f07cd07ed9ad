#!lua flags=allow-oom
--[[
  Extends the lease of a running item and says how far it is.

  KEYS[1] progress  HASH  item id -> record
  KEYS[2] leases    ZSET  item id -> lease deadline, ms

  ARGV[1] item_id
  ARGV[2] token     proof that the caller still owns the item
  ARGV[3] lease_ms
  ARGV[4] record    JSON object: the record as the worker knows it, with its progress

  Returns 1; 2 when the item shall be cancelled; or 0 when it is gone or belongs to another token.
]]
local progress, leases = KEYS[1], KEYS[2]
local id, token, lease_ms, record = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local wrong = first_wrong_type({ [progress] = 'hash', [leases] = 'zset' })
if wrong then return wrong end

local current = read(redis.call('HGET', progress, id))
if current.token ~= token then return 0 end

local now = now_ms()
local members = '"heartbeat_at":"' .. iso(now) .. '"'
if type(current.cancel_requested) == 'string' then
  members = members .. ',"cancel_requested":' .. cjson.encode(current.cancel_requested)
end
if tonumber(current.duplicates) then members = members .. ',"duplicates":' .. number(current.duplicates) end
redis.call('ZREM', leases, id) -- first a delete: see finish
redis.call('HSET', progress, id, with(record, members))
redis.call('ZADD', leases, number(now + lease_ms), id)
return current.cancel_requested and 2 or 1
