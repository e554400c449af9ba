-- The rest of the renew_many scripts of both sides.
local rcall, rpcall, lease = redis.call, redis.pcall, ARGV[1]
local locks, each = #ARGV - 1, side == 'r' and 3 or 2
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and locks * each <= #KEYS and
        #KEYS <= locks * (each + 1)) then
    return redis.error_reply('ERR rlock: bad lease, or number of holders')
end
-- include: clock.lua
local now_ms = math.floor(clock / 1000)
-- include: rw/leased.lua
-- include: rw/prolong.lua
local said = {}
for i = 1, locks do
    local done, answer = pcall(prolong, KEYS[i], KEYS[locks + i],
                               KEYS[2 * locks + i], ARGV[i + 1], tonumber(lease))
    said[i] = done and answer or 'e'
end
for i = locks * each + 1, #KEYS do
    local token_key = KEYS[i]
    -- include: rw/keep_token.lua
end
return table.concat(said)
