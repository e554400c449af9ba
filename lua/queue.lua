-- Brings busy. Included by the acquire scripts, behind acquire_args.lua, queue and waits.
--
-- busy(pttl, foreign): puts the client into the lock's queue, if it gave a
-- bell, and returns the reply {0, pttl, ticket, foreign, rank}. The ticket is the
-- server's clock at the client's first try; the rank is how many are before it,
-- -1 if it is not known or not queued. Who gives no bell may not want to wait,
-- and has to tell people why he did not get it: he is told who has it, too.
--
-- Who has waited for long gives a key more, and says there who it is, for
-- waits.lua. With the ticket, as another thread of the client may be the next
-- one to ask. With a beat, what it wants is there, too, for grant.lua.
--
-- The queue lives a little longer than the longest pause between two tries of a
-- waiter, so that it goes with the last of them. A server out of memory queues
-- nobody, and waiters poll; but one that has become a replica will never tell
-- that the lock is free.
-- include: who_has_it.lua
local function busy(pttl, foreign)
    local ticket, rank = ARGV[5], -1
    if bell == '' then
        return {0, pttl, '0', foreign, rank, who_has_it(KEYS[2])}
    end
    if ticket == '0' then
        -- include: clock.lua
        ticket = clock
    end
    local queued = rpcall('ZADD', queue, ticket, bell)
    if type(queued) == 'number' then
        rcall('PEXPIRE', queue, 6000)
        rank = rpcall('ZRANK', queue, bell)
        if waits then
            local want = ARGV[7] and ' ' .. lease .. ' ' .. ARGV[7] or ''
            rpcall('HSET', waits, bell, ticket .. ' ' .. holder .. want)
            rpcall('PEXPIRE', waits, 6000)
        end
    elseif queued.err:find('READONLY') then
        return queued
    end
    return {0, pttl, ticket, foreign, type(rank) == 'number' and rank or -1}
end
