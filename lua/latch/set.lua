-- Sets a latch that is open, once however often it is asked to with one mark.
--
-- KEYS  1 count  2 mark
-- ARGV  1 count  2 ms after which the count is gone, or 0: never  3 mark ms
--       4 Redisson's channel  5 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  it is set, by this or by an earlier copy
--       0  it was set, and is not at zero; nothing was changed
-- include: latch/left.lua
local ttl = ARGV[2]
if not (is_count(ARGV[1]) and is_count(ARGV[3]) and
        (ttl == '0' or is_count(ttl))) then
    return redis.error_reply('ERR rlock: bad count, TTL or mark')
end
if rcall('EXISTS', KEYS[2]) == 1 then
    return 1
end
if left + 0 > 0 then
    return 0
end
if ttl == '0' then
    rcall('SET', KEYS[1], ARGV[1])
else
    rcall('SET', KEYS[1], ARGV[1], 'PX', ttl)
end
rpcall('SET', KEYS[2], '', 'PX', ARGV[3])
rpcall(ARGV[5] or 'PUBLISH', ARGV[4], '1')
return 1
