-- Makes more permits of a semaphore, or fewer, for good; once however often it is
-- asked to with one mark.
--
-- KEYS  1 counter  2 permits  3 mark  4 line  5 wants
-- ARGV  1 how many more, below 0: fewer  2 how many there are if nobody has said yet
--       3 idle s (0 = the keys stay)  4 mark ms  5 Redisson's channel
--       6 SPUBLISH, in a cluster (may be missing)
--
-- Reply type: integer
-- Reply 1  done, by this or by an earlier copy; who waits has been granted what is
--          there now
--       0  there would be more than 2^52, or fewer than as many below 0; nothing was
--          changed
-- include: token.lua
-- include: permit/args.lua
local rcall, rpcall, delta, idle = redis.call, redis.pcall, ARGV[1], ARGV[3]
if not (delta ~= '-0' and is_number((delta:gsub('^%-', ''))) and
        is_number(ARGV[2]) and is_number(idle) and is_number(ARGV[4])) then
    return redis.error_reply('ERR rlock: bad number of permits or mark')
end
-- include: permit/value.lua
-- include: permit/free.lua
local held = rcall('ZCARD', permits)
local function are_too_many(all)
    return math.abs(all) > 4503599627370496
end

if rcall('EXISTS', KEYS[3]) == 1 then
    return 1
end
if are_too_many((value and value + held or ARGV[2]) + delta) then
    return 0
end
rcall('SET', KEYS[3], '', 'PX', ARGV[4])
if not value then
    begin(ARGV[2])
end
local now = rpcall('INCRBY', counter, delta)
if type(now) == 'table' then
    rcall('DEL', KEYS[3])
    return now
end
value = now
local line, wants = KEYS[4], KEYS[5]
-- include: clock.lua
-- include: permit/keep.lua
-- include: permit/grants.lua
-- include: line.lua
purge()
admit()
keep()
if delta + 0 > 0 and value > 0 then
    rpcall(ARGV[6] or 'PUBLISH', ARGV[5], value)
end
return 1
