-- Frees many locks, and wakes one waiter of each.
--
-- KEYS  1... the locks, then the queue of each
-- ARGV  1... the holder of each, then as many that are not used, and
--       perhaps one more
--
-- Reply type: string
-- Reply as of hash/free_many.lua
-- include: free_each.lua
return free_each(function(key, holder)
    local value = redis.pcall('GET', key)
    if value ~= holder then
        return type(value) == 'table' or 0
    end
    return redis.pcall('DEL', key)
end)
