-- Prolongs the leases of many locks; never shortens one.
--
-- KEYS  1... the locks, then tokens of some of them, which are kept
-- ARGV  1 lease ms  2... the holder of each
--
-- Reply type: string
-- Reply a letter for each lock: 1 and 0 as of hash/renew.lua; e, something is
--       wrong with it, which it says when it is asked about by itself
-- include: many_args.lua
return for_each(function(key, holder)
    local has = rpcall('HEXISTS', key, holder)
    if has == 1 then
        prolong(key)
    end
    return has
end)
