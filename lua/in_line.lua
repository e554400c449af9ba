-- Brings in_line, stood. Included behind rcall, rpcall and clock, where KEYS[4] and
-- KEYS[5], if there are any, are the line and the wants of a fair lock.
--
-- in_line(): who stands in line, in that order, as {holder, ticket, bell, want}; those
-- whose client gives no sign of life any more do not. nil and what was refused, if
-- that was no key of another type.
-- stood(bell): did that client stand in line lately? It is in the queue then, to be
-- rung by plain handles, whether it waits still or not.
local unreadable
local function of_wants(field)
    local value = rpcall('HGET', KEYS[5], field)
    if type(value) == 'table' and not value.err:find('WRONGTYPE') then
        unreadable = value
    end
    return type(value) == 'string' and value or ''
end

local function in_line()
    local line = KEYS[4] and rpcall('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES') or {}
    if line.err and not line.err:find('WRONGTYPE') then
        return nil, line
    end
    local all = {}
    for i = 1, #line, 2 do
        local what, bell = of_wants(line[i]):match('^%d+ (%S+) (.+)$')
        bell = bell or ''
        local until_ms = of_wants('=' .. bell):match('^(%d+) ')
        if until_ms and until_ms + 0 >= math.floor(clock / 1000) then
            all[#all + 1] = {line[i], line[i + 1], bell, what}
        end
    end
    if unreadable then
        return nil, unreadable
    end
    return all
end

local function stood(bell)
    return KEYS[5] and of_wants('=' .. bell) ~= ''
end
