-- Frees the lock, whoever holds it, and wakes one waiter.
--
-- KEYS  1 lock  2 queue
-- ARGV  1 not used  2 not used (may be missing)
--
-- Reply type: integer
-- Reply as of hash/force_release.lua
-- include: ring.lua
if not redis.call('GET', KEYS[1]) then
    return 0
end
redis.call('DEL', KEYS[1])
ring(KEYS[2], KEYS[1])
return 1
