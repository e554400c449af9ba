-- Tells who holds a lock, of any layout, and who waits for it. Changes nothing.
--
-- KEYS  1 lock  2 queue  3 who waits
--
-- Reply type: array
-- Reply {clock, holder, count, pttl, bell, ticket, id, ...}
--       the server's clock, in us; the holder as inspect tells it, but that of
--       a timestamp also when its time has passed; '', '0' and -2 if nobody
--       does; then of each client in the queue, in their order, its bell, its
--       ticket, and the holder id by which it asks, '' if that is not known
local rcall, rpcall = redis.call, redis.pcall
-- include: clock.lua

-- include: about_lock.lua

-- An id is believed while its client has the place in the queue that it had.
local function ids()
    local id, cursor = {}, '0'
    repeat
        local found = rpcall('HSCAN', KEYS[3], cursor, 'COUNT', 1000)
        if found.err then
            return id
        end
        cursor = found[1]
        for i = 1, #found[2], 2 do
            local ticket, whose = found[2][i + 1]:match('^(%d+) (.*)$')
            if ticket then
                id[found[2][i] .. ticket] = whose:sub(1, 511)
            end
        end
    until cursor == '0'
    return id
end

local queue = rpcall('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')
if queue.err then
    return queue.err:find('WRONGTYPE') and {clock, '', '0', -2} or queue
end
local holder, count = about_lock()
local reply = {clock, holder, count, rcall('PTTL', KEYS[1])}
local id = queue[1] and ids() or {}
for i = 1, #queue, 2 do
    reply[#reply + 1] = queue[i]
    reply[#reply + 1] = queue[i + 1]
    reply[#reply + 1] = id[queue[i] .. queue[i + 1]] or ''
end
return reply
