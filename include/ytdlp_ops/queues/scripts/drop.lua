#!lua flags=allow-oom
--[[
  Deletes entries of a HASH or LIST that are still as they were saved. Of a LIST, which is emptied from its head,
  those that left it meanwhile are passed over.

  KEYS[1] source  HASH or LIST
  KEYS[2] times   ZSET  item id -> lease deadline or due time of a HASH's items

  ARGV[1] kind  hash or list
  ARGV[2…] two an entry: its item id (of a LIST: empty), its value as it was saved

  Returns how many were deleted.
]]
local source, times = KEYS[1], KEYS[2]
local kind = ARGV[1]
local first, each = 2, 2

local wrong = first_wrong_type({ [source] = kind, [times] = 'zset' })
if wrong then return wrong end

local dropped = 0
for at = first, #ARGV, each do
  local id, seen = ARGV[at], ARGV[at + 1]
  if kind == 'hash' and redis.call('HGET', source, id) == seen then
    redis.call('HDEL', source, id)
    redis.call('ZREM', times, id)
    dropped = dropped + 1
  elseif kind == 'list' and redis.call('LINDEX', source, 0) == seen then
    redis.call('LPOP', source)
    dropped = dropped + 1
  end
end
return dropped
