/*
 * A fair lock, for the model checker spin: owners that stand in its line, and every
 * order of what they, the server, the network and the clock may do. The first client
 * has two owners, the second has one; a stranger has the lock at first, and frees it
 * at any time.
 *
 * Who does what
 *   line_scripts.pml  the server: lua/fair/acquire.lua, release.lua, lua/line.lua;
 *                     a script is a step, as Redis runs it
 *   Owner             takes the lock once and gives it back, or gives up:
 *                     op/acquire.c, attempt_line.c, and hold/room_line.c, the room
 *                     in which the first client's two stand
 *   Doorbell          op/grant.c: hears of a grant, at any time after it
 *   Wire              a call's way, there and back
 *   line_world.pml    the stranger, the clock, what goes wrong, and the end
 *
 * What goes wrong, so often as a configuration of run.sh says: a call or its answer
 * is lost, and the caller learns that (LOST), or the call arrives all the same, at
 * any later time (LATE); the bell's connection breaks, with what is on its way there
 * (CUTS); a client gives no sign of life for too long (SIGNS), and all of that
 * befalls the first. The second one dies as it waits (CRASHES). A hold cannot be
 * written (REFUSED), a grant comes twice (DOUBLED), an owner gives up (QUITS).
 *
 * Only with TIME does a lease run out. It is two ticks, as a claim is, and there are
 * ticks only while one runs; one clock serves all, and there is no margin: single.pml
 * has shown what that is for. Instead of a clock's reading each call and each beat
 * has its age. How long a sign of life is good is not counted: it may be over
 * whenever no answer is unread.
 *
 * What is asked, in every state
 *   - Whoever goes by having the lock has it, so never do two.
 *   - It is granted in the order of first tries. Who was dropped, since his client
 *     was taken for dead, has lost his turn, until that client reads an answer and
 *     its bell is heard; from then on nobody overtakes him while he sleeps.
 *   - When all is quiet nobody has the lock, and none but the dead is in line.
 *   - No run stops before that. The front looks by itself only after what no message
 *     tells of, so one that a grant forgets without that, or a hold that nobody knows
 *     of, is an end that is none, and is found.
 *
 * What is left out: the queue, and plain acquires; what the text of a grant says;
 * renewals; levels; tries that do not wait; more than two owners in a room.
 */
#ifndef OWNERS
#define OWNERS 3 /* or 2, of the first client */
#endif
#ifndef LOST
#define LOST 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef REFUSED
#define REFUSED 0
#endif
#ifndef DOUBLED
#define DOUBLED 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef SIGNS
#define SIGNS 0
#endif
#ifndef QUITS
#define QUITS 0
#endif

#define LEASE 2
#define LAST (OWNERS - 1)
#define CLIENT(w) ((w) / 2)
#define OTHER(w) ((w) < 2 -> 1 - (w) : NOBODY) /* of its client */
#define STRANGER OWNERS
#define NOBODY (OWNERS + 1)

mtype = { ACQUIRE, RELEASE };
/* How far a call has come: BUSY, OWNED and FREED are answers. */
mtype = { EMPTY, SENT, UNKNOWN, BUSY, OWNED, FREED };
/* What an owner does; the first three are in their room. */
mtype = { AWAKE, ASLEEP, HANDED, OUT, OWNS, LEAVES, GONE, DEAD };

typedef Call {
    mtype verb, step;
    byte whose;
    byte age;
    byte ticket; /* that it has; then that it was told */
    byte bell;   /* as its client knew it when it sent this */
    bit bury;
    bit out;     /* the answer: it is not in line; */
    bit anew     /* its client was taken for dead */
};
Call call[OWNERS + 1]; /* behind the owners': one that comes late */

/* --- what the clients know -------------------------------------------------- */

mtype does[OWNERS] = OUT;
byte ticket[OWNERS];
byte deadline[OWNERS]; /* ticks for which it may believe; 0: none */
bit stands[OWNERS];    /* it need not ask by itself */
bit doubt[OWNERS];     /* a call of its may be under way still */
bit looks[2];          /* the front has a reason to */
bit silent;            /* the first has read no answer since its sign ended */
byte bell[2];          /* odd: it is known that it is not heard */
bit hears[2] = 1;      /* it is heard, as the server knows */
byte grant[OWNERS];    /* on its way: the ticks of its claim, and 1; 0: none */

#define BELIEVES(w) (does[w] == OWNS && deadline[w] > 0)
#define IN_ROOM(w) ((w) < OWNERS && \
    (does[w] == AWAKE || does[w] == ASLEEP || does[w] == HANDED))
#define IS_FRONT(w) ((w) != 1 || !IN_ROOM(0))

/* --- trouble that is left ----------------------------------------------------- */

byte lost = LOST, late = LATE, refused = REFUSED, doubled = DOUBLED, cuts = CUTS,
     crashes = CRASHES, signs = SIGNS, quits = QUITS;

#include "line_scripts.pml"

/* --- the network -------------------------------------------------------------- */

inline clear(i)
{
    call[i].verb = 0;
    call[i].step = EMPTY;
    call[i].age = 0;
    call[i].ticket = 0;
    call[i].bell = 0;
    call[i].bury = 0;
    call[i].out = 0;
    call[i].anew = 0
}

