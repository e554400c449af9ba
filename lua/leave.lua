-- A client gives up waiting, or passes on a ring that it has no use for.
--
-- KEYS  1 lock  2 queue  3 token  4 who waits (may be missing)
-- ARGV  1 bell
--
-- Reply type: array
-- Reply {1, holder, ms}  the client was in the queue and has left it
--       {0, holder, ms}  it was not in it any more: it had been rung, perhaps
--                        for a lock that is still free; then the next client
--                        has been rung
--       with who has the lock, and for how long he has had it, as busy tells
--       (queue.lua): who gives up has to tell people why
-- include: ring.lua
-- include: token.lua
local rcall, rpcall = redis.call, redis.pcall
-- include: who_has_it.lua
local was_in = rcall('ZREM', KEYS[2], ARGV[1])
if KEYS[4] then
    rpcall('HDEL', KEYS[4], ARGV[1])
end
if was_in == 0 and rcall('EXISTS', KEYS[1]) == 0 then
    ring(KEYS[2], KEYS[1])
end
return {was_in, who_has_it(KEYS[3])}
