-- Included by the acquire scripts.
--
-- now(): the server's clock in microseconds. mint(key, least): a new fencing
-- token, larger than the last one, than any that a server which has lost its
-- data may have handed out earlier, and no smaller than `least` (nil = none).
-- Both are text, which is compared by length first: turning numbers into Lua's
-- and back costs more than a command.
local function now()
    local time = redis.call('TIME')
    return time[1] .. ('00000' .. time[2]):sub(-6)
end

-- SET returns what was there before since Redis 6.2; older ones refuse GET.
local function mint(key, least)
    local token = now()
    if least and (#least > #token or #least == #token and least > token) then
        token = least
    end
    local last = redis.pcall('SET', key, token, 'PX', '3600000', 'GET')
    if type(last) == 'table' then
        last = redis.call('GET', key)
        redis.call('SET', key, token, 'PX', '3600000')
    end
    if last and #last >= #token and last >= token and tonumber(last) then
        token = string.format('%.0f', tonumber(last) + 1)
        redis.call('SET', key, token, 'PX', '3600000')
    end
    return token
end
