-- Counts down; at level 0 frees the lock and wakes one waiter.
--
-- KEYS  1 lock  2 queue  3 tombstone
-- ARGV  1 holder  2 level to leave  3 lease ms (0 = leave the TTL)
--       4 tombstone ms (0 = none)  5 Redisson's channel  6 the lock's name
--
-- Reply 1  the holder's count is the level, or its field is gone
--       2  the same, and a waiting client was rung
--       0  not held by this holder; no hold was changed
--       10 more  the same, but the server refused to write the tombstone (out
--                of memory): say it again later
-- While the tombstone stands, an acquire of this hold that still arrives is
-- refused.
--
-- Writes that a server out of memory refuses go through pcall: a release has
-- to succeed there. A count that could not be written is put right by the next
-- re-entry or release, which both say the level they want.
-- Included by the scripts that may free a lock.
--
-- ring(queue, name): wakes one waiting client. PUBLISH answers how many got
-- the message; a bell that nobody hears belongs to a dead client, and the next
-- one is rung. A server that refuses (an ACL without the channel) ends it:
-- waiters have their fallback poll, and the release must succeed. Returns
-- whether a client was reached.
local function ring(queue, name)
    while true do
        local first = redis.pcall('ZPOPMIN', queue)
        if first.err or not first[1] then
            return false
        end
        local heard = redis.pcall('PUBLISH', first[1], name)
        if heard ~= 0 then
            return type(heard) == 'number'
        end
    end
end
local call, pcall = redis.call, redis.pcall
local level, lease, tombstone = ARGV[2], ARGV[3], ARGV[4]
local function is_number(text)
    return text == '0' or text:find('^%d+$') and #text <= 16
end
if not (is_number(level) and is_number(lease) and is_number(tombstone)) then
    return redis.error_reply('ERR rlock: bad level, lease or tombstone')
end

local unburied = 0
if tombstone ~= '0' and
   pcall('SET', KEYS[3], '', 'PX', tombstone).err then
    unburied = 10
end
if level ~= '0' then
    if call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
        return unburied
    end
    pcall('HSET', KEYS[1], ARGV[1], level)
    if lease ~= '0' then
        call('PEXPIRE', KEYS[1], lease)
    end
    return unburied + 1
end
if call('HDEL', KEYS[1], ARGV[1]) == 0 then
    return unburied
end
local rung = ring(KEYS[2], ARGV[6])
pcall('PUBLISH', ARGV[5], '0')
return unburied + (rung and 2 or 1)
