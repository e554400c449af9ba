-- The end of a guard. held: has the holder the lock? answer: what the server
-- said of it; an error, if it is a table. A key of another type is no lock.
if not held then
    local refused = type(answer) == 'table' and
        not answer.err:find('WRONGTYPE', 1, true)
    return refused and answer or redis.error_reply('NOTHELD ' .. holder)
end
