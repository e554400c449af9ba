-- Takes the lock, takes it once more, or queues.
--
-- KEYS  1 lock  2 token  3 tombstone  4 queue  5 who waits (may be missing)
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not queue)
--       5 ticket (0 = first try)  6 the least token ('' = none; may be missing)
--       7 beat: a release may grant it the lock (may be missing; with KEYS 5)
-- Without KEYS 4 and ARGV 3 to 7 the level is 1, and there is no bell.
--
-- Reply type: string or array
-- Reply token             acquired: the holder's count is the level, the TTL
--                         is at least the lease, and with a bell the client is
--                         not in the queue (above level 1 the token may be 0)
--       {1, token, clock} the same, if ARGV 6 is given and the lock was free;
--                         the clock is the server's, in us
--       {0, pttl, ticket, 0, rank}
--                         busy: with a bell the client is in the queue, and so
--                         many are before it there; -1 if it cannot be told
--       {-1}              lost: a level above 1, and the hold is gone
--       {-2}              given up: the hold's tombstone stands
--       The last two change nothing; neither does an error.
--
-- The way of a lock that is free comes first and is kept short; what only the
-- others need is defined behind it.
-- include: acquire_args.lua
local queue, waits = KEYS[4], KEYS[5]

if rcall('EXISTS', KEYS[1], KEYS[3]) == 0 then
    if level ~= '1' then
        return {-1}
    end
    -- include: clock.lua
    local token_key = KEYS[2]
    -- include: hash/take.lua
    -- include: hash/unqueue.lua
    return least and {1, token, clock} or token
end
-- include: token.lua
local tombstone = KEYS[3]

local function known_token()
    -- include: known_token.lua
    return known
end
-- include: hash/held.lua
