-- Counts down; at level 0 frees the lock, or leaves the line, and grants the lock to
-- the first in line.
--
-- KEYS  1 lock  2 queue  3 tombstone  4 token  5 line  6 wants
-- ARGV  1 holder  2 Redisson's channel ('' = none)  3 level to leave
--       4 tombstone ms (0 = none)  5 SPUBLISH, in a cluster (may be missing)
-- Without ARGV 3 to 5 the level is 0, and there is no tombstone.
--
-- Reply type: integer
-- Reply 1  the holder's count is the level, or its field is gone
--       2  the same, and another has it, or a waiting client was rung
--       0  not held by this holder; no hold was changed
--       10 more  the same, but the server refused to write the tombstone (out
--                of memory): say it again later
-- While the tombstone stands, an acquire of this hold that still arrives is
-- refused. With level 0 the holder is not in line afterwards.
--
-- A release has to succeed: what is refused on the way ends in a free lock. When
-- nobody in line has got it, it is as of a plain one: a client in the queue is rung.
-- include: ring.lua
-- include: release_args.lua
if level ~= '0' then
    if rcall('HEXISTS', KEYS[1], ARGV[1]) == 0 then
        return unburied
    end
    rpcall('HSET', KEYS[1], ARGV[1], level)
    return unburied + 1
end
local held = rpcall('HDEL', KEYS[1], ARGV[1])
if type(held) == 'table' then -- it is no lock; but nobody stands for it for ever
    rpcall('ZREM', KEYS[5], ARGV[1])
    rpcall('HDEL', KEYS[6], ARGV[1])
    return held
end
local line, wants, token_key = KEYS[5], KEYS[6], KEYS[4]
local others = 0
if rcall('EXISTS', line) == 1 then
    -- include: token.lua
    -- include: clock.lua
    -- include: fair/grants.lua
    -- include: line.lua
    local done, _, granted = pcall(function()
        step_out(ARGV[1])
        return admit()
    end)
    others = done and granted or 0
    if not is_free() then
        return unburied + held * (others > 0 and 2 or 1)
    end
elseif held == 0 then
    return unburied
end
local rung = ring(KEYS[2], KEYS[1])
if held == 1 and ARGV[2] ~= '' then
    rpcall(ARGV[5] or 'PUBLISH', ARGV[2], '0')
end
return unburied + held * (rung and 2 or 1)
