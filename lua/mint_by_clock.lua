-- Brings token, the next one of token_key. Included behind clock.lua and
-- token_ttl.lua.
--
-- token: a new one, larger than the last, than any that a server which has lost
-- its data may have handed out earlier, and no smaller than `least`, if that is
-- given.
--
-- It is as of token.lua, without its functions: to make these costs more than minting.
local token = clock
if least and (#least > #token or #least == #token and least > token) then
    token = least
end
local last = rcall('SET', token_key, token, 'PX', ttl, 'GET')
if last and (#last > #token or #last == #token and last >= token) and
   #last <= 18 and last:find('^[1-9]%d*$') then
    local head, digit, nines = ('0' .. last):match('^(%d*)([0-8])(9*)$')
    token = head .. (digit + 1) .. ('0'):rep(#nines)
    token = token:gsub('^0', '')
    rcall('SET', token_key, token, 'PX', ttl)
end
