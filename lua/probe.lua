-- Finds out, when a client is made, whether its user may do what the other
-- scripts do, and whether the server keeps what it is given.
--
-- KEYS  1 token  2 queue  3 tombstone, of a name that is used only once
-- ARGV  1 a bell
--
-- Reply type: array
-- Reply {missing, warning, run_id, uptime in s, too old, mode}: the rights that are
-- missing and what threatens locks, in words, '' if nothing; which run of the
-- server this is, as of identify.lua; the server's version if it is below 6.2,
-- else ''; and 'standalone', 'cluster' or ''; or an error: the server is
-- read-only.
-- Afterwards no key is left or changed: XX makes ZADD and SET no-ops, and the
-- hash goes with the script.
-- include: run.lua
local missing, warnings = {}, {}

-- Before the first write: before 5.0 a script may not write after it has looked
-- around, so nothing could be taken back. SET returns the old value since 6.2.
local function too_old()
    local version = about('redis_version', '[%d.]+')
    local major, minor = version:match('^(%d+)%.(%d+)')
    local set = redis.pcall('SET', KEYS[1], '1', 'XX', 'GET')
    if (major and major * 100 + minor < 602) or
       (type(set) == 'table' and set.err and set.err:find('syntax')) then
        return version ~= '' and version or 'not told'
    end
    return ''
end

local old = too_old()
if old ~= '' then
    local run_id, uptime = run_of_server()
    return {'', '', run_id, uptime, old, ''}
end

local function refused(reply)
    if type(reply) ~= 'table' or not reply.err then
        return false
    end
    return reply.err:find('permission') or reply.err:find('NOPERM') or
           reply.err:find("can't") or reply.err:find('ACL failure') or
           reply.err:find('[Uu]nknown.* command') -- renamed
end

local function try(command, key, ...)
    local reply = redis.pcall(command, key, ...)
    if refused(reply) then
        local what = command
        if reply.err:find('key') then
            what = command .. ' on ' .. key:match('^[^:]*:') .. '*'
        end
        missing[#missing + 1] = what
    end
    return reply
end

local set = try('HSET', KEYS[1], 'f', 1)
if type(set) == 'table' and set.err and set.err:find('READONLY') then
    return set
end
try('HEXISTS', KEYS[1], 'f')
try('HLEN', KEYS[1])
try('HSCAN', KEYS[1], 0)
try('PEXPIRE', KEYS[1], 1000)
try('PTTL', KEYS[1])
try('HDEL', KEYS[1], 'f')
try('DEL', KEYS[1])
try('GET', KEYS[1])
try('SET', KEYS[1], 1, 'XX', 'PX', 1)
try('ZADD', KEYS[2], 'XX', 1, 'm')
try('PEXPIRE', KEYS[2], 1000)
try('ZREM', KEYS[2], 'm')
try('ZPOPMIN', KEYS[2])
try('EXISTS', KEYS[3])
try('SET', KEYS[3], 1, 'XX', 'PX', 1)
if refused(redis.pcall('TIME')) then
    missing[#missing + 1] = 'TIME'
end
local kind = ARGV[1]:match('^rlock_(s?)bell:')
local publish = kind == 's' and 'SPUBLISH' or 'PUBLISH'
if refused(redis.pcall(publish, ARGV[1], '')) then
    warnings[#warnings + 1] = publish .. ' to rlock_' .. kind .. 'bell:* is ' ..
        'not allowed, so a release wakes nobody and waiters poll'
end
if refused(redis.pcall('ZRANK', KEYS[2], 'm')) then
    warnings[#warnings + 1] = 'ZRANK is not allowed, so when a lease runs ' ..
        'out all who wait ask at once'
end
if refused(redis.pcall('ZRANGE', KEYS[2], 0, 0)) then
    warnings[#warnings + 1] = 'ZRANGE is not allowed, so threads of one ' ..
        'client do not hand locks over to each other'
end

local memory = redis.pcall('INFO', 'memory')
if type(memory) == 'string' then
    local limit = memory:match('maxmemory:(%d+)')
    local policy = memory:match('maxmemory_policy:([%w-]+)')
    if limit ~= '0' and policy and policy ~= 'noeviction' then
        warnings[#warnings + 1] = 'maxmemory-policy is ' .. policy ..
            ', so the server may drop locks that are held'
    end
end

local run_id, uptime = run_of_server()
local mode = about('redis_mode', '%a+') -- Valkey calls it server_mode
return {table.concat(missing, ', '), table.concat(warnings, '; '), run_id,
        uptime, old, mode ~= '' and mode or about('server_mode', '%a+')}
