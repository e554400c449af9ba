/*
 * The protocol of a lock on three servers (Red): two clients, votes, tokens that
 * are written back, nodes that restart without their data.
 *
 * Who does what: scripts.pml are the servers; Owner is red/attempt_red.c and
 * lock/red.c; Keeper the renewals and the votes again of run/batches.c, as far as
 * they are of a group (hold/group.h). red_world.pml has network, clock, restarts,
 * crashes and the judge.
 *
 * It takes on trust what single.pml has shown of one server, and leaves that
 * out, since three servers have many more states. A lease is two ticks and there
 * is no margin, because all clocks tick at once. A hold's release is executed at
 * once, behind what was asked before on the same connection. Answers that nobody
 * waits for are read at once. There are no bells: who fails tries again, or not.
 * The second client has no trouble, waits for all answers, and renews nothing.
 * Tombstones are kept only where a call may come late, as a vote again may.
 *
 * An owner and its keeper have a connection each, so what one of them sent later
 * may be executed before what the other one sent. Renewals and votes again are the
 * keeper's; all else is the owner's.
 *
 * In the order of attempt_red.c: a try asks the nodes that may vote, and is over
 * with a quorum of grants, or when one node at most has not answered. The largest token
 * is written to a quorum before it is told; the third node's clock is ahead at
 * the beginning, so that it makes a difference. Grants that come later join; a
 * try that fails is undone on every node that may have granted it. A hold that
 * is lost on so many nodes that fewer than a quorum are left is lost.
 *
 * An extend, to a shorter lease, follows the grant, and asks the nodes that hold
 * it. The owner goes on whenever it likes: with a quorum, or without, as its
 * patience has an end. Where no answer has come by then the extend may be late, and
 * the keeper renews meanwhile: until the answer is here, the hold there is believed
 * in for no longer than the extend's lease (owed; rl_hold_owe_extend_locked). That
 * it is executed and that its answer is read are two steps. If nobody knows its
 * end, that lasts.
 *
 * What goes wrong: LOST, LATE and CRASHES as in single.pml; a node restarts and
 * has forgotten all (RESTARTS), and does not vote for a lease's time. Clients
 * know that at once, because their connections broke. Its clock is not further
 * behind the others' than the lease is long, so tokens go on growing.
 *
 * What is asked: no two own it at once; tokens grow from owner to owner; no node
 * drops a hold in which its client believes; when all is quiet, no node is held
 * by anybody, but by a dead client, or by what a wiped tombstone let in.
 */
#define NODES  3
#define QUORUM 2
#define LEASE  2
#define SHORT  1 /* an extend's */
#define MARGIN 0

#ifndef TRIES_0
#define TRIES_0 1 /* acquires of the first client, with or without success */
#endif
#ifndef TRIES_1
#define TRIES_1 1
#endif
#ifndef LATE
#define LATE 0 /* votes of the first client that may come after it gave up */
#endif
#ifndef LOST
#define LOST 0 /* calls of the first client, or answers, that never arrive */
#endif
#ifndef CRASHES
#define CRASHES 0 /* of the first client */
#endif
#ifndef RESTARTS
#define RESTARTS 0 /* of a node, which forgets everything */
#endif
#ifndef RENEWALS
#define RENEWALS 0 /* of the first client's holds, together */
#endif
#ifndef REVOTES
#define REVOTES 0 /* of the first client, where it is vacant, together */
#endif
#ifndef EXTENDS
#define EXTENDS 0 /* of the first client's holds, together */
#endif

/* An owner's connection to a node, and that of the first client's keeper: what is
 * asked on one goes one behind the other. */
#define ON(c, n) (NODES * (c) + (n))
#define KEEP(n)  (CLIENTS * NODES + (n))
#if RENEWALS + REVOTES > 0
#define OWN_CALLS (CLIENTS * NODES + NODES)
#else
#define OWN_CALLS (CLIENTS * NODES)
#endif
#define CALLS (OWN_CALLS + LATE)
#define CALLER(i) (((i) / NODES) % CLIENTS)

#include "scripts.pml"

#define HOLDS 2
#define CLIENT_OF(hold) (((hold) - 1) / HOLDS)

/* --- what a client knows -------------------------------------------------- */

