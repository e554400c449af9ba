-- Frees the lock, whoever holds it, and wakes one waiter.
--
-- KEYS  1 lock  2 queue
-- ARGV  1 Redisson's channel  2 the lock's name
--
-- Reply 1  it was held and is free
--       0  nobody held it
-- Included by the scripts that may free a lock.
--
-- ring(queue, name): wakes one waiting client. PUBLISH answers how many got
-- the message; a bell that nobody hears belongs to a dead client, and the next
-- one is rung. A server that refuses (an ACL without the channel) ends it:
-- waiters have their fallback poll, and the release must succeed. Returns
-- whether a client was reached.
local function ring(queue, name)
    while true do
        local first = redis.pcall('ZPOPMIN', queue)
        if first.err or not first[1] then
            return false
        end
        local heard = redis.pcall('PUBLISH', first[1], name)
        if heard ~= 0 then
            return type(heard) == 'number'
        end
    end
end
if redis.call('HLEN', KEYS[1]) == 0 then
    return 0
end
redis.call('DEL', KEYS[1])
ring(KEYS[2], ARGV[2])
redis.pcall('PUBLISH', ARGV[1], '0')
return 1
