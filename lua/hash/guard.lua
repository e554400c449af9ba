-- Lets a script of the program go on only while the holder has the lock.
--
-- KEYS  those of the program's script, then: lock
-- ARGV  those of the program's script, then: holder
--
-- Guard: what is behind it finds its own KEYS and ARGV
-- Reply NOTHELD <holder>, an error: not held by this holder; nothing behind
--       this was executed
do
    local key, holder = table.remove(KEYS), table.remove(ARGV)
    local answer = redis.pcall('HEXISTS', key, holder)
    local held = answer == 1
    -- include: guard_end.lua
end
