-- Stands before another guard, for a hold of whose acquire a late copy may have
-- taken the lock again, after others had it: then there is a later token.
--
-- KEYS  those of the other guard, then: token
-- ARGV  those of the other guard, then: the hold's token
--
-- Guard: what is behind it finds its own KEYS and ARGV
-- Reply as of hash/guard.lua
do
    local key, token = table.remove(KEYS), table.remove(ARGV)
    -- include: token.lua
    local last = redis.pcall('GET', key)
    if type(last) == 'string' and is_token(last) and larger(last, token) then
        return redis.error_reply('NOTHELD ' .. ARGV[#ARGV])
    end
end
