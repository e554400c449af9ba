/*
 * The servers: what the scripts in lua/ do, one inline each, and the wires that
 * bring calls there and answers back. Included by single.pml and red.pml,
 * which say how many NODES and CALLS there are, and in ticks how long a LEASE is
 * and the MARGIN by which a client believes in it for less.
 *
 * A script is one d_step, as Redis runs it: nothing happens beside it. A hold is
 * a small number that stands for its holder id; 0 is none. Each outermost
 * acquire has one of its own, as in the library each has its own uuid.
 *
 * What is left out. Keys are those of one lock. A tombstone and a token outlive
 * every run of the model: in truth they live for a minute and for five, and
 * what arrives later than that is not looked at. A token is a count: the mint
 * is "last + 1", and that the server's clock is ahead of it is used only where
 * data are lost (lose_data). Refusals by an ACL, of a full memory or for a
 * wrong type change nothing, and are not made.
 */

#define CLIENTS 2

/* until when a client believes in a lease: counted from before it asked */
#define BELIEF(lease) ((lease) - MARGIN)

#define BIT(hold) (1 << (hold))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

/* --- calls ---------------------------------------------------------------- */

/* Where a call is. UNKNOWN: the caller will get no answer any more. */
#define EMPTY    0
#define SENT     1
#define ANSWERED 2
#define UNKNOWN  3

#define ACQUIRE 1
#define RELEASE 2
#define RENEW   3
#define EXTEND  4
#define LEAVE   5
#define RAISE   6

/* What is answered; for acquire, release and renew as in lua/README.md. */
#define NO       0
#define YES      1
#define BUSY     2
#define GONE     3
#define GIVEN_UP 4

typedef Call {
    byte step;
    byte verb;
    byte hold;
    byte arg;   /* the level, or an extend's lease, or a token to raise */
    byte token; /* a renewal's, to compare, or the least; the answer's */
    bit bury;   /* release: leaves a tombstone */
    bit quiet;  /* release: rings nobody */
    bit bell;   /* acquire: queues; leave: nothing */
    bit fresh;  /* acquire: has no ticket yet */
    byte code;  /* the answer */
    byte left   /* belief that the answer is worth, running since it was sent */
};

Call call[CALLS];

inline clear(i)
{
    call[i].step = EMPTY;
    call[i].verb = 0;
    call[i].hold = 0;
    call[i].arg = 0;
    call[i].token = 0;
    call[i].bury = 0;
    call[i].quiet = 0;
    call[i].bell = 0;
    call[i].fresh = 0;
    call[i].code = 0;
    call[i].left = 0
}

/* Its caller learns that no answer will come. */
inline forget_answer(i)
{
    call[i].step = UNKNOWN;
    call[i].token = 0;
    call[i].code = 0;
    call[i].bury = 0;
    call[i].bell = 0;
    call[i].fresh = 0;
    if
    :: call[i].verb != EXTEND -> call[i].left = 0; call[i].arg = 0
    :: else /* the lease it may still set */
    fi
}

inline send(i, what, whose, value)
{
    assert(call[i].step == EMPTY);
    call[i].step = SENT;
    call[i].verb = what;
    call[i].hold = whose;
    call[i].arg = value
}

/* A copy that comes late, for nobody. */
inline copy_call(to, from)
{
    call[to].step = SENT;
    call[to].verb = call[from].verb;
    call[to].hold = call[from].hold;
    call[to].arg = call[from].arg;
    call[to].token = call[from].token;
    call[to].bury = call[from].bury;
    call[to].bell = call[from].bell;
    call[to].fresh = call[from].fresh
}

inline answer(i, what, number)
{
    call[i].step = ANSWERED;
    call[i].code = what;
    call[i].token = number;
    call[i].bury = 0;
    call[i].quiet = 0;
    call[i].bell = 0;
    call[i].fresh = 0
}

/* --- a server ------------------------------------------------------------- */

