-- At level 0 frees the lock and wakes one waiter, if the value is still the one
-- that was set; above, says whether it is still held.
--
-- KEYS  1 lock  2 queue  3 tombstone
-- ARGV  1 holder  2 level to leave  3 lease ms (0 = leave the time)
--       4 tombstone ms (0 = none)  5 not used  6 the lock's name
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
    if lease ~= '0' then
        stamp.write(KEYS[1], ARGV[1], tonumber(lease), true)
    end
    return unburied + 1
end
rcall('DEL', KEYS[1])
return unburied + (ring(KEYS[2], ARGV[6]) and 2 or 1)
