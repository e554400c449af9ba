-- The holder's hold has the level that it is to reach, and at least the lease. Included
-- behind rcall, holder, level and lease.
rcall('HSET', KEYS[1], holder, level)
if rcall('PTTL', KEYS[1]) < tonumber(lease) then
    rcall('PEXPIRE', KEYS[1], lease)
end
