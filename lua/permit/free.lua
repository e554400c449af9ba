-- Brings counter, permits, value, begin, members, take_back. Included behind rcall.
--
-- value: how many permits are free, below 0 if there are more than there should
-- be; nil: nobody has said yet how many there are. A string that is no such number
-- is no counter, and left alone.
-- include: permit/members.lua
local counter, permits = KEYS[1], KEYS[2]
local value = rcall('GET', counter)
if value and value ~= '0' and
   not (value:find('^%-?[1-9]%d*$') and #value <= 17) then
    return redis.error_reply('WRONGTYPE the string is no counter of permits')
end
value = tonumber(value)

-- So many there are from now on; some may be held of a counter that is gone.
local function begin(total)
    value = total - rcall('ZCARD', permits)
    rcall('SET', counter, string.format('%.0f', value))
end

-- What is there of them is free again. INCRBY comes behind a write which needs no
-- memory, so a server that is out of it takes that, too.
local function take_back(holder, n)
    local got = rcall('ZREM', permits, unpack(members(holder, n)))
    if got > 0 and value then
        value = rcall('INCRBY', counter, got)
    end
    return got
end