typedef Node {
    byte holder; /* the hash's field */
    byte count;  /* its value */
    byte ttl;    /* of the hash */
    byte last;   /* the token key */
    byte tombs;  /* the tombstones, a bit for each hold */
    bit queued[CLIENTS];
    bit elder    /* whose ticket is the older one, if both wait */
};

Node node[NODES];

bit hears[CLIENTS]; /* somebody subscribes this client's bell */
byte rings[CLIENTS]; /* published, and not heard yet */

#ifdef GRANTS
/* What a client wants, beside its bell: for which hold, and what belief in it is
 * worth yet, running since the call was sent that said so, as its beat tells. */
typedef Want {
    byte hold;
    byte left
};
Want want[CLIENTS];

/* A message that says so: published, and not heard yet; hold 0: there is none. */
typedef Message {
    byte hold;
    byte token;
    byte left
};
Message message[CLIENTS];

#define WANTS_NOTHING(c) want[c].hold = 0; want[c].left = 0
#else
#define WANTS_NOTHING(c) skip
#endif

inline drop_lock(n)
{
#ifdef NOTE_DROPPED
    dropped = dropped | BIT(node[n].holder);
#endif
    node[n].holder = 0;
    node[n].count = 0;
    node[n].ttl = 0
}

/* ring.lua. A bell that nobody hears belongs to a dead client. */
inline ring(n)
{
    do
    :: node[n].queued[node[n].elder] && hears[node[n].elder] ->
        node[n].queued[node[n].elder] = 0;
        rings[node[n].elder]++;
        break
    :: node[n].queued[node[n].elder] && !hears[node[n].elder] ->
        node[n].queued[node[n].elder] = 0
    :: !node[n].queued[node[n].elder] && node[n].queued[1 - node[n].elder] ->
        node[n].elder = 1 - node[n].elder
    :: else ->
        break
    od
}

#ifdef GRANTS
/* ring.lua with grant.lua: the first that hears and wants it has it. A message that
 * was not heard yet is out of date, for its hold is over. */
inline pass_on(n, who)
{
    do
    :: node[n].queued[node[n].elder] && hears[node[n].elder] ->
        who = node[n].elder;
        node[n].queued[who] = 0;
        if
        :: want[who].hold != 0 ->
            node[n].last++;
            node[n].holder = want[who].hold;
            node[n].count = 1;
            node[n].ttl = LEASE;
            message[who].hold = want[who].hold;
            message[who].token = node[n].last;
            message[who].left = want[who].left;
            WANTS_NOTHING(who)
        :: else -> rings[who]++
        fi;
        break
    :: node[n].queued[node[n].elder] && !hears[node[n].elder] ->
        node[n].queued[node[n].elder] = 0
    :: !node[n].queued[node[n].elder] && node[n].queued[1 - node[n].elder] ->
        node[n].elder = 1 - node[n].elder
    :: else ->
        break
    od
}
#endif

/* mint.lua; `least` is 0 if the client wants none. */
inline mint(n, least)
{
    node[n].last = MAX(node[n].last + 1, least)
}

/* queue.lua: a ticket is kept from try to try, so who has one is the elder
 * unless the other one is in the queue already. */
inline queue_up(n, i, who)
{
    if
    :: call[i].bell ->
        if
        :: call[i].fresh && !node[n].queued[1 - who] -> node[n].elder = who
        :: call[i].fresh && node[n].queued[1 - who] -> node[n].elder = 1 - who
        :: else
        fi;
#ifdef GRANTS
        want[who].hold = call[i].hold;
        want[who].left = call[i].left;
#endif
        node[n].queued[who] = 1
    :: else
    fi
}

