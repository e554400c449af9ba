-- What an acquire has to say of a lock in a hash that is not free, or of a hold that was
-- given up. Included last, behind acquire_args.lua, token.lua, queue, waits, tombstone and
-- known_token(): of the holder's hold, which is there already.
-- include: queue.lua

local function reenter()
    local known = known_token()
    -- include: hash/again.lua
    -- include: hash/unqueue.lua
    return known
end

-- include: hash/already.lua
return busy(rcall('PTTL', KEYS[1]), 0)
