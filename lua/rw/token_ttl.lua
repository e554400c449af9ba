-- Brings ttl: how long a token's key lives; here for the whole lease, however long:
-- who comes to read beside others gets their token.
-- include: token_ttl.lua
ttl = string.format('%.0f', math.max(ttl, lease))
