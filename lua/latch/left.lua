-- Brings rcall, rpcall, left, is_count. Included by the latch's scripts.
--
-- is_count(text): is it a number above 0, without leading zeros, of up to 16
-- digits? left: what the count at KEYS[1] is, as text; '0' if there is none, for
-- then the latch is open. Programs that share it may have counted it below 0. A
-- string that is no number is no count, and left alone.
local rcall, rpcall = redis.call, redis.pcall
local function is_count(text)
    return text:find('^[1-9]%d*$') and #text <= 16
end

local left = rcall('GET', KEYS[1]) or '0'
if left ~= '0' and not (left:find('^%-?[1-9]%d*$') and #left <= 18) then
    return redis.error_reply('WRONGTYPE the string is no count')
end
