-- Sets what is left of a lease, longer or shorter.
--
-- KEYS  1 lock  2 token (may be missing)
-- ARGV  1 holder  2 lease ms  3 the hold's token (may be missing)
--
-- Reply type: integer
-- Reply as of hash/extend.lua
-- include: timestamp/stamp.lua
local looks = false
-- include: lease_args.lua
local free_at, mine = stamp.read(KEYS[1], holder)
if not free_at then
    return stamp.wrong
end
if not mine or outdone() then
    return 0
end
stamp.write(KEYS[1], holder, tonumber(lease), true)
return 1
