-- Brings prolong. Included behind rcall, side, now_ms and rw/leased.lua.
--
-- prolong(lock, leases, mark, holder, ms): 1, the holder has it for at least so long;
-- 0, not held by this holder.
local STEP_MS = 600000

-- The most frequent case: a reader has a lease, which ends earlier. The key of the leases
-- is looked at by renewals in the first ms of each step of ten minutes: who renews in time
-- has one there.
local function grow(leases, field, ms)
    if rcall('ZADD', leases, 'XX', 'GT', 'CH', text_of(now_ms + ms), field) == 0 then
        return false
    end
    if now_ms % STEP_MS < ms then
        outlast(leases, ms)
    end
    return true
end

local function prolong(lock, leases, mark, holder, ms)
    local field = side == 'w' and holder .. ':write' or holder
    if rcall('HEXISTS', lock, field) == 0 then
        return 0
    end
    outlive(lock, ms)
    if side == 'w' or not grow(leases, field, ms) then
        local until_ms = rcall('ZSCORE', leases, field)
        if until_ms and until_ms - now_ms > ms then
            ms = until_ms - now_ms
            outlive(lock, ms)
        end
        if until_ms or side == 'r' then
            leased(leases, field, ms)
        end
    end
    if side == 'r' and rcall('PEXPIRE', mark, text_of(ms)) == 0 then
        rcall('SET', mark, '1', 'PX', text_of(ms))
    end
    return 1
end
