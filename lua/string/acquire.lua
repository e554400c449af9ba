-- Takes the lock, confirms it for one level more, or queues. The hold count is
-- the client's business: the key holds the holder id, at every level.
--
-- KEYS  1 lock  2 token  3 queue  4 tombstone
-- ARGV  1 holder  2 lease ms  3 level to reach  4 bell ('' = do not queue)
--       5 ticket (0 = first try)  6 the least token (may be missing)
--
-- Reply type: array
-- Reply as of hash/acquire.lua, but
--       {0, pttl, ticket, 1, rank}  busy, and the holder is no client of this
--                                   protocol: its release will ring nobody
-- include: acquire_args.lua
-- include: mint.lua

if rcall('EXISTS', KEYS[1], KEYS[4]) == 0 then
    if level ~= '1' then
        return {-1}
    end
    local token, clock = mint(KEYS[2], ARGV[6])
    rcall('SET', KEYS[1], holder, 'NX', 'PX', lease)
    if bell ~= '' then
        rpcall('ZREM', KEYS[3], bell)
    end
    return {1, token, clock}
end
-- include: queue.lua

-- Only a first level that is asked for again needs its token.
local function reenter()
    local token = rpcall('GET', KEYS[2])
    if type(token) ~= 'string' then
        token = level == '1' and mint(KEYS[2], ARGV[6]) or '0'
    end
    if rcall('PTTL', KEYS[1]) < tonumber(lease) then
        rcall('PEXPIRE', KEYS[1], lease)
    end
    if bell ~= '' then
        rpcall('ZREM', KEYS[3], bell)
    end
    return {1, token}
end

if rcall('EXISTS', KEYS[4]) == 1 then
    return {-2}
end
local value = rcall('GET', KEYS[1])
if value == holder then
    return reenter()
end
if level ~= '1' then
    return {-1}
end
local ours = value:find('^[^:]*:%d+:%d+:%x+%-%x+%-%x+%-%x+%-%x+$')
return busy(rcall('PTTL', KEYS[1]), ours and 0 or 1)
