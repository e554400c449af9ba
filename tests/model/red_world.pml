/*
 * The world around red.pml's clients, as single_world.pml is around the other's.
 */

#define NODE_OF(i) ((i) < OWN_CALLS -> (i) % NODES : call[i].code)

proctype Wire(byte i)
{
    byte c, n;
end:
    do
    :: d_step { call[i].step == SENT ->
           n = NODE_OF(i);
           c = CLIENT_OF(call[i].hold);
           if
           :: i >= OWN_CALLS || client[c].dead || call[i].quiet ->
               run_script(n, i, 0);
               clear(i)
           :: i < OWN_CALLS && !client[c].dead && !call[i].quiet &&
              call[i].bury ->
               leave_tombstone(n, call[i].hold);
               clear(i)
           :: else ->
               run_script(n, i, 0);
               if
               :: client[c].group != FORMING && call[i].verb != EXTEND ->
                   note_answer(c, n, i)
               :: else
               fi
           fi;
           n = 0; c = 0 }
#if EXTENDS > 0
    :: d_step { i < NODES && call[i].step == ANSWERED && owed[i % NODES] ->
           settle_extend(i) }
#endif
#if LOST > 0
    :: d_step { lost_left > 0 && i < NODES && call[i].step == SENT &&
           !call[i].bury ->
           lost_left--; forget_answer(i) }
    :: d_step { lost_left > 0 && i < NODES && call[i].step == SENT &&
           !call[i].bury ->
           lost_left--; n = i; run_script(n, i, 0); forget_answer(i); n = 0 }
#endif
#if LATE > 0
    :: d_step { late_left > 0 && i < NODES && call[i].step == SENT &&
           call[i].verb == ACQUIRE && !call[i].bury ->
           late_left--; copy_call(OWN_CALLS + late_left, i);
           call[OWN_CALLS + late_left].code = i; forget_answer(i) }
    :: d_step { i >= OWN_CALLS && call[i].step == SENT -> clear(i) }
#endif
#if LOST + LATE + RESTARTS > 0
    :: d_step { i < OWN_CALLS && call[i].step == UNKNOWN &&
           client[CALLER(i)].group != FORMING && !IS_EXTENDED(i) ->
           n = NODE_OF(i);
           c = CALLER(i);
           note_silence(c, n, i);
           n = 0; c = 0 }
#endif
    od
}

#define RUNS_DOWN(x) x = ((x) > 0 -> (x) - 1 : 0)
#define TIMED(c) (client[c].deadline[0] + client[c].deadline[1] + \
    client[c].deadline[2] + call[ON(c, 0)].left + call[ON(c, 1)].left + \
    call[ON(c, 2)].left)
#if RENEWALS + REVOTES > 0
#define TIMED_KEPT (call[KEEP(0)].left + call[KEEP(1)].left + call[KEEP(2)].left)
#else
#define TIMED_KEPT 0
#endif

/* One tick, for all at once: what a margin is for, single.pml has shown. */
proctype Clock()
{
    byte n, k;
end:
    do
    :: d_step { node[0].ttl + node[1].ttl + node[2].ttl + young[0] + young[1] +
           young[2] + TIMED(0) + TIMED(1) + TIMED_KEPT > 0 ->
           for (n : 0 .. NODES - 1) {
#if RENEWALS + REVOTES > 0
               RUNS_DOWN(call[KEEP(n)].left);
#endif
               for (k : 0 .. 1) {
                   RUNS_DOWN(call[ON(k, n)].left);
                   RUNS_DOWN(client[k].deadline[n]);
                   if
                   :: client[k].at[n] == HELD && client[k].deadline[n] == 0 ->
                       lose_one(k, n, EXPIRED)
                   :: else
                   fi
               }
               RUNS_DOWN(young[n]);
               if
               :: node[n].ttl == 1 ->
                   k = CLIENT_OF(node[n].holder);
                   assert(client[k].at[n] != HELD ||
                       client[k].hold != node[n].holder);
                   drop_lock(n)
               :: node[n].ttl > 1 -> node[n].ttl--
               :: else
               fi
           }
           n = 0;
           k = 0 }
    od
}

/* Its connections break. */
inline break_off(i)
{
    if
    :: call[i].step == SENT && (call[i].bury || call[i].quiet) -> clear(i)
    :: call[i].step == SENT && !(call[i].bury || call[i].quiet) ->
        forget_answer(i)
    :: else
    fi
}

inline restart(n)
{
    restarts_left--;
    lose_data(n);
    young[n] = LEASE;
    break_off(ON(0, n));
    break_off(ON(1, n));
#if RENEWALS + REVOTES > 0
    break_off(KEEP(n))
#endif
}

proctype Trouble()
{
    byte k;
end:
    do
#if RESTARTS > 0
    :: d_step { restarts_left > 0 -> restart(0); skip }
    :: d_step { restarts_left > 0 -> restart(2); skip }
#endif
#if CRASHES > 0
    :: d_step { crashes_left > 0 ->
           crashes_left--;
           client[0].dead = 1;
           client[0].group = FORMING;
           for (k : 0 .. NODES - 1) {
               client[0].at[k] = NONE;
               client[0].unknown[k] = 0;
               client[0].deadline[k] = 0;
               if
               :: call[k].step == SENT -> call[k].left = 0
               :: else -> clear(k)
               fi;
#if RENEWALS + REVOTES > 0
               if
               :: call[KEEP(k)].step == SENT -> call[KEEP(k)].left = 0
               :: else -> clear(KEEP(k))
               fi;
#endif
               owed[k] = 0
           }
           k = 0 }
#endif
    :: false
    od
}

#define ENDED(c) (client[c].done || client[c].dead)
#define IDLE(c, n) (call[ON(c, n)].step == EMPTY)
#define ALL_IDLE(c) (IDLE(c, 0) && IDLE(c, 1) && IDLE(c, 2))
#if RENEWALS + REVOTES > 0
#define KEEPER_IDLE (call[KEEP(0)].step == EMPTY && \
    call[KEEP(1)].step == EMPTY && call[KEEP(2)].step == EMPTY)
#else
#define KEEPER_IDLE true
#endif
#if LATE > 0
#define ALL_CAME (call[OWN_CALLS].step == EMPTY)
#else
#define ALL_CAME true
#endif
#define NOBODY_HAS(n) (node[n].holder == 0 || \
    client[CLIENT_OF(node[n].holder)].dead || restarts_left < RESTARTS)

active proctype Judge()
{
    byte i;
    atomic {
        node[2].last = 2; /* its clock is ahead */
        do
        :: i < CALLS -> run Wire(i); i++
        :: else -> break
        od;
        run Owner(0); run Owner(1);
        i = 0;
#if RENEWALS + REVOTES > 0
        run Keeper(0, 0); run Keeper(0, 1); run Keeper(0, 2);
#endif
        run Trouble();
        run Clock()
    }
    d_step {
        ENDED(0) && ENDED(1) && ALL_IDLE(0) && ALL_IDLE(1) && KEEPER_IDLE &&
            ALL_CAME ->
        assert(NOBODY_HAS(0) && NOBODY_HAS(1) && NOBODY_HAS(2))
    }
}
