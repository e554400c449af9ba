-- Tells who holds the lock. Changes nothing.
--
-- KEYS  1 lock
--
-- Reply type: array
-- Reply {}                      nobody does
--       {holder, count, pttl}   the hash's first field, cut at 511 bytes, its
--                               value, and the key's TTL in ms (-1 = none)
if redis.call('HLEN', KEYS[1]) == 0 then
    return {}
end
if redis.call('HEXISTS', KEYS[1], 'mode') == 1 then
    return redis.error_reply('WRONGTYPE it is a read-write lock')
end
-- A lock has one field; a foreign hash may have millions, sparsely spread.
local cursor, page = '0', {}
repeat
    cursor, page = unpack(redis.call('HSCAN', KEYS[1], cursor, 'COUNT', 100))
until page[1] or cursor == '0'
return {page[1]:sub(1, 511), page[2]:sub(1, 32), redis.call('PTTL', KEYS[1])}
