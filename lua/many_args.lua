-- Brings rcall, rpcall, lease, ms, prolong, for_each: for the scripts that renew many
-- locks.
local rcall, rpcall, lease = redis.call, redis.pcall, ARGV[1]
local locks = #ARGV - 1
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and locks <= #KEYS and
        #KEYS <= 2 * locks) then
    return redis.error_reply('ERR rlock: bad lease, or number of holders')
end
local ms = tonumber(lease)
-- include: gt.lua

local function prolong(key)
    if (not GT or rcall('PEXPIRE', key, lease, GT) == 0) and rcall('PTTL', key) < ms then
        rcall('PEXPIRE', key, lease)
    end
end

-- What renew(key, holder) says of each: 1 or 0; what else it says is an error of
-- this lock alone, which must not keep the others from being renewed.
local function for_each(renew)
    local said = {}
    for i = 1, locks do
        local answer = renew(KEYS[i], ARGV[i + 1])
        said[i] = (answer == 1 or answer == 0) and answer or 'e'
    end
    for i = locks + 1, #KEYS do
        local token_key = KEYS[i]
        -- include: keep_token.lua
    end
    return table.concat(said)
end