/* hash/acquire.lua */
inline acquire(n, i, who)
{
    if
    :: (node[n].tombs & BIT(call[i].hold)) != 0 ->
        answer(i, GIVEN_UP, 0)
    :: else ->
        if
        :: node[n].holder == 0 && call[i].arg == 1 ->
            mint(n, call[i].token);
            node[n].holder = call[i].hold;
            node[n].count = 1;
            node[n].ttl = LEASE;
            if
            :: call[i].bell -> node[n].queued[who] = 0; WANTS_NOTHING(who)
            :: else
            fi;
            answer(i, YES, node[n].last)
        :: node[n].holder != 0 && node[n].holder == call[i].hold ->
            node[n].count = call[i].arg;
            node[n].ttl = MAX(node[n].ttl, LEASE);
            if
            :: call[i].bell -> node[n].queued[who] = 0; WANTS_NOTHING(who)
            :: else
            fi;
            answer(i, YES, node[n].last)
        :: node[n].holder != call[i].hold && call[i].arg > 1 ->
            answer(i, GONE, 0)
        :: else ->
            queue_up(n, i, who);
            answer(i, BUSY, 0)
        fi
    fi
}

#ifdef GRANTS
byte next_one;
#define FREE_FOR_NEXT(n) pass_on(n, next_one); next_one = 0
#else
#define FREE_FOR_NEXT(n) ring(n)
#endif

/* hash/release.lua. A planted defect forgets the tombstone. */
inline release(n, i)
{
#ifdef GRANTS
    /* Who gives up says its bell. */
    if
    :: IS_UNDO(i) && want[CLIENT_OF(call[i].hold)].hold == call[i].hold ->
        WANTS_NOTHING(CLIENT_OF(call[i].hold))
    :: else
    fi;
#endif
#ifndef NO_TOMBSTONE
    if
    :: call[i].bury -> node[n].tombs = node[n].tombs | BIT(call[i].hold)
    :: else
    fi;
#endif
    if
    :: node[n].holder != call[i].hold ->
        answer(i, NO, 0)
    :: node[n].holder == call[i].hold && call[i].arg > 0 ->
        node[n].count = call[i].arg;
        answer(i, YES, 0)
    :: else ->
        drop_lock(n);
        if
        :: !call[i].quiet -> FREE_FOR_NEXT(n)
        :: else
        fi;
        answer(i, YES, 0)
    fi
}

/* hash/renew.lua: never shortens; with a token, not if it has been outdone */
inline renew(n, i)
{
    if
    :: node[n].holder != call[i].hold ||
       (call[i].token != 0 && node[n].last > call[i].token) ->
        answer(i, NO, 0)
    :: else ->
        node[n].ttl = MAX(node[n].ttl, LEASE);
        answer(i, YES, 0)
    fi
}

/* hash/extend.lua: also shortens */
inline extend(n, i)
{
    if
    :: node[n].holder != call[i].hold ||
       (call[i].token != 0 && node[n].last > call[i].token) ->
        answer(i, NO, 0)
    :: else ->
        node[n].ttl = call[i].arg;
        answer(i, YES, 0)
    fi
}

/* leave.lua. A planted defect does not pass the ring on. */
inline leave(n, i, who)
{
    if
    :: node[n].queued[who] ->
        node[n].queued[who] = 0;
        WANTS_NOTHING(who);
        answer(i, YES, 0)
    :: else ->
        WANTS_NOTHING(who);
#ifndef SWALLOW_RING
        if
        :: node[n].holder == 0 -> ring(n)
        :: else
        fi;
#endif
        answer(i, NO, 0)
    fi
}

/* raise.lua */
inline raise(n, i)
{
    node[n].last = MAX(node[n].last, call[i].arg);
    answer(i, YES, 0)
}

inline run_script(n, i, who)
{
    if
    :: call[i].verb == ACQUIRE -> acquire(n, i, who)
    :: call[i].verb == RELEASE -> release(n, i)
    :: call[i].verb == RENEW -> renew(n, i)
    :: call[i].verb == EXTEND -> extend(n, i)
    :: call[i].verb == LEAVE -> leave(n, i, who)
    :: call[i].verb == RAISE -> raise(n, i)
    fi
}

/* A server that has come back without its data. Tokens go on growing because
 * its clock has gone on, and is larger than any token of before: so `last` may
 * stay. */
inline lose_data(n)
{
    if
    :: node[n].holder != 0 -> drop_lock(n)
    :: else
    fi;
    node[n].tombs = 0;
    node[n].queued[0] = 0;
    node[n].queued[1] = 0;
    node[n].elder = 0
}
