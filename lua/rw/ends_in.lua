-- Brings ends_in. Included behind rcall, leases and now_ms.
--
-- ends_in(): for how many ms the last of those who have KEYS[1] has it, as far as is
-- known; -1 without an end.
local function ends_in()
    local pttl = rcall('PTTL', KEYS[1])
    if rcall('HLEN', KEYS[1]) - 1 <= rcall('ZCARD', leases) then
        local top = rcall('ZREVRANGE', leases, 0, 0, 'WITHSCORES')[2]
        if top then
            return math.max(0, math.min(pttl, top - now_ms))
        end
    end
    return pttl
end
