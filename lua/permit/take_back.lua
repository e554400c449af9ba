-- Brings got: so many of the holder's n are there; they are free again, and value tells
-- how many are free then. Included behind rcall, counter, permits, holder, n; value, which
-- is false or nil without a counter; and call, by which it is counted up: rcall, or rpcall,
-- with which value may be an error. INCRBY comes behind a write which needs no memory, so a
-- server that is out of it takes that, too.
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
    value = call('INCRBY', counter, got)
end
