-- Brings begin, members, take_back. Included behind value.lua.
-- include: permit/members.lua

-- So many there are from now on; some may be held of a counter that is gone.
local function begin(total)
    value = total - rcall('ZCARD', permits)
    rcall('SET', counter, string.format('%.0f', value))
end

local call = rcall
local function take_back(holder, n)
    -- include: permit/take_back.lua
    return got
end
