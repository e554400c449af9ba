-- Writes what is there already, so that WAIT has a write to wait for: behind it
-- go calls that may have had nothing to write, and whatever they found was
-- written before. Sent only with min_replicas.
--
-- KEYS  1 a lock
--
-- Reply type: integer
-- Reply 1  its TTL is what it was
--       0  it is not there, or has no TTL; nothing was written
local ttl = redis.call('PTTL', KEYS[1])
return ttl > 0 and redis.call('PEXPIRE', KEYS[1], ttl) or 0
