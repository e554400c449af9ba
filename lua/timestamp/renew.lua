-- Prolongs a lease, or only looks; never shortens one.
--
-- KEYS  1 lock  2 token (may be missing): unless it only looks, it is kept
-- ARGV  1 holder  2 lease ms, or 0: nothing is changed
--       3 the hold's token (may be missing)
--
-- Reply type: integer
-- Reply as of hash/renew.lua
-- include: timestamp/stamp.lua
local looks = ARGV[2] == '0'
-- include: lease_args.lua
local free_at, mine = stamp.read(KEYS[1], holder)
if not free_at then
    return stamp.wrong
end
if not mine or outdone() then
    return 0
end
if not looks and free_at - stamp.now() < tonumber(lease) then
    stamp.write(KEYS[1], holder, tonumber(lease), true)
end
local token_key = KEYS[2]
if not looks and token_key then
    -- include: keep_token.lua
end
return 1
