-- Brings grant, for ring.lua. Included behind rcall, rpcall, waits, the key of who
-- waits, and fair/grants.lua.
--
-- grant(bell, ticket): the lock is given to the client with that place in the queue, if
-- it has said there what it wants: its holder has it, for a claim of at most 3 s.
-- Returns what its bell is to say (src/op/grant.h), and the holder; of who has said
-- nothing, only the name, as a ring. The hold comes first: what the message says is
-- believed.
local function grant(bell, ticket)
    local want = rpcall('HGET', waits, bell)
    local at, holder, lease, beat = (type(want) == 'string' and want or ''):match(
        '^(%d+) (%S+) (%d+) (%d+)$')
    if at ~= ticket or holder == ARGV[1] or not is_free() then
        return KEYS[1]
    end
    rpcall('HDEL', waits, bell)
    local claim = lease + 0 < 3000 and lease or '3000'
    local given, token = pcall(give, holder, 'f', claim)
    if not given or type(token) ~= 'string' then
        rpcall('HDEL', KEYS[1], holder)
        return KEYS[1]
    end
    return table.concat({'rlock_grant:' .. holder:sub(-36), beat, token, claim, KEYS[1]},
                        ' '), holder
end
