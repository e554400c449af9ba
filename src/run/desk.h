/*
 * A desk: what an operation works at while it asks on the loop
 * (run/async.c), where nobody may wait for anything: a part, and legs. A
 * round goes on as in run/caller.c; where a thread would sleep, the desk is
 * left until something has come for it, or its time is over.
 *
 * All is guarded by rl_async.driving.
 */
#ifndef RL_RUN_DESK_H
#define RL_RUN_DESK_H

#include <poll.h>

#include "run/leg.h"

struct rl_started;
struct rl_async;

typedef struct rl_desk {
    rl_link link; /* in a list of rl_async's */
    struct rl_started *who;
    rl_part part;    /* lent to the operation */
    rl_op *op;       /* whose legs are here; NULL: nobody's */
    rl_leg leg;      /* of one server */
    rl_leg *several; /* NULL: none; RL_PARTS_MAX of them */
    rl_legs legs;
    int64_t until_us; /* when its round has to be looked at */
    size_t at_poll;   /* where its legs begin among what is polled */
    bool polled;      /* the loop may be in poll() with its connections */
} rl_desk;

/* Legs for an operation, if it has none yet. False: out of memory. */
bool rl_desk_get_ready(rl_desk *d, rl_op *op, struct rl_async *a);

/* Its connections are given back; and the operation has gone. */
void rl_desk_put_away(rl_desk *d, struct rl_async *a);

/* The operation asks. True: the round is over; else something has to come. */
bool rl_desk_go_round(rl_desk *d, int64_t now_us);

/* What poll() is to look at for the i-th leg; fd is -1: nothing. From then on
   nobody but the loop goes on with the desk, until `polled` is cleared. */
struct pollfd rl_desk_poll(rl_desk *d, size_t i);

/* Is it to be given a connection? */
bool rl_desk_is_expecting(const rl_desk *d);

/* Has it connections that the loop, which waits, does not know of? */
bool rl_desk_is_unseen(const rl_desk *d);

/*
 * Has something come for it, or is its time over? Then the round is to go on.
 * p: what poll() has said of its n first legs.
 */
bool rl_desk_look(rl_desk *d, const struct pollfd *p, size_t n, int64_t now_us);

#endif
