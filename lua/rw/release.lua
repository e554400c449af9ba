-- The rest of the release scripts of both sides, behind `side`, 'r' or 'w'.
--
-- A release has to succeed: what is refused on the way is left to who comes next.
-- include: release_args.lua
local line, wants, leases, token_key = KEYS[4], KEYS[5], KEYS[6], KEYS[2]
local field = side == 'w' and ARGV[1] .. ':write' or ARGV[1]
if level ~= '0' then
    if rcall('HEXISTS', KEYS[1], field) == 0 then
        return unburied
    end
    rpcall('HSET', KEYS[1], field, level)
    return unburied + 1
end
local held = rpcall('HDEL', KEYS[1], field)
if type(held) == 'table' then -- it is no lock; but nobody stands for it for ever
    rpcall('ZREM', line, ARGV[1])
    rpcall('HDEL', wants, ARGV[1])
    return held
end
local left = rcall('HLEN', KEYS[1])
if held == 1 and left <= 1 then
    rpcall('DEL', KEYS[1], leases, KEYS[7] or leases)
elseif held == 1 then
    rpcall('ZREM', leases, field)
    if side == 'w' then
        rpcall('HSET', KEYS[1], 'mode', 'read')
    end
end
if side == 'r' and (held == 0 or left > 1) then
    rpcall('DEL', KEYS[7])
end

-- Redisson's wait for a message: for 0 one of them looks, for 1 all.
local function tell_redisson(mode)
    if held == 1 and ARGV[2] ~= '' and
       (not mode or side == 'w' and mode == 'read') then
        rpcall(ARGV[5] or 'PUBLISH', ARGV[2], side == 'w' and '1' or '0')
    end
end
if rcall('EXISTS', line) == 0 then
    tell_redisson(left > 1 and 'read')
    return unburied + held
end
-- include: token.lua
-- include: clock.lua
-- include: rw/give.lua
-- include: rw/fits.lua
-- include: line.lua
mode = rcall('HGET', KEYS[1], 'mode')
local done, _, others = pcall(function()
    step_out(ARGV[1])
    if not mode and rcall('EXISTS', KEYS[1]) == 1 then
        return nil, 0
    end
    purge()
    return admit()
end)
tell_redisson(mode)
local granted = done and others > 0 or rcall('EXISTS', line) == 1
return unburied + held * (granted and 2 or 1)
