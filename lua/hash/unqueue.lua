-- Who has the lock by a call with a bell is in the queue no more. Included behind rpcall,
-- bell, queue and waits.
if bell ~= '' then
    rpcall('ZREM', queue, bell)
    if ARGV[7] then
        rpcall('HDEL', waits, bell)
    end
end
