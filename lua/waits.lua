-- Tells who holds a lock, of any layout and kind, and who waits for it. Changes
-- nothing.
--
-- KEYS  1 lock  2 queue  3 who waits  4 line  5 wants (these two: if there is a line)
--       6 leases of a read-write lock, or permits of a semaphore (may be missing)
--
-- Reply type: string or array
-- Reply want   as who stands in line has it (line.lua): this is to be asked again, with
--              the KEYS 6 for who waits for that
--       {clock, n, holder, count, ms, ..., bell, ticket, id, rank, what, ...}
--              the server's clock, in us; how many have it, and each of these: its id,
--              its count, of a semaphore so many permits, and for how many ms its lease
--              goes on, -1: it has no end; a timestamp is told as it is, also when its
--              time has passed. Then of each holder id in line, in that order, the bell
--              of its client, its ticket, itself, how many are before it, and what it
--              wants; then of each client in the queue, in their order, its bell, its
--              ticket, the holder id by which it asks, '' if that is not known, -1, and
--              'l' if it is a latch, else ''. A client that has stood in line is told of
--              the queue only where its id is known
local rcall, rpcall = redis.call, redis.pcall
-- include: clock.lua

-- include: holders.lua
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
            local ticket, whose = found[2][i + 1]:match('^(%d+) (%S*)')
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
for _, who in ipairs(standing) do
    if who[4] ~= 'f' and not KEYS[6] then
        return who[4]
    end
end
local value = rpcall('GET', KEYS[1])
local has = holders(value)
local reply = {clock, #has}
local function tell(words)
    for _, word in ipairs(words) do
        reply[#reply + 1] = word
    end
end

for _, who in ipairs(has) do
    tell(who)
end
for rank, who in ipairs(standing) do
    tell({who[3], who[2], who[1]:sub(1, 511), rank - 1, who[4]})
end
local id, what = queue[1] and ids() or {}, is_count(value) and 'l' or ''
for i = 1, #queue, 2 do
    local whose = id[queue[i] .. queue[i + 1]]
    if whose or not stood(queue[i]) then
        tell({queue[i], queue[i + 1], whose or '', -1, what})
    end
end
return reply
