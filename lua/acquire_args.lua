-- Brings rcall, rpcall, holder, lease, level, bell, is_token, larger: the
-- acquire scripts' arguments. They are checked before the first write, because
-- Lua does not roll back.
-- include: token.lua
local rcall, rpcall = redis.call, redis.pcall
local holder, lease, level, bell = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
if not (lease:find('^[1-9]%d*$') and #lease <= 16 and
        level:find('^[1-9]%d*$') and ARGV[5]:find('^%d+$') and
        (not ARGV[6] or ARGV[6] == '0' or is_token(ARGV[6]))) then
    return redis.error_reply('ERR rlock: bad lease, level, ticket or token')
end
