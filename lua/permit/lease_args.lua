-- Brings holder, lease, n, has, prolong: the arguments of renew and extend. Included
-- behind `looks`: is the lease 0, and nothing to be changed?
-- include: permit/args.lua
local rcall, counter, permits = redis.call, KEYS[1], KEYS[2]
local holder, lease, n, idle = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not ((looks or lease ~= '0' and is_number(lease)) and is_many(n) and
        is_number(idle)) then
    return redis.error_reply('ERR rlock: bad lease or number of permits')
end
-- include: permit/members.lua
-- include: clock.lua
-- include: permit/keep.lua
-- include: permit/prolong.lua
