-- Brings prolong. Included behind rcall, side, now_ms and rw/leased.lua.
--
-- prolong(lock, leases, mark, holder, ms): 1, the holder has it for at least so long;
-- 0, not held by this holder.
local function prolong(lock, leases, mark, holder, ms)
    local field = side == 'w' and holder .. ':write' or holder
    if rcall('HEXISTS', lock, field) == 0 then
        return 0
    end
    local until_ms = rcall('ZSCORE', leases, field)
    ms = math.max(ms, until_ms and until_ms - now_ms or 0)
    outlive(lock, ms)
    if until_ms or side == 'r' then
        leased(leases, field, ms, until_ms)
    end
    if side == 'r' then
        rcall('SET', mark, '1', 'PX', text_of(ms))
    end
    return 1
end
