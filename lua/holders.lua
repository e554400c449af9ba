-- Brings holders, and what permit/holders.lua brings. Included behind rcall, rpcall and
-- clock, where KEYS[6], if there is one, has the leases of a read-write lock, or the
-- permits of a semaphore.
--
-- holders(value): who has KEYS[1], of whatever kind; value: the string there, if it is
-- one. Each as {id, cut at 511 bytes, count, for how many ms its lease goes on}, -1: it
-- has no end. Not those whose lease is over; and of a thousand and more not all.
--
-- For people; asked where nobody waits for the answer to go on.
local MOST = 1000
local now_ms = math.floor(clock / 1000)
-- include: permit/holders.lua

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

local function holders(value)
    local pttl = rcall('PTTL', KEYS[1])
    if is_count(value) then
        return of_permits() or {}
    elseif type(value) == 'string' then
        return {{value:sub(1, 511), '1', pttl}}
    end
    return in_hash(pttl)
end
