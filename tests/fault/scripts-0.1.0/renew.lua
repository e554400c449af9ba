-- Prolongs a lease; never shortens one.
--
-- KEYS  1 lock
-- ARGV  1 holder  2 lease ms
--
-- Reply 1  the holder has it, with a TTL of at least the lease (also when
--          somebody had taken the TTL away)
--       0  not held by this holder; nothing was changed
if not (ARGV[2]:find('^[1-9]%d*$') and #ARGV[2] <= 16) then
    return redis.error_reply('ERR rlock: bad lease')
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
