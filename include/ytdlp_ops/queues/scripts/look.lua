#!lua flags=no-writes
--[[
  Looks at one item in several places at one moment. (MULTI would do the same, but is refused when memory is short.)

  KEYS[1…] HASH or ZSET

  ARGV[1] item_id

  Returns one value a key: the item's record, or its time as a string; nothing where it has none.
]]
local id = ARGV[1]

local found = {}
for at, key in ipairs(KEYS) do
  found[at] = redis.call(redis.call('TYPE', key).ok == 'zset' and 'ZSCORE' or 'HGET', key, id)
end
return found
