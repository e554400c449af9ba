-- Brings mode, now_ms, field_of, purge, fits, give, ungive, and what rw/leased.lua and
-- rw/ends_in.lua bring: of a read-write lock, in a hash as Redisson has it: mode, read
-- or write; <reader> -> level; and <writer>:write -> level. Included behind rcall,
-- rpcall, larger, is_token, token_key, leases and clock. Who includes it sets mode,
-- unless nothing is there.
--
-- The leases: a sorted set, field of the hash -> until when, in ms, of our readers
-- and of a writer that reads, too. Any other writer's lease is the key's TTL, which
-- is never shorter than the longest one in there.
local now_ms = math.floor(clock / 1000)
local mode
-- include: rw/leased.lua

local function field_of(holder, what)
    return what == 'w' and holder .. ':write' or holder
end

-- Others keep the key, but not those whose own lease is over; so many at a time.
-- What is not in the hash any more goes from the leases only.
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
end

-- include: rw/ends_in.lua
local function fits(what)
    return not mode or what == 'r' and mode == 'read'
end

local function mint(lease)
    local least
    -- include: token_ttl.lua
    -- include: mint_by_clock.lua
    return token
end

-- Readers between two writers have one token, and a writer that reads has its own;
-- its key stays for as long as the longest of them needs it.
local function share(lease)
    local last = rpcall('GET', token_key)
    if type(last) ~= 'string' or not is_token(last) then
        return mint(lease)
    end
    -- include: rw/keep_token.lua
    return last
end

-- Returns a token; or an error, and then nothing stays. What may be refused comes
-- before the hold: Lua does not roll back, and one without a TTL must not stay.
local function give(holder, what, lease)
    local field = field_of(holder, what)
    local token = not (mode and what == 'r') and mint(lease)
    if not mode then
        rcall('DEL', leases)
    end
    if what == 'r' then
        leased(leases, field, tonumber(lease))
    end
    token = token or share(lease)
    if mode then
        rcall('HSET', KEYS[1], field, '1')
        outlive(KEYS[1], tonumber(lease))
        return token
    end
    mode = what == 'w' and 'write' or 'read'
    rcall('HSET', KEYS[1], 'mode', mode, field, '1')
    local expiry = rpcall('PEXPIRE', KEYS[1], lease)
    if expiry ~= 1 then
        rcall('DEL', KEYS[1])
        mode = false
        return expiry
    end
    return token
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
