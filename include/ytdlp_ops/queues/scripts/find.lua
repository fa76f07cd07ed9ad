#!lua flags=no-writes
--[[
  Looks through one page of a HASH or LIST for entries that hold some texts; sends nothing else.

  KEYS[1] source  HASH or LIST

  ARGV[1] kind    what it is: hash or list
  ARGV[2] cursor  0 at first
  ARGV[3] count   entries to look at, about
  ARGV[4…] texts that an entry must hold, all of them

  Returns the cursor of the next page (0 after the last), how many were looked at, then two an entry found:
  item id (of a LIST: empty), value.
]]
local source = KEYS[1]
local kind, cursor, count = ARGV[1], ARGV[2], tonumber(ARGV[3])
local first_text = 4

local wrong = wrong_type(source, kind)
if wrong then return wrong end

local function holds_all(value)
  for at = first_text, #ARGV do
    if not string.find(value, ARGV[at], 1, true) then return false end
  end
  return true
end

local found = {}
if kind == 'hash' then
  local page = redis.call('HSCAN', source, cursor, 'COUNT', count)
  local entries = page[2]
  found[1], found[2] = page[1], #entries / 2
  for at = 1, #entries, 2 do
    if holds_all(entries[at + 1]) then
      found[#found + 1] = entries[at]
      found[#found + 1] = entries[at + 1]
    end
  end
else
  local from = tonumber(cursor)
  local elements = redis.call('LRANGE', source, from, from + count - 1)
  found[1], found[2] = #elements < count and '0' or number(from + count), #elements
  for _, element in ipairs(elements) do
    if holds_all(element) then
      found[#found + 1] = ''
      found[#found + 1] = element
    end
  end
end
return found
