-- Prolongs the leases of many locks; never shortens one.
--
-- KEYS  1... the locks, then tokens of some of them, which are kept
-- ARGV  1 lease ms  2... the holder of each
--
-- Reply type: string
-- Reply as of hash/renew_many.lua
-- include: many_args.lua
return for_each(function(key, holder)
    local value = rpcall('GET', key)
    if value ~= holder then
        return type(value) == 'table' or 0
    end
    prolong(key)
    return 1
end)
