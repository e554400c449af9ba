-- Brings rcall, rpcall, holder, lease, ms, field, now_ms, leased, outlive, has_it: for
-- renew and extend of both sides, behind `side` and `looks`.
--
-- has_it(): it is held, and there has been no later grant. The later token of who
-- reads and writes may be his own: he had it read alone.
-- include: lease_args.lua
local rcall, rpcall, leases, ms = redis.call, redis.pcall, KEYS[3], tonumber(lease)
local field = side == 'w' and holder .. ':write' or holder
-- include: clock.lua
local now_ms = math.floor(clock / 1000)
-- include: rw/leased.lua
local function has_it()
    return rcall('HEXISTS', KEYS[1], field) == 1 and (not outdone() or
           side == 'r' and rcall('HGET', KEYS[1], 'mode') == 'write')
end
