-- Takes the lock, takes it once more, or queues.
--
-- KEYS  1 lock  2 token  3 queue  4 tombstone
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not queue)
--       5 ticket (0 = first try)
--
-- Reply {1, token}        acquired: the holder's count is the level, the TTL
--                         is at least the lease, and with a bell the client is
--                         not in the queue (above level 1 the token may be 0)
--       {0, pttl, ticket} busy: with a bell the client is in the queue
--       {-1}              lost: a level above 1, and the hold is gone
--       {-2}              given up: the hold's tombstone stands
--       The last two change nothing; neither does an error.
local lease, level = ARGV[2], ARGV[3]
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and
        level:find('^[1-9]%d*$') and ARGV[5]:find('^%d+$')) then
    return redis.error_reply('ERR rlock: bad lease, level or ticket')
end

-- Numbers above 2^53 lose digits in Lua; microseconds since 1970 fit.
local function now()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

-- Larger than the last token, and than any that a server which has lost its
-- data may have handed out earlier.
local function mint()
    local token = now()
    local last = tonumber(redis.call('GET', KEYS[2]) or '')
    if last and last >= token then
        token = last + 1
    end
    token = string.format('%.0f', token)
    redis.call('SET', KEYS[2], token, 'PX', 3600000)
    return token
end

-- Lua does not roll back: a lock that got no TTL must not stay.
local function grant()
    local token = mint()
    redis.call('HSET', KEYS[1], ARGV[1], 1)
    local expiry = redis.pcall('PEXPIRE', KEYS[1], lease)
    if expiry ~= 1 then
        redis.call('DEL', KEYS[1])
        return expiry
    end
    if ARGV[4] ~= '' then
        redis.pcall('ZREM', KEYS[3], ARGV[4])
    end
    return {1, token}
end

-- Only a first level that is asked for again needs its token.
local function reenter()
    local token = redis.pcall('GET', KEYS[2])
    if type(token) ~= 'string' then
        token = level == '1' and mint() or '0'
    end
    redis.call('HSET', KEYS[1], ARGV[1], level)
    if redis.call('PTTL', KEYS[1]) < tonumber(lease) then
        redis.call('PEXPIRE', KEYS[1], lease)
    end
    if ARGV[4] ~= '' then
        redis.pcall('ZREM', KEYS[3], ARGV[4])
    end
    return {1, token}
end

-- The queue lives a little longer than the longest pause between two tries of
-- a waiter, so that it goes with the last of them.
local function queue()
    local ticket = ARGV[5]
    if ticket == '0' then
        ticket = string.format('%.0f', now())
    end
    if type(redis.pcall('ZADD', KEYS[3], ticket, ARGV[4])) == 'number' then
        redis.call('PEXPIRE', KEYS[3], 6000)
    end
    return ticket
end

if redis.call('EXISTS', KEYS[1], KEYS[4]) == 0 then
    if level ~= '1' then
        return {-1}
    end
    return grant()
end
if redis.call('EXISTS', KEYS[4]) == 1 then
    return {-2}
end
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
    return reenter()
end
if level ~= '1' then
    return {-1}
end
local ticket = '0'
if ARGV[4] ~= '' then
    ticket = queue()
end
return {0, redis.call('PTTL', KEYS[1]), ticket}
