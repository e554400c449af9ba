-- Counts down; at level 0 frees the lock and wakes one waiter, or gives it to that one.
--
-- KEYS  1 lock  2 queue  3 tombstone  4 who waits  5 token (these two: it may be given)
-- ARGV  1 holder  2 Redisson's channel ('' = none)  3 level to leave
--       4 tombstone ms (0 = none)  5 SPUBLISH, in a cluster; PUBLISH (may be missing)
--       6 the bell by which this holder may have waited ('' = none; with KEYS 4)
-- Without KEYS 3 to 5 and ARGV 3 to 6 the level is 0, and there is no tombstone.
--
-- Reply type: integer
-- Reply 1  the holder's count is the level, or its field is gone
--       2  the same, and a waiting client was rung
--       3  the same, and a waiting client has it
--       0  not held by this holder; no hold was changed
--       10 more  the same, but the server refused to write the tombstone (out
--                of memory): say it again later
-- While the tombstone stands, an acquire of this hold that still arrives is
-- refused. Who has waited by that bell is granted nothing any more.
--
-- Redisson's waiters stand in no queue: while some listen, the lock is given to nobody,
-- and whoever is first may have it.
--
-- Writes that a server out of memory refuses go through pcall: a release has
-- to succeed there. A count that could not be written is put right by the next
-- re-entry or release, which both say the level they want.
-- include: release_args.lua
local waits = KEYS[4]
if waits and ARGV[6] ~= '' then
    local want = rpcall('HGET', waits, ARGV[6])
    if type(want) == 'string' and want:find(' ' .. ARGV[1] .. ' ', 1, true) then
        rpcall('HDEL', waits, ARGV[6])
    end
end
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
local heard = waits and ARGV[2] ~= '' and rpcall(ARGV[5], ARGV[2], '0') or 0
local rung, holder = false, nil
if rcall('EXISTS', KEYS[2]) == 1 then -- costs less than to pop nobody
    -- include: ring.lua
    if waits and heard == 0 then
        local token_key = KEYS[5]
        -- include: clock.lua
        -- include: fair/grants.lua
        -- include: grant.lua
        rung, holder = ring(KEYS[2], KEYS[1], grant)
    else
        rung = ring(KEYS[2], KEYS[1])
    end
end
if not waits and ARGV[2] ~= '' then
    rpcall(ARGV[5] or 'PUBLISH', ARGV[2], '0')
end
return unburied + (holder and 3 or rung and 2 or 1)
