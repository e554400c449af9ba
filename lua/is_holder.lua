-- Brings is_holder. is_holder(text): is this a holder id of this protocol?
local function is_holder(text)
    return text:find('^[^:]*:%d+:%d+[^:]*:%x+%-%x+%-%x+%-%x+%-%x+$') ~= nil
end
