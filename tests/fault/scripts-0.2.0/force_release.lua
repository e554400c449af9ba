-- Frees the lock, whoever holds it, and wakes one waiter.
--
-- KEYS  1 lock  2 queue
-- ARGV  1 Redisson's channel  2 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  it was held and is free
--       0  nobody held it
-- Brings ring. Included by the scripts that may free a lock.
--
-- ring(queue, name): wakes one waiting client. PUBLISH answers how many got
-- the message; a bell that nobody hears belongs to a dead client, and the next
-- one is rung, but not for ever: after 64 dead ones those behind them look by
-- themselves. A server that refuses (an ACL without the channel) ends it:
-- waiters have their fallback poll, and the release must succeed. Returns
-- whether a client was reached. In a cluster bells are sharded channels: what
-- PUBLISH answers there says nothing of those who listen on another server.
local function ring(queue, name)
    for _ = 1, 64 do
        local first = redis.pcall('ZPOPMIN', queue)
        if first.err or not first[1] then
            return false
        end
        local sharded = first[1]:sub(1, 12) == 'rlock_sbell:'
        local heard = redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH',
                                  first[1], name)
        if heard ~= 0 then
            return type(heard) == 'number'
        end
    end
    return false
end
if redis.call('HLEN', KEYS[1]) == 0 then
    return 0
end
redis.call('DEL', KEYS[1])
ring(KEYS[2], KEYS[1])
redis.pcall(ARGV[2] or 'PUBLISH', ARGV[1], '0')
return 1