/* A hold of one node. */
#define NONE    0
#define DRAFT   1 /* asked for, no answer so far; once OWNED: late */
#define HELD    2
#define VACANT  3 /* the node does not have it */
#define EXPIRED 4 /* the same, but the server might, as it ran out here */

/* The group. */
#define FORMING 0
#define OWNED   1
#define GROUP_LOST 2

typedef Client {
    byte group;
    byte hold;        /* the latest try's id */
    byte token;       /* the group's */
    byte at[NODES];   /* the hold there */
    byte deadline[NODES];
    bit unknown[NODES]; /* an acquire of it may still come */
    bit dead;
    bit done
};

Client client[CLIENTS];

byte young[NODES]; /* ticks for which a node that restarted must not vote */

byte lost_left = LOST, late_left = LATE, crashes_left = CRASHES,
     restarts_left = RESTARTS, renewals_left = RENEWALS,
     revotes_left = REVOTES, extends_left = EXTENDS;

/* An extend of the first client's is late there: what a lease is worth. */
bit owed[NODES];

#ifdef NO_CAP
#define CAP(n) LEASE
#else
#define CAP(n) (owed[n] -> SHORT : LEASE)
#endif
#define CAPPED(n, left) \
    ((left) > LEASE - CAP(n) -> (left) - (LEASE - CAP(n)) : 0)

/* The owner waits for its extend there. */
#define IS_EXTENDED(i) \
    (EXTENDS > 0 && (i) < NODES && call[i].verb == EXTEND && !owed[(i) % NODES])

/* --- ghosts --------------------------------------------------------------- */

byte best; /* the largest token that was handed out */

#define HOLD client[c].hold
#define LEFT(c) ((client[c].at[0] == HELD) + (client[c].at[1] == HELD) + \
    (client[c].at[2] == HELD))

/* rl_group_lose_one(): one hold less. Too few are left: the owner is told. */
inline lose_one(c, n, how)
{
    client[c].at[n] = how;
    client[c].deadline[n] = 0;
    if
    :: client[c].group == OWNED && LEFT(c) < QUORUM ->
        client[c].group = GROUP_LOST
    :: else
    fi
}

/* A release there. It is not delayed: single.pml has shown that it may be. What
 * may still be on its way to the node on this connection is undone behind it. */
inline undo_at(c, n)
{
    if
    :: client[c].unknown[n] -> leave_tombstone(n, HOLD)
    :: else
    fi;
    if
    :: call[ON(c, n)].verb == ACQUIRE && call[ON(c, n)].step == SENT ->
        call[ON(c, n)].bury = 1;
        call[ON(c, n)].left = 0
    :: else -> clear(ON(c, n))
    fi;
    if
    :: node[n].holder == HOLD -> drop_lock(n)
    :: else
    fi
}

inline leave_tombstone(n, whose)
{
#if LATE + REVOTES > 0 && !defined(NO_TOMBSTONE)
    node[n].tombs = node[n].tombs | BIT(whose)
#else
    skip
#endif
}

inline note_unknown(c, n)
{
    client[c].unknown[n] = 1
}

/* --- an owner ------------------------------------------------------------- */

#ifdef VOTES_AT_ONCE
#define MAY_VOTE(n) true
#else
#define MAY_VOTE(n) (young[n] == 0)
#endif

#define GRANTED(c, n) (client[c].at[n] == DRAFT && \
    call[ON(c, n)].step == ANSWERED && call[ON(c, n)].code == YES && \
    call[ON(c, n)].left > 0)
#define GRANTS(c) (GRANTED(c, 0) + GRANTED(c, 1) + GRANTED(c, 2))
#define TOKEN(c, n) (GRANTED(c, n) -> call[ON(c, n)].token : 0)
#define LARGEST(c) MAX(TOKEN(c, 0), MAX(TOKEN(c, 1), TOKEN(c, 2)))
#define HAVE(c, t) ((TOKEN(c, 0) == t) + (TOKEN(c, 1) == t) + (TOKEN(c, 2) == t))
#define WAITS(c) ((call[ON(c, 0)].step == SENT) + (call[ON(c, 1)].step == SENT) + \
    (call[ON(c, 2)].step == SENT))

