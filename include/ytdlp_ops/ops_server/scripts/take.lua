#!lua
--[[
  Takes the least recently used egress that is ready; where accounts are given, an account and its own egress.

  KEYS[1] standings HASH  subject -> state, JSON
  KEYS[2] pairs     HASH  account -> the egress that it stays with

  ARGV[1] lease
  ARGV[2] lease_ms
  ARGV[3] with_account  1: an account is needed
  ARGV[4…] seven a candidate, egresses first: kind (egress or account), name, concurrency, hourly, daily (-1: no
           limit), allowed (1 or 0), egress (an account's fixed one, or '')

  Returns egress and account ('' for none); or '' and the ms until one may be ready: 0 while the best is busy,
  -1 where all are banned.
]]
local standings, paired = KEYS[1], KEYS[2]
local lease, lease_ms, with_account = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local first, each = 4, 7

local wrong = first_wrong_type({ standings, paired })
if wrong then return wrong end

local now, soonest = now_ms(), -1
local egresses, accounts, known = {}, {}, {}
for at = first, #ARGV, each do
  local kind = ARGV[at]
  local one = {
    name = ARGV[at + 1], subject = kind .. '/' .. ARGV[at + 1], concurrency = tonumber(ARGV[at + 2]),
    hourly = tonumber(ARGV[at + 3]), daily = tonumber(ARGV[at + 4]), allowed = ARGV[at + 5] == '1',
    egress = ARGV[at + 6], position = at,
  }
  one.state = read(standings, one.subject)
  if kind == 'egress' then
    table.insert(egresses, one)
    known[one.name] = one
  else
    table.insert(accounts, one)
  end
end

local function by_use(candidates)
  table.sort(candidates, function(a, b)
    local used_a, used_b = a.state.used or 0, b.state.used or 0
    if used_a ~= used_b then return used_a < used_b end
    return a.position < b.position
  end)
  return candidates
end

-- When a budget has room again: 0, or the time that its oldest bucket leaves the window.
local function over_budget(buckets, size, many, most)
  local sum, oldest, newest = 0, nil, math.floor(now / size)
  for bucket, count in pairs(buckets or {}) do
    local number = tonumber(bucket)
    if number > newest - many then
      sum = sum + count
      oldest = math.min(oldest or number, number)
    end
  end
  if most < 0 or sum < most then return 0 end
  return ((oldest or newest) + many) * size
end

local function is_ready(one)
  local state = one.state
  if (state.banned or 0) ~= 0 then return false end
  local ends = math.max(state.cooling or 0,
    over_budget(state.hour, TEN_MINUTES, HOUR_BUCKETS, one.hourly),
    over_budget(state.day, HOUR, DAY_BUCKETS, one.daily))
  local wait
  if ends > now then
    wait = ends - now
  else
    local in_use = 0
    for _, deadline in pairs(state.leases or {}) do
      if deadline > now then in_use = in_use + 1 end
    end
    if in_use < (state.proven and one.concurrency or 1) then return true end
    wait = 0
  end
  if soonest < 0 or wait < soonest then soonest = wait end
  return false
end

local function first_ready(candidates)
  for _, one in ipairs(candidates) do
    if one.allowed and is_ready(one) then return one end
  end
end

by_use(egresses)
local egress, account
if not with_account then
  egress = first_ready(egresses)
else
  for _, one in ipairs(by_use(accounts)) do
    if is_ready(one) then
      local bound = one.egress ~= '' and one.egress or redis.call('HGET', paired, one.name) or ''
      local pair = known[bound]
      local gone = not pair or (pair.state.banned or 0) ~= 0
      local choice = pair and { pair } or {}
      if gone and one.egress == '' then choice = egresses end
      egress = first_ready(choice)
      if egress then
        account = one
        break
      end
    end
  end
end
if not egress then return { '', string.format('%.0f', soonest) } end

for _, one in ipairs({ egress, account }) do
  local state = one.state
  local leases = state.leases or {}
  for id, deadline in pairs(leases) do
    if deadline <= now then leases[id] = nil end
  end
  leases[lease] = now + lease_ms
  state.leases, state.used = leases, now
  for name, window in pairs({ hour = { TEN_MINUTES, HOUR_BUCKETS }, day = { HOUR, DAY_BUCKETS } }) do
    local buckets, key = state[name] or {}, key_of(now, window[1])
    buckets[key] = (buckets[key] or 0) + 1
    prune(buckets, tonumber(key) - window[2])
    state[name] = buckets
  end
  write(standings, one.subject, state)
end
if account then redis.call('HSET', paired, account.name, egress.name) end
return { egress.name, account and account.name or '' }
