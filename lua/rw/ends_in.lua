-- Brings ends_in. Included behind rcall, leases and now_ms.
--
-- ends_in(): for how many ms the last of those who have KEYS[1] has it, as far as is
-- known; -1 without an end. Leases may have been left by who is not in there any more.
local function ends_in()
    local pttl = rcall('PTTL', KEYS[1])
    local top = rcall('ZREVRANGE', leases, 0, 0, 'WITHSCORES')
    if top[1] and rcall('HEXISTS', KEYS[1], top[1]) == 1 and
       rcall('HLEN', KEYS[1]) - 1 <= rcall('ZCARD', leases) then
        local left = math.max(0, top[2] - now_ms)
        return pttl < 0 and left or math.min(pttl, left)
    end
    return pttl
end
