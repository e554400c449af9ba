-- Frees many locks, and wakes one waiter of each.
--
-- KEYS  1... the locks, then the queue of each
-- ARGV  1... the holder of each, then Redisson's channel of each, then, in a
--       cluster, SPUBLISH
--
-- Reply type: string
-- Reply a letter for each lock: 1, 2 and 0 as of hash/release.lua; e, something
--       is wrong with it, which it says when it is released by itself
-- include: free_each.lua
return free_each(function(key, holder, channel)
    local had = redis.pcall('HDEL', key, holder)
    if had == 1 then
        redis.pcall(publish, channel, '0')
    end
    return had
end)
