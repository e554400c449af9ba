-- Prolongs a lease of the read side, or only looks; never shortens one.
--
-- KEYS  1 lock  2 token: unless it only looks, it is kept  3 leases  4 own mark
-- ARGV  1 holder  2 lease ms, or 0: nothing is changed
--       3 the hold's token (may be missing)
--
-- Reply type: integer
-- Reply 1  the holder has it, for at least the lease
--       0  not held by this holder, or there has been a later grant, with a
--          larger token; nothing was changed
local side = 'r'
local looks = ARGV[2] == '0'
-- include: rw/renew.lua
