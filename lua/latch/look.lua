-- Tells how far a latch is; with a bell, for who waits for it.
--
-- KEYS  1 count  2 queue
-- ARGV  1 bell ('' = do not queue)
--
-- Reply type: array
-- Reply {left, queued}  left: what is left, as text, '0': it is open;
--                       queued: 1 if the client's bell is in the queue, else 0
--
-- The queue lives a little longer than the longest pause between two looks. A
-- server out of memory, or without the right, queues nobody, and waiters poll.
-- Each look writes, if only by taking the bell out: what has become a replica,
-- and may know of no count any more or not yet, must not call a latch open.
-- include: latch/left.lua
local open = left + 0 <= 0
if open or ARGV[1] == '' then
    rcall('ZREM', KEYS[2], ARGV[1])
    return {open and '0' or left, 0}
end
-- include: clock.lua
local queued = rpcall('ZADD', KEYS[2], clock, ARGV[1])
if type(queued) == 'number' then
    rcall('PEXPIRE', KEYS[2], 6000)
elseif queued.err:find('READONLY') then
    return queued
end
return {left, type(queued) == 'number' and 1 or 0}