inline send(i, what)
{
    clear(i);
    call[i].verb = what;
    call[i].whose = i;
    call[i].step = SENT
}

inline give_up_on(i)
{
    lost--;
    clear(i);
    call[i].step = UNKNOWN
}

inline keep_copy(i)
{
    late--;
    call[OWNERS].verb = call[i].verb;
    call[OWNERS].whose = i;
    call[OWNERS].age = call[i].age;
    call[OWNERS].ticket = call[i].ticket;
    call[OWNERS].bell = call[i].bell;
    call[OWNERS].bury = call[i].bury;
    call[OWNERS].step = SENT
}

proctype Wire(byte i)
{
end:
    do
    :: d_step { call[i].step == SENT -> execute(i) }
    :: d_step { call[i].step == SENT && i < 2 && lost > 0 -> give_up_on(i) }
    :: d_step { call[i].step == SENT && i < 2 && lost > 0 ->
           execute(i);
           give_up_on(i) }
    :: d_step { call[i].step == SENT && i < 2 && lost > 0 && late > 0 ->
           keep_copy(i);
           give_up_on(i) }
    od
}

/* --- an owner ------------------------------------------------------------------- */

inline ask(w)
{
    send(w, ACQUIRE);
    call[w].ticket = ticket[w];
    call[w].bell = bell[CLIENT(w)];
    if
    :: IS_FRONT(w) -> looks[CLIENT(w)] = 0
    :: else
    fi;
    stands[w] = 1;
    does[w] = AWAKE
}

/* It may have been dropped. A reply that grants does not say so. */
inline tell_other(w)
{
    if
    :: OTHER(w) < OWNERS && (call[w].step == BUSY || silent) ->
#ifndef DROPPED_STANDS_NOT
        stands[OTHER(w)] = stands[OTHER(w)] && !silent && !call[w].anew;
#endif
        dropped[OTHER(w)] = dropped[OTHER(w)] && !(sign[0] && hears[0])
    :: else
    fi
}

/* Who is the front now looks when it is due. */
inline go_out(w, where)
{
    if
    :: IS_FRONT(w) -> looks[CLIENT(w)] = IN_ROOM(OTHER(w))
    :: else
    fi;
    stands[w] = 0;
    ticket[w] = 0;
    does[w] = where
}

inline own(w, ticks)
{
    /* Whoever goes by having it has it. */
    assert(ticks == 0 || holder == w);
    tell_other(w);
    go_out(w, OWNS);
    deadline[w] = ticks
}

/* Nobody hears a grant: all of the room look by themselves. */
inline note_busy(w)
{
    does[w] = ASLEEP;
    ticket[w] = call[w].ticket;
    tell_other(w);
    if
    :: CLIENT(w) == 0 -> silent = 0
    :: else
    fi;
    if
    :: (call[w].bell & 1) || call[w].out ->
        stands[w] = 0;
        if
        :: IS_FRONT(w) && OTHER(w) < OWNERS -> stands[OTHER(w)] = 0
        :: else
        fi
    :: else
    fi;
    clear(w)
}

inline leave(w)
{
    send(w, RELEASE);
    call[w].bury = doubt[w];
    deadline[w] = 0;
    does[w] = LEAVES
}

proctype Owner(byte w)
{
    d_step { w != 1 || does[0] != OUT -> ask(w) };
    do
    :: d_step { does[w] == ASLEEP && (!stands[w] || IS_FRONT(w) && looks[CLIENT(w)]) ->
           ask(w) }
    :: d_step { does[w] == ASLEEP && quits > 0 ->
           quits--;
           go_out(w, LEAVES);
           leave(w) }
    :: d_step { does[w] == AWAKE && call[w].step == BUSY -> note_busy(w) }
    :: d_step { does[w] == AWAKE && call[w].step == OWNED ->
           own(w, LEASE - call[w].age);
           clear(w) }
    :: d_step { does[w] == AWAKE && call[w].step == UNKNOWN ->
           clear(w);
           doubt[w] = 1;
           stands[w] = 0;
           does[w] = ASLEEP }
    :: d_step { does[w] == HANDED && deadline[w] > 0 -> own(w, deadline[w]) }
    :: d_step { does[w] == HANDED -> deadline[w] = 0; ask(w) } /* it confirms */
    :: d_step { does[w] == OWNS -> leave(w) }
    :: d_step { does[w] == LEAVES && call[w].step == UNKNOWN -> leave(w) }
    :: d_step { does[w] == LEAVES && call[w].step == FREED ->
           clear(w);
           doubt[w] = 0;
           does[w] = GONE }
    :: does[w] == GONE || does[w] == DEAD -> break
    od
}

/* --- the doorbell ---------------------------------------------------------------- */

/* Who is awake is just asking, perhaps for the last time before it. */
inline hear(w)
{
    if
    :: does[w] == ASLEEP ->
        deadline[w] = grant[w] - 1;
        does[w] = HANDED
    :: does[w] == AWAKE -> stands[w] = 0
    :: else
    fi
}

proctype Doorbell(byte w)
{
end:
    do
    :: d_step { grant[w] > 0 -> hear(w); grant[w] = 0 }
    :: d_step { grant[w] > 0 && doubled > 0 -> doubled--; hear(w) }
    od
}

#include "line_world.pml"
