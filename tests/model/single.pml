/*
 * The protocol of a lock on one server, for the model checker spin: two clients
 * with one owner each, every order of what they, the server, the network and
 * the clocks may do, and in every state the questions below.
 *
 * Who does what
 *   scripts.pml       the server: a script is a step, as Redis runs it
 *   single_owner.pml  the thread that takes and gives back: op/acquire.c,
 *                     attempt_one.c, verb_*.c, extend.c, and lock/single.c
 *   single.pml        what a client knows (hold/hold.h); its keeper, which renews
 *                     and undoes (run/batches.c); its doorbell (run/doorbell.c)
 *   single_world.pml  network, clocks, crashes, and the judge
 *
 * Time is ticks, and a lease is three. A client counts from before it sent its
 * call, and believes in a lease for a tick less: its clock may be a tick behind
 * the server's. Whatever is between two ticks takes no time, and any number of
 * ticks may pass while a call is under way.
 *
 * What goes wrong, so often as a configuration of run.sh says: a call or its
 * answer is lost, and the caller learns that (LOST); a call of which the caller
 * has been told so arrives all the same, at any later time or never (LATE); a
 * client dies, with calls under way (CRASHES); the server comes back without its
 * data, or somebody forces the lock (WIPES). A lease runs out whenever nobody
 * renews it in time, which needs no fault. Losses and late calls befall the
 * first client, which is also the one that renews, enters again and extends: the
 * second runs the same program, and stands for everybody else.
 *
 * What is asked, in every state
 *   - Nobody is told "held" while another may go by having been told so; and no
 *     lock in which a client believes is dropped by the server.
 *   - A token that is handed out is larger than all before; a re-entry's is the
 *     hold's. After a wipe or force, what was on its way may be told later than
 *     what was granted later; but no lease is renewed of a hold that has been
 *     outdone by a later grant.
 *   - A loss is told once, at the deadline if by then not before; that the hold
 *     is gone is told only if the server has dropped it.
 *   - When all is quiet no client is left as holder or in the queue, except
 *     what a dead one cannot give back, which has a TTL. (A leave that was lost,
 *     and an acquire that came late, may leave a bell in the queue for its 6 s.)
 *   - No run stops before that. With PROGRESS waiters never poll: they look when
 *     they are rung and when the holder's lease has run out, and the second
 *     client has all the time there is; so a waiter that is forgotten is an end
 *     that is none, and is found. (A leave that nobody answers is asked again
 *     there. Given up instead, it may take a ring along: then a waiter sits
 *     until its fallback poll.)
 *
 * With GRANTS a release gives the lock to the first in the queue, and tells it by a
 * message: on its way as long as it may be, and believed for what the call is worth
 * that had said what is wanted.
 *
 * What is left out: several owners of a client, and so its room; the limits of
 * time of calls (one may take forever, or be given up when it is lost); the
 * keeper's undoing stops after a minute, here never; tombstones last; max_hold_ms;
 * clocks that go wrong by more than the margin; the bell's connection, which
 * never breaks; the string and the timestamp layout.
 *
 * An extend to a shorter lease: while it is under way its owner is not counted
 * as one who believes. The server may have dropped the lock already, and the
 * owner learns that when the call returns.
 */
#define NODES 1
#define CALLS (8 + LATE)

/* What a configuration may say; run.sh does. */
#ifndef ROUNDS_0
#define ROUNDS_0 1 /* outermost acquires of the first client */
#endif
#ifndef ROUNDS_1
#define ROUNDS_1 1
#endif
#ifndef LATE
#define LATE 0 /* calls that may arrive after their caller gave up */
#endif
#ifndef LOST
#define LOST 0 /* calls, or answers, that never arrive */
#endif
#ifndef CRASHES
#define CRASHES 0 /* clients that die */
#endif
#ifndef WIPES
#define WIPES 0 /* the server loses its data, or the lock is forced */
#endif
#ifndef RENEWALS
#define RENEWALS 255 /* of each hold; 255: no limit */
#endif
#ifndef EXTENDS
#define EXTENDS 0 /* of each hold */
#endif
#ifndef LEVELS
#define LEVELS 1
#endif

#define LEASE 3
#ifdef NO_MARGIN
#define MARGIN 0
#else
#define MARGIN 1 /* for a client's clock that is a tick behind */
#endif
#define HOLDS 2 /* of each client; the first has most */
#define CLIENT_OF(hold) (((hold) - 1) / HOLDS)
#define OWN_CALLS 8
#define IS_UNDO(i) ((i) < OWN_CALLS && (i) % 4 == 2)
#define NOTE_DROPPED
byte dropped; /* ghost: the holds that the server had, and has no more */
#include "scripts.pml"

