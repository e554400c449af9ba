-- Of both sides, behind leases, key, field and holder. Others keep the key: a
-- lease of its own that is over is over.
local time, answer = redis.call('TIME'), redis.pcall('HEXISTS', key, field)
local held = answer == 1
if held then
    answer = redis.pcall('ZSCORE', leases, field)
    held = type(answer) ~= 'table' and
        (not answer or answer + 0 >= time[1] * 1000 + math.floor(time[2] / 1000))
end
-- include: guard_end.lua
