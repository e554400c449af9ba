-- Brings is_free, fits, give, ungive: of a lock that one holder has, in a hash.
-- Included behind rcall, rpcall, token_key and clock.
local function is_free()
    return rcall('EXISTS', KEYS[1]) == 0
end

-- Whoever wants a lock of another kind waits for a script of that kind.
local function fits(what)
    return what == 'f' and is_free()
end

-- Returns a token; or an error, and then nothing stays.
local function give(holder, _, lease)
    local least
    -- include: hash/take.lua
    return token
end

local function ungive(holder)
    rcall('HDEL', KEYS[1], holder)
end
