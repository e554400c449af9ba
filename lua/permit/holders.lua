-- Brings is_whole, is_count, of_permits. Included behind rpcall, MOST and now_ms, where
-- KEYS[6], if there is one, has the permits of a semaphore.
--
-- is_whole(value): is it a whole number, as is what is left of a latch, or free of a
-- semaphore? is_count(value): and one that cannot be a unix time, which is a timestamp's
-- (timestamp/stamp.lua)?
-- of_permits(): who has some, as holders() tells it (holders.lua); of those among the
-- MOST whose leases end first; and how many are there whose lease is over. nil and what
-- was refused, if that was no key of another type.
-- include: is_holder.lua
local function is_whole(value)
    return type(value) == 'string' and value:match('^%-?(%d+)$')
end

local function is_count(value)
    local digits = is_whole(value)
    return digits and (digits ~= value or #digits < 10 or #digits > 13)
end

-- Behind those whose lease is over; and how many these are.
local function members_of()
    local over = rpcall('ZCOUNT', KEYS[6], '-inf', now_ms)
    if type(over) == 'table' then
        return over
    end
    return rpcall('ZRANGE', KEYS[6], over, over + MOST - 1, 'WITHSCORES'), over
end

-- A member is a permit, of ours behind its holder id.
local function of_permits()
    local found, over = {}, 0
    if KEYS[6] then
        found, over = members_of()
    end
    if found.err then
        local refused = not found.err:find('WRONGTYPE')
        return not refused and {} or nil, refused and found or 0
    end
    local all, known = {}, {}
    for i = 1, #found, 2 do
        local who, ms = found[i]:match('^(.*):%d+$'), found[i + 1] - now_ms
        who = (who and is_holder(who) and who or found[i]):sub(1, 511)
        if known[who] then
            known[who][2] = known[who][2] + 1
        else
            known[who] = {who, 1, found[i + 1] + 0 < 9e14 and ms or -1}
            all[#all + 1] = known[who]
        end
    end
    return all, over
end
