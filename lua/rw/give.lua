-- Brings mode, now_ms, field_of, give, and what rw/leased.lua brings: of a read-write
-- lock, in a hash as Redisson has it: mode, read or write; <reader> -> level; and
-- <writer>:write -> level. Included behind rcall, rpcall, larger, is_token, token_key,
-- leases and clock. Who includes it sets mode, unless nothing is there.
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

local function mint(lease)
    local least
    -- include: rw/token_ttl.lua
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

-- Returns a token; or an error, and then nothing stays.
local function give(holder, what, lease)
    if not mode then
        -- include: rw/take.lua
        mode = what == 'w' and 'write' or 'read'
        return token
    end
    local token = what == 'w' and mint(lease)
    local field = field_of(holder, what)
    if what == 'r' then
        leased(leases, field, tonumber(lease))
    end
    token = token or share(lease)
    rcall('HSET', KEYS[1], field, '1')
    outlive(KEYS[1], tonumber(lease))
    return token
end
