-- Included by acquire: takes what is free, if nobody stands in line. Who has some of
-- them already, by an earlier try, gets the others; and all of the lease, and the
-- keys theirs, behind this.
local free = alone and tonumber(rcall('GET', KEYS[1]) or nil)
if free and free >= n + 0 then
    local time, words = rcall('TIME'), {'ZADD', KEYS[2], 'NX'}
    local ends = time[1] * 1000 + math.floor(time[2] / 1000) + lease
    for i = 1, n do
        words[2 * i + 2], words[2 * i + 3] = ends, holder .. ':' .. i
    end
    local added = rpcall(unpack(words))
    local left = type(added) == 'number' and rpcall('DECRBY', KEYS[1], added)
    if type(left) == 'table' then -- it is no counter, or must not be used
        for i = 1, n do
            rcall('ZREM', KEYS[2], holder .. ':' .. i)
        end
    elseif added == n + 0 and idle == '0' and rcall('PTTL', KEYS[1]) < 0 then
        return '1'
    end
end
