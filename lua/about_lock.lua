-- Brings about_lock. Included behind rcall and rpcall.
--
-- about_lock(): who has KEYS[1], in whatever layout, cut at 511 bytes, and the
-- count, as texts; '', '0' if nobody has it. Of a read-write lock (rw/give.lua) one
-- of those who have it.
local function about_hash()
    local cursor, page = '0', {}
    repeat
        local found = rpcall('HSCAN', KEYS[1], cursor, 'COUNT', 100)
        if found.err then
            return '', '0'
        end
        cursor, page = found[1], found[2]
        if page[1] == 'mode' then
            page = {unpack(page, 3)}
        end
    until page[1] or cursor == '0'
    local who = (page[1] or ''):gsub(':write$', '')
    return who:sub(1, 511), (page[2] or '0'):sub(1, 32)
end

local function about_lock()
    local value = rpcall('GET', KEYS[1])
    if type(value) == 'string' then
        return value:sub(1, 511), '1'
    end
    return about_hash()
end
