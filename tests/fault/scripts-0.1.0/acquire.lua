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
--
-- The way of a lock that is free comes first and is kept short; what only the
-- others need is defined behind it. Numbers stay text where they can: turning
-- them into Lua's and back costs more than a command.
local call, pcall = redis.call, redis.pcall
local holder, lease, level, bell = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and
        level:find('^[1-9]%d*$') and ARGV[5]:find('^%d+$')) then
    return redis.error_reply('ERR rlock: bad lease, level or ticket')
end

-- The server's clock in microseconds.
local function now()
    local time = call('TIME')
    return time[1] .. ('00000' .. time[2]):sub(-6)
end

-- Larger than the last token, and than any that a server which has lost its
-- data may have handed out earlier. SET returns what was there before since
-- Redis 6.2; older ones refuse GET.
local function mint()
    local token = now()
    local last = pcall('SET', KEYS[2], token, 'PX', '3600000', 'GET')
    if type(last) == 'table' then
        last = call('GET', KEYS[2])
        call('SET', KEYS[2], token, 'PX', '3600000')
    end
    if last and #last >= #token and last >= token and tonumber(last) then
        token = string.format('%.0f', tonumber(last) + 1)
        call('SET', KEYS[2], token, 'PX', '3600000')
    end
    return token
end

if call('EXISTS', KEYS[1], KEYS[4]) == 0 then
    if level ~= '1' then
        return {-1}
    end
    local token = mint()
    call('HSET', KEYS[1], holder, '1')
    -- Lua does not roll back: a lock that got no TTL must not stay.
    local expiry = pcall('PEXPIRE', KEYS[1], lease)
    if expiry ~= 1 then
        call('DEL', KEYS[1])
        return expiry
    end
    if bell ~= '' then
        pcall('ZREM', KEYS[3], bell)
    end
    return {1, token}
end

-- Only a first level that is asked for again needs its token.
local function reenter()
    local token = pcall('GET', KEYS[2])
    if type(token) ~= 'string' then
        token = level == '1' and mint() or '0'
    end
    call('HSET', KEYS[1], holder, level)
    if call('PTTL', KEYS[1]) < tonumber(lease) then
        call('PEXPIRE', KEYS[1], lease)
    end
    if bell ~= '' then
        pcall('ZREM', KEYS[3], bell)
    end
    return {1, token}
end

-- The queue lives a little longer than the longest pause between two tries of
-- a waiter, so that it goes with the last of them.
local function queue()
    local ticket = ARGV[5]
    if ticket == '0' then
        ticket = now()
    end
    if type(pcall('ZADD', KEYS[3], ticket, bell)) == 'number' then
        call('PEXPIRE', KEYS[3], 6000)
    end
    return ticket
end

if call('EXISTS', KEYS[4]) == 1 then
    return {-2}
end
if call('HEXISTS', KEYS[1], holder) == 1 then
    return reenter()
end
if level ~= '1' then
    return {-1}
end
local ticket = '0'
if bell ~= '' then
    ticket = queue()
end
return {0, call('PTTL', KEYS[1]), ticket}
