-- Tells what there is of a lock, of any layout. For people. Changes nothing.
--
-- KEYS  1 lock  2 queue  3 token  4 line  5 wants (these two: if there is a line)
--
-- Reply type: array
-- Reply {clock, fields, holder, count, pttl, waiting, token}
--       the server's clock, in us; how many fields the hash has: 0 if nothing
--       is there, -1 if it is a string, -2 if it is of another type; the hash's
--       first field, or the string, cut at 511 bytes, and its value, or '1', of a
--       read-write lock behind 'read ' or 'write ';
--       the key's TTL in ms; how many clients are in the queue, or stand in line;
--       the last token, cut at 32 bytes, or ''
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

local fields = ask('HLEN', KEYS[1])
local holder, count = '', '0'
if not fields then
    local value = ask('GET', KEYS[1])
    fields = value and -1 or -2
    if value then
        holder, count = value:sub(1, 511), '1'
    end
elseif fields > 0 then
    holder, count = first_field()
end
local waiting = KEYS[4] and how_many_wait() or ask('ZCARD', KEYS[2])
local token = ask('GET', KEYS[3])
return refused or {clock, fields, holder, count, rcall('PTTL', KEYS[1]),
                   waiting or 0, (token or ''):sub(1, 32)}
