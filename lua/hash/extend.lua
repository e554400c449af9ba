-- Sets what is left of a lease, longer or shorter.
--
-- KEYS  1 lock
-- ARGV  1 holder  2 lease ms
--
-- Reply 1  the holder has it, and its TTL is the lease
--       0  not held by this holder; nothing was changed
-- include: lease_args.lua
if redis.call('HEXISTS', KEYS[1], holder) == 0 then
    return 0
end
return redis.call('PEXPIRE', KEYS[1], lease)
