#!lua flags=no-writes
--[[
  Looks at the head of an inbox without taking anything.

  KEYS[1] inbox  LIST  elements

  ARGV[1] most       elements to look at
  ARGV[2] max_bytes  longer elements are not sent, only their length

  Returns the server's time in ms, then one entry an element: its bytes, or its length as a number where it is
  too long; fewer than asked for where they are many bytes.
]]
local inbox = KEYS[1]
local most, max_bytes = tonumber(ARGV[1]), tonumber(ARGV[2])

local wrong = wrong_type(inbox, 'list')
if wrong then return wrong end

local at_a_time, enough_bytes = 16, 1024 * 1024
local answer, bytes = { now_ms() }, 0
for from = 0, most - 1, at_a_time do
  local elements = redis.call('LRANGE', inbox, from, math.min(from + at_a_time, most) - 1)
  for _, element in ipairs(elements) do
    bytes = bytes + #element
    answer[#answer + 1] = #element > max_bytes and #element or element
  end
  if #elements < at_a_time or bytes > enough_bytes then break end
end
return answer
