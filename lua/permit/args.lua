-- Brings is_number, is_many: the arguments of the permits' scripts, which are
-- checked before the first write, because Lua does not roll back.
local function is_number(text)
    return text == '0' or text:find('^[1-9]%d*$') and #text <= 16
end

-- So many may be taken at a time.
local function is_many(text)
    return text ~= '0' and is_number(text) and text + 0 <= 1000
end
