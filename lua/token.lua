-- Brings is_token, larger.
--
-- A token is text without leading zeros, of up to 18 digits, which fit into 64
-- bits. The longer one is larger, as turning numbers into Lua's and back costs
-- more than a command, and is exact up to 15 digits only.
local function is_token(text)
    return #text <= 18 and text:find('^[1-9]%d*$')
end

local function larger(a, b)
    return #a > #b or #a == #b and a > b
end
