-- Brings free_each, publish: for the scripts that free many locks.
-- include: ring.lua
local n = #KEYS / 2
local publish = ARGV[2 * n + 1] or 'PUBLISH'
if #ARGV ~= 2 * n and (#ARGV ~= 2 * n + 1 or publish ~= 'SPUBLISH') then
    return redis.error_reply('ERR rlock: bad number of holders or channels')
end

-- What free(key, holder, channel) says of each: 1, freed, or 0; what else it says
-- is an error of this lock alone, which must not keep the others from being freed.
local function free_each(free)
    local said = {}
    local waited_for = redis.pcall('EXISTS', unpack(KEYS, n + 1)) ~= 0
    for i = 1, n do
        local answer = free(KEYS[i], ARGV[i], ARGV[n + i])
        if answer == 1 then
            local rung = waited_for and ring(KEYS[n + i], KEYS[i])
            said[i] = rung and '2' or '1'
        else
            said[i] = answer == 0 and '0' or 'e'
        end
    end
    return table.concat(said)
end
