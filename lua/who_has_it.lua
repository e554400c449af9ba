-- Brings who_has_it. Included behind rcall, rpcall and is_token.
--
-- who_has_it(token key, shared): the holder of KEYS[1], cut at 127 bytes, '' if it
-- cannot be told, and for how many ms that one has had it: the last token is the clock
-- at its acquire. -1 if that is not known: its key is gone, or the holder is no client
-- of this protocol, and mints none, or has that of others, who came before (shared).
--
-- For people; asked where nobody waits for the answer to go on.
-- include: about_lock.lua
-- include: is_holder.lua
local function who_has_it(token_key, shared)
    local who, token = about_lock(), rpcall('GET', token_key)
    if shared or not is_holder(who) or type(token) ~= 'string' or not is_token(token) then
        return who:sub(1, 127), -1
    end
    -- include: clock.lua
    return who:sub(1, 127), math.max(0, math.floor((clock - token) / 1000))
end
