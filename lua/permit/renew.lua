-- Prolongs the leases of permits, or only looks; never shortens one.
--
-- KEYS  1 counter  2 permits
-- ARGV  1 holder  2 lease ms, or 0: nothing is changed  3 how many
--       4 idle s (0 = the keys stay)
--
-- Reply type: integer
-- Reply 1  the holder has all of them, for at least the lease
--       0  not all of them; nothing was changed
local looks = ARGV[2] == '0'
-- include: permit/lease_args.lua
if has(holder, n) < n + 0 then
    return 0
end
if not looks then
    prolong(holder, n, lease, 'GT')
end
return 1
