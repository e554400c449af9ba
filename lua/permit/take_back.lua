-- Brings got: so many of the holder's n are there; they are free again, and value tells
-- how many are, or why that is no counter. Included behind rcall, rpcall, counter, permits,
-- holder, n, and value: is there a counter? INCRBY comes behind a write which needs no
-- memory, so a server that is out of it takes that, too.
local got
if n == '1' then
    got = rcall('ZREM', permits, holder .. ':1')
else
    local words = {'ZREM', permits}
    for i = 1, n do
        words[i + 2] = holder .. ':' .. i
    end
    got = rcall(unpack(words))
end
if got > 0 and value then
    value = rpcall('INCRBY', counter, got)
end
