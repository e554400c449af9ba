-- Included by the acquire scripts, after mint.lua.
--
-- queue(key, bell, ticket): puts a client into a lock's queue and returns its
-- ticket, the server's clock at its first try; '0' without a bell. The queue
-- lives a little longer than the longest pause between two tries of a waiter,
-- so that it goes with the last of them.
local function queue(key, bell, ticket)
    if bell == '' then
        return '0'
    end
    if ticket == '0' then
        ticket = now()
    end
    if type(redis.pcall('ZADD', key, ticket, bell)) == 'number' then
        redis.call('PEXPIRE', key, 6000)
    end
    return ticket
end
