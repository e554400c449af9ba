-- The rest of the force_release scripts of both sides. What is no lock stays: besides
-- the mode there are only holder ids of this protocol and of Redisson's, as far as a
-- look tells.
local rcall, rpcall = redis.call, redis.pcall
local token_key, line, wants, leases = KEYS[2], KEYS[3], KEYS[4], KEYS[5]
-- include: token.lua
-- include: is_holder.lua
-- include: is_redissons.lua
-- include: clock.lua
-- include: rw/give.lua
-- include: rw/fits.lua
-- include: line.lua
local function is_lock()
    local page = rcall('HSCAN', KEYS[1], '0', 'COUNT', 100)[2]
    for i = 1, #page, 2 do
        local who = page[i]:gsub(':write$', '')
        if who ~= 'mode' and not (is_holder(who) or is_redissons(who)) then
            return false
        end
    end
    return mode == 'read' or mode == 'write'
end

-- All of one side, of what is written; true: there were some.
local function end_side()
    local any = false
    for _, field in ipairs(rcall('HKEYS', KEYS[1])) do
        if field ~= 'mode' and (field:sub(-6) == ':write') == (side == 'w') then
            rcall('HDEL', KEYS[1], field)
            rcall('ZREM', leases, field)
            any = true
        end
    end
    return any
end

mode = rcall('HGET', KEYS[1], 'mode')
if not mode and rcall('EXISTS', KEYS[1]) == 0 then
    return 0
end
if not is_lock() then
    return redis.error_reply('WRONGTYPE the hash is no read-write lock')
end
purge()
if not mode or mode == 'read' and side == 'w' then
    return 0
end
if mode == 'read' then
    rcall('DEL', KEYS[1], leases)
    mode = false
elseif not end_side() then
    return 0
elseif rcall('HLEN', KEYS[1]) <= 1 then
    rcall('DEL', KEYS[1], leases)
    mode = false
elseif side == 'w' then
    mode = 'read'
    rcall('HSET', KEYS[1], 'mode', mode)
end
pcall(admit)
if mode ~= 'write' then
    rpcall(ARGV[2] or 'PUBLISH', ARGV[1], '1')
end
return 1
