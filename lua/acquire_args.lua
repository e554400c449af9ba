-- Brings rcall, rpcall, holder, lease, level, bell, least: the acquire scripts'
-- arguments. They are checked before the first write, because Lua does not roll
-- back; without functions, which cost more to make than the checks.
local rcall, rpcall, holder, lease = redis.call, redis.pcall, ARGV[1], ARGV[2]
local level, bell, least = ARGV[3] or '1', ARGV[4] or '', ARGV[6]
if least == '' then
    least = nil
end
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and (not ARGV[3] or
        ARGV[5] and (level == '1' or level:find('^[1-9]%d*$')) and
        (ARGV[5] == '0' or ARGV[5]:find('^%d+$')) and
        (not least or least == '0' or
         #least <= 18 and least:find('^[1-9]%d*$')))) then
    return redis.error_reply('ERR rlock: bad lease, level, ticket or token')
end
