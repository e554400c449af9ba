-- Tells who holds the lock. Changes nothing.
--
-- KEYS  1 lock
--
-- Reply type: array
-- Reply as of hash/inspect.lua; the count is always 1
local value = redis.call('GET', KEYS[1])
if not value then
    return {}
end
return {value:sub(1, 511), '1', redis.call('PTTL', KEYS[1])}
