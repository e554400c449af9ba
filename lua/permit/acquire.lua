-- Takes so many permits, all or none, or stands in line for them.
--
-- KEYS  1 counter  2 permits  3 tombstone  4 line  5 wants
-- ARGV  1 holder  2 lease ms  3 how many, 1 to 1000
--       4 how many there are if nobody has said yet (0 = wait until somebody does)
--       5 idle s (0 = the keys stay)
--       6 bell ('' = do not stand; '-' before it: nobody hears it now)
--       7 ticket (0 = first try)  8 beat
-- ARGV 6 to 8 may be missing: there is no bell.
--
-- Reply type: string or array
-- Reply '1'     acquired: the holder has all of them, for at least the lease, and
--               is not in line
--       {0, ms, ticket, 1, rank, anew}
--               busy: the holder is in line, and so many are before it there. In
--               so many ms a lease ends, -1: none does. anew 1: its client was
--               taken for dead until now, and others of its may have been dropped
--       {0, ms, 0, 1, -1, free, waiting}
--               the same without a bell: so many are free, and wait
--       {-2}    given up: the hold's tombstone stands; nothing has changed
--
-- The way of permits that are free, and that nobody waits for, comes first and is
-- kept short: what is not as it mostly is, is left to what follows. Programs that
-- count the same number down and up may not ring: hence the 1.
local rcall, rpcall, holder, lease = redis.call, redis.pcall, ARGV[1], ARGV[2]
local n, total, idle, bell = ARGV[3], ARGV[4], ARGV[5], ARGV[6] or ''
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and
        (n == '1' or n:find('^[1-9]%d*$') and #n <= 4 and n + 0 <= 1000) and
        (total == '0' or total:find('^[1-9]%d*$') and #total <= 16) and
        (idle == '0' or idle:find('^[1-9]%d*$') and #idle <= 16) and
        (not ARGV[6] or (ARGV[7] == '0' or ARGV[7]:find('^%d+$')) and
         (ARGV[8] == '0' or #ARGV[8] <= 18 and ARGV[8]:find('^[1-9]%d*$')))) then
    return redis.error_reply(
        'ERR rlock: bad lease, number of permits, ticket or beat')
end
local line, wants = KEYS[4], KEYS[5]
local alone = rcall('EXISTS', KEYS[3], line) == 0
-- include: permit/quick.lua
-- include: permit/value.lua
-- include: permit/free.lua
-- include: clock.lua
-- include: permit/keep.lua
-- include: permit/prolong.lua
-- include: permit/grants.lua
local had = has(holder, n)
if not alone and rcall('EXISTS', KEYS[3]) == 1 then
    return {-2}
elseif had == n + 0 then
    prolong(holder, n, lease, 'GT')
    return '1'
elseif had > 0 then -- who was to have all has not got them: it is asked anew
    take_back(holder, n)
end
if not value and total ~= '0' then
    begin(total)
end

local function take()
    local token = give(holder, n, lease)
    keep()
    return token
end

if alone and fits(n) then
    return take()
end
-- include: token.lua
-- include: line.lua
purge()
local ticket, anew = '0', 0
if bell ~= '' then
    ticket, anew = stand(holder, lease, n, bell, ARGV[7], ARGV[8])
end
local token = admit(holder)
if token then
    if type(token) == 'string' then
        admit()
    end
    keep()
    return token
end
if bell == '' and fits(n) and rcall('EXISTS', line) == 0 then
    return take()
end
keep()
local first = rcall('ZRANGE', permits, 0, 0, 'WITHSCORES')[2]
local ms = first and first + 0 < 9e14 and math.max(0, first - now_ms) or -1
if bell == '' then
    return {0, ms, '0', 1, -1, value or 0, rcall('ZCARD', line)}
end
return {0, ms, ticket, 1, rcall('ZRANK', line, holder) or -1, anew}
