-- Brings LEASES_MS, text_of, leased, outlive. Included behind rcall and now_ms.
--
-- leased(leases, field, ms, was): its own lease goes on for so long from now on.
-- What is over stays for some time: others may keep the lock of which that one is dead.
-- was: until when it went on before; while that is not far from where it goes now, the key
-- lives long enough.
-- include: rw/leases_ms.lua
local STEP_MS = 600000

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

local function leased(leases, field, ms, was)
    rcall('ZADD', leases, text_of(now_ms + ms), field)
    if was and math.floor(was / STEP_MS) == math.floor((now_ms + ms) / STEP_MS) then
        return
    end
    if rcall('PTTL', leases) < ms + LEASES_MS / 2 then
        rcall('PEXPIRE', leases, text_of(ms + LEASES_MS))
    end
end

-- The key lives as long as the longest lease in it. Always a write, and one that needs
-- no memory: behind it a server that is out of it takes those of leased().
local function outlive(lock, ms)
    rcall('PEXPIRE', lock, text_of(math.max(ms, rcall('PTTL', lock))))
end
