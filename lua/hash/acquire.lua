-- Takes the lock, takes it once more, or queues.
--
-- KEYS  1 lock  2 token  3 queue  4 tombstone
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not queue)
--       5 ticket (0 = first try)  6 the least token (may be missing)
--
-- Reply type: array
-- Reply {1, token, clock} acquired: the holder's count is the level, the TTL
--                         is at least the lease, and with a bell the client is
--                         not in the queue (above level 1 the token may be
--                         0). The server's clock in us only if ARGV 6 is given
--                         and the lock was free
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
-- include: mint.lua

if rcall('EXISTS', KEYS[1], KEYS[4]) == 0 then
    if level ~= '1' then
        return {-1}
    end
    local token, clock = mint(KEYS[2], ARGV[6])
    rcall('HSET', KEYS[1], holder, '1')
    -- Lua does not roll back: a lock that got no TTL must not stay.
    local expiry = rpcall('PEXPIRE', KEYS[1], lease)
    if expiry ~= 1 then
        rcall('DEL', KEYS[1])
        return expiry
    end
    if bell ~= '' then
        rpcall('ZREM', KEYS[3], bell)
    end
    return {1, token, clock}
end
-- include: queue.lua

-- Only a first level that is asked for again needs its token.
local function reenter()
    local token = rpcall('GET', KEYS[2])
    if type(token) ~= 'string' then
        token = level == '1' and mint(KEYS[2], ARGV[6]) or '0'
    end
    rcall('HSET', KEYS[1], holder, level)
    if rcall('PTTL', KEYS[1]) < tonumber(lease) then
        rcall('PEXPIRE', KEYS[1], lease)
    end
    if bell ~= '' then
        rpcall('ZREM', KEYS[3], bell)
    end
    return {1, token}
end

if rcall('EXISTS', KEYS[4]) == 1 then
    return {-2}
end
if rcall('HEXISTS', KEYS[1], holder) == 1 then
    return reenter()
end
if level ~= '1' then
    return {-1}
end
return busy(rcall('PTTL', KEYS[1]), 0)