/* attempt_red.c, list_part() and undo_vote(): the vote's answer, or that there is none
 * yet, once the round is over. */
inline read_vote(c, n)
{
    if
    :: client[c].at[n] == DRAFT && call[ON(c, n)].step == ANSWERED ->
        if
        :: call[ON(c, n)].code == YES && call[ON(c, n)].left > 0 ->
            client[c].at[n] = HELD;
            client[c].deadline[n] = call[ON(c, n)].left
        :: call[ON(c, n)].code == YES && call[ON(c, n)].left == 0 ->
            note_unknown(c, n);
            client[c].at[n] = VACANT
        :: else ->
            client[c].at[n] = VACANT
        fi;
        clear(ON(c, n))
    :: client[c].at[n] == DRAFT && call[ON(c, n)].step == UNKNOWN ->
        note_unknown(c, n);
        client[c].at[n] = VACANT;
        clear(ON(c, n))
    :: else
    fi
}

/* What the keeper has under way is for nobody. */
inline keeper_lets_go(c, n)
{
#if RENEWALS + REVOTES > 0
    if
    :: c == 0 && call[KEEP(n)].step == SENT && call[KEEP(n)].hold == HOLD ->
        if
        :: call[KEEP(n)].verb == ACQUIRE -> note_unknown(c, n)
        :: else
        fi;
        call[KEEP(n)].quiet = 1;
        call[KEEP(n)].left = 0
    :: c == 0 && call[KEEP(n)].step == UNKNOWN ->
        if
        :: call[KEEP(n)].verb == ACQUIRE -> note_unknown(c, n)
        :: else
        fi;
        clear(KEEP(n))
    :: else
    fi
#else
    skip
#endif
}

/* What is held is released, and what may be, or may yet come, is buried. */
inline let_go(c, n)
{
    if
    :: client[c].at[n] == DRAFT || call[ON(c, n)].verb == ACQUIRE ->
        note_unknown(c, n)
    :: else
    fi;
    keeper_lets_go(c, n);
#if EXTENDS > 0
    if
    :: c == 0 -> owed[n] = 0
    :: else
    fi;
#endif
    if
    :: client[c].at[n] == HELD || client[c].at[n] == EXPIRED ||
       client[c].unknown[n] ->
        undo_at(c, n)
    :: else -> clear(ON(c, n))
    fi;
    client[c].at[n] = NONE;
    client[c].unknown[n] = 0;
    client[c].deadline[n] = 0
}

inline vote(c, n)
{
    if
    :: MAY_VOTE(n) && call[ON(c, n)].step == EMPTY ->
        send(ON(c, n), ACQUIRE, HOLD, 1);
        call[ON(c, n)].left = BELIEF(LEASE);
        client[c].at[n] = DRAFT
    :: else -> client[c].at[n] = VACANT
    fi
}

inline write_back(c, n)
{
    if
    :: client[c].at[n] == HELD && minted[n] < client[c].token &&
       call[ON(c, n)].step == EMPTY ->
        send(ON(c, n), RAISE, HOLD, client[c].token)
    :: else
    fi
}

/* One that has not been answered is executed some time, for nobody. */
inline clear_raise(c, n)
{
    if
    :: call[ON(c, n)].verb == RAISE && call[ON(c, n)].step == SENT ->
        call[ON(c, n)].quiet = 1
    :: call[ON(c, n)].step != EMPTY && call[ON(c, n)].step != SENT &&
       client[c].at[n] != DRAFT ->
        clear(ON(c, n))
    :: else
    fi
}

#define WRITTEN(c, n) (client[c].at[n] == HELD && (minted[n] == client[c].token \
    || (call[ON(c, n)].verb == RAISE && call[ON(c, n)].step == ANSWERED)))

#define QUORUM_HAS_IT(c) \
    (WRITTEN(c, 0) + WRITTEN(c, 1) + WRITTEN(c, 2) >= QUORUM)
#define NO_ANSWER(c, n) \
    (call[ON(c, n)].step == UNKNOWN && call[ON(c, n)].verb == RAISE)

/* The second client waits for all answers; it would be the first one's mirror,
 * and the states many. */
#define MAY_WAIT_FOR_ONE(c) (WAITS(c) <= 1 - (c))

