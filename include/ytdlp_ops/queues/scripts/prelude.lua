-- Shared by every step; loaded in front of it. Records are spliced, never encoded again: cjson would turn
-- an empty list into an object and drop digits.

-- The only clock: milliseconds since 1970 and the same as UTC ISO 8601.
local function iso(ms)
  local seconds = math.floor(ms / 1000)
  local days, rest = math.floor(seconds / 86400), seconds % 86400
  local z = days + 719468 -- days since 0000-03-01; the calendar repeats every 146097 days
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
    math.floor(rest / 3600), math.floor(rest / 60) % 60, rest % 60, ms % 1000)
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function number(value)
  return string.format('%.0f', value)
end

-- A script does not roll back: look at every type before the first write.
local function wrong_type(key, wanted)
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= wanted then
    return redis.error_reply('WRONGKEYTYPE ' .. key .. ' is a ' .. found .. ', not a ' .. wanted)
  end
end

local function first_wrong_type(wanted)
  for key, kind in pairs(wanted) do
    local wrong = wrong_type(key, kind)
    if wrong then return wrong end
  end
end

-- The record as a table, or an empty one where it is none (older tools, damage).
local function read(record)
  local ok, fields = pcall(cjson.decode, record or '')
  return ok and type(fields) == 'table' and fields or {}
end

-- A JSON object with more members; of two members with one name the last counts.
local function with(record, members)
  return (record == '{}' and '{' or string.sub(record, 1, -2) .. ',') .. members .. '}'
end

-- Never fails: a counter that is no number must not stop a step in its middle.
local function count(counters, name, by)
  if by ~= 0 then redis.pcall('HINCRBY', counters, name, by) end
end

-- Tokens left in a bucket, and its starts a minute; nothing where no limit is set. A new bucket is full.
local function tokens_in(limits, buckets, name, now)
  local limit = redis.call('HGET', limits, name)
  if not limit then return nil end
  local a_minute, burst = string.match(limit, '^(%d+):?(%d*)$')
  a_minute = tonumber(a_minute)
  if not a_minute then return nil end
  burst = tonumber(burst) or math.max(1, math.floor(a_minute / 10))
  local left, counted_at = string.match(redis.call('HGET', buckets, name) or '', '^([%d.]+) (%d+)$')
  if not left then return burst, a_minute end
  local since = math.max(0, now - tonumber(counted_at))
  return math.min(burst, tonumber(left) + since * a_minute / 60000), a_minute
end

local function keep_tokens(buckets, name, left, now)
  redis.call('HSET', buckets, name, string.format('%.6f', math.max(0, left)) .. ' ' .. number(now))
end

-- An ended record as a JSON value to splice: itself where a step wrote it, which shows at its end; anything else
-- (older tools, damage) might be JSON to this reader and not to others, and is kept as escaped text.
local function as_previous(record)
  if string.find(record, '"finished_at":"[%d-]+T[%d:.]+Z"[^{}%[%]]*}$') and next(read(record)) ~= nil then
    return record
  end
  local text = string.gsub(string.gsub(record, '\\', '\\\\'), '[^ -~]', function(byte)
    return string.format('\\x%02x', string.byte(byte))
  end)
  return cjson.encode({ raw = text })
end

-- Counts one more on a record: `field` is kept as its last member, so that the record does not grow.
local function count_on(hash, id, record, field)
  if string.sub(record, -1) ~= '}' or next(read(record)) == nil then return end
  local base, count = string.match(record, '^(.*),"' .. field .. '":(%d+)}$')
  count = count and tonumber(count) or tonumber(read(record)[field]) or 0
  redis.call('HSET', hash, id, (base and base .. '}' or record):sub(1, -2) .. ',"' .. field .. '":' .. (count + 1) .. '}')
end

local function text_of(value)
  return type(value) == 'string' and value or ''
end

-- What a record was asked to make: two requests that want the same are copies of each other.
local function wants_of(fields)
  return text_of(fields.formats) .. '|' .. text_of(fields.profile)
end

-- Is a request for `id` a copy of one that runs, or of one that is done? Counts it there.
local function copy_of(progress, result, id, wants, force)
  local running = redis.call('HGET', progress, id)
  if running then
    if wants_of(read(running)) ~= wants and next(read(running)) ~= nil then return 'later' end
    count_on(progress, id, running, 'duplicates')
    return 'running'
  end
  local done = not force and redis.call('HGET', result, id)
  if done and wants_of(read(done)) == wants then
    count_on(result, id, done, 'submitted_again')
    return 'already_done'
  end
  return false
end

-- Has every job of a group ended: in result or skipped, in fail for good, or given up on by auth?
local function has_ended(group, result, skipped, fail)
  for _, job in ipairs(group.jobs) do
    local ended = group['gone:' .. job] or redis.call('HEXISTS', result, job) == 1
      or redis.call('HEXISTS', skipped, job) == 1
    if not ended and read(redis.call('HGET', fail, job)).retryable ~= false then return false end
  end
  return true
end

-- The join: a group whose jobs have all ended leaves, as one publish item in its inbox. With a token the caller
-- publishes itself: the item goes to progress as claimed, unless publish knows the video already.
--
-- keys: groups, result, skipped, fail of dl; inbox, progress, leases, result, skipped, fail, deferred of publish.
-- Returns the progress record where the caller has claimed it.
local function join(keys, video, token, lease_ms, now)
  local groups, result, skipped, fail, inbox, progress, leases = unpack(keys, 1, 7)
  local element = redis.call('HGET', groups, video)
  local group = read(element)
  if type(group.jobs) ~= 'table' or not has_ended(group, result, skipped, fail) then return false end
  redis.call('HDEL', groups, video)
  local known = token == ''
  for at = 6, 11 do
    if keys[at] ~= leases and redis.call('HEXISTS', keys[at], video) == 1 then known = true end
  end
  if known then
    redis.call('RPUSH', inbox, element)
    return false
  end
  local record = with(element, '"state":"claimed","stage":"publish","token":"' .. token .. '","claimed_at":"'
    .. iso(now) .. '"')
  redis.call('HSET', progress, video, record)
  redis.call('ZADD', leases, number(now + lease_ms), video)
  return record
end

local function join_types(keys)
  local wanted = {}
  for at, key in ipairs(keys) do wanted[key] = 'hash' end
  wanted[keys[5]], wanted[keys[7]] = 'list', 'zset'
  return wanted
end
