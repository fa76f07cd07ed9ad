#!lua
--[[
  Puts elements into an inbox, but for copies of what runs or is done.

  KEYS[1] inbox     LIST    elements
  KEYS[2] progress  HASH    item id -> record
  KEYS[3] result    HASH    item id -> record
  KEYS[4] request   STRING  this request's answer, kept so that asking twice submits once
  KEYS[5] counters  HASH    name -> how often

  ARGV[1] request_ttl_ms
  ARGV[2] urgent   1: to the head of the inbox
  ARGV[3…] four an element: item_id, element (a JSON object), wants, force (1 or 0)

  Returns one word an element: queued, running or already_done.
]]
local inbox, progress, result, request, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local request_ttl_ms, urgent = ARGV[1], ARGV[2] == '1'
local first, each = 3, 4

local wrong = first_wrong_type({
  [inbox] = 'list', [progress] = 'hash', [result] = 'hash', [request] = 'string', [counters] = 'hash',
})
if wrong then return wrong end

local answered = redis.call('GET', request)
if answered then return cjson.decode(answered) end

local submitted_at = '"submitted_at":"' .. iso(now_ms()) .. '"'
local answers, counted = {}, { queued = 0, running = 0, already_done = 0 }
local function answer(word)
  answers[#answers + 1] = word
  counted[word] = counted[word] + 1
end
for at = first, #ARGV, each do
  local id, element, wants, force = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3] == '1'
  local copy = copy_of(progress, result, id, wants, force)
  if copy == 'running' or copy == 'already_done' then
    answer(copy)
  else
    redis.call(urgent and 'LPUSH' or 'RPUSH', inbox, with(element, submitted_at))
    answer('queued')
  end
end
redis.call('SET', request, cjson.encode(answers), 'PX', request_ttl_ms)
count(counters, 'submitted', counted.queued)
count(counters, 'copies_dropped', counted.running)
count(counters, 'already_done', counted.already_done)
return answers
