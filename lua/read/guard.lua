-- Lets a script of the program go on only while the holder has the read side.
--
-- KEYS  those of the program's script, then: lock, leases
-- ARGV  those of the program's script, then: holder
--
-- Guard: what is behind it finds its own KEYS and ARGV
-- Reply NOTHELD <holder>, an error: not held by this holder; nothing behind
--       this was executed
do
    local leases, key = table.remove(KEYS), table.remove(KEYS)
    local holder = table.remove(ARGV)
    local field = holder
    -- include: rw/guard.lua
end
