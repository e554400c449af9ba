-- Brings counter, permits, value. Included behind rcall.
--
-- value: how many permits are free, below 0 if there are more than there should
-- be; nil: nobody has said yet how many there are. A string that is no such number
-- is no counter, and left alone.
local counter, permits = KEYS[1], KEYS[2]
local value = rcall('GET', counter)
if value and value ~= '0' and
   not (value:find('^%-?[1-9]%d*$') and #value <= 17) then
    return redis.error_reply('WRONGTYPE the string is no counter of permits')
end
value = tonumber(value)
