-- Passes the lock on to another thread of the same client, without freeing it in
-- between. If that is not to be, it is freed, and one waiter is woken, or it is given to
-- that one.
--
-- KEYS  1 lock  2 token  3 tombstone of the next  4 queue
--       5 who waits: it may be given (may be missing)
-- ARGV  1 holder  2 next holder  3 lease ms  4 patience us
--       5 Redisson's channel ('' = none)
--       6 bell of this client ('' = it is not in the queue)
--       7 tokens to keep (may be missing, or 0): the next will pass the lock on;
--         or -: the next gets no token
--       8 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: string or array
-- Reply token  the next has it, with this token (1, which stands for none, if it gets
--              none): its count is 1, and its TTL is the lease
--       {3, token}
--              the same, and as many tokens behind it as were to be kept will
--              not be given to anybody
--       {5, token}
--              the next has it, and this holder has not: this was asked again, or
--              another client has given it to the next. Its TTL is at least the
--              lease
--       {1}    it is free: the next has given up, or somebody has waited for
--              longer than the patience, or something was refused
--       {2}    the same, and a waiting client was rung
--       {4}    the same, and a waiting client has it
--       {0}    not held by this holder, and not by the next
-- Unless it is {0}, this client is not in the queue any more.
--
-- Like a release it has to succeed: what is refused on the way ends in a free
-- lock. Only what comes before the first write may fail.
-- include: ring.lua
local rcall, rpcall, lease, bell = redis.call, redis.pcall, ARGV[3], ARGV[6]
local level, least, waits, tokenless = '1', nil, KEYS[5], ARGV[7] == '-'
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and
        ARGV[4]:find('^%d+$') and bell and
        (not ARGV[7] or ARGV[7] == '0' or tokenless or ARGV[7]:find('^[1-9]%d*$'))) then
    return redis.error_reply('ERR rlock: bad lease, patience or tokens')
end

local function known_token()
    if tokenless then
        return '1'
    end
    -- include: token.lua
    -- include: known_token.lua
    return known
end

local function told_already()
    local known = known_token()
    if rcall('PTTL', KEYS[1]) < tonumber(lease) then
        rcall('PEXPIRE', KEYS[1], lease)
    end
    return {5, known}
end

if rcall('HDEL', KEYS[1], ARGV[1]) == 0 then
    if rcall('HEXISTS', KEYS[1], ARGV[2]) == 0 then
        return {0}
    end
    return told_already()
end

-- Has anybody else waited for too long? A ticket from the future says that the
-- clock went back, and nothing of how long.
local function is_owed()
    if bell ~= '' then
        rpcall('ZREM', KEYS[4], bell)
        if waits then
            rpcall('HDEL', waits, bell)
        end
    end
    local first = rpcall('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
    if first.err or not first[2] then
        return first.err
    end
    -- include: clock.lua
    local waited = clock - first[2]
    return waited < 0 or waited > tonumber(ARGV[4])
end

local function next_token()
    if tokenless then
        return '1'
    end
    -- include: mint.lua
    return token, clock
end

local function grant()
    local token, clock = next_token()
    rcall('HSET', KEYS[1], ARGV[2], '1')
    rcall('PEXPIRE', KEYS[1], lease)
    return token, clock
end

if not is_owed() and rcall('EXISTS', KEYS[1], KEYS[3]) == 0 then
    local granted, token, clock = pcall(grant)
    if granted then
        -- So the last token is never further ahead of the clock than this.
        if ARGV[7] and ARGV[7] ~= '0' and token == clock and
                type(rpcall('INCRBY', KEYS[2], ARGV[7])) == 'number' then
            return {3, token}
        end
        return token
    end
    rpcall('HDEL', KEYS[1], ARGV[2])
end
local publish = ARGV[8] or 'PUBLISH'
local heard = waits and ARGV[5] ~= '' and rpcall(publish, ARGV[5], '0') or 0
if waits and heard == 0 then
    local token_key = KEYS[2]
    -- include: clock.lua
    -- include: fair/grants.lua
    -- include: grant.lua
    local rung, holder = ring(KEYS[4], KEYS[1], grant)
    return {holder and 4 or rung and 2 or 1}
end
local rung = ring(KEYS[4], KEYS[1])
if not waits and ARGV[5] ~= '' then
    rpcall(publish, ARGV[5], '0')
end
return {rung and 2 or 1}
