#!lua
--[[
  Puts a part of a saved queue back; asked twice, and after an interruption, each part goes in once.

  KEYS[1] loaded  STRING  lines of this file that are in
  KEYS[2] target  HASH, LIST or ZSET

  ARGV[1] from    lines before this part
  ARGV[2] to      lines with it
  ARGV[3] ttl_ms  how long `loaded` is kept
  ARGV[4] kind    hash, list or zset
  ARGV[5…] two an entry: field or member (of a LIST: empty), value or score

  Returns how many lines are in: `to`, or what it was where this part does not come next.
]]
local loaded, target = KEYS[1], KEYS[2]
local from, to, ttl_ms, kind = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local first, each = 5, 2

local wrong = first_wrong_type({ [loaded] = 'string', [target] = kind })
if wrong then return wrong end

local before = tonumber(redis.call('GET', loaded) or 0)
if before ~= from then return before end

for at = first, #ARGV, each do
  local name, value = ARGV[at], ARGV[at + 1]
  if kind == 'hash' then
    redis.call('HSET', target, name, value)
  elseif kind == 'list' then
    redis.call('RPUSH', target, value)
  else
    redis.call('ZADD', target, value, name)
  end
end
redis.call('SET', loaded, number(to), 'PX', ttl_ms)
return to
