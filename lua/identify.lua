-- Tells which run of which server this is. Changes nothing.
--
-- Reply {run_id, uptime in s}   or an error: the user may not ask
local info = redis.call('INFO', 'server')
return {info:match('run_id:(%w+)') or '',
        info:match('uptime_in_seconds:(%d+)') or '0'}
