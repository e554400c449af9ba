-- Brings known: the token of a hold that is there already. Included behind
-- acquire_args.lua. Only a first level that is asked for again needs it, and
-- gets a new one if the last is gone.
local known = rpcall('GET', KEYS[2])
if type(known) ~= 'string' or not is_token(known) then
    known = '0'
    if level == '1' then
        -- include: mint.lua
        known = token
    end
end
