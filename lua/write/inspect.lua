-- Tells who writes. Changes nothing.
--
-- KEYS  1 lock  2 leases
--
-- Reply type: array
-- Reply {}                      nobody does
--       {holder, level, pttl}   who does, cut at 511 bytes; and for how many ms the last
--                               lease in there goes on (-1 = no end)
local side = 'w'
-- include: rw/inspect.lua
