-- Brings open. Included by the scripts that open a latch, behind left.lua.
--
-- open(channel, publish): the count goes, every waiting client is rung, and
-- those of Redisson are told. A server that refuses to publish (an ACL without
-- the channel) keeps nobody from it: who waits looks by himself.
local function open(channel, publish)
    rcall('DEL', KEYS[1])
    local first = rpcall('ZPOPMIN', KEYS[2])
    while first[1] do
        local sharded = first[1]:sub(1, 12) == 'rlock_sbell:'
        rpcall(sharded and 'SPUBLISH' or 'PUBLISH', first[1], KEYS[1])
        first = rpcall('ZPOPMIN', KEYS[2])
    end
    rpcall(publish or 'PUBLISH', channel, '0')
end