/* Each client's calls: its owner's, the keeper's renewals and undoing, and the
 * doorbell's. Behind them are those that come late. */
#define ASK(c)   (4 * (c))
#define RENEWING(c) (4 * (c) + 1)
#define UNDOING(c)  (4 * (c) + 2)
#define PASSING(c)  (4 * (c) + 3)

#define SHORT 2 /* an extend's lease */

/* --- what a client knows -------------------------------------------------- */

#define FREE    0 /* no hold, or a draft */
#define HELD    1
#define GONE_BY_SERVER 2
#define EXPIRED 3

typedef Client {
    byte state;
    byte hold;     /* the latest one's id */
    byte count;
    byte token;
    byte deadline; /* ticks for which it may believe; 0: none */
    byte cap;      /* an extend to this lease may still arrive */
    byte renewals;
    byte extends;
    bit paused;    /* no renewals: an extend is under way, or was asked for */
    bit waits;     /* is in its room */
    bit ticket;    /* has one */
    bit rung;      /* has to look */
    bit asleep;    /* may be granted what it wants */
    bit handed;    /* it was, by its message */
    bit looks;     /* the lock has run out: it looks by itself */
    bit dead;
    bit done
};

Client client[CLIENTS];

/* For each hold a bit: an acquire of it may still arrive; the keeper is to undo
 * it. */
byte unknown, undo;

/* --- time and trouble ----------------------------------------------------- */

bit ahead; /* the server's clock has ticked, and the clients' not yet */
byte lost_left = LOST, late_left = LATE, crashes_left = CRASHES,
     wipes_left = WIPES;

/* --- ghosts: what only the judge knows ------------------------------------ */

byte best;       /* the largest token that was handed out */
byte told_lost;  /* the holds whose loss was told */
bit excused;     /* the lock was forced, or the data are gone: */
bit wiped;       /* the latter, and with them the tombstones */

#define HOLD client[c].hold
#define IS_UNKNOWN(h) ((unknown & BIT(h)) != 0)

/* Has it been told that it holds the lock, and may go by that? */
#define BELIEVES(c) (client[c].state == HELD)

inline tell_lost(which)
{
    assert((told_lost & BIT(which)) == 0);
    told_lost = told_lost | BIT(which)
}

/* The server has said that it is gone. */
inline lose(c)
{
    assert(dropped & BIT(HOLD));
    assert(node[0].holder != HOLD || IS_UNKNOWN(HOLD));
    client[c].state = GONE_BY_SERVER;
    client[c].deadline = 0;
    tell_lost(HOLD)
}

inline lose_if_held(c)
{
    if
    :: client[c].state == HELD -> lose(c)
    :: else
    fi
}

inline grant(c)
{
    assert(excused || !BELIEVES(1 - c));
    assert(call[ASK(c)].token > best || (excused &&
        call[ASK(c)].token != best));
    best = MAX(best, call[ASK(c)].token);
    client[c].state = HELD;
    client[c].count = 1;
    client[c].token = call[ASK(c)].token;
#ifdef FROM_ANSWER
    call[ASK(c)].left = BELIEF(LEASE);
#endif
    client[c].deadline = call[ASK(c)].left;
    client[c].cap = LEASE;
    client[c].renewals = (c == 0 -> RENEWALS : 0);
    client[c].extends = (c == 0 -> EXTENDS : 0);
    client[c].paused = 0;
    client[c].waits = 0;
    client[c].ticket = 0;
    client[c].rung = 0;
    client[c].looks = 0;
    client[c].asleep = 0;
    client[c].handed = 0;
    clear(ASK(c))
}

#ifdef GRANTS
/* What a message says is believed if its beat is young enough. */
inline take_grant(c)
{
    assert(message[c].hold == HOLD);
    call[ASK(c)].token = message[c].token;
    call[ASK(c)].left = message[c].left;
    grant(c);
    message[c].hold = 0;
    message[c].token = 0;
    message[c].left = 0
}
#endif

inline forget_message(c)
{
#ifdef GRANTS
    message[c].hold = 0;
    message[c].token = 0;
    message[c].left = 0;
#endif
    client[c].handed = 0
}

/* What an answer is worth if an extend to `cap` may still arrive. */
#define TOO_LONG(c, lease) ((lease) - MIN(lease, client[c].cap))
#define CAPPED(c, left, lease) \
    ((left) > TOO_LONG(c, lease) -> (left) - TOO_LONG(c, lease) : 0)

/* A lease was confirmed; belief in it counts from before the call was sent. */
inline prolong(c, i)
{
#ifdef FROM_ANSWER
    call[i].left = BELIEF(LEASE);
#endif
    client[c].deadline =
        MAX(client[c].deadline, CAPPED(c, call[i].left, LEASE))
}

