-- Included by identify and probe.
--
-- run(): which run of which server this is, its run_id and uptime in s; '' and
-- '0' if the user may not ask.
local function run()
    local info = redis.pcall('INFO', 'server')
    info = type(info) == 'string' and info or ''
    return info:match('run_id:(%w+)') or '',
           info:match('uptime_in_seconds:(%d+)') or '0'
end
