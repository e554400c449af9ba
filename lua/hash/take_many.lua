-- Takes many locks that nobody holds, all of them or none.
--
-- KEYS  1... the locks, then the tombstone of each, then the token of each
-- ARGV  1 lease ms  2... the holder of each
--
-- Reply type: string or integer
-- Reply tokens  all are acquired, as by acquire with level 1; the token of each,
--               with blanks between them
--       i       the i-th is busy, the first that is
--       -i      given up: the tombstone of the i-th stands
--       The last two change nothing; neither does an error.
-- include: take_each.lua
return take_each(function(key, holder)
    return rcall('HEXISTS', key, holder) == 1
end, function(key, holder)
    rcall('HSET', key, holder, '1')
    rcall('PEXPIRE', key, lease)
end)
