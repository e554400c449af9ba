/*
 * A latch, for the model checker spin: clients that count it down, clients that
 * wait for it, and every order of what they, the server and the network may do.
 *
 * Who does what
 *   count_down(), look()  the server: a script is a step, as Redis runs it
 *   counter   lock/latch.c, and the keeper that goes on for it (run/undo.c): the
 *             same words are sent until they are answered
 *   waiter    op/latch_wait.c, of a client that has one: looks with its bell,
 *             sleeps, is rung, looks again
 *   network   what was given up arrives all the same
 *
 * What goes wrong, so often as a configuration of run.sh says: a call, or its
 * answer, is lost, and the counter learns that (LOST); a call of which it has been
 * told so arrives all the same, at any later time or never (LATE); a ring is lost,
 * and then its waiter looks by itself (RINGS).
 *
 * What is asked, in every state
 *   - Each count-down has been counted once at most.
 *   - Nobody goes on before the count has come to zero.
 *   - When all is quiet all have been counted, and all have gone on; and no bell
 *     is left in the queue.
 *   - No run stops before that. A waiter looks by itself only if a ring of its own
 *     was lost, so one that is forgotten is an end that is none, and is found.
 *
 * What is left out: that a mark ends, after two minutes, when no copy of its call
 * is under way any more; several rounds; several waiters of a client, who take one
 * answer; data that are lost, by which a latch is open.
 */
#ifndef COUNTERS
#define COUNTERS 3
#endif
#ifndef WAITERS
#define WAITERS 2
#endif
#ifndef LOST
#define LOST 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef RINGS
#define RINGS 0
#endif

/* The server. */
byte count = COUNTERS;
bool mark[COUNTERS];
bool queued[WAITERS];

/* The network. */
byte lost = LOST, late = LATE, rings = RINGS;
byte copies[COUNTERS]; /* that have been given up, and may arrive */
bool bell[WAITERS];    /* a ring is on its way */
bool deaf[WAITERS];    /* one was lost */

/* The judge's. */
byte counted[COUNTERS];
byte answered, gone;

inline ring(w)
{
    if
    :: !queued[w]
    :: queued[w] ->
        queued[w] = false;
        if
        :: bell[w] = true
        :: rings > 0 -> rings--; deaf[w] = true
        fi
    fi
}

inline ring_all()
{
#ifdef RINGS_ONE
    if
    :: queued[0] -> ring(0)
    :: !queued[0] -> ring(1)
    fi
#else
    ring(0);
    ring(1)
#endif
}

inline count_down(i)
{
    if
#ifdef NO_MARK
    :: count == 0
    :: count > 0 ->
#else
    :: mark[i] || count == 0 -> mark[i] = true
    :: !mark[i] && count > 0 ->
#endif
        mark[i] = true;
        counted[i]++;
        assert(counted[i] == 1);
        count--;
        if
        :: count > 0
        :: count == 0 -> ring_all()
        fi
    fi
}

proctype counter(byte i)
{
    do
    :: atomic { count_down(i); answered++; break }
    :: atomic { lost > 0 -> lost--; count_down(i) } /* its answer is */
    :: atomic { lost > 0 -> lost-- }
    :: atomic { lost > 0 && late > 0 -> lost--; late--; copies[i]++ }
    od
}

proctype network(byte i)
{
end:
    do
    :: atomic { copies[i] > 0 -> copies[i]--; count_down(i) }
    :: atomic { copies[i] > 0 -> copies[i]-- }
    od
}

proctype waiter(byte w)
{
    bool open;
    do
    :: atomic {
            open = count == 0;
#ifdef LOOKS_FIRST
            skip
        };
        atomic {
#endif
            queued[w] = !open
        };
        if
        :: open -> break
        :: !open ->
            if
            :: atomic { bell[w] -> bell[w] = false }
            :: atomic { deaf[w] -> deaf[w] = false }
            fi
        fi
    od;
    atomic {
        assert(count == 0);
        gone++
    }
}

init {
    byte i;
    atomic {
        for (i : 0 .. COUNTERS - 1) {
            run counter(i);
            run network(i)
        }
        for (i : 0 .. WAITERS - 1) {
            run waiter(i)
        }
    };
    (answered == COUNTERS && gone == WAITERS);
    assert(count == 0 && !queued[0] && !queued[1])
}
