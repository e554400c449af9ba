-- Counts a latch down, once however often it is asked to with one mark; at zero
-- opens it, and wakes all who wait.
--
-- KEYS  1 count  2 queue  3 mark
-- ARGV  1 by how many  2 mark ms  3 Redisson's channel
--       4 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply what is left, 0: it is open. While the mark stands, the same count-down
-- that still arrives changes nothing, and is answered what is left by then.
--
-- The mark is also left by one that finds the latch open: a copy of it must not
-- be counted in the next round.
-- include: latch/left.lua
-- include: latch/open.lua
if not (is_count(ARGV[1]) and is_count(ARGV[2])) then
    return redis.error_reply('ERR rlock: bad number or mark')
end
local is_new = rcall('SET', KEYS[3], '', 'NX', 'PX', ARGV[2])
if not is_new or left + 0 <= 0 then
    return math.max(left, 0)
end
if left - ARGV[1] > 0 then
    local now = rpcall('DECRBY', KEYS[1], ARGV[1])
    if type(now) == 'table' then
        rcall('DEL', KEYS[3])
    end
    return now
end
open(ARGV[3], ARGV[4])
return 0
