-- Prolongs a lease; never shortens one.
--
-- KEYS  1 lock  2 token (may be missing)
-- ARGV  1 holder  2 lease ms  3 the hold's token (may be missing)
--
-- Reply type: integer
-- Reply 1  the holder has it, with a TTL of at least the lease (also when
--          somebody had taken the TTL away)
--       0  not held by this holder, or there has been a later grant, with a
--          larger token; nothing was changed
-- Brings holder, lease, outdone, is_token, larger: the arguments of renew and
-- extend.
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
local holder, lease, token = ARGV[1], ARGV[2], ARGV[3]
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and
        (not token or KEYS[2] and is_token(token))) then
    return redis.error_reply('ERR rlock: bad lease or token')
end

-- outdone(): has there been a later grant than the hold's? Then the lock was
-- free or somebody else's meanwhile, and a late copy of the hold's own acquire
-- has taken it again. Only a hold that may have such a copy says its token.
local function outdone()
    local last = token and redis.pcall('GET', KEYS[2])
    return type(last) == 'string' and is_token(last) and larger(last, token)
end
if redis.call('HEXISTS', KEYS[1], holder) == 0 or outdone() then
    return 0
end
if redis.call('PTTL', KEYS[1]) < tonumber(lease) then
    redis.call('PEXPIRE', KEYS[1], lease)
end
return 1
