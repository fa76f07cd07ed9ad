#!lua flags=allow-oom
--[[
  Accounts for bytes that came, and says when their reader may go on: first come, first served.

  A bucket counts the bytes that came, and how many of them its limit has allowed by now. A reader's ticket is the
  count with its own bytes as the last; it goes on when so many are allowed. A limit that changes holds at once,
  also for those who wait. A ticket beyond the count is of a bucket that was lost, and is as good as allowed.

  KEYS[1] limits   HASH  bucket -> bytes a second: "20M", "2.5M", "500k", "1048576"; "0" lets nothing through
  KEYS[2] buckets  HASH  bucket -> bytes that came, bytes allowed of them, and when that was counted, ms

  ARGV[1] count    bytes that came since the reader last said; 0 where it only asks how long still
  ARGV[2…] two a bucket: its name, and the reader's last ticket or 0

  Returns three a bucket: ticket, ms to wait before asking again or going on (a minute at most), bytes a second
  (-1: no limit).
]]
local limits, buckets = KEYS[1], KEYS[2]
local came = tonumber(ARGV[1])
local first, each, longest_ms = 2, 2, 60000
local units = { [''] = 1, k = 1024, m = 1048576, g = 1073741824 }

local wrong = first_wrong_type({ [limits] = 'hash', [buckets] = 'hash' })
if wrong then return wrong end

local function limit_of(bucket)
  local amount, unit = string.match(redis.call('HGET', limits, bucket) or '', '^(%d+%.?%d*)([kKmMgG]?)$')
  return amount and tonumber(amount) * units[string.lower(unit)]
end

local now = now_ms()
local answer = {}
for at = first, #ARGV, each do
  local bucket, ticket = ARGV[at], tonumber(ARGV[at + 1])
  local rate = limit_of(bucket)
  if rate then
    local stored = redis.call('HGET', buckets, bucket) or ''
    local total, allowed, counted_at = string.match(stored, '^(%d+) ([%d.]+) (%d+)$')
    total, allowed, counted_at = tonumber(total) or 0, tonumber(allowed) or 0, tonumber(counted_at) or now
    allowed = math.min(total, allowed + math.max(0, now - counted_at) * rate / 1000)
    total = total + came
    if came > 0 then ticket = total end
    redis.call('HSET', buckets, bucket, number(total) .. ' ' .. string.format('%.3f', allowed) .. ' ' .. number(now))
    local ahead = ticket > total and 0 or math.max(0, ticket - allowed)
    local wait = ahead == 0 and 0 or math.min(longest_ms, math.ceil(ahead * 1000 / rate)) -- x / 0 is infinite
    answer[#answer + 1] = number(ticket)
    answer[#answer + 1] = wait
    answer[#answer + 1] = number(rate)
  else
    answer[#answer + 1] = '0'
    answer[#answer + 1] = 0
    answer[#answer + 1] = '-1'
  end
end
return answer
