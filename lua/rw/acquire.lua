-- The rest of the acquire scripts of both sides, behind `side`, 'r' or 'w'.
--
-- The way of a lock that is free, and that nobody waits for, comes first and is
-- kept short.
-- include: acquire_args.lua
local beat, least = least or '0', nil
local line, wants, leases, token_key = KEYS[4], KEYS[5], KEYS[6], KEYS[2]
local own_mark, other = KEYS[7], ARGV[7] or ''
-- include: clock.lua
if rcall('EXISTS', KEYS[1], KEYS[3], line) == 0 then
    if level ~= '1' then
        return {-1}
    end
    if side == 'r' then
        rcall('SET', own_mark, '1', 'PX', lease)
    end
    local what = side
    -- include: rw/take.lua
    return token
end
-- include: token.lua
-- include: rw/give.lua

-- By its marks Redisson tells what the readers need of the key's TTL; it deletes a key
-- for which it sees none. So a mark must not end before its lease. Who waits has one,
-- too: a grant by another one's script cannot write it.
local WAITS_MARKED_MS = 30000
local function mark(ms)
    if side == 'r' then
        rcall('SET', own_mark, '1', 'PX', string.format('%.0f', ms))
    end
end

local function take()
    mark(lease)
    return give(holder, side, lease)
end

-- include: rw/fits.lua

-- One level more, or a grant that is confirmed.
local function reenter(field)
    -- include: known_token.lua
    local until_ms = rcall('ZSCORE', leases, field)
    local left = math.max(tonumber(lease), until_ms and until_ms - now_ms or 0)
    rcall('HSET', KEYS[1], field, level)
    if until_ms or side == 'r' then
        leased(leases, field, left)
    end
    outlive(KEYS[1], left)
    mark(left)
    -- include: rw/keep_token.lua
    return known
end

-- Of a writer that reads, or is the only one to read and wants to write. Both sides
-- have leases of their own then.
local function join()
    if side == 'r' then
        if not rcall('ZSCORE', leases, other) then
            local pttl = rcall('PTTL', KEYS[1])
            leased(leases, other, pttl < 0 and LEASES_MS or pttl)
        end
        return take()
    end
    if rcall('HLEN', KEYS[1]) ~= 2 then
        return {-3}
    end
    local field = field_of(holder, side)
    leased(leases, field, tonumber(lease))
    local token = mint(math.max(lease, rcall('PTTL', KEYS[1])))
    rcall('HSET', KEYS[1], 'mode', 'write', field, '1')
    outlive(KEYS[1], tonumber(lease))
    return token
end

if rcall('EXISTS', KEYS[3]) == 1 then
    return {-2}
end
mode = rcall('HGET', KEYS[1], 'mode')
if mode and mode ~= 'read' and mode ~= 'write' or
   not mode and rcall('EXISTS', KEYS[1]) == 1 then
    return redis.error_reply('WRONGTYPE the hash is no read-write lock')
end
local own_field = field_of(holder, side)
if mode and rcall('HEXISTS', KEYS[1], own_field) == 1 then
    return reenter(own_field)
end
if level ~= '1' then
    return {-1}
end
if other ~= '' and side == 'w' then -- its own lease may be over, and others read
    repeat until not purge()
end
if other ~= '' and mode and rcall('HEXISTS', KEYS[1], other) == 1 then
    return join()
end
-- include: line.lua
-- include: who_has_it.lua
if not fits(side) then
    purge()
end
local ticket, anew = '0', 0
if bell ~= '' then
    ticket, anew = stand(holder, lease, side, bell, ARGV[5], beat)
    mark(WAITS_MARKED_MS)
end
local token = admit(holder)
if token then
    if type(token) == 'string' then
        mark(lease)
        admit()
    end
    return token
end
if fits(side) and rcall('EXISTS', line) == 0 then
    return take()
end
local pttl = mode and ends_in() or 0
if bell == '' then
    return {0, pttl, '0', 0, -1, who_has_it(token_key, mode == 'read')}
end
return {0, pttl, ticket, 0, rcall('ZRANK', line, holder) or -1, anew}
