#!lua flags=allow-oom
--[[
  Takes one start from a bucket that an account, an egress or a stage is limited by.

  KEYS[1] limits   HASH  bucket -> starts a minute, or "starts a minute:burst"
  KEYS[2] buckets  HASH  bucket -> tokens left and when they were counted

  ARGV[1] bucket  its name

  Returns 0 when it may start, or the milliseconds to wait; -1 where the limit is zero: nothing may start.
]]
local limits, buckets = KEYS[1], KEYS[2]
local bucket = ARGV[1]

local wrong = first_wrong_type({ [limits] = 'hash', [buckets] = 'hash' })
if wrong then return wrong end

local now = now_ms()
local left, a_minute = tokens_in(limits, buckets, bucket, now)
if not left then return 0 end
if left >= 1 then
  keep_tokens(buckets, bucket, left - 1, now)
  return 0
end
if a_minute == 0 then return -1 end
return math.ceil((1 - left) * 60000 / a_minute)
