-- Tells how a read-write lock is had, and by how many. Changes nothing.
--
-- KEYS  1 lock  2 line  3 leases
--
-- Reply type: array
-- Reply {mode, holders, waiting, pttl}
--       mode: 0 free, 1 read, 2 written; how many have it: a writer who reads
--       counts once; how many stand in line; and for how many ms the last lease in
--       there goes on: -1 without an end, -2 free
local rcall, leases = redis.call, KEYS[3]
local mode, waiting = rcall('HGET', KEYS[1], 'mode'), rcall('ZCARD', KEYS[2])
if mode and mode ~= 'read' and mode ~= 'write' or
   not mode and rcall('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('WRONGTYPE the hash is no read-write lock')
end
-- include: clock.lua
local now_ms = math.floor(clock / 1000)
-- include: rw/ends_in.lua
local written = mode == 'write'

-- But those whose own lease is over; what is not in there any more is nobody's.
local function holders()
    local n = rcall('HLEN', KEYS[1]) - 1
    for _, field in ipairs(rcall('ZRANGEBYSCORE', leases, '-inf',
                                 '(' .. string.format('%.0f', now_ms))) do
        local there = rcall('HEXISTS', KEYS[1], field)
        n = n - there
        written = written and not (there == 1 and field:sub(-6) == ':write')
    end
    return written and 1 or n
end
local n = mode and holders() or 0
local had = written and 2 or 1
return {n > 0 and had or 0, n, waiting, n > 0 and ends_in() or -2}
