-- Keeps the token's key as long as an acquire with this lease does, and no shorter
-- than another one has it: a reader's, which has the same token.
-- include: rw/token_ttl.lua
if rpcall('PTTL', token_key) < ttl + 0 then
    rpcall('PEXPIRE', token_key, ttl)
end
