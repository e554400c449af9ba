-- Sets what is left of a lease, longer or shorter.
--
-- KEYS  1 lock  2 token (may be missing)
-- ARGV  1 holder  2 lease ms  3 the hold's token (may be missing)
--
-- Reply type: integer
-- Reply as of hash/extend.lua
local looks = false
-- include: lease_args.lua
if redis.call('GET', KEYS[1]) ~= holder or outdone() then
    return 0
end
return redis.call('PEXPIRE', KEYS[1], lease)
