-- Prolongs a lease, or only looks; never shortens one.
--
-- KEYS  1 lock  2 token (may be missing): unless it only looks, it is kept
-- ARGV  1 holder  2 lease ms, or 0: nothing is changed
--       3 the hold's token (may be missing)
--
-- Reply type: integer
-- Reply 1  the holder has it, with a TTL of at least the lease (also when
--          somebody had taken the TTL away)
--       0  not held by this holder, or there has been a later grant, with a
--          larger token; nothing was changed
local looks = ARGV[2] == '0'
-- include: lease_args.lua
if redis.call('HEXISTS', KEYS[1], holder) == 0 or outdone() then
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
