-- Takes a lock in a hash without a fencing token, takes it once more, or queues.
--
-- KEYS  1 lock  2 tombstone  3 queue  4 who waits (may be missing)
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not queue)
--       5 ticket (0 = first try)
-- Without KEYS 3 and ARGV 3 to 5 the level is 1, and there is no bell.
--
-- Reply type: string or array
-- Reply as of hash/acquire.lua, but the token is 1, which stands for none
--
-- Where the lock is free, or the holder's, no clock is read, and no token's key is
-- written. No token is found at KEYS 2 either: so who is told that it is busy is not told
-- for how long.
-- include: acquire_args.lua
local queue, waits = KEYS[3], KEYS[4]

if rcall('EXISTS', KEYS[1], KEYS[2]) == 0 then
    if level ~= '1' then
        return {-1}
    end
    -- include: hash/put.lua
    -- include: hash/unqueue.lua
    return '1'
end
-- include: token.lua
local tombstone = KEYS[2]

local function known_token()
    return '1'
end
-- include: hash/held.lua
