-- Ends the write side's hold, whoever has it, and lets in who is first in line.
--
-- KEYS  1 lock  2 token  3 line  4 wants  5 leases
-- ARGV  1 Redisson's channel  2 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  it was held and is no more
--       0  nobody held it
local side = 'w'
-- include: rw/force_release.lua
