-- Brings stand, step_out, admit: for what is granted in the order in which it was
-- asked for. Included behind rcall, rpcall, larger, clock; behind line and wants,
-- the keys of these; and behind fits, give, ungive.
--
-- The line: a sorted set, holder id -> ticket, the server's clock at its first try.
-- What they want: a hash, holder id -> "<lease ms> <what> <bell>"; and for each
-- client "=<bell>" -> "<live until ms> <beat>", its sign of life, and "-" behind
-- that while it hears nothing. The beat is the client's clock before it sent the
-- latest of its tries, which nobody reads but itself: a grant brings it back.
local STANDS_MS, CLAIM_MS, MOST = '6000', '3000', 256
local now_ms = math.floor(clock / 1000)

-- Behind the last one, whatever the clock says.
local function new_ticket()
    local last = rcall('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2]
    if last and last + 0 >= clock + 0 then
        return string.format('%.0f', last + 1)
    end
    return clock
end

-- A sign of life of the client. 1: it was taken for dead, so any of its others may
-- have been dropped. What it says of its hearing goes with the beat: an older try
-- may come later.
local function live(bell, deaf, beat)
    local sign = rcall('HGET', wants, '=' .. bell) or ''
    local until_ms, last, was_deaf = sign:match('^(%d+) (%d+)(%-?)$')
    if last and larger(last, beat) then
        beat, deaf = last, was_deaf
    end
    rcall('HSET', wants, '=' .. bell, string.format('%.0f %s%s',
          now_ms + STANDS_MS, beat, deaf))
    return until_ms and until_ms + 0 >= now_ms and 0 or 1
end

-- Takes out signs of life that are past, some of all: each client that comes looks at
-- a few, anywhere, so there are never many. Where is of the clock's making, but spread,
-- as clients may come at even times. Returns their bells.
local function sweep()
    local from = math.floor(clock % 1000003 * 0.6180339887 % 1 * 65536)
    local found, past = rcall('HSCAN', wants, from, 'COUNT', 16)[2], {}
    for i = 1, #found, 2 do
        local bell, until_ms = found[i]:match('^=(.*)$'), found[i + 1]:match('^%d+')
        if bell and not (until_ms and until_ms + 0 >= now_ms) then
            rcall('HDEL', wants, found[i])
            past[#past + 1] = bell
        end
    end
    return past
end

-- Puts a holder into the line, or leaves it there. Returns its ticket, what live()
-- says, and the bells of clients that were found to be gone. Behind a first write,
-- which needs no memory, a server that is out of it takes the others, too: who waits,
-- waits in order there as well.
local function stand(holder, lease, what, bell, ticket, beat)
    local deaf, channel = bell:match('^(%-?)(.*)$')
    local stood = rcall('PEXPIRE', line, STANDS_MS)
    if ticket == '0' then
        ticket = new_ticket()
    end
    if rcall('ZADD', line, 'NX', ticket, holder) == 0 then
        ticket = rcall('ZSCORE', line, holder)
    end
    if stood == 0 then
        rcall('PEXPIRE', line, STANDS_MS)
    end
    rcall('HSET', wants, holder, lease .. ' ' .. what .. ' ' .. channel)
    local anew = live(channel, deaf, beat)
    rcall('PEXPIRE', wants, STANDS_MS)
    return ticket, anew, anew == 1 and sweep() or {}
end

local function step_out(holder)
    rcall('ZREM', line, holder)
    rcall('HDEL', wants, holder)
end

-- nil: its client gives no sign of life any more.
local function want_of(holder)
    local want = rcall('HGET', wants, holder) or ''
    local lease, what, bell = want:match('^(%d+) (%S+) (.+)$')
    local sign = bell and rcall('HGET', wants, '=' .. bell) or ''
    local until_ms, beat, deaf = sign:match('^(%d+) (%d+)(%-?)$')
    if until_ms and until_ms + 0 >= now_ms then
        return {lease = lease, what = what, bell = bell, beat = beat,
                until_ms = until_ms + 0, deaf = deaf == '-'}
    end
end

-- How many have heard it, or why it may not be told: then who waits looks by itself.
-- Who is deaf is told as well: another one of its client may hear since, and wait for
-- that.
local function tell(holder, want, token, claim)
    local sharded = want.bell:sub(1, 12) == 'rlock_sbell:'
    local words = {'rlock_grant:' .. holder:sub(-36), want.beat, token, claim,
                   KEYS[1]}
    return rpcall(sharded and 'SPUBLISH' or 'PUBLISH', want.bell,
                  table.concat(words, ' '))
end

-- Who hears nothing looks four times a second; or is dead: that costs the others one
-- claim, and not one for each of its client that stands.
local function doubt(want)
    rcall('HSET', wants, '=' .. want.bell, string.format('%.0f %s-',
          math.min(want.until_ms, now_ms + CLAIM_MS), want.beat))
end

-- Out of the line, then the hold, then the message: which is believed, so it must
-- not come without a hold. One that is not heard by who is not deaf, or cannot be
-- written, is taken back, and so is the sign of life: the client's others are dropped
-- unasked.
local function grant(holder, want)
    local claim = want.lease + 0 < CLAIM_MS + 0 and want.lease or CLAIM_MS
    step_out(holder)
    local given, token = pcall(give, holder, want.what, claim)
    local granted = given and type(token) == 'string'
    local heard = granted and tell(holder, want, token, claim)
    if granted and want.deaf and (heard == 0 or type(heard) == 'table') then
        doubt(want)
        return 1
    elseif granted and heard ~= 0 then
        return 1
    end
    ungive(holder, want.what)
    rcall('HDEL', wants, '=' .. want.bell)
    return 0
end

-- Grants the first in line what they want, as far as it is there, and drops those
-- that are dead; not for ever: behind so many of them they look by themselves. `me`
-- gets its lease, and no message. Returns its token, or what was refused; else nil,
-- and how many others were granted something.
local function admit(me)
    local others = 0
    for _ = 1, MOST do
        local head = rcall('ZRANGE', line, 0, 0)[1]
        local want = head and want_of(head)
        if head and not want then
            step_out(head)
        elseif not head or not fits(want.what) then
            break
        elseif head == me then
            step_out(me)
            return give(me, want.what, want.lease)
        else
            others = others + grant(head, want)
        end
    end
    return nil, others
end
