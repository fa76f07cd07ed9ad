#!lua
--[[
  Takes items from the head of an inbox into progress, each with a token and a lease.

  The caller has looked at the head (peek) and says what each element is; the first element that it has not
  seen ends the claim. Refused under memory pressure: what can't be recorded is not taken. Nothing is taken
  while the stage is paused, its circuit is open or its starts a minute are used up; a direct candidate is.

  KEYS[1]  inbox      LIST  elements
  KEYS[2]  progress   HASH  item id -> record
  KEYS[3]  leases     ZSET  item id -> lease deadline, ms
  KEYS[4]  result     HASH  item id -> record
  KEYS[5]  fail       HASH  item id -> record
  KEYS[6]  skipped    HASH  item id -> record
  KEYS[7]  deferred   HASH  item id -> record
  KEYS[8]  due        ZSET  item id -> due time, ms
  KEYS[9]  request    LIST  this request's records, kept so that asking twice claims once
  KEYS[10] oversized  HASH  item id -> the bytes of elements too long to be looked at
  KEYS[11] pause      HASH  since, reason
  KEYS[12] circuit    HASH  state, reason, share, opened_at, until_ms, until, cool_down_ms, probe, recent
  KEYS[13] limits     HASH  bucket -> starts a minute
  KEYS[14] buckets    HASH  bucket -> tokens left
  KEYS[15] counters   HASH  name -> how often

  ARGV[1] lease_ms
  ARGV[2] most       items to claim
  ARGV[3] max_bytes  longer elements go to fail unseen
  ARGV[4] direct     1: the one candidate is not in the inbox; take it without popping
  ARGV[5] oversized_record  JSON object, the fail record of an element that is too long
  ARGV[6] bucket     the stage's, in limits
  ARGV[7…] five a candidate: element, item_id, record (JSON object), wants, and in one word a kind (i: an item;
           f: one to be done again by force; e: one for elsewhere, not this host; b: bad) and its token

  Returns elements taken from the inbox, copies dropped, elements refused, elements put back to the tail
  (another request for the same id runs, or not on this host), 1 if more waits that the caller has not seen,
  why nothing may be claimed (or ''), then the progress record of each claimed item.
]]
local inbox, progress, leases, result, fail, skipped, deferred, due, request, oversized =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local pause, circuit, limits, buckets, counters = KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local lease_ms, most, max_bytes, direct, oversized_record, bucket =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5], ARGV[6]
local first, each = 7, 5

local wrong = first_wrong_type({
  [inbox] = 'list', [progress] = 'hash', [leases] = 'zset', [result] = 'hash', [fail] = 'hash',
  [skipped] = 'hash', [deferred] = 'hash', [due] = 'zset', [request] = 'list', [oversized] = 'hash',
  [pause] = 'hash', [circuit] = 'hash', [limits] = 'hash', [buckets] = 'hash', [counters] = 'hash',
})
if wrong then return wrong end

local before = redis.call('LRANGE', request, 0, -1)
if #before > 0 then return { 0, 0, 0, 0, 0, '', unpack(before) } end

local now = now_ms()
local stamp = iso(now)
local candidates = {}
for at = first, #ARGV, each do
  candidates[ARGV[at]] = candidates[ARGV[at]] or at
end

-- Why nothing may be claimed; or that one item may, as a probe.
local function closed_by()
  local paused = redis.call('HMGET', pause, 'since', 'reason')
  if paused[1] then return 'paused since ' .. paused[1] .. ': ' .. (paused[2] or '') end
  local open = redis.call('HMGET', circuit, 'state', 'reason', 'share', 'until_ms', 'until', 'probe')
  local state, reason, share, until_ms, until_text, probe = unpack(open)
  if not state then return '' end
  local text = 'circuit open: ' .. (share or '') .. ' ended ' .. (reason or '')
  if state == 'open' and now < (tonumber(until_ms) or 0) then
    return text .. '; nothing is claimed until ' .. (until_text or '')
  end
  if probe and redis.call('HEXISTS', progress, probe) == 1 then
    return text .. '; ' .. probe .. ' decides whether it closes'
  end
  return '', true