inline forget_minted()
{
    minted[0] = 0; minted[1] = 0; minted[2] = 0
}

#if EXTENDS > 0
#define MAY_EXTEND(c) \
    ((c) == 0 && extends_left > 0 && client[c].group == OWNED)

inline send_extend(n)
{
    if
    :: client[0].at[n] == HELD && call[ON(0, n)].step == EMPTY &&
       call[KEEP(n)].verb != RENEW ->
        send(ON(0, n), EXTEND, client[0].hold, SHORT);
        call[ON(0, n)].left = BELIEF(SHORT);
        /* It may be executed long before its answer is here. */
        client[0].deadline[n] = MIN(client[0].deadline[n], BELIEF(SHORT))
    :: else
    fi
}

/* put_extension(); who has not answered is let go, and may be late. */
inline read_extend(n)
{
    if
    :: IS_EXTENDED(ON(0, n)) && call[ON(0, n)].step == ANSWERED ->
        if
        :: client[0].at[n] == HELD && call[ON(0, n)].code == YES ->
            client[0].deadline[n] = call[ON(0, n)].left
        :: client[0].at[n] == HELD && call[ON(0, n)].code == NO ->
            lose_one(0, n, VACANT)
        :: else
        fi;
        clear(ON(0, n))
    :: IS_EXTENDED(ON(0, n)) && call[ON(0, n)].step != ANSWERED ->
        owed[n] = 1;
#ifndef NO_CAP
        client[0].deadline[n] =
            MIN(client[0].deadline[n], call[ON(0, n)].left);
#endif
        if
        :: call[ON(0, n)].step == UNKNOWN -> clear(ON(0, n))
        :: else -> call[ON(0, n)].left = 0
        fi
    :: else
    fi;
    if
    :: client[0].at[n] == HELD && client[0].deadline[n] == 0 ->
        lose_one(0, n, EXPIRED)
    :: else
    fi
}

/* Its answer is late. What the keeper has sent before may have been executed
 * before it. That the node does not have it is no news. */
inline settle_extend(n)
{
    if
    :: call[KEEP(n)].step == SENT ->
        call[KEEP(n)].left = CAPPED(n, call[KEEP(n)].left)
    :: else
    fi;
    owed[n] = 0;
    clear(ON(0, n))
}
#endif

proctype Owner(byte c)
{
    byte tries, minted[NODES];

    {
    atomic {
        tries = (c == 0 -> TRIES_0 : TRIES_1);
        HOLD = HOLDS * c;
        goto next
    };
next:
    atomic {
        if
        :: tries > 0 ->
            tries--; HOLD++;
            vote(c, 0); vote(c, 1); vote(c, 2)
        :: tries == 0 -> client[c].done = 1; goto over
        fi
    };

    /* A round is over with a quorum, or when too few are left to wait for; one
     * node's silence is not waited for. */
    if
    :: atomic { GRANTS(c) >= QUORUM && MAY_WAIT_FOR_ONE(c) ->
           client[c].token = LARGEST(c);
           minted[0] = TOKEN(c, 0);
           minted[1] = TOKEN(c, 1);
           minted[2] = TOKEN(c, 2);
           read_vote(c, 0); read_vote(c, 1); read_vote(c, 2);
           goto agrees }
    :: atomic { GRANTS(c) < QUORUM && MAY_WAIT_FOR_ONE(c) ->
           read_vote(c, 0); read_vote(c, 1); read_vote(c, 2);
           goto undoes }
    fi;

agrees:
    /* agree_on_token(): a quorum has it written down before it is told. */
    atomic {
#ifdef NO_RAISE
        goto owns;
#endif
        if
        :: QUORUM_HAS_IT(c) -> goto owns
        :: else -> write_back(c, 0); write_back(c, 1); write_back(c, 2)
        fi
    };
    if
    :: atomic { QUORUM_HAS_IT(c) ->
           clear_raise(c, 0); clear_raise(c, 1); clear_raise(c, 2);
           goto owns }
    :: atomic { !QUORUM_HAS_IT(c) && (NO_ANSWER(c, 0) || NO_ANSWER(c, 1) ||
           NO_ANSWER(c, 2) || LEFT(c) < QUORUM) ->
           clear_raise(c, 0); clear_raise(c, 1); clear_raise(c, 2);
           goto undoes }
    fi;

owns:
    atomic {
        forget_minted();
        if
        :: LEFT(c) < QUORUM -> goto undoes /* too late for its lease */
        :: else
        fi;
        assert(client[1 - c].group != OWNED);
        assert(client[c].token > best);
        best = client[c].token;
        client[c].group = OWNED
    };

#if EXTENDS > 0
    /* At once, since whatever its lease was before, it is short now. */
    if
    :: atomic { MAY_EXTEND(c) ->
           extends_left--;
           send_extend(0); send_extend(1); send_extend(2) }
    :: atomic { !MAY_EXTEND(c) -> goto undoes }
    fi;
    atomic { read_extend(0); read_extend(1); read_extend(2) };
#endif

    /* It is held, and perhaps lost, until the owner releases it. */
undoes:
    atomic {
        forget_minted();
        client[c].group = FORMING;
        client[c].token = 0;
        let_go(c, 0); let_go(c, 1); let_go(c, 2);
        goto next
    };

over:
    skip
    } unless { client[c].dead }
}

