-- Tells what there is of a lock, of any layout, or of a semaphore. For people. Changes
-- nothing.
--
-- KEYS  1 lock  2 queue  3 token  4 line  5 wants (these two: if there is a line)
--       6 permits (if there are some)
--
-- Reply type: array
-- Reply {clock, fields, holder, count, pttl, waiting, token}
--       the server's clock, in us; how many fields the hash has: 0 if nothing
--       is there, -1 if it is a string, -2 if it is of another type; the hash's
--       first field, or the string, cut at 511 bytes, and its value, or '1', of a
--       read-write lock behind 'read ' or 'write ';
--       the key's TTL in ms; how many clients are in the queue, or stand in line;
--       the last token, cut at 32 bytes, or ''.
--       Of a semaphore: fields, how many have permits; one of them; 'permits ', how
--       many it has, ' ', how many are free; its lease in ms, -1: that has no end
--
-- What a right is missing for is no nothing: that is answered.
local rcall, rpcall = redis.call, redis.pcall
local refused
-- include: clock.lua

local function ask(command, ...)
    local reply = rpcall(command, ...)
    if type(reply) ~= 'table' or not reply.err then
        return reply
    end
    if not reply.err:find('WRONGTYPE') then
        refused = redis.error_reply(reply.err .. ' (' .. command .. ')')
    end
end

-- include: in_line.lua

-- A client counts once, and not for the place in the queue that it has when nobody
-- of it stands in line any more.
local function how_many_wait()
    local waiting, counted = 0, {}
    local standing, why = in_line()
    refused = refused or why
    for _, who in ipairs(standing or {}) do
        waiting = waiting + (counted[who[3]] and 0 or 1)
        counted[who[3]] = true
    end
    for _, bell in ipairs(ask('ZRANGE', KEYS[2], 0, -1) or {}) do
        waiting = waiting + (stood(bell) and 0 or 1)
    end
    return waiting
end

-- Of a read-write lock (rw/give.lua) one of those who have it, and its level behind
-- the mode.
local function first_field()
    local cursor, page, mode = '0', {}, rpcall('HGET', KEYS[1], 'mode')
    repeat
        local found = ask('HSCAN', KEYS[1], cursor, 'COUNT', 100)
        cursor, page = found and found[1] or '0', found and found[2] or {}
        if page[1] == 'mode' and page[2] == mode then
            page = {unpack(page, 3)}
        end
    until page[1] or cursor == '0'
    local who, count = page[1] or '', page[2] or '0'
    if mode == 'read' or mode == 'write' then
        who, count = who:gsub(':write$', ''), mode .. ' ' .. count
    end
    return who:sub(1, 511), count:sub(1, 32)
end

local MOST = 1000
local now_ms = math.floor(clock / 1000)
-- include: permit/holders.lua

-- nil: it is none, or nobody has any of it, or waits. A latch's waiters are in the queue.
-- Else who has some, and how many are free: those whose lease is over, too.
local function of_semaphore(value)
    if not (KEYS[4] and is_whole(value)) then
        return nil
    end
    local has, over = of_permits()
    if not has then
        refused = refused or over
    elseif has[1] or is_count(value) and (in_line() or {})[1] then
        return has, string.format('%.0f', value + over)
    end
end

local fields, pttl = ask('HLEN', KEYS[1]), rcall('PTTL', KEYS[1])
local holder, count = '', '0'
local value = not fields and ask('GET', KEYS[1])
local has, free = of_semaphore(value)
if has then
    table.sort(has, function(x, y) return x[1] < y[1] end) -- at each look the same
    local one = has[1] or {'', 0, pttl}
    fields, holder, pttl = #has, one[1], one[3]
    count = 'permits ' .. one[2] .. ' ' .. free:sub(1, 20)
elseif value then
    fields, holder, count = -1, value:sub(1, 511), '1'
elseif not fields then
    fields = -2
elseif fields > 0 then
    holder, count = first_field()
end
local waiting = KEYS[4] and how_many_wait() or ask('ZCARD', KEYS[2])
local token = ask('GET', KEYS[3])
return refused or {clock, fields, holder, count, pttl, waiting or 0,
                   (token or ''):sub(1, 32)}
