-- The rest of the extend scripts of both sides. A lease that is shorter than the key's
-- TTL ends by itself all the same: who waits is told when (ends_in), and takes it out.
local looks = false
-- include: rw/lease_args.lua
if not has_it() then
    return 0
end
if rcall('HLEN', KEYS[1]) == 2 then
    rcall('PEXPIRE', KEYS[1], lease)
else
    outlive(KEYS[1], ms)
end
if side == 'r' or rcall('ZSCORE', leases, field) then
    leased(leases, field, ms)
end
if side == 'r' then
    rcall('SET', KEYS[4], '1', 'PX', lease)
end
local token_key = KEYS[2]
-- include: rw/keep_token.lua
return 1
