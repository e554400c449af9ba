-- Frees the lock, if the value is still the one that was set, and nothing else.
--
-- KEYS  1 lock
-- ARGV  1 holder
--
-- Reply type: integer
-- Reply as of hash/drop.lua
-- include: timestamp/stamp.lua
local free_at, mine = stamp.read(KEYS[1], ARGV[1])
if not free_at then
    return stamp.wrong
end
return mine and redis.call('DEL', KEYS[1]) or 0
