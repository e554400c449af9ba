/*
 * An owner of single.pml: what the thread does that takes the lock, waits for
 * it, enters it again, extends it, and gives it back (lock/single.c,
 * op/acquire.c, attempt_one.c, verb_*.c, extend.c).
 */

#define ANSWER(c, what) \
    (call[ASK(c)].step == ANSWERED && call[ASK(c)].code == what)
#define NO_ANSWER(c) (call[ASK(c)].step == UNKNOWN)

#define OUTDONE(c) \
    (IS_UNKNOWN(HOLD) && call[ASK(c)].token > client[c].token)

/* What an owner does between two waits is one step: nothing depends on what
 * others do in between, and the states would be many. */
proctype Owner(byte c)
{
    byte rounds;
    byte tries; /* that may follow one without an answer, or with a late one */
    bit again;  /* a try of this release stayed unknown */

    {
    atomic { rounds = (c == 0 -> ROUNDS_0 : ROUNDS_1); HOLD = HOLDS * c }
next:
    atomic {
        if
        :: rounds > 0 -> rounds--; tries = (c == 0 -> 1 : 0); HOLD++
        :: rounds == 0 -> client[c].done = 1; goto over
        fi
    };

try:
    atomic {
        client[c].asleep = 0;
        send(ASK(c), ACQUIRE, HOLD, 1);
        call[ASK(c)].bell = client[c].waits;
        call[ASK(c)].fresh = client[c].waits && !client[c].ticket;
        call[ASK(c)].left = BELIEF(LEASE)
    };
    if
    :: atomic { ANSWER(c, YES) && call[ASK(c)].left > 0 ->
           tries = 0; grant(c); goto held }
    :: atomic { (ANSWER(c, YES) && call[ASK(c)].left == 0) || NO_ANSWER(c) ->
           unknown = unknown | BIT(HOLD);
           clear(ASK(c));
           if
           :: tries > 0 -> tries--; goto try
           :: goto give_up
           fi }
    :: atomic { ANSWER(c, BUSY) ->
           clear(ASK(c));
           if
           :: client[c].waits -> client[c].ticket = 1
#ifdef WAITS
           :: !client[c].waits -> client[c].waits = 1; hears[c] = 1; goto try
#else
           :: !client[c].waits
#endif
           :: !client[c].waits -> goto give_up
           fi }
    fi;

    /* Sleeps, or polls. */
    atomic { client[c].asleep = client[c].waits };
    if
#ifdef GRANTS
    :: atomic { client[c].handed && message[c].left > 0 ->
           tries = 0; take_grant(c); goto held }
    :: atomic { client[c].handed && message[c].left == 0 ->
           forget_message(c); goto try }
#endif
    :: atomic { client[c].rung -> client[c].rung = 0; goto try }
#ifdef PROGRESS
    :: atomic { client[c].looks -> client[c].looks = 0; goto try }
    :: c == 0 -> goto give_up /* the other one has all the time there is */
#else
    :: goto try
    :: goto give_up
#endif
    fi;

give_up:
    atomic {
        if
        :: IS_UNKNOWN(HOLD) -> undo = undo | BIT(HOLD)
#if defined(GRANTS) && !defined(KEEPS_GRANT)
        :: !IS_UNKNOWN(HOLD) && client[c].waits -> undo = undo | BIT(HOLD)
#endif
        :: else
        fi;
        forget_message(c);
        tries = 0;
        if
        :: client[c].waits -> leave_room(c); send(ASK(c), LEAVE, HOLD, 0)
        :: else -> goto next
        fi
    };
    do
    :: atomic { call[ASK(c)].step == ANSWERED -> clear(ASK(c)); goto next }
    :: atomic { NO_ANSWER(c) ->
           clear(ASK(c));
           if
#ifndef PROGRESS
           :: goto next
#endif
           :: send(ASK(c), LEAVE, HOLD, 0)
           fi }
    od;

held:
    if
#if LEVELS > 1
    :: atomic { c == 0 && client[c].state == HELD && client[c].count < LEVELS ->
           send(ASK(c), ACQUIRE, HOLD, client[c].count + 1);
           call[ASK(c)].left = BELIEF(LEASE);
           goto reenters }
    :: atomic { client[c].count > 1 ->
           client[c].count--;
           if
           :: client[c].state == HELD ->
               send(ASK(c), RELEASE, HOLD, client[c].count);
               goto counts_down
           :: else -> goto held
           fi }
#endif
#if EXTENDS > 0
    /* Not before the renewal that is under way has ended. */
    :: atomic { client[c].state == HELD && client[c].extends > 0 ->
           client[c].extends--; client[c].paused = 1; goto extends }
#endif
    :: atomic { client[c].count == 1 -> goto releases }
    fi;

releases:
    /* From here on it is not believed in, whatever comes of it. */
    atomic {
        if
        :: client[c].state == HELD ->
            forget_hold(c);
            send(ASK(c), RELEASE, HOLD, 0);
            call[ASK(c)].bury = IS_UNKNOWN(HOLD)
        :: else ->
            if
            :: client[c].state == EXPIRED || IS_UNKNOWN(HOLD) ->
                undo = undo | BIT(HOLD)
            :: else
            fi;
            forget_hold(c);
            goto next
        fi
    };
    do
    :: atomic { ANSWER(c, YES) -> clear(ASK(c)); again = 0; goto next }
    :: atomic { ANSWER(c, NO) ->
           if
           :: !again -> assert(dropped & BIT(HOLD)); tell_lost(HOLD)
           :: else
           fi;
           clear(ASK(c)); again = 0; goto next }
    :: atomic { NO_ANSWER(c) ->
           clear(ASK(c));
           if
           :: again = 1;
              send(ASK(c), RELEASE, HOLD, 0);
              call[ASK(c)].bury = IS_UNKNOWN(HOLD)
           :: again = 0; undo = undo | BIT(HOLD); goto next
           fi }
    od;

#if LEVELS > 1
reenters:
    if
    :: atomic { ANSWER(c, YES) ->
           if
           :: client[c].state != HELD
           :: client[c].state == HELD && OUTDONE(c) -> lose(c)
           :: client[c].state == HELD && !OUTDONE(c) ->
               assert(excused || call[ASK(c)].token == client[c].token);
               prolong(c, ASK(c));
               client[c].count++
           fi;
           clear(ASK(c)); goto held }
    :: atomic { ANSWER(c, GONE) -> lose_if_held(c); clear(ASK(c)); goto held }
    :: atomic { NO_ANSWER(c) -> clear(ASK(c)); goto held }
    fi;

counts_down:
    if
    :: atomic { ANSWER(c, YES) -> clear(ASK(c)); goto held }
    :: atomic { ANSWER(c, NO) -> lose_if_held(c); clear(ASK(c)); goto held }
    :: atomic { NO_ANSWER(c) -> clear(ASK(c)); goto held }
    fi;
#endif

#if EXTENDS > 0
extends:
    if
    :: atomic { client[c].state == HELD && call[RENEWING(c)].step == EMPTY ->
           if
           :: send_extend(c, SHORT)
           :: send_extend(c, LEASE)
           fi }
    :: atomic { client[c].state != HELD -> goto held }
    fi;
    if
    :: atomic { ANSWER(c, YES) ->
           if
           :: client[c].state == HELD ->
               client[c].deadline =
                   CAPPED(c, call[ASK(c)].left, call[ASK(c)].arg);
               client[c].paused = call[ASK(c)].arg == SHORT;
               expire_if_over(c)
           :: else
           fi;
           clear(ASK(c)); goto held }
    :: atomic { ANSWER(c, NO) -> lose_if_held(c); clear(ASK(c)); goto held }
    :: atomic { NO_ANSWER(c) ->
           if
           :: client[c].state == HELD ->
#ifndef NO_CAP
               client[c].cap = MIN(client[c].cap, call[ASK(c)].arg);
               client[c].deadline =
                   MIN(client[c].deadline, call[ASK(c)].left);
#endif
               client[c].paused = 0;
               expire_if_over(c)
           :: else
           fi;
           clear(ASK(c)); goto held }
    fi;
#endif

over:
    skip
    } unless { client[c].dead }
}
