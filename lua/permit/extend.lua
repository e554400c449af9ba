-- Sets what is left of the leases of permits, longer or shorter.
--
-- KEYS  1 counter  2 permits
-- ARGV  1 holder  2 lease ms  3 how many  4 idle s (0 = the keys stay)
--
-- Reply type: integer
-- Reply 1  the holder has all of them, for the lease
--       0  not all of them; nothing was changed
local looks = false
-- include: permit/lease_args.lua
if has(holder, n) < n + 0 then
    return 0
end
prolong(holder, n, lease, 'CH')
return 1
