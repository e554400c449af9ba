-- Frees the lock, whoever holds it, and wakes one waiter.
--
-- KEYS  1 lock  2 queue
-- ARGV  1 not used  2 not used (may be missing)
--
-- Reply type: integer
-- Reply as of hash/force_release.lua
-- include: ring.lua
-- include: timestamp/stamp.lua
local free_at = stamp.read(KEYS[1])
if not free_at then
    return stamp.wrong
end
if free_at < stamp.now() then
    return 0
end
redis.call('DEL', KEYS[1])
ring(KEYS[2], KEYS[1])
return 1
