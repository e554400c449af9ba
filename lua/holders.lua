-- Brings is_count, holders. Included behind rcall, rpcall and clock, where KEYS[6], if
-- there is one, has the leases of a read-write lock, or the permits of a semaphore.
--
-- is_count(value): is that what is left of a latch, or is free of a semaphore? A unix
-- time is a timestamp's (timestamp/stamp.lua).
-- holders(value): who has KEYS[1], of whatever kind; value: the string there, if it is
-- one. Each as {id, cut at 511 bytes, count, for how many ms its lease goes on}, -1: it
-- has no end. Not those whose lease is over; and of a thousand and more not all.
--
-- For people; asked where nobody waits for the answer to go on.
-- include: is_holder.lua
local MOST = 1000
local now_ms = math.floor(clock / 1000)

local function is_count(value)
    local digits = type(value) == 'string' and value:match('^%-?(%d+)$')
    return digits and (digits ~= value or #digits < 10 or #digits > 13)
end

-- What has no lease of its own ends with the key. nil: it is over.
local function lease_of(field, pttl)
    local ends = KEYS[6] and rpcall('ZSCORE', KEYS[6], field)
    if type(ends) ~= 'string' then
        return pttl
    end
    return ends - now_ms >= 0 and ends - now_ms or nil
end

local function in_hash(pttl)
    local all, cursor = {}, '0'
    repeat
        local found = rpcall('HSCAN', KEYS[1], cursor, 'COUNT', 100)
        if found.err then
            return {}
        end
        cursor = found[1]
        for i = 1, #found[2], 2 do
            local field, level = found[2][i], found[2][i + 1]
            local ms = field ~= 'mode' and lease_of(field, pttl)
            if ms then
                field = field:gsub(':write$', '')
                all[#all + 1] = {field:sub(1, 511), level:sub(1, 32), ms}
            end
        end
    until cursor == '0' or #all >= MOST
    return all
end

-- A member is a permit, of ours behind its holder id.
local function of_permits()
    local found = KEYS[6] and rpcall('ZRANGE', KEYS[6], 0, MOST - 1, 'WITHSCORES') or {}
    local all, known = {}, {}
    for i = 1, #found, 2 do
        local who, ms = found[i]:match('^(.*):%d+$'), found[i + 1] - now_ms
        who = (who and is_holder(who) and who or found[i]):sub(1, 511)
        local has = known[who]
        if has then
            has[2] = has[2] + 1
        elseif ms > 0 then
            known[who] = {who, 1, found[i + 1] + 0 < 9e14 and ms or -1}
            all[#all + 1] = known[who]
        end
    end
    return all
end

local function holders(value)
    local pttl = rcall('PTTL', KEYS[1])
    if is_count(value) then
        return of_permits()
    elseif type(value) == 'string' then
        return {{value:sub(1, 511), '1', pttl}}
    end
    return in_hash(pttl)
end