/* --- a client's keepers ---------------------------------------------------- */

/* Where there are extends, only beside one that is late; what renewals do
 * otherwise is seen without extends, in fewer states. */
#if EXTENDS > 0
#define MAY_RENEW(n) owed[n]
#else
#define MAY_RENEW(n) true
#endif

proctype Keeper(byte c; byte n)
{
end:
    do
#if RENEWALS > 0
    :: d_step { renewals_left > 0 && client[c].group == OWNED &&
           client[c].at[n] == HELD && client[c].deadline[n] < BELIEF(LEASE) &&
           MAY_RENEW(n) &&
           call[KEEP(n)].step == EMPTY ->
           renewals_left--;
           send(KEEP(n), RENEW, HOLD, 0);
           call[KEEP(n)].left = BELIEF(LEASE) }
#endif
#if REVOTES > 0
    :: d_step { revotes_left > 0 && client[c].group == OWNED &&
           (client[c].at[n] == VACANT || client[c].at[n] == EXPIRED) &&
           MAY_VOTE(n) && call[KEEP(n)].step == EMPTY ->
           revotes_left--;
           send(KEEP(n), ACQUIRE, HOLD, 1);
           call[KEEP(n)].token = client[c].token;
           call[KEEP(n)].left = BELIEF(LEASE) }
#endif
    :: false
    od
}

/* What an answer is worth, of the keeper's if an extend is late. */
#if EXTENDS > 0
#define WORTH(i) \
    ((i) >= KEEP(0) -> CAPPED((i) % NODES, call[i].left) : call[i].left)
#else
#define WORTH(i) call[i].left
#endif

/* vote.c and join_locked(): an answer that the owner does not wait for, of a
 * late vote, a renewal, a vote again. */
inline note_answer(c, n, i)
{
    if
    :: call[i].verb == ACQUIRE && call[i].code == YES &&
       client[c].group == OWNED && WORTH(i) > 0 ->
        client[c].at[n] = HELD;
        client[c].deadline[n] = WORTH(i)
    :: call[i].verb == ACQUIRE && call[i].code == YES &&
       (client[c].group != OWNED || WORTH(i) == 0) ->
        note_unknown(c, n);
        client[c].at[n] = VACANT
    :: call[i].verb == ACQUIRE && call[i].code != YES ->
        client[c].at[n] = VACANT
    :: call[i].verb == RENEW && client[c].at[n] == HELD &&
       client[c].group == OWNED && call[i].code == YES ->
        client[c].deadline[n] =
            MAX(client[c].deadline[n], WORTH(i))
    :: call[i].verb == RENEW && client[c].at[n] == HELD &&
       client[c].group == OWNED && call[i].code == NO ->
        lose_one(c, n, VACANT)
    :: else
    fi;
    clear(i)
}

inline note_silence(c, n, i)
{
    if
    :: call[i].verb == ACQUIRE ->
        note_unknown(c, n);
        client[c].at[n] = VACANT
    :: else
    fi;
    clear(i)
}

#include "red_world.pml"
