-- At level 0 frees the lock and wakes one waiter, if the value is still the one
-- that was set; above, says whether it is still held.
--
-- KEYS  1 lock  2 queue  3 tombstone
-- ARGV  1 holder  2 not used  3 level to leave
--       4 tombstone ms (0 = none)  5 not used (may be missing)
-- Without KEYS 3 and ARGV 3 to 5 the level is 0, and there is no tombstone.
--
-- Reply type: integer
-- Reply as of hash/release.lua
-- include: ring.lua
-- include: timestamp/stamp.lua
-- include: release_args.lua
local free_at, mine = stamp.read(KEYS[1], ARGV[1])
if not free_at then
    return stamp.wrong
end
if not mine then
    return unburied
end
if level ~= '0' then
    return unburied + 1
end
rcall('DEL', KEYS[1])
return unburied + (ring(KEYS[2], KEYS[1]) and 2 or 1)
