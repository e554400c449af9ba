-- Included by acquire: takes what is free, if nobody stands in line. Who has some of
-- them already, by an earlier try, gets the others; and all of the lease, and the
-- keys theirs, behind this. One is taken without a table, which costs more than the
-- command.
local free = alone and tonumber(rcall('GET', KEYS[1]) or nil)
if free and free >= n + 0 then
    local time, added = rcall('TIME'), nil
    local ends = time[1] * 1000 + math.floor(time[2] / 1000) + lease
    if n == '1' then
        added = rpcall('ZADD', KEYS[2], 'NX', ends, holder .. ':1')
    else
        local words = {'ZADD', KEYS[2], 'NX'}
        for i = 1, n do
            words[2 * i + 2], words[2 * i + 3] = ends, holder .. ':' .. i
        end
        added = rpcall(unpack(words))
    end
    local left = type(added) == 'number' and rpcall('DECRBY', KEYS[1], added)
    if type(left) == 'table' then -- it is no counter, or must not be used
        for i = 1, n do
            rcall('ZREM', KEYS[2], holder .. ':' .. i)
        end
    elseif added == n + 0 and idle == '0' and rcall('PTTL', KEYS[1]) < 0 then
        return '1'
    end
end
