-- Brings fits, give, ungive, purge: of permits. Included behind free.lua and
-- keep.lua.
-- Whoever wants a lock waits for a script of that kind.
local function fits(n)
    return value and value >= (tonumber(n) or math.huge)
end

-- Returns what stands for a token, of which permits have none; or an error, and
-- then nothing stays.
local function give(holder, n, lease)
    local left = rpcall('DECRBY', counter, n)
    if type(left) == 'table' then
        return left
    end
    local scored, ends = {}, until_ms(lease)
    for i, member in ipairs(members(holder, n)) do
        scored[2 * i - 1], scored[2 * i] = ends, member
    end
    local added = rpcall('ZADD', permits, unpack(scored))
    if type(added) == 'table' then
        rcall('INCRBY', counter, n)
        return added
    end
    value = left
    return '1'
end

local function ungive(holder, n)
    take_back(holder, n)
end

-- Those whose lease is over are free again; a thousand of them at least, and until
-- there are as many as anybody may want.
local function purge()
    local dead
    repeat
        dead = rcall('ZRANGEBYSCORE', permits, '-inf', until_ms(0), 'LIMIT', 0, 1000)
        if dead[1] then
            rcall('ZREM', permits, unpack(dead))
            value = value and rcall('INCRBY', counter, #dead)
        end
    until #dead < 1000 or not value or value >= 1000
end
