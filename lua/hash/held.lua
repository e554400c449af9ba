-- What an acquire has to say of a lock in a hash that is not free, or of a hold that was
-- given up. Included last, behind acquire_args.lua, token.lua, queue, waits, tombstone and
-- known_token(): of the holder's hold, which is there already.
-- include: queue.lua

local function reenter()
    local known = known_token()
    rcall('HSET', KEYS[1], holder, level)
    if rcall('PTTL', KEYS[1]) < tonumber(lease) then
        rcall('PEXPIRE', KEYS[1], lease)
    end
    -- include: hash/unqueue.lua
    return known
end

if rcall('EXISTS', tombstone) == 1 then
    return {-2}
end
if rcall('HEXISTS', KEYS[1], holder) == 1 then
    return reenter()
end
if level ~= '1' then
    return {-1}
end
if (ARGV[5] or '0') == '0' and rcall('HEXISTS', KEYS[1], 'mode') == 1 then
    return redis.error_reply('WRONGTYPE it is a read-write lock')
end
return busy(rcall('PTTL', KEYS[1]), 0)
