-- Lets a script of the program go on only while the holder has the lock.
--
-- KEYS  those of the program's script, then: lock
-- ARGV  those of the program's script, then: holder
--
-- Guard: what is behind it finds its own KEYS and ARGV
-- Reply as of hash/guard.lua
do
    local key, holder = table.remove(KEYS), table.remove(ARGV)
    local answer = redis.pcall('GET', key)
    local held = answer == holder
    -- include: guard_end.lua
end
