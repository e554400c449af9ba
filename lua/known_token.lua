-- Brings known: the token of a hold that is there already. Included behind
-- acquire_args.lua. Only a first level that is asked for again needs it, and
-- gets a new one if the last is gone; it is kept as long as that of an acquire, for
-- who confirms a grant has been granted a claim only.
local known = rpcall('GET', KEYS[2])
if type(known) ~= 'string' or not is_token(known) then
    known = '0'
    if level == '1' then
        -- include: mint.lua
        known = token
    end
elseif level == '1' then
    -- include: token_ttl.lua
    if rpcall('PTTL', KEYS[2]) < ttl + 0 then
        rpcall('PEXPIRE', KEYS[2], ttl)
    end
end
