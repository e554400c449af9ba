-- Counts down; at level 0 frees the lock and wakes one waiter.
--
-- KEYS  1 lock  2 queue  3 tombstone
-- ARGV  1 holder  2 Redisson's channel ('' = none)  3 level to leave
--       4 tombstone ms (0 = none)  5 SPUBLISH, in a cluster (may be missing)
-- Without KEYS 3 and ARGV 3 to 5 the level is 0, and there is no tombstone.
--
-- Reply type: integer
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
-- Brings ring. Included by the scripts that may free a lock.
--
-- ring(queue, name): wakes one waiting client. PUBLISH answers how many got
-- the message; a bell that nobody hears belongs to a dead client, and the next
-- one is rung, but not for ever: after 64 dead ones those behind them look by
-- themselves. A server that refuses (an ACL without the channel) ends it:
-- waiters have their fallback poll, and the release must succeed. Returns
-- whether a client was reached. In a cluster bells are sharded channels: what
-- PUBLISH answers there says nothing of those who listen on another server.
local function ring(queue, name)
    for _ = 1, 64 do
        local first = redis.pcall('ZPOPMIN', queue)
        if first.err or not first[1] then
            return false
        end
        local sharded = first[1]:sub(1, 12) == 'rlock_sbell:'
        local heard = redis.pcall(sharded and 'SPUBLISH' or 'PUBLISH',
                                  first[1], name)
        if heard ~= 0 then
            return type(heard) == 'number'
        end
    end
    return false
end
-- Brings rcall, rpcall, level, unburied: the release scripts' arguments, and the
-- tombstone, which is written whatever becomes of the release. `unburied` is
-- what the reply has to tell of it.
local rcall, rpcall = redis.call, redis.pcall
local level, tombstone = ARGV[3] or '0', ARGV[4] or '0'
local unburied = 0
if ARGV[3] then
    local function is_number(text)
        return text == '0' or text:find('^[1-9]%d*$') and #text <= 16
    end
    if not (is_number(level) and is_number(tombstone)) then
        return redis.error_reply('ERR rlock: bad level or tombstone')
    end
    if tombstone ~= '0' and
       rpcall('SET', KEYS[3], '', 'PX', tombstone).err then
        unburied = 10
    end
end
if level ~= '0' then
    if rcall('HEXISTS', KEYS[1], ARGV[1]) == 0 then
        return unburied
    end
    rpcall('HSET', KEYS[1], ARGV[1], level)
    return unburied + 1
end
if rcall('HDEL', KEYS[1], ARGV[1]) == 0 then
    return unburied
end
local rung = ring(KEYS[2], KEYS[1])
if ARGV[2] ~= '' then
    rpcall(ARGV[5] or 'PUBLISH', ARGV[2], '0')
end
return unburied + (rung and 2 or 1)
