-- Sets what is left of a lease, longer or shorter.
--
-- KEYS  1 lock
-- ARGV  1 holder  2 lease ms
--
-- Reply as of hash/extend.lua
-- include: timestamp/stamp.lua
if not (ARGV[2]:find('^[1-9]%d*$') and #ARGV[2] <= 16) then
    return redis.error_reply('ERR rlock: bad lease')
end
local free_at, mine = stamp.read(KEYS[1], ARGV[1])
if not free_at then
    return stamp.wrong
end
if not mine then
    return 0
end
stamp.write(KEYS[1], ARGV[1], tonumber(ARGV[2]), true)
return 1
