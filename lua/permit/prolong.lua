-- Brings has, prolong. Included behind members.lua and keep.lua.
--
-- has(): how many of the permits the holder has. prolong(how): they get the lease;
-- with 'GT' none is shortened. Behind a first write, which needs no memory, a server
-- that is out of it takes the others, too.
local function has(holder, n)
    local count = 0
    for _, score in ipairs(rcall('ZMSCORE', permits,
                                 unpack(members(holder, n)))) do
        count = count + (score and 1 or 0)
    end
    return count
end

local function prolong(holder, n, lease, how)
    local words, ends = {'ZADD', permits, 'XX', how}, until_ms(lease)
    for _, member in ipairs(members(holder, n)) do
        words[#words + 1] = ends
        words[#words + 1] = member
    end
    rcall('ZREM', permits, '')
    rcall(unpack(words))
    keep()
end
