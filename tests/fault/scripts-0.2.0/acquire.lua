-- Takes the lock, takes it once more, or queues.
--
-- KEYS  1 lock  2 token  3 tombstone  4 queue  5 who waits (may be missing)
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not queue)
--       5 ticket (0 = first try)  6 the least token (may be missing)
-- Without KEYS 4 and ARGV 3 to 6 the level is 1, and there is no bell.
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
-- Brings rcall, rpcall, holder, lease, level, bell, least, is_token, larger: the
-- acquire scripts' arguments. They are checked before the first write, because
-- Lua does not roll back.
-- Brings is_token, larger.
--
-- A token is text without leading zeros, of up to 18 digits, which fit into 64
-- bits. The longer one is larger, as turning numbers into Lua's and back costs
-- more than a command, and is exact up to 15 digits only.
local function is_token(text)
    return #text <= 18 and text:find('^[1-9]%d*$')
end

local function larger(a, b)
    return #a > #b or #a == #b and a > b
end
local rcall, rpcall, holder, lease = redis.call, redis.pcall, ARGV[1], ARGV[2]
local level, bell, least = ARGV[3] or '1', ARGV[4] or '', ARGV[6]
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and (not ARGV[3] or
        ARGV[5] and level:find('^[1-9]%d*$') and ARGV[5]:find('^%d+$') and
        (not least or least == '0' or is_token(least)))) then
    return redis.error_reply('ERR rlock: bad lease, level, ticket or token')
end

if rcall('EXISTS', KEYS[1], KEYS[3]) == 0 then
    if level ~= '1' then
        return {-1}
    end
-- Brings token, clock: a token of KEYS[2], by the server's clock. Included where a
-- lock is granted, behind acquire_args.lua.
-- Brings clock: the server's, in microseconds, as text. Included where it is
-- needed, behind acquire_args.lua.
local time = rcall('TIME')
local clock = time[1] .. (#time[2] == 6 and time[2] or
                          ('00000' .. time[2]):sub(-6))
-- Brings ttl: how long a token's key lives.
--
-- The key is needed only after the server's clock has gone back: otherwise the
-- clock is larger than the last token. So it lives for some minutes; for longer
-- after a long lease, but names that are used once must not fill the memory.
local ttl = '300000'
if lease + 0 > 150000 then
    ttl = string.format('%.0f', math.min(2 * lease, 3600000))
end
local token_key = KEYS[2]
-- Brings token, the next one of token_key. Included behind clock.lua and
-- token_ttl.lua.
--
-- token: a new one, larger than the last, than any that a server which has lost
-- its data may have handed out earlier, and no smaller than `least`, if that is
-- given.
local token = clock
if least and larger(least, token) then
    token = least
end
local last = rcall('SET', token_key, token, 'PX', ttl, 'GET')
if last and not larger(token, last) and is_token(last) then
    local head, digit, nines = ('0' .. last):match('^(%d*)([0-8])(9*)$')
    token = head .. (digit + 1) .. ('0'):rep(#nines)
    token = token:gsub('^0', '')
    rcall('SET', token_key, token, 'PX', ttl)
end
    rcall('HSET', KEYS[1], holder, '1')
    -- Lua does not roll back: a lock that got no TTL must not stay.
    local expiry = rpcall('PEXPIRE', KEYS[1], lease)
    if expiry ~= 1 then
        rcall('DEL', KEYS[1])
        return expiry
    end
    if bell ~= '' then
        rpcall('ZREM', KEYS[4], bell)
    end
    return least and {1, token, clock} or token
end
-- Brings busy. Included by the acquire scripts, behind acquire_args.lua.
--
-- busy(pttl, foreign): puts the client into the lock's queue, if it gave a
-- bell, and returns the reply {0, pttl, ticket, foreign, rank}. The ticket is the
-- server's clock at the client's first try; the rank is how many are before it,
-- -1 if it is not known or not queued.
--
-- Who has waited for long gives a key more, and says there who it is, for
-- waits.lua. With the ticket, as another thread of the client may be the next
-- one to ask.
--
-- The queue lives a little longer than the longest pause between two tries of a
-- waiter, so that it goes with the last of them. A server out of memory queues
-- nobody, and waiters poll; but one that has become a replica will never tell
-- that the lock is free.
local function busy(pttl, foreign)
    local ticket, rank = ARGV[5], -1
    if bell == '' then
        return {0, pttl, '0', foreign, rank}
    end
    if ticket == '0' then
-- Brings clock: the server's, in microseconds, as text. Included where it is
-- needed, behind acquire_args.lua.
local time = rcall('TIME')
local clock = time[1] .. (#time[2] == 6 and time[2] or
                          ('00000' .. time[2]):sub(-6))
        ticket = clock
    end
    local queued = rpcall('ZADD', KEYS[4], ticket, bell)
    if type(queued) == 'number' then
        rcall('PEXPIRE', KEYS[4], 6000)
        rank = rpcall('ZRANK', KEYS[4], bell)
        if KEYS[5] then
            rpcall('HSET', KEYS[5], bell, ticket .. ' ' .. holder)
            rpcall('PEXPIRE', KEYS[5], 6000)
        end
    elseif queued.err:find('READONLY') then
        return queued
    end
    return {0, pttl, ticket, foreign, type(rank) == 'number' and rank or -1}
end

local function reenter()
-- Brings known: the token of a hold that is there already. Included behind
-- acquire_args.lua. Only a first level that is asked for again needs it, and
-- gets a new one if the last is gone.
local known = rpcall('GET', KEYS[2])
if type(known) ~= 'string' or not is_token(known) then
    known = '0'
    if level == '1' then
-- Brings token, clock: a token of KEYS[2], by the server's clock. Included where a
-- lock is granted, behind acquire_args.lua.
-- Brings clock: the server's, in microseconds, as text. Included where it is
-- needed, behind acquire_args.lua.
local time = rcall('TIME')
local clock = time[1] .. (#time[2] == 6 and time[2] or
                          ('00000' .. time[2]):sub(-6))
-- Brings ttl: how long a token's key lives.
--
-- The key is needed only after the server's clock has gone back: otherwise the
-- clock is larger than the last token. So it lives for some minutes; for longer
-- after a long lease, but names that are used once must not fill the memory.
local ttl = '300000'
if lease + 0 > 150000 then
    ttl = string.format('%.0f', math.min(2 * lease, 3600000))
end
local token_key = KEYS[2]
-- Brings token, the next one of token_key. Included behind clock.lua and
-- token_ttl.lua.
--
-- token: a new one, larger than the last, than any that a server which has lost
-- its data may have handed out earlier, and no smaller than `least`, if that is
-- given.
local token = clock
if least and larger(least, token) then
    token = least
end
local last = rcall('SET', token_key, token, 'PX', ttl, 'GET')
if last and not larger(token, last) and is_token(last) then
    local head, digit, nines = ('0' .. last):match('^(%d*)([0-8])(9*)$')
    token = head .. (digit + 1) .. ('0'):rep(#nines)
    token = token:gsub('^0', '')
    rcall('SET', token_key, token, 'PX', ttl)
end
        known = token
    end
end
    rcall('HSET', KEYS[1], holder, level)
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
if rcall('HEXISTS', KEYS[1], holder) == 1 then
    return reenter()
end
if level ~= '1' then
    return {-1}
end
return busy(rcall('PTTL', KEYS[1]), 0)
