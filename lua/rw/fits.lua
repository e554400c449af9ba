-- Brings purge, fits, ungive, and what rw/ends_in.lua brings: what line.lua needs of a
-- read-write lock besides give. Included behind rw/give.lua.

-- Others keep the key, but not those whose own lease is over; so many at a time: true,
-- there may be more. What is not in the hash any more goes from the leases only.
local function purge()
    local dead = mode and rcall('ZRANGEBYSCORE', leases, '-inf',
        '(' .. string.format('%.0f', now_ms), 'LIMIT', 0, 100) or {}
    if not dead[1] then
        return
    end
    for _, field in ipairs(dead) do
        if rcall('HDEL', KEYS[1], field) == 1 and field:sub(-6) == ':write' then
            mode = 'read'
            rcall('HSET', KEYS[1], 'mode', mode)
        end
    end
    rcall('ZREM', leases, unpack(dead))
    if rcall('HLEN', KEYS[1]) <= 1 then
        rcall('DEL', KEYS[1], leases)
        mode = false
    end
    return dead[100]
end

-- include: rw/ends_in.lua
-- Whoever wants a lock of another kind waits for a script of that kind.
local function fits(what)
    return what == 'r' and mode == 'read' or
           (what == 'r' or what == 'w') and not mode
end

local function ungive(holder, what)
    local field = field_of(holder, what)
    rcall('HDEL', KEYS[1], field)
    rcall('ZREM', leases, field)
    if rcall('HLEN', KEYS[1]) <= 1 then
        rcall('DEL', KEYS[1], leases)
        mode = false
    end
end
