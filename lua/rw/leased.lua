-- Brings LEASES_MS, text_of, outlast, leased, outlive. Included behind rcall and now_ms.
-- include: rw/leases_ms.lua
-- include: gt.lua

-- Of many locks that have the same lease, the texts are the same.
local texts = {}
local function text_of(ms)
    local text = texts[ms]
    if not text then
        text = string.format('%.0f', ms)
        texts[ms] = text
    end
    return text
end

-- The leases' key outlives one that goes on for so long. What is over stays for some
-- time: others may keep the lock of which that one is dead. A reader's renewals look at it
-- once in ten minutes (prolong.lua), so a quarter of an hour is added to the half that is
-- to be left.
local function outlast(leases, ms)
    if rcall('PTTL', leases) < ms + LEASES_MS * 3 / 4 then
        rcall('PEXPIRE', leases, text_of(ms + LEASES_MS))
    end
end

-- leased(leases, field, ms): its own lease goes on for so long from now on.
local function leased(leases, field, ms)
    rcall('ZADD', leases, text_of(now_ms + ms), field)
    outlast(leases, ms)
end

-- The key lives as long as the longest lease in it. Always a write, and one that needs
-- no memory: behind it a server that is out of it takes those of leased().
local function outlive(lock, ms)
    if not GT or rcall('PEXPIRE', lock, text_of(ms), GT) == 0 then
        rcall('PEXPIRE', lock, text_of(math.max(ms, rcall('PTTL', lock))))
    end
end
