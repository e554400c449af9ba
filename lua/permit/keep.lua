-- Brings now_ms, until_ms, keep. Included behind rcall, clock, counter, permits and
-- idle.
local now_ms = math.floor(clock / 1000)

-- When a lease that begins now ends, as text.
local function until_ms(lease)
    return string.format('%.0f', now_ms + lease)
end

-- Both keys live for so many seconds from now on, 0: for ever; and never shorter
-- than the longest lease, whoever has said so. Where one was deleted, both end with
-- the other.
local function keep()
    local ttl = idle * 1000
    if idle == '0' then
        ttl = math.max(rcall('PTTL', counter), rcall('PTTL', permits))
        if ttl < 0 then
            return
        end
    end
    local last = rcall('ZREVRANGE', permits, 0, 0, 'WITHSCORES')[2]
    ttl = string.format('%.0f', math.max(ttl, last and last - now_ms or 0))
    rcall('PEXPIRE', counter, ttl)
    rcall('PEXPIRE', permits, ttl)
end
