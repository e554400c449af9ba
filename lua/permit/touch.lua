-- Writes what is there already, so that WAIT has a write to wait for; as touch.lua
-- does, for a counter, which may have no TTL.
--
-- KEYS  1 counter
--
-- Reply type: integer
-- Reply 1  it is what it was
--       0  it is not there; nothing was written
if redis.call('EXISTS', KEYS[1]) == 0 then
    return 0
end
redis.call('INCRBY', KEYS[1], 0)
return 1
