-- Brings LEASES_MS, leased, outlive. Included behind rcall and now_ms.
--
-- leased(leases, field, ms, alone): its own lease goes on for so long from now on. What
-- is over stays for some time: others may keep the lock of which that one is dead.
-- alone: there is none besides.
local LEASES_MS = 3600000
local function leased(leases, field, ms, alone)
    rcall('ZADD', leases, string.format('%.0f', now_ms + ms), field)
    if alone or rcall('PTTL', leases) < ms + LEASES_MS / 2 then
        rcall('PEXPIRE', leases, string.format('%.0f', ms + LEASES_MS))
    end
end

-- The key lives as long as the longest lease in it. Always a write, and one that needs
-- no memory: behind it a server that is out of it takes those of leased().
local function outlive(lock, ms)
    rcall('PEXPIRE', lock, string.format('%.0f', math.max(ms, rcall('PTTL', lock))))
end
