-- Counts down; at level 0 frees the lock and wakes one waiter.
--
-- KEYS  1 lock  2 queue  3 tombstone
-- ARGV  1 holder  2 Redisson's channel ('' = none)  3 level to leave
--       4 tombstone ms (0 = none)  5 SPUBLISH, in a cluster (may be missing)
-- Without KEYS 3 and ARGV 3 to 5 the level is 0, and there is no tombstone.
--
-- Reply type: integer
-- Reply 1  the holder's count is the level, or its field is gone
--       2  the same, and a waiting client was rung
--       0  not held by this holder; no hold was changed
--       10 more  the same, but the server refused to write the tombstone (out
--                of memory): say it again later
-- While the tombstone stands, an acquire of this hold that still arrives is
-- refused.
--
-- Writes that a server out of memory refuses go through pcall: a release has
-- to succeed there. A count that could not be written is put right by the next
-- re-entry or release, which both say the level they want.
-- include: ring.lua
-- include: release_args.lua
if level ~= '0' then
    if rcall('HEXISTS', KEYS[1], ARGV[1]) == 0 then
        return unburied
    end
    rpcall('HSET', KEYS[1], ARGV[1], level)
    return unburied + 1
end
if rcall('HDEL', KEYS[1], ARGV[1]) == 0 then
    return unburied
end
local rung = ring(KEYS[2], KEYS[1])
if ARGV[2] ~= '' then
    rpcall(ARGV[5] or 'PUBLISH', ARGV[2], '0')
end
return unburied + (rung and 2 or 1)
