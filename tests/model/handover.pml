/*
 * Hand-over and turns: one server, a client whose threads A, B and C want one
 * lock, and a rival elsewhere.
 *
 * Who does what: Unlocker is A's unlock (op/handover.c, op/verb_release.c) and the
 * keeper that goes on with its release; Waiter is B's acquire (op/acquire.c,
 * op/attempt_one.c), which owns, passes the hold on to C (op/turn.c) or releases
 * it; Rival is anybody else. Wire executes calls, loses them, or their answers,
 * and keeps copies that come at any time afterwards.
 *
 * Time is left out: no lease ends, since single.pml has shown what that takes.
 * So is the queue: whether the server hands over or frees, for somebody who has
 * waited for too long, is anybody's guess here.
 *
 * What is asked: never do two own it at once; tokens grow from owner to owner,
 * also within a turn; and when all is quiet nobody has it.
 */
#ifndef LATE
#define LATE 1 /* calls that are executed after their sender has given up */
#endif
#ifndef LOST
#define LOST 1 /* calls, or answers, that never arrive */
#endif
#ifndef KEPT
#define KEPT 0 /* tokens that a hand-over reserves for passes */
#endif
#define CALLS 3
#define TRIES 2 /* of the rival */

/* Holder ids. */
#define NOBODY 0
#define A 1
#define B 2
#define RIVAL 3
#define AGAIN 4 /* B's, if it asked by a new one: a planted defect */

mtype = { HAND, ACQUIRE, RELEASE, UNDO, EMPTY, SENT, ANSWERED, UNKNOWN };

typedef Call {
    mtype verb;
    mtype step;
    byte whose;
    byte token; /* of the answer; 0: it was not granted */
    bit yes     /* the answer: it was there */
};

/* 0: A's, then its keeper's. 1: B's, then its keeper's. 2: the rival's. */
Call call[CALLS + LATE]; /* behind these: late copies */

byte holder = A, last = 1;
bit tomb[5];

byte lost_left = LOST, late_left = LATE;

/* --- ghosts --------------------------------------------------------------- */

byte owners, best = 1;

inline own(got)
{
    owners++;
    assert(owners == 1);
    assert(got > best);
    best = got
}

/* --- the server ----------------------------------------------------------- */

#ifdef BLIND_HAND
#define MAY_HAVE_IT true
#else
#define MAY_HAVE_IT (!tomb[B])
#endif

inline grant(i, id, keep)
{
    holder = id;
    last++;
    call[i].token = last;
#ifndef NOT_KEPT
    last = last + keep
#endif
}

inline run_script(i)
{
    call[i].token = 0;
    call[i].yes = 0;
    if
    :: call[i].verb == HAND && holder == A ->
        call[i].yes = 1;
        holder = NOBODY;
        if
        :: MAY_HAVE_IT -> grant(i, B, KEPT)
        :: true /* it is freed */
        fi
    :: call[i].verb == HAND && holder == B -> call[i].yes = 1; call[i].token = last
    :: call[i].verb == ACQUIRE && !tomb[call[i].whose] && holder == NOBODY ->
        grant(i, call[i].whose, 0)
    :: call[i].verb == ACQUIRE && !tomb[call[i].whose] && holder == call[i].whose ->
        call[i].token = last
    :: call[i].verb == UNDO ->
#ifndef NO_TOMBSTONE
        tomb[call[i].whose] = 1;
#endif
        if
        :: holder == call[i].whose -> holder = NOBODY; call[i].yes = 1
        :: else
        fi
    :: call[i].verb == RELEASE && holder == call[i].whose -> holder = NOBODY; call[i].yes = 1
    :: else
    fi
}

inline send(i, what, id)
{
    call[i].verb = what;
    call[i].whose = id;
    call[i].step = SENT
}

inline copy(i)
{
    late_left--;
    call[CALLS + late_left].verb = call[i].verb;
    call[CALLS + late_left].whose = call[i].whose;
    call[CALLS + late_left].step = SENT;
    call[i].step = UNKNOWN
}

