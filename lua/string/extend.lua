-- Sets what is left of a lease, longer or shorter.
--
-- KEYS  1 lock
-- ARGV  1 holder  2 lease ms
--
-- Reply as of hash/extend.lua
-- include: lease_args.lua
if redis.call('GET', KEYS[1]) ~= holder then
    return 0
end
return redis.call('PEXPIRE', KEYS[1], lease)
