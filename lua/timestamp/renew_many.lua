-- Prolongs the leases of many locks; never shortens one.
--
-- KEYS  1... the locks, then tokens of some of them, which are kept
-- ARGV  1 lease ms  2... the holder of each
--
-- Reply type: string
-- Reply as of hash/renew_many.lua
-- include: timestamp/stamp.lua
-- include: many_args.lua
return for_each(function(key, holder)
    local good, free_at, mine = pcall(stamp.read, key, holder)
    if not good or not free_at then
        return 'e'
    end
    if not mine then
        return 0
    end
    if free_at - stamp.now() < ms then
        stamp.write(key, holder, ms, true)
    end
    return 1
end)
