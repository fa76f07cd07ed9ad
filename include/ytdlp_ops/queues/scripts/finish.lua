#!lua flags=allow-oom
--[[
  Gives an item up with its one terminal record, and pushes what comes next in the same step.

  KEYS[1]  progress  HASH  item id -> record
  KEYS[2]  leases    ZSET  item id -> lease deadline, ms
  KEYS[3]  terminal  HASH  result, fail, skipped or deferred: item id -> record
  KEYS[4]  due       ZSET  item id -> due time, ms
  KEYS[5]  counters  HASH  name -> how often
  KEYS[6]  circuit   HASH  state, reason, share, opened_at, until_ms, until, cool_down_ms, probe, recent
  KEYS[7…17]         the keys of the join, as in join.lua
  KEYS[18…] next     LIST  inboxes to push to

  ARGV[1] item_id
  ARGV[2] token      proof that the caller still owns the item
  ARGV[3] record     JSON object
  ARGV[4] due_in_ms  when the sweeper takes it up again, or empty
  ARGV[5] place      result, fail, skipped or deferred: counted
  ARGV[6] code       counted too, or empty
  ARGV[7] class      what the circuit breaker makes of it: ok, undecided, or a systemic class; its first letter
                     stands for it in `recent`, newest first
  ARGV[8] breaker    four numbers: finishes to look back on, the share of them in one systemic class above which
                     the circuit opens, ms of the first cool-down, ms of the longest
  ARGV[9]  video     whose group this item belongs to, or empty
  ARGV[10] group     JSON object: the publish item that auth makes of the video's formats, or empty
  ARGV[11] gone      JSON list of jobs that auth has given up on
  ARGV[12] in_place  the token under which the caller publishes, if this end completes its group; or empty
  ARGV[13] claim_lease_ms  of that claim
  ARGV[14…] two a push: number of the inbox among `next`, element (JSON object)

  Returns 1, also when this very token finished it before; or 0 when the item is gone or another's; or the record
  of the publish item that the caller has claimed by it.
]]
local progress, leases, terminal, due, counters, circuit = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, token, record, due_in_ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local place, code, class, breaker = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local video, group, gone, in_place, claim_lease_ms = ARGV[9], ARGV[10], ARGV[11], ARGV[12], tonumber(ARGV[13])
local join_keys = { unpack(KEYS, 7, 17) }
local groups = join_keys[1]
local first_next, first_push = 17, 14
local inboxes = {}

local wanted = {
  [progress] = 'hash', [leases] = 'zset', [terminal] = 'hash', [counters] = 'hash', [circuit] = 'hash',
  [due] = due_in_ms and 'zset' or nil,
}
for at = first_next + 1, #KEYS do
  inboxes[at - first_next] = KEYS[at]
  wanted[KEYS[at]] = 'list'
end
local wrong = first_wrong_type(wanted) or first_wrong_type(join_types(join_keys))
if wrong then return wrong end

local current = read(redis.call('HGET', progress, id))
if current.token ~= token then
  return read(redis.call('HGET', terminal, id)).token == token and 1 or 0
end

local now = now_ms()
local stamp = iso(now)

local function open(text, cool_down)
  redis.call('HSET', circuit, 'state', 'open', 'reason', class, 'share', text, 'opened_at', stamp,
    'cool_down_ms', number(cool_down), 'until_ms', number(now + cool_down), 'until', iso(now + cool_down))
  redis.call('HDEL', circuit, 'probe')
  count(counters, 'circuit_opened', 1)
end

local function judge()
  local window, share, cool_down, longest = string.match(breaker, '(%S+) (%S+) (%S+) (%S+)')
  local state, probe, before, recent = unpack(redis.call('HMGET', circuit, 'state', 'probe', 'cool_down_ms', 'recent'))
  local systemic, mark = class ~= 'ok' and class ~= 'undecided', string.sub(class, 1, 1)
  if state and probe == id and class == 'ok' then return redis.call('DEL', circuit) end
  recent = string.sub(mark .. (recent or ''), 1, tonumber(window))
  redis.call('HSET', circuit, 'recent', recent)
  if not systemic then return end
  if state and probe == id then
    open('the probe', math.min(2 * (tonumber(before) or cool_down), tonumber(longest)))
  elseif not state then
    local same = select(2, string.gsub(recent, mark, ''))
    if same > share * window then open(same .. ' of the last ' .. window, tonumber(cool_down)) end
  end
end

local members = '"finished_at":"' .. stamp .. '"'
if due_in_ms then members = members .. ',"retry_at":"' .. iso(now + due_in_ms) .. '"' end
if tonumber(current.duplicates) then members = members .. ',"duplicates":' .. number(current.duplicates) end
-- Deletes first: servers before 7.0 know no allow-oom, but let a script go on that has written already.
redis.call('HDEL', progress, id)
redis.call('ZREM', leases, id)
redis.call('HSET', terminal, id, with(record, members))
if due_in_ms then redis.call('ZADD', due, number(now + due_in_ms), id) end
local submitted_at = '"submitted_at":"' .. stamp .. '"'
for at = first_push, #ARGV, 2 do
  redis.call('RPUSH', inboxes[tonumber(ARGV[at])], with(ARGV[at + 1], submitted_at))
end
judge()
count(counters, place, 1)
if code ~= '' then count(counters, place .. ':' .. code, 1) end
if video == '' then return 1 end

-- Another request for the video may still wait for formats of its own: the group is then both.
local function enter_group()
  local before, entered, jobs = read(redis.call('HGET', groups, video)), {}, {}
  for _, list in ipairs({ read(group).jobs, before.jobs or {} }) do
    for _, job in ipairs(list) do
      if not entered[job] then jobs[#jobs + 1] = job end
      entered[job] = true
    end
  end
  redis.call('HSET', groups, video, with(group, '"jobs":' .. cjson.encode(jobs) .. ',' .. submitted_at))
end

if group ~= '' then enter_group() end
for _, job in ipairs(cjson.decode(gone)) do
  local element = redis.call('HGET', groups, video)
  if element then redis.call('HSET', groups, video, with(element, cjson.encode('gone:' .. job) .. ':true')) end
end
return join(join_keys, video, in_place, claim_lease_ms, now) or 1
