-- Brings stamp. Included by the scripts of this layout.
--
-- The value of the key is the unix time in seconds, perhaps with a fraction, at
-- which the lock may be taken over. Ours is whole seconds, rounded up because
-- others may cut a fraction off, and behind ".0" fifteen digits, which are
-- 48 random bits of the holder's uuid: by them a holder knows its own value.
local stamp = {}

function stamp.now()
    local time = redis.call('TIME')
    return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function digits(holder)
    return string.format('%015.0f', tonumber(holder:sub(-12), 16) or 0)
end

-- When the lock may be taken over, in ms (0 = there is none), and whether the
-- value is the holder's. nil: the value is no time.
function stamp.read(key, holder)
    local value = redis.call('GET', key)
    if not value then
        return 0, false
    end
    local seconds, fraction = value:match('^(%d+)%.?(%d*)$')
    if not seconds or #seconds > 13 then
        return nil
    end
    local mine = holder and fraction == '0' .. digits(holder)
    if mine then
        fraction = '0'
    end
    return seconds * 1000 + tonumber((fraction .. '000'):sub(1, 3)), mine
end

-- The key outlives the time by a minute, for those who compare values. A server
-- that is out of memory allows a SET after another write: a renewal has to
-- succeed there, so `mine` is set for a key that is there already.
function stamp.write(key, holder, lease, mine)
    local seconds = math.ceil((stamp.now() + lease) / 1000)
    local value = string.format('%.0f.0%s', seconds, digits(holder))
    local px = string.format('%.0f', seconds * 1000 - stamp.now() + 60000)
    if mine then
        redis.call('PEXPIRE', key, px)
    end
    redis.call('SET', key, value, 'PX', px)
end

stamp.wrong = redis.error_reply('WRONGTYPE the key holds no unix time')
