-- Brings ttl: how long a token's key lives.
--
-- The key is needed only after the server's clock has gone back: otherwise the
-- clock is larger than the last token. So it lives for some minutes; for longer
-- after a long lease, but names that are used once must not fill the memory.
local ttl = '300000'
if lease + 0 > 150000 then
    ttl = string.format('%.0f', math.min(2 * lease, 3600000))
end
