-- Ends all holds of the read side, whoever has them, and lets in who is first in line.
--
-- KEYS  1 lock  2 token  3 line  4 wants  5 leases
-- ARGV  1 Redisson's channel  2 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  some were held and are no more
--       0  nobody held one
local side = 'r'
-- include: rw/force_release.lua
