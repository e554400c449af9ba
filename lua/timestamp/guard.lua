-- Lets a script of the program go on only while the holder has the lock.
--
-- KEYS  those of the program's script, then: lock
-- ARGV  those of the program's script, then: holder
--
-- Guard: what is behind it finds its own KEYS and ARGV
-- Reply as of hash/guard.lua; also when the value's time has passed
do
    local key, holder = table.remove(KEYS), table.remove(ARGV)
    local answer, held = redis.pcall('GET', key), false
    if type(answer) ~= 'table' then
        -- include: timestamp/stamp.lua
        local free_at, mine = stamp.read(key, holder)
        held = mine and free_at > stamp.now()
    end
    -- include: guard_end.lua
end
