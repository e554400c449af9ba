-- Writes a fencing token back that was minted on another server, for a lock
-- that is held on several. The key lives as long as it would have, and at least
-- 5 minutes.
--
-- KEYS  1 token
-- ARGV  1 the token
--
-- Reply type: integer
-- Reply 1  the last token is this one, or a larger one
-- include: token.lua
local token = ARGV[1]
if not is_token(token) then
    return redis.error_reply('ERR rlock: bad token')
end
local last = redis.call('GET', KEYS[1])
if not last or larger(token, last) or not is_token(last) then
    local ttl = math.max(redis.call('PTTL', KEYS[1]), 300000)
    redis.call('SET', KEYS[1], token, 'PX', string.format('%.0f', ttl))
end
return 1
