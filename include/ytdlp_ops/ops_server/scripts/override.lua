#!lua flags=allow-oom
--[[
  Does what a person asks of one egress or account. Asked twice, it changes nothing more.

  KEYS[1] standings HASH  subject -> state, JSON
  KEYS[2] tallies   HASH  subject -> counts, JSON
  KEYS[3] pairs     HASH  account -> the egress that it stays with

  ARGV[1] subject
  ARGV[2] action  ban; unban: and end its cool-down; reset: forget all that is known of it
  ARGV[3] reason  of a ban, for people

  Returns 1.
]]
local standings, tallies, paired = KEYS[1], KEYS[2], KEYS[3]
local subject, action, reason = ARGV[1], ARGV[2], ARGV[3]

local wrong = first_wrong_type({ standings, tallies, paired })
if wrong then return wrong end

if action == 'reset' then
  redis.call('HDEL', standings, subject)
  redis.call('HDEL', tallies, subject)
  local account = string.match(subject, '^account/(.*)$')
  if account then redis.call('HDEL', paired, account) end
  return 1
end
local state = read(standings, subject)
if action == 'unban' then
  state.banned, state.cooling, state.step, state.strikes, state.reason = 0, 0, 0, 0, ''
else
  state.banned, state.reason = now_ms(), reason
end
write(standings, subject, state)
return 1
