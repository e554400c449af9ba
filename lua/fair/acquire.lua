-- Takes the lock, takes it once more, or stands in line.
--
-- KEYS  1 lock  2 token  3 tombstone  4 line  5 wants  6 queue
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not stand; '-'
--       before it: nobody hears it now)  5 ticket (0 = first try)  6 beat
-- Without KEYS 6 and ARGV 3 to 6 the level is 1, and there is no bell.
--
-- Reply type: string or array
-- Reply token   acquired: the holder's count is the level, the TTL is at least the
--               lease, and the holder is not in line (above level 1 the token
--               may be 0)
--       {0, pttl, ticket, 0, rank, anew}
--               busy: the holder is in line, and so many are before it there.
--               anew 1: its client was taken for dead until now, and others of
--               its may have been dropped
--       {0, pttl, 0, 0, -1, holder, ms}
--               the same without a bell: who has it, as hash/acquire tells it
--       {-1}    lost: a level above 1, and the hold is gone
--       {-2}    given up: the hold's tombstone stands
--       The last two change nothing.
--
-- The way of a lock that is free, and that nobody waits for, comes first and is
-- kept short. A client that stands is in the lock's queue, too: so a plain release
-- rings it.
-- include: acquire_args.lua
local beat, least = least or '0', nil
local line, wants, token_key = KEYS[4], KEYS[5], KEYS[2]
-- include: clock.lua
if rcall('EXISTS', KEYS[1], KEYS[3], line) == 0 then
    if level ~= '1' then
        return {-1}
    end
    -- include: hash/take.lua
    return token
end
-- include: token.lua
-- include: fair/grants.lua
local tombstone = KEYS[3]

local function reenter()
    -- include: known_token.lua
    -- include: hash/again.lua
    return known
end

-- include: hash/already.lua
-- include: line.lua
-- include: who_has_it.lua
local ticket, anew, gone = '0', 0, {}
if bell ~= '' then
    ticket, anew, gone = stand(holder, lease, 'f', bell, ARGV[5], beat)
end
for _, silent in ipairs(gone) do
    rpcall('ZREM', KEYS[6], silent)
end
local token = is_free() and admit(holder)
if token then
    return token
end
if bell == '' and is_free() and rcall('EXISTS', line) == 0 then
    return give(holder, '', lease)
end
local pttl = is_free() and 0 or rcall('PTTL', KEYS[1])
if bell == '' then
    return {0, pttl, '0', 0, -1, who_has_it(token_key)}
end
if bell:sub(1, 1) ~= '-' and
   type(rpcall('ZADD', KEYS[6], 'NX', ticket, bell)) == 'number' then
    rcall('PEXPIRE', KEYS[6], STANDS_MS)
end
return {0, pttl, ticket, 0, rcall('ZRANK', line, holder) or -1, anew}