/* One call's way, there and back. */
proctype Wire(byte i)
{
end:
    do
    :: d_step { call[i].step == SENT && i < CALLS ->
           run_script(i); call[i].step = ANSWERED }
    :: d_step { call[i].step == SENT && i >= CALLS ->
           run_script(i); call[i].step = EMPTY }
    :: d_step { i < 2 && call[i].step == SENT && lost_left > 0 ->
           lost_left--; call[i].step = UNKNOWN }
    :: d_step { i < 2 && call[i].step == SENT && lost_left > 0 ->
           lost_left--; run_script(i); call[i].step = UNKNOWN }
    :: d_step { i < 2 && call[i].step == SENT && late_left > 0 -> copy(i) }
    od
}

/* --- the client ------------------------------------------------------------ */

#define ASLEEP  0
#define OFFERED 1
#define HANDED  2
#define LOOKS   3

byte rest = ASLEEP; /* B */
byte token;         /* what was handed over */
byte kept;          /* how many more there are */
bit doubt;          /* B's draft may have been granted, or may yet be */
byte done;          /* how many of the three are through */

/* It goes on until it is told that the hold is gone. */
inline keep_on(i, what, id)
{
    do
    :: send(i, what, id);
       if
       :: call[i].step == ANSWERED -> break
       :: call[i].step == UNKNOWN
       fi
    od;
    call[i].step = EMPTY
}

proctype Unlocker()
{
    atomic { owners--; rest = OFFERED; send(0, HAND, A) };
    if
    :: atomic { call[0].step == ANSWERED && call[0].token > 0 ->
           token = call[0].token;
           kept = KEPT;
           rest = HANDED;
           call[0].step = EMPTY }
    :: atomic { call[0].step == ANSWERED && call[0].token == 0 ->
           rest = LOOKS;
           call[0].step = EMPTY }
    :: atomic { call[0].step == UNKNOWN ->
           doubt = 1;
           rest = LOOKS;
           call[0].step = EMPTY };
       keep_on(0, RELEASE, A)
    fi;
    done++
}

#ifdef ASKS_ANEW
#define MINE (doubt -> AGAIN : B)
#else
#define MINE B
#endif

/* B, and C behind it, who waits for nothing but a pass. */
proctype Waiter()
{
    byte mine = B, token_now;
waits:
    if
    :: atomic { rest == HANDED -> token_now = token; own(token_now); goto owns }
    :: atomic { rest == LOOKS -> mine = MINE; send(1, ACQUIRE, mine) }
    :: atomic { rest == LOOKS -> goto gives_up } /* its time is over */
    fi;
    if
    :: atomic { call[1].step == ANSWERED && call[1].token > 0 ->
           token_now = call[1].token;
           call[1].step = EMPTY;
           own(token_now);
           goto owns }
    :: atomic { call[1].step == ANSWERED && call[1].token == 0 ->
           call[1].step = EMPTY;
           goto waits }
    :: atomic { call[1].step == UNKNOWN ->
           doubt = 1;
           call[1].step = EMPTY;
           goto waits }
    fi;

owns:
    if
    :: atomic { kept > 0 && rest == HANDED ->
           /* It is passed on: nothing is sent. */
           owners--;
           kept--;
           token_now++;
           own(token_now);
           goto owns }
    :: atomic { owners--;
           if
           :: doubt -> goto gives_up
           :: else
           fi }
    fi;
    keep_on(1, RELEASE, mine);
    goto over;

gives_up:
    if
    :: doubt -> keep_on(1, UNDO, mine)
    :: else
    fi;

over:
    done++
}

/* --- the rival ------------------------------------------------------------- */

proctype Rival()
{
    byte tries = TRIES;
    do
    :: tries == 0 -> break
    :: atomic { tries > 0 -> tries--; send(2, ACQUIRE, RIVAL) };
       if
       :: atomic { call[2].step == ANSWERED && call[2].token > 0 ->
              own(call[2].token) };
          atomic { owners--; send(2, RELEASE, RIVAL) };
          atomic { call[2].step == ANSWERED -> call[2].step = EMPTY }
       :: atomic { call[2].step == ANSWERED && call[2].token == 0 ->
              call[2].step = EMPTY }
       fi
    od;
    done++
}

/* --- the judge ------------------------------------------------------------- */

init {
    byte i;
    atomic {
        for (i : 0 .. CALLS + LATE - 1) {
            call[i].step = EMPTY;
            run Wire(i)
        }
        owners = 1; /* A */
        run Unlocker(); run Waiter(); run Rival()
    };
    d_step {
        done == 3 && call[CALLS].step == EMPTY &&
        call[CALLS + LATE - 1].step == EMPTY ->
        assert(holder == NOBODY);
        skip
    }
}
