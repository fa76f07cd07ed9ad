-- Shared by every step; loaded in front of it. The rules are those of standing_in_memory.py.

local TEN_MINUTES, HOUR = 600000, 3600000
local HOUR_BUCKETS, DAY_BUCKETS, TALLY_BUCKETS = 6, 24, 144

-- The only clock: milliseconds since 1970.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A script does not roll back: look at every type before the first write.
local function first_wrong_type(keys)
  for _, key in ipairs(keys) do
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= 'hash' then
      return redis.error_reply('WRONGKEYTYPE ' .. key .. ' is a ' .. found .. ', not a hash')
    end
  end
end

-- A field's JSON as a table, or an empty one where it is none.
local function read(hash, field)
  local ok, fields = pcall(cjson.decode, redis.call('HGET', hash, field) or '')
  return ok and type(fields) == 'table' and fields or {}
end

local function write(hash, field, fields)
  redis.call('HSET', hash, field, cjson.encode(fields))
end

local function prune(buckets, oldest)
  for bucket in pairs(buckets) do
    if tonumber(bucket) <= oldest then buckets[bucket] = nil end
  end
end

local function key_of(now, size)
  return string.format('%.0f', math.floor(now / size))
end
