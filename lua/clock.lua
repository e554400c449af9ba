-- Brings clock: the server's, in microseconds, as text. Included where it is
-- needed, behind acquire_args.lua.
local time = rcall('TIME')
local clock = time[1] .. (#time[2] == 6 and time[2] or
                          ('00000' .. time[2]):sub(-6))
