#!lua flags=allow-oom
--[[
  Looks whether the formats of a video have all ended; if so, its publish item leaves for the publish inbox.

  KEYS[1]  groups    HASH  video -> publish item, with `jobs`
  KEYS[2]  result    HASH  of dl: item id -> record
  KEYS[3]  skipped   HASH  of dl
  KEYS[4]  fail      HASH  of dl
  KEYS[5]  inbox     LIST  of publish: elements
  KEYS[6]  progress  HASH  of publish: item id -> record
  KEYS[7]  leases    ZSET  of publish: item id -> lease deadline, ms
  KEYS[8]  result    HASH  of publish
  KEYS[9]  skipped   HASH  of publish
  KEYS[10] fail      HASH  of publish
  KEYS[11] deferred  HASH  of publish

  ARGV[1…] videos

  Returns how many left.
]]
local groups = KEYS[1]
local videos = ARGV

local wrong = first_wrong_type(join_types(KEYS))
if wrong then return wrong end

local left, now = 0, now_ms()
for _, video in ipairs(videos) do
  local before = redis.call('HEXISTS', groups, video)
  join(KEYS, video, '', 0, now)
  left = left + before - redis.call('HEXISTS', groups, video)
end
return left
