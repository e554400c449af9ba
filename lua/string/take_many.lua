-- Takes many locks that nobody holds, all of them or none.
--
-- KEYS  1... the locks, then the tombstone of each, then the token of each
-- ARGV  1 lease ms  2... the holder of each
--
-- Reply type: string or integer
-- Reply as of hash/take_many.lua
-- include: take_each.lua
return take_each(function(key, holder)
    return rcall('GET', key) == holder
end, function(key, holder)
    rcall('SET', key, holder, 'NX', 'PX', lease)
end)
