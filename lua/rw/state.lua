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
local modes = {read = 1, write = 2}
local mode, waiting = rcall('HGET', KEYS[1], 'mode'), rcall('ZCARD', KEYS[2])
if not modes[mode or 'read'] or not mode and rcall('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('WRONGTYPE the hash is no read-write lock')
end
-- include: clock.lua
local now_ms = math.floor(clock / 1000)
-- include: rw/ends_in.lua
local function holders()
    local dead = rcall('ZCOUNT', leases, '-inf', '(' .. string.format('%.0f', now_ms))
    return math.max(0, rcall('HLEN', KEYS[1]) - 1 - dead)
end
local n = mode == 'write' and 1 or mode and holders() or 0
return {n > 0 and modes[mode] or 0, n, waiting, n > 0 and ends_in() or -2}
