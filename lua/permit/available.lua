-- Tells how many permits are free. Changes nothing.
--
-- KEYS  1 counter  2 permits
-- ARGV  1 how many there are if nobody has said yet
--
-- Reply type: integer
-- Reply so many are free, those whose lease is over, too; below 0, so many have to
--       be given back before one is
-- include: permit/args.lua
local rcall = redis.call
if not is_number(ARGV[1]) then
    return redis.error_reply('ERR rlock: bad number of permits')
end
-- include: permit/value.lua
local time = rcall('TIME')
local dead = rcall('ZCOUNT', permits, '-inf',
                   string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
return (value or ARGV[1] - rcall('ZCARD', permits)) + dead
