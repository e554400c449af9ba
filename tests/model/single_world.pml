/*
 * The world around single.pml's clients: the wire of each call, where it may be
 * lost or come late; the clocks; crashes; and the judge, who sees both sides.
 */

/* One call's way, there and back. */
proctype Wire(byte i)
{
end:
    do
    :: d_step { call[i].step == SENT ->
           run_script(0, i, CLIENT_OF(call[i].hold));
           /* No lease is renewed of a hold that a later one has outdone. */
           assert(!((call[i].verb == RENEW || call[i].verb == EXTEND) &&
               call[i].code == YES &&
               client[CLIENT_OF(call[i].hold)].state == HELD &&
               client[CLIENT_OF(call[i].hold)].hold == call[i].hold &&
               node[0].last > client[CLIENT_OF(call[i].hold)].token));
           if
           :: client[CLIENT_OF(call[i].hold)].dead || i >= OWN_CALLS ||
              i % 4 == 3 -> clear(i)
           :: i % 4 == 2 && i < OWN_CALLS &&
              !client[CLIENT_OF(call[i].hold)].dead ->
               undo = undo & ~BIT(call[i].hold); clear(i)
           :: else
           fi }
#if LOST > 0
    :: d_step { lost_left > 0 && i < 4 && i >= 2 && call[i].step == SENT ->
           lost_left--;
           run_script(0, i, CLIENT_OF(call[i].hold));
           forget_answer(i) }
#endif
#if LOST > 0
    :: d_step { lost_left > 0 && i < 4 &&
           (call[i].step == SENT || call[i].step == ANSWERED) ->
           lost_left--; forget_answer(i) }
#endif
#if LATE > 0
    :: d_step { late_left > 0 && i < 4 && call[i].step == SENT ->
           late_left--; copy_call(OWN_CALLS + late_left, i); forget_answer(i) }
    :: d_step { i >= OWN_CALLS && call[i].step == SENT -> clear(i) }
#endif
    od
}

#define RUNS_DOWN(x) x = ((x) > 0 -> (x) - 1 : 0)

#ifdef GRANTS
#define WANTED (want[0].left > 0 || want[1].left > 0 || message[0].left > 0 || \
    message[1].left > 0)
#else
#define WANTED false
#endif

/* Between the server's tick and the clients' anything may happen, so a client's
 * clock may be a tick behind: that is what the margin is for. */
proctype Clock()
{
    byte k;
end:
    do
    :: d_step { !ahead && (node[0].ttl > 0 || client[0].deadline > 0 ||
           client[1].deadline > 0 || call[ASK(0)].left > 0 ||
           call[ASK(1)].left > 0 || WANTED) ->
           ahead = 1;
           if
           :: node[0].ttl == 1 ->
               /* What a client believes in is never dropped. */
               assert(!BELIEVES(CLIENT_OF(node[0].holder)) ||
                   client[CLIENT_OF(node[0].holder)].hold != node[0].holder);
               drop_lock(0);
#ifdef PROGRESS
               client[0].looks = client[0].waits;
               client[1].looks = client[1].waits
#endif
           :: node[0].ttl > 1 -> node[0].ttl--
           :: else
           fi }
    :: d_step { ahead ->
           ahead = 0;
           for (k : 0 .. 1) {
               RUNS_DOWN(client[k].deadline);
               if
               :: client[k].state == HELD && client[k].deadline == 0 ->
                   client[k].state = EXPIRED;
                   tell_lost(client[k].hold)
               :: else
               fi
           }
           for (k : 0 .. OWN_CALLS - 1) {
               RUNS_DOWN(call[k].left)
           }
#ifdef GRANTS
           for (k : 0 .. 1) {
               RUNS_DOWN(want[k].left);
               RUNS_DOWN(message[k].left)
           }
#endif
           k = 0 }
    od
}

inline crash(c)
{
    crashes_left--;
    client[c].dead = 1;
    client[c].ticket = 0;
    client[c].waits = 0;
    client[c].rung = 0;
    client[c].looks = 0;
    client[c].asleep = 0;
    forget_message(c);
    client[c].state = FREE;
    client[c].deadline = 0;
    client[c].count = 0;
    hears[c] = 0;
    rings[c] = 0;
    undo = undo & ~OF_CLIENT(c);
    for (k : 4 * c .. 4 * c + 3) {
        if
        :: call[k].step == SENT -> call[k].left = 0
        :: else -> clear(k)
        fi
    }
    k = 0
}

/* What befalls clients and the server. */
proctype Trouble()
{
    byte k;
end:
    do
#if CRASHES > 0
    :: d_step { crashes_left > 0 -> crash(0) }
    :: d_step { crashes_left > 0 -> crash(1) }
#endif
#if WIPES > 0
    :: d_step { wipes_left > 0 ->
           wipes_left--;
           excused = 1;
           wiped = 1;
           lose_data(0);
           for (k : 0 .. OWN_CALLS - 1) {
               if
               :: call[k].step == SENT -> forget_answer(k)
               :: else
               fi
           }
           k = 0 }
    :: d_step { wipes_left > 0 && node[0].holder != 0 -> /* force_release */
           wipes_left--;
           drop_lock(0);
           ring(0);
           excused = 1 }
#endif
#ifdef STRANGER
    :: d_step { node[0].holder == STRANGER ->
           drop_lock(0);
           ring(0);
           skip }
#endif
    :: false
    od
}

#define ENDED(c) (client[c].done || client[c].dead)
#define IDLE(c) (call[4 * (c)].step == EMPTY && call[4 * (c) + 1].step == EMPTY \
    && call[4 * (c) + 2].step == EMPTY && call[4 * (c) + 3].step == EMPTY && \
    rings[c] == 0 && NO_MESSAGE(c))
#ifdef GRANTS
#define NO_MESSAGE(c) (message[c].hold == 0)
#else
#define NO_MESSAGE(c) true
#endif
#if LATE > 0
#define ALL_CAME (call[OWN_CALLS].step == EMPTY && call[OWN_CALLS + LATE - 1].step == EMPTY)
#else
#define ALL_CAME true
#endif

#ifdef STRANGER
#define IS_STRANGER (node[0].holder == STRANGER)
#else
#define IS_STRANGER false
#endif

/* All is quiet: nothing remains but what a dead client cannot give back. */
active proctype Judge()
{
    byte i;
    atomic {
        do
        :: i < CALLS -> run Wire(i); i++
        :: else -> break
        od;
        i = 0;
#ifdef STRANGER
        node[0].holder = STRANGER;
        node[0].ttl = LEASE;
#endif
        run Owner(0); run Owner(1);
        run Keeper(0); run Keeper(1);
#ifdef WAITS
        run Doorbell(0); run Doorbell(1);
#endif
        run Trouble();
        run Clock()
    }
    d_step {
        ENDED(0) && ENDED(1) && IDLE(0) && IDLE(1) && ALL_CAME && undo == 0 ->
        assert(node[0].holder == 0 || client[CLIENT_OF(node[0].holder)].dead ||
            wiped || IS_STRANGER);
#if LOST + LATE == 0
        assert(!node[0].queued[0] || client[0].dead);
        assert(!node[0].queued[1] || client[1].dead);
#endif
        skip
    }
}
