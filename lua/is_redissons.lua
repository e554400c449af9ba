-- Brings is_redissons. is_redissons(text): is this a holder id of Redisson's?
local function is_redissons(text)
    return text:find('^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d+$') ~= nil
end
