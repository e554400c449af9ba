-- Tells which run of which server this is. Changes nothing.
--
-- Reply type: array
-- Reply {run_id, uptime in s}; '' and '0' if the user may not ask
-- include: run.lua
return {run_of_server()}
