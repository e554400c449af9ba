-- Frees the lock, whoever holds it, and wakes one waiter.
--
-- KEYS  1 lock  2 queue
-- ARGV  1 Redisson's channel  2 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  it was held and is free
--       0  nobody held it
-- include: ring.lua
if redis.call('HLEN', KEYS[1]) == 0 then
    return 0
end
redis.call('DEL', KEYS[1])
ring(KEYS[2], KEYS[1])
redis.pcall(ARGV[2] or 'PUBLISH', ARGV[1], '0')
return 1
