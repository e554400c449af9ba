-- Tells who reads. Changes nothing.
--
-- KEYS  1 lock  2 leases
--
-- Reply type: array
-- Reply {}                      nobody does
--       {holder, level, pttl}   one of them, cut at 511 bytes; and for how many ms the last
--                               lease in there goes on (-1 = no end)
local side = 'r'
-- include: rw/inspect.lua
