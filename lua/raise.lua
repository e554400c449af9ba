-- Writes a fencing token back that was minted on another server, for a lock
-- that is held on several.
--
-- KEYS  1 token
-- ARGV  1 the token
--
-- Reply 1  the last token is this one, or a larger one
local token = ARGV[1]
if not token:find('^[1-9]%d*$') then
    return redis.error_reply('ERR rlock: bad token')
end
local last = redis.call('GET', KEYS[1])
if not last or #last < #token or #last == #token and last < token then
    redis.call('SET', KEYS[1], token, 'PX', 3600000)
end
return 1
