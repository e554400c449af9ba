-- Frees the lock, whoever holds it, and wakes one waiter. What is no lock stays: a
-- lock has one field, a holder id of this protocol or of Redisson's, with a count.
--
-- KEYS  1 lock  2 queue
-- ARGV  1 Redisson's channel  2 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  it was held and is free
--       0  nobody held it
-- include: ring.lua
-- include: is_holder.lua
local rcall, rpcall = redis.call, redis.pcall
-- include: about_lock.lua
-- include: is_redissons.lua

local fields = rcall('HLEN', KEYS[1])
if fields == 0 then
    return 0
end
local who, count = about_lock()
if fields > 1 or not count:find('^[1-9]%d*$') or
    not (is_holder(who) or is_redissons(who)) then
    return redis.error_reply('WRONGTYPE the hash is no lock')
end
rcall('DEL', KEYS[1])
ring(KEYS[2], KEYS[1])
rpcall(ARGV[2] or 'PUBLISH', ARGV[1], '0')
return 1
