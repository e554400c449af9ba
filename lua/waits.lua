-- Tells who holds a lock, of any layout, and who waits for it. Changes nothing.
--
-- KEYS  1 lock  2 queue  3 who waits  4 line  5 wants (these two: if there is a line)
--
-- Reply type: array
-- Reply {clock, holder, count, pttl, bell, ticket, id, rank, ...}
--       the server's clock, in us; the holder as inspect tells it, but that of
--       a timestamp also when its time has passed; '', '0' and -2 if nobody
--       does, '' and '0' of a semaphore; then of each holder id in line, in that order, the bell of its
--       client, its ticket, itself, and how many are before it; then of each
--       client in the queue, in their order, its bell, its ticket, and the holder
--       id by which it asks, '' if that is not known, and -1. A client that has
--       stood in line is told of the queue only where its id is known
local rcall, rpcall = redis.call, redis.pcall
-- include: clock.lua

-- include: about_lock.lua
-- include: in_line.lua

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
    if not queue.err:find('WRONGTYPE') then
        return queue
    end
    queue = {}
end
local standing, refused = in_line()
if not standing then
    return refused
end
local holder, count = about_lock()
if standing[1] and holder:find('^%-?%d+$') then -- so many permits are free
    holder, count = '', '0'
end
local reply = {clock, holder, count, rcall('PTTL', KEYS[1])}
local function tell(bell, ticket, whose, rank)
    for _, word in ipairs({bell, ticket, whose, rank}) do
        reply[#reply + 1] = word
    end
end

for rank, who in ipairs(standing) do
    tell(who[3], who[2], who[1]:sub(1, 511), rank - 1)
end
local id = queue[1] and ids() or {}
for i = 1, #queue, 2 do
    local whose = id[queue[i] .. queue[i + 1]]
    if whose or not stood(queue[i]) then
        tell(queue[i], queue[i + 1], whose or '', -1)
    end
end
return reply
