-- Brings token: a lock that nobody has is the holder's, what of it: 'r' or 'w'. Included
-- behind rcall, rpcall, clock, token_key, leases, holder, what and lease.
--
-- It returns an error, and then no hold stays; the key of the leases may, until the next
-- hold. What may be refused comes before the hold: Lua does not roll back, and one without
-- a TTL must not stay.
local least
-- include: rw/token_ttl.lua
-- include: mint_by_clock.lua
rcall('DEL', leases)
if what == 'r' then
    -- include: rw/leases_ms.lua
    rcall('ZADD', leases, math.floor(clock / 1000) + lease, holder)
    rcall('PEXPIRE', leases, string.format('%.0f', lease + LEASES_MS))
    rcall('HSET', KEYS[1], 'mode', 'read', holder, '1')
else
    rcall('HSET', KEYS[1], 'mode', 'write', holder .. ':write', '1')
end
local expiry = rpcall('PEXPIRE', KEYS[1], lease)
if expiry ~= 1 then
    rcall('DEL', KEYS[1])
    return expiry
end
