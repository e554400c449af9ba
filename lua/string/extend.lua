-- Sets what is left of a lease, longer or shorter.
--
-- KEYS  1 lock
-- ARGV  1 holder  2 lease ms
--
-- Reply as of hash/extend.lua
if not (ARGV[2]:find('^[1-9]%d*$') and #ARGV[2] <= 16) then
    return redis.error_reply('ERR rlock: bad lease')
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
