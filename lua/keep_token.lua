-- Keeps a token's key as long as an acquire with this lease does: for as long as
-- the lock is held, its side key tells that there is one, and its next token is
-- larger, whatever the server's clock says.
-- include: token_ttl.lua
redis.pcall('PEXPIRE', token_key, ttl)
