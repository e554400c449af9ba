-- Frees the lock, and nothing else.
--
-- KEYS  1 lock
-- ARGV  1 holder
--
-- Reply type: integer
-- Reply as of hash/drop.lua
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call('DEL', KEYS[1])
