-- Brings members.
--
-- members(holder, n): what the holder has, or would have, of a semaphore; one for
-- each permit, as Redisson counts them.
local function members(holder, n)
    local all = {}
    for i = 1, n do
        all[i] = holder .. ':' .. i
    end
    return all
end
