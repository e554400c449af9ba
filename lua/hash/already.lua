-- What an acquire answers of a hold that was given up, is there already, or is gone, and of
-- a key that is a read-write lock. Included behind acquire_args.lua, tombstone and
-- reenter(); what comes behind it is about a lock that somebody else has.
if rcall('EXISTS', tombstone) == 1 then
    return {-2}
end
if rcall('HEXISTS', KEYS[1], holder) == 1 then
    return reenter()
end
if level ~= '1' then
    return {-1}
end
if (ARGV[5] or '0') == '0' and rcall('HEXISTS', KEYS[1], 'mode') == 1 then
    return redis.error_reply('WRONGTYPE it is a read-write lock')
end
