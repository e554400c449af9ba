-- Sets what is left of a lease, longer or shorter.
--
-- KEYS  1 lock  2 token (may be missing)
-- ARGV  1 holder  2 lease ms  3 the hold's token (may be missing)
--
-- Reply type: integer
-- Reply 1  the holder has it, and its TTL is the lease
--       0  not held by this holder, or there has been a later grant, with a
--          larger token; nothing was changed
local looks = false
-- include: lease_args.lua
if redis.call('HEXISTS', KEYS[1], holder) == 0 or outdone() then
    return 0
end
return redis.call('PEXPIRE', KEYS[1], lease)
