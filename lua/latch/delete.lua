-- Opens a latch whatever its count is, and wakes all who wait.
--
-- KEYS  1 count  2 queue
-- ARGV  1 Redisson's channel  2 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  there was one
--       0  there was none
-- include: latch/left.lua
-- include: latch/open.lua
if rcall('EXISTS', KEYS[1]) == 0 then
    return 0
end
open(ARGV[1], ARGV[2])
return 1
