-- Brings about, run_of_server. Included by identify and probe.
--
-- about(field, pattern): what INFO says of it; '' if it, or the user, may not
-- tell. run_of_server(): which run of which server this is, its run_id and
-- uptime in s; '' and '0' if that is not told.
local info = redis.pcall('INFO', 'server')
info = type(info) == 'string' and info or ''

local function about(field, pattern)
    return info:match('\n' .. field .. ':(' .. pattern .. ')') or ''
end

local function run_of_server()
    local uptime = about('uptime_in_seconds', '%d+')
    return about('run_id', '%w+'), uptime ~= '' and uptime or '0'
end
