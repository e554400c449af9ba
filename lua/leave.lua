-- A client gives up waiting, or passes on a ring that it has no use for.
--
-- KEYS  1 lock  2 queue
-- ARGV  1 bell
--
-- Reply type: integer
-- Reply 1  the client was in the queue and has left it
--       0  it was not in it any more: it had been rung, perhaps for a lock
--          that is still free; then the next client has been rung
-- include: ring.lua
if redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then
    return 1
end
if redis.call('EXISTS', KEYS[1]) == 0 then
    ring(KEYS[2], KEYS[1])
end
return 0