end

-- The record that an earlier request left: the new request takes it away and keeps it as `previous`.
local function take_previous(id)
  local found, ended
  for _, hash in ipairs({ result, deferred, skipped, fail }) do
    local record = redis.call('HGET', hash, id)
    if record then
      redis.call('HDEL', hash, id)
      found, ended = record, hash ~= result
    end
  end
  if ended then redis.call('ZREM', due, id) end
  return found, ended
end

local function start(id, record, token)
  local previous, ended = take_previous(id)
  local members = '"state":"claimed","token":"' .. token .. '","claimed_at":"' .. stamp .. '"'
  -- A retry leaves nothing in fail, skipped or deferred: what finds something there is a new request.
  if ended then members = members .. ',"attempt":1' end
  if previous then members = members .. ',"previous":' .. as_previous(previous) end
  local claimed = with(record, members)
  redis.call('HSET', progress, id, claimed)
  redis.call('ZADD', leases, number(now + lease_ms), id)
  return claimed
end

local function refuse(id, record)
  redis.call('HSET', fail, id, with(record, '"finished_at":"' .. stamp .. '"'))
end

local taken, already_done, running, refused, later = 0, 0, 0, 0, {}
local claimed, last_id = {}, nil

local function decide(at)
  local element, id, record, wants = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local kind, token = string.sub(ARGV[at + 4], 1, 1), string.sub(ARGV[at + 4], 2)
  if kind == 'b' then
    refuse(id, record)
    refused = refused + 1
    return
  end
  local copy = kind == 'e' and 'later' or copy_of(progress, result, id, wants, kind == 'f')
  if copy == 'later' then
    later[#later + 1] = element
  elseif copy == 'running' then
    running = running + 1
  elseif copy then
    already_done = already_done + 1
  else
    claimed[#claimed + 1] = start(id, record, token)
    last_id = id
  end
end

local closed, probing, tokens, a_minute, more = '', false, nil, nil, 0
if direct then
  decide(first)
else
  closed, probing = closed_by()
  tokens, a_minute = tokens_in(limits, buckets, bucket, now)
  if closed == '' and tokens and tokens < 1 then
    closed = 'limited to ' .. a_minute .. ' starts a minute'
  end
  most = math.min(most, probing and 1 or most, tokens and math.floor(tokens) or most)
  local looked_at = (#ARGV - first + 1) / each
  while closed == '' and #claimed < most and taken < looked_at + most do
    local element = redis.call('LINDEX', inbox, taken)
    if not element then break end
    local at = candidates[element]
    if #element > max_bytes then
      local id = 'bad_input:' .. redis.sha1hex(element)
      redis.call('HSET', oversized, id, element)
      refuse(id, with(oversized_record, '"id":"' .. id .. '","raw_bytes":' .. #element))
      refused = refused + 1
    elseif at then
      decide(at)
    else
      more = 1
      break
    end
    taken = taken + 1
  end
  if taken > 0 then redis.call('LPOP', inbox, taken) end
end
for _, element in ipairs(later) do redis.call('RPUSH', inbox, element) end

if #claimed > 0 then
  redis.call('RPUSH', request, unpack(claimed))
  redis.call('PEXPIRE', request, number(lease_ms))
  if probing then redis.call('HSET', circuit, 'state', 'probing', 'probe', last_id) end
  if tokens then keep_tokens(buckets, bucket, tokens - #claimed, now) end
end
count(counters, 'claimed', #claimed)
count(counters, 'copies_dropped', running)
count(counters, 'already_done', already_done)
count(counters, 'refused', refused)
return { taken, running + already_done, refused, #later, more, closed, unpack(claimed) }
