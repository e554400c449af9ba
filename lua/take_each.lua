-- Brings rcall, lease, take_each: for the scripts that take many locks.
-- include: token.lua
local rcall, lease, least = redis.call, ARGV[1], nil
local n = #ARGV - 1
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and n > 0 and
        #KEYS == 3 * n) then
    return redis.error_reply('ERR rlock: bad lease, or number of holders')
end

-- A hold that is there already: by an earlier try with the same words.
local function known_token(token_key)
    local last = redis.pcall('GET', token_key)
    return type(last) == 'string' and is_token(last) and last
end

-- is_mine(key, holder): a key that is there is this holder's. put(key, holder)
-- makes one. What a put refuses undoes those before it, because Lua does not
-- roll back.
local function take_each(is_mine, put)
    local mine, tokens, reached = {}, {}, 0
    if rcall('EXISTS', unpack(KEYS, 1, 2 * n)) > 0 then
        for i = 1, n do
            if rcall('EXISTS', KEYS[n + i]) == 1 then
                return -i
            end
            if rcall('EXISTS', KEYS[i]) == 1 then
                mine[i] = is_mine(KEYS[i], ARGV[i + 1])
                if not mine[i] then
                    return i
                end
            end
        end
    end
    -- include: clock.lua
    -- include: token_ttl.lua
    local done, why = pcall(function()
        for i = 1, n do
            local token_key = KEYS[2 * n + i]
            reached = i
            tokens[i] = mine[i] and known_token(token_key)
            if not tokens[i] then
                -- include: mint_by_clock.lua
                tokens[i] = token
            end
            if not mine[i] then
                put(KEYS[i], ARGV[i + 1])
            elseif rcall('PTTL', KEYS[i]) < tonumber(lease) then
                rcall('PEXPIRE', KEYS[i], lease)
            end
        end
    end)
    if done then
        return table.concat(tokens, ' ')
    end
    for i = 1, reached do
        if not mine[i] then
            redis.pcall('DEL', KEYS[i])
        end
    end
    return redis.error_reply(type(why) == 'table' and why.err or why)
end
