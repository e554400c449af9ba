-- The rest of the inspect scripts of both sides. Who is in there although his own
-- lease is over is not told: whoever wants the lock takes him out. Who is asked
-- about comes before the others.
local rcall, leases, wanted = redis.call, KEYS[2], ARGV[1]
local mode = rcall('HGET', KEYS[1], 'mode')
if mode ~= 'read' and mode ~= 'write' then
    return rcall('EXISTS', KEYS[1]) == 1 and
           redis.error_reply('WRONGTYPE the hash is no read-write lock') or {}
end
-- include: clock.lua
local now_ms = math.floor(clock / 1000)
local function is_of_this_side(field)
    local until_ms = rcall('ZSCORE', leases, field)
    return field ~= 'mode' and (field:sub(-6) == ':write') == (side == 'w') and
           not (until_ms and until_ms + 0 < now_ms)
end

-- Its own lease, or, without one, the key's; but never for longer than that.
local function lease_of(field)
    local until_ms, pttl = rcall('ZSCORE', leases, field), rcall('PTTL', KEYS[1])
    local left = until_ms and until_ms - now_ms or pttl
    return pttl < 0 and left or math.min(pttl, left)
end

local function told(field, level)
    local holder = field:gsub(':write$', '')
    return {holder:sub(1, 511), level:sub(1, 32), lease_of(field)}
end

if wanted then
    wanted = wanted .. (side == 'w' and ':write' or '')
    local level = rcall('HGET', KEYS[1], wanted)
    if level and is_of_this_side(wanted) then
        return told(wanted, level)
    end
end
local cursor, page = '0', {}
repeat
    cursor, page = unpack(rcall('HSCAN', KEYS[1], cursor, 'COUNT', 100))
    for i = 1, #page, 2 do
        if is_of_this_side(page[i]) then
            return told(page[i], page[i + 1])
        end
    end
until cursor == '0'
return {}
