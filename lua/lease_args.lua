-- Brings holder, lease, outdone, is_token, larger: the arguments of renew and
-- extend. Included behind `looks`: is the lease 0, and nothing to be changed?
-- include: token.lua
local holder, lease, token = ARGV[1], ARGV[2], ARGV[3]
if not ((looks or lease:find('^[1-9]%d*$') and #lease <= 16) and
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
