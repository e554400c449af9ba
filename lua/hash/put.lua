-- A lock that nobody has is the holder's. Included behind rcall, rpcall, holder and lease.
--
-- It returns an error, and then nothing stays: Lua does not roll back, and a lock that got
-- no TTL must not stay.
rcall('HSET', KEYS[1], holder, '1')
local expiry = rpcall('PEXPIRE', KEYS[1], lease)
if expiry ~= 1 then
    rcall('DEL', KEYS[1])
    return expiry
end
