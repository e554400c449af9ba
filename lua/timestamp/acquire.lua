-- Takes the lock, takes it over when its time has passed, confirms it for one
-- level more, or queues. The server's clock decides, so that two clients of
-- this protocol never both take over.
--
-- KEYS  1 lock  2 token  3 tombstone  4 queue  5 who waits (may be missing)
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not queue)
--       5 ticket (0 = first try)  6 the least token (may be missing)
-- Without KEYS 4 and ARGV 3 to 6 the level is 1, and there is no bell.
--
-- Reply type: string or array
-- Reply as of string/acquire.lua; pttl is the time until it may be taken over
-- include: acquire_args.lua
-- include: token.lua
lease = tonumber(lease)
local queue, waits = KEYS[4], KEYS[5]
-- include: queue.lua
-- include: timestamp/stamp.lua

local free_at, mine = stamp.read(KEYS[1], holder)
if not free_at then
    return stamp.wrong
end
if rcall('EXISTS', KEYS[3]) == 1 then
    return {-2}
end

local function token_of_it()
    if mine then
        -- include: known_token.lua
        return known
    end
    -- include: mint.lua
    return token, clock
end

local left = free_at - stamp.now()
if mine or (left < 0 and level == '1') then
    local token, clock = token_of_it()
    if left < lease then
        stamp.write(KEYS[1], holder, lease, mine)
    end
    if bell ~= '' then
        rpcall('ZREM', KEYS[4], bell)
    end
    return least and clock and {1, token, clock} or token
end
if level ~= '1' then
    return {-1}
end

-- An old program may have died and left its key for ever.
if rcall('PTTL', KEYS[1]) == -1 then
    rcall('PEXPIRE', KEYS[1], string.format('%.0f', left + 60000))
end
local ours = rcall('GET', KEYS[1]):find('^%d+%.0' .. ('%d'):rep(15) .. '$')
return busy(left, ours and 0 or 1)
