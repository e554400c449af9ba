-- Included by renew and extend: their arguments.
local holder, lease = ARGV[1], ARGV[2]
if not (lease:find('^[1-9]%d*$') and #lease <= 16) then
    return redis.error_reply('ERR rlock: bad lease')
end
