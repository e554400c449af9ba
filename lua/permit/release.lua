-- Gives permits back, or leaves the line; grants to those who are first in it.
--
-- KEYS  1 counter  2 permits  3 tombstone  4 line  5 wants
-- ARGV  1 holder  2 Redisson's channel  3 how many  4 tombstone ms (0 = none)
--       5 idle s (0 = the keys stay)  6 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  given back, all of them
--       2  the same, and others have been granted theirs, or wait for more
--       0  not all of them were this holder's any more; what was has been given
--          back
--       10 more  the same, but the server refused to write the tombstone (out
--                of memory): say it again later
-- The holder is not in line afterwards. While the tombstone stands, an acquire of
-- this hold that still arrives is refused.
--
-- A release has to succeed: what is refused on the way ends in permits that are
-- free.
local holder, n, idle = ARGV[1], ARGV[3], ARGV[5]
if not ((n == '1' or n:find('^[1-9]%d*$') and #n <= 4 and n + 0 <= 1000) and
        (idle == '0' or idle:find('^[1-9]%d*$') and #idle <= 16)) then
    return redis.error_reply('ERR rlock: bad number of permits')
end
-- include: release_args.lua
local counter, permits, line, wants = KEYS[1], KEYS[2], KEYS[4], KEYS[5]
-- The counter, which is told twice, counts 2, and the line 1.
local there, call = rcall('EXISTS', counter, counter, line), rpcall
local waiting, value = there % 2 == 1, there > 1
if waiting then -- also if there is no counter any more
    rcall('ZREM', line, holder)
    rcall('HDEL', wants, holder)
end
-- include: permit/take_back.lua
local granted, left = 0, value
local refused = type(value) == 'table'
if refused or got == 0 or waiting or idle ~= '0' then
    -- include: permit/value.lua
    if refused then
        return left
    end
    if waiting or idle ~= '0' then
        -- include: token.lua
        -- include: permit/free.lua
        -- include: clock.lua
        -- include: permit/keep.lua
        -- include: permit/grants.lua
        -- include: line.lua
        local _, mine, others = pcall(function()
            purge()
            return admit()
        end)
        granted = not mine and others or 0
        keep()
    end
    left = value
end
if got > 0 and left and left > 0 then
    rpcall(ARGV[6] or 'PUBLISH', ARGV[2], left)
end
if got < n + 0 then
    return unburied
end
return unburied + ((granted > 0 or waiting and rcall('EXISTS', line) == 1) and 2
                   or 1)
