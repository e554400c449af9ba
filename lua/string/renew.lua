-- Prolongs a lease, or only looks; never shortens one.
--
-- KEYS  1 lock  2 token (may be missing): unless it only looks, it is kept
-- ARGV  1 holder  2 lease ms, or 0: nothing is changed
--       3 the hold's token (may be missing)
--
-- Reply type: integer
-- Reply as of hash/renew.lua
local looks = ARGV[2] == '0'
-- include: lease_args.lua
if redis.call('GET', KEYS[1]) ~= holder or outdone() then
    return 0
end
if not looks and redis.call('PTTL', KEYS[1]) < tonumber(lease) then
    redis.call('PEXPIRE', KEYS[1], lease)
end
local token_key = KEYS[2]
if not looks and token_key then
    -- include: keep_token.lua
end
return 1
