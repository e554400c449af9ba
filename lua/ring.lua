-- Brings ring. Included by the scripts that may free a lock.
--
-- ring(queue, name, grant): wakes one waiting client, or, with grant (grant.lua), gives
-- it the lock, if it wants that. PUBLISH answers how many got the message; a bell that
-- nobody hears belongs to a dead client, and the next one is rung, but not for ever:
-- after 64 dead ones those behind them look by themselves. A server that refuses (an
-- ACL without the channel) ends it: waiters have their fallback poll, and the release
-- must succeed. Returns whether a client was reached, and who has the lock now, if one
-- has been given it. In a cluster bells are sharded channels: what PUBLISH answers there
-- says nothing of those who listen on another server.
local function ring(queue, name, grant)
    for _ = 1, 64 do
        local first = redis.pcall('ZPOPMIN', queue)
        if first.err or not first[1] then
            return false
        end
        local sharded = first[1]:sub(1, 12) == 'rlock_sbell:'
        local said, holder = name, nil
        if grant then
            said, holder = grant(first[1], first[2])
        end
        local heard = redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH',
                                  first[1], said)
        local reached = type(heard) == 'number' and heard > 0
        if holder and not reached then
            redis.call('HDEL', KEYS[1], holder)
        end
        if heard ~= 0 then
            return reached, reached and holder
        end
    end
    return false
end
