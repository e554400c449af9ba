-- Tells how long the lock is held. Changes nothing.
--
-- KEYS  1 lock
--
-- Reply type: array
-- Reply {}                  nobody holds it, or its time has passed
--       {value, '1', left}  the key's value, cut at 511 bytes, and how long it
--                           is good for, in ms
-- include: timestamp/stamp.lua
local free_at = stamp.read(KEYS[1])
if not free_at then
    return stamp.wrong
end
local left = free_at - stamp.now()
if left < 0 then
    return {}
end
return {redis.call('GET', KEYS[1]):sub(1, 511), '1', left}
