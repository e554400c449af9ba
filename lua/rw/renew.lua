-- The rest of the renew scripts of both sides.
-- include: rw/lease_args.lua
-- include: rw/prolong.lua
if not has_it() then
    return 0
end
if not looks then
    local token_key = KEYS[2]
    prolong(KEYS[1], leases, KEYS[4], holder, ms)
    -- include: rw/keep_token.lua
end
return 1