/* The hold is out of the table. */
inline forget_hold(c)
{
    client[c].state = FREE;
    client[c].count = 0;
    client[c].token = 0;
    client[c].deadline = 0;
    client[c].cap = 0;
    client[c].renewals = 0;
    client[c].extends = 0;
    client[c].paused = 0
}

/* Past its deadline it is lost, whatever the server would say. */
inline expire_if_over(c)
{
    if
    :: client[c].state == HELD && client[c].deadline == 0 ->
        client[c].state = EXPIRED;
        tell_lost(HOLD)
    :: else
    fi
}

inline send_extend(c, lease)
{
    send(ASK(c), EXTEND, HOLD, lease);
    call[ASK(c)].token = (IS_UNKNOWN(HOLD) -> client[c].token : 0);
    call[ASK(c)].left = BELIEF(lease);
    /* It may be executed long before its answer is here. */
    client[c].deadline = MIN(client[c].deadline, BELIEF(lease))
}

inline leave_room(c)
{
    client[c].waits = 0;
    client[c].ticket = 0;
    client[c].rung = 0;
    client[c].looks = 0;
    client[c].asleep = 0
}

#include "single_owner.pml"

/* --- a client's threads --------------------------------------------------- */

#define OLDEST(c) \
    ((undo & BIT(HOLDS * (c) + 1)) != 0 -> HOLDS * (c) + 1 : HOLDS * (c) + 2)
#define OF_CLIENT(c) ((c) == 0 -> BIT(1) | BIT(2) : BIT(HOLDS + 1) | BIT(HOLDS + 2))
#define MAY_RENEW(c) \
    (client[c].state == HELD && !client[c].paused && client[c].renewals > 0 && \
     client[c].deadline < BELIEF(LEASE))

proctype Keeper(byte c)
{
end:
    do
    :: d_step { MAY_RENEW(c) && call[RENEWING(c)].step == EMPTY ->
           if
           :: client[c].renewals < 255 -> client[c].renewals--
           :: else
           fi;
           send(RENEWING(c), RENEW, HOLD, 0);
#ifndef NO_COMPARE
           call[RENEWING(c)].token = (IS_UNKNOWN(HOLD) -> client[c].token : 0);
#endif
           call[RENEWING(c)].left = BELIEF(LEASE) }
    :: d_step { call[RENEWING(c)].step == ANSWERED ->
#ifdef LATE_REVIVES
           if
           :: call[RENEWING(c)].hold == HOLD && client[c].state == EXPIRED &&
              call[RENEWING(c)].code == YES ->
               client[c].state = HELD;
               client[c].deadline = BELIEF(LEASE)
           :: else
           fi;
#endif
           if
           :: call[RENEWING(c)].hold == HOLD && client[c].state == HELD &&
              !client[c].paused ->
               if
               :: call[RENEWING(c)].code == YES -> prolong(c, RENEWING(c))
               :: else -> lose(c)
               fi
           :: else
           fi;
           clear(RENEWING(c)) }
    :: d_step { call[RENEWING(c)].step == UNKNOWN -> clear(RENEWING(c)) }
    :: d_step { (undo & OF_CLIENT(c)) != 0 && call[UNDOING(c)].step == EMPTY &&
           !client[c].dead ->
           send(UNDOING(c), RELEASE, OLDEST(c), 0);
           call[UNDOING(c)].bury = IS_UNKNOWN(OLDEST(c)) }
    :: d_step { call[UNDOING(c)].step == UNKNOWN -> clear(UNDOING(c)) }
    od
}

proctype Doorbell(byte c)
{
end:
    do
    :: d_step { rings[c] > 0 && client[c].waits ->
           rings[c]--; client[c].rung = 1 }
#ifdef GRANTS
    :: d_step { message[c].hold != 0 && !client[c].handed ->
#ifdef GRANT_FROM_MESSAGE
           message[c].left = BELIEF(LEASE);
#endif
           if
           :: client[c].asleep && message[c].hold == HOLD ->
               client[c].handed = 1
           :: else ->
               client[c].rung = client[c].waits;
               forget_message(c)
           fi }
#endif
    :: d_step { rings[c] > 0 && !client[c].waits &&
           call[PASSING(c)].step == EMPTY ->
           rings[c]--;
           send(PASSING(c), LEAVE, HOLDS * c + 1, 0) }
    :: d_step { call[PASSING(c)].step == UNKNOWN ->
           clear(PASSING(c));
           send(PASSING(c), LEAVE, HOLDS * c + 1, 0) }
    od
}

#include "single_world.pml"
