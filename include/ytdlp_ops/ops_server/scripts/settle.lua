#!lua flags=allow-oom
--[[
  Gives back what a lease took, and counts what was answered.

  KEYS[1] standings HASH  subject -> state, JSON
  KEYS[2] tallies   HASH  subject -> bucket of ten minutes -> code -> how often, JSON

  ARGV[1] lease  '' where nothing was taken
  ARGV[2] strikes       so many in a row are a cool-down
  ARGV[3] first_cool_ms
  ARGV[4] longest_cool_ms
  ARGV[5…] four a verdict: subject, code, effect (none, ok, strike, cool, ban), cool_ms

  Returns 1. Asked twice, it counts twice.
]]
local standings, tallies = KEYS[1], KEYS[2]
local lease, strikes, first_cool_ms, longest_cool_ms =
  ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local first, each = 5, 4

local wrong = first_wrong_type({ standings, tallies })
if wrong then return wrong end

local now = now_ms()

local function judge(state, code, effect, cool_ms)
  if effect == 'strike' then
    state.strikes = (state.strikes or 0) + 1
    if state.strikes >= strikes then effect = 'cool' end
  end
  if effect == 'strike' or effect == 'cool' then state.proven = false end
  if effect == 'ok' then
    state.proven, state.strikes = true, 0
    if (state.cooling or 0) <= now then state.step = 0 end
  elseif effect == 'ban' then
    state.banned, state.reason = now, code
  elseif effect == 'cool' and (state.cooling or 0) <= now then -- those that ran together count once
    state.step = (state.step or 0) + 1
    local lasts = math.max(first_cool_ms * 2 ^ math.min(state.step - 1, 20), cool_ms)
    state.cooling, state.strikes, state.reason = now + math.min(lasts, longest_cool_ms), 0, code
  end
end

for at = first, #ARGV, each do
  local subject, code, effect, cool_ms = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  local state = read(standings, subject)
  if state.leases then state.leases[lease] = nil end
  judge(state, code, effect, cool_ms)
  write(standings, subject, state)

  local tally, bucket = read(tallies, subject), key_of(now, TEN_MINUTES)
  local codes = tally[bucket] or {}
  codes[code] = (codes[code] or 0) + 1
  tally[bucket] = codes
  prune(tally, tonumber(bucket) - TALLY_BUCKETS)
  write(tallies, subject, tally)
end
return 1
