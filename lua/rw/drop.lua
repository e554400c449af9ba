-- The rest of the drop scripts of both sides, behind `side`. A lock of which nothing
-- but the mode is left is free; and when its writer goes that reads, too, it is read.
local rcall = redis.call
local gone = rcall('HDEL', KEYS[1], side == 'w' and ARGV[1] .. ':write' or ARGV[1])
if gone == 1 and rcall('HLEN', KEYS[1]) <= 1 then
    rcall('DEL', KEYS[1])
elseif gone == 1 and side == 'w' then
    rcall('HSET', KEYS[1], 'mode', 'read')
end
return gone
