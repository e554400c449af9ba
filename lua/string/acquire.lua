-- Takes the lock, confirms it for one level more, or queues. The hold count is
-- the client's business: the key holds the holder id, at every level.
--
-- KEYS  1 lock  2 token  3 tombstone  4 queue  5 who waits (may be missing)
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not queue)
--       5 ticket (0 = first try)  6 the least token (may be missing)
-- Without KEYS 4 and ARGV 3 to 6 the level is 1, and there is no bell.
--
-- Reply type: string or array
-- Reply as of hash/acquire.lua, but
--       {0, pttl, ticket, 1, rank}  busy, and the holder is no client of this
--                                   protocol: its release will ring nobody
-- include: acquire_args.lua

if rcall('EXISTS', KEYS[1], KEYS[3]) == 0 then
    if level ~= '1' then
        return {-1}
    end
    -- include: mint.lua
    rcall('SET', KEYS[1], holder, 'NX', 'PX', lease)
    if bell ~= '' then
        rpcall('ZREM', KEYS[4], bell)
    end
    return least and {1, token, clock} or token
end
-- include: token.lua
local queue, waits = KEYS[4], KEYS[5]
-- include: queue.lua

local function reenter()
    -- include: known_token.lua
    if rcall('PTTL', KEYS[1]) < tonumber(lease) then
        rcall('PEXPIRE', KEYS[1], lease)
    end
    if bell ~= '' then
        rpcall('ZREM', KEYS[4], bell)
    end
    return known
end

if rcall('EXISTS', KEYS[3]) == 1 then
    return {-2}
end
local value = rcall('GET', KEYS[1])
if value == holder then
    return reenter()
end
if level ~= '1' then
    return {-1}
end
return busy(rcall('PTTL', KEYS[1]), is_holder(value) and 0 or 1)
