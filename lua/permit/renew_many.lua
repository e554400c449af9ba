-- Prolongs the leases of the permits of many holders; never shortens one.
--
-- KEYS  1... counter and permits of each
-- ARGV  1 lease ms  2... of each: the holder, how many, idle s
--
-- Reply type: string
-- Reply a letter for each holder: 1 and 0 as of permit/renew.lua; e, something is
--       wrong with it, which it says when it is asked about by itself
-- include: permit/args.lua
local rcall, lease = redis.call, ARGV[1]
if not (lease ~= '0' and is_number(lease) and
        2 * (#ARGV - 1) == 3 * #KEYS) then
    return redis.error_reply('ERR rlock: bad lease, or number of holders')
end
-- include: clock.lua
-- include: permit/members.lua

local function renew(counter, permits, holder, n, idle)
    -- include: permit/keep.lua
    -- include: permit/prolong.lua
    if has(holder, n) < n + 0 then
        return '0'
    end
    prolong(holder, n, lease, 'GT')
    return '1'
end

local said = {}
for i = 1, #KEYS / 2 do
    local holder, n, idle = unpack(ARGV, 3 * i - 1, 3 * i + 1)
    local done, answer
    if is_many(n) and is_number(idle) then
        done, answer = pcall(renew, KEYS[2 * i - 1], KEYS[2 * i], holder, n,
                             idle)
    end
    said[i] = done and answer or 'e'
end
return table.concat(said)
