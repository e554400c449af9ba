-- Prolongs a lease; never shortens one.
--
-- KEYS  1 lock
-- ARGV  1 holder  2 lease ms
--
-- Reply as of hash/renew.lua
-- include: lease_args.lua
if redis.call('GET', KEYS[1]) ~= holder then
    return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(lease) then
    redis.call('PEXPIRE', KEYS[1], lease)
end
return 1
