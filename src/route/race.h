/*
 * Reaches one of several servers, whichever answers first: they are called one
 * after the other, a moment apart, so that one that is silent, or far away,
 * keeps nobody waiting for the next one.
 *
 * Belongs to one thread, whose signal is raised when there is news. Nothing here
 * blocks, but rl_race_call_off().
 */
#ifndef RL_ROUTE_RACE_H
#define RL_ROUTE_RACE_H

#include "net/dialing.h"

/* So many are called at a time: all that a program can name. */
#define RL_RACERS RL_URI_ENDPOINTS

typedef struct rl_racer {
    rl_dialing dialing;
    rl_place at;
} rl_racer;

typedef struct rl_race {
    const rl_uri *like; /* with this login and TLS */
    rl_tls *tls;
    rl_credentials *credentials;
    int64_t connect_timeout_ms; /* for each */
    const rl_signal *signal;
    /* Whom to call next. False: there is nobody else. */
    bool (*next)(void *arg, rl_place *out);
    /* One cannot be reached. */
    void (*failed)(void *arg, const rl_place *at, const rl_fault *why);
    void *arg;
    rl_racer racer[RL_RACERS];
    int64_t next_us; /* when the next one is called */
    bool exhausted;  /* there is none */
} rl_race;

void rl_race_init(rl_race *r); /* what stands above `racer` is set already */

/* From here on next() is asked anew; arg is for it and for failed(). */
void rl_race_begin(rl_race *r, void *arg);

/* Calls whoever is due. The next connection that is there, to whom, and how
   long it has taken; NULL: there is none yet. */
rl_conn *rl_race_look(rl_race *r, rl_place *at, int64_t *took_us);

/* When to look again, if the signal is not raised before; RL_NEVER. */
int64_t rl_race_due_us(rl_race *r);

/* Nobody is left who could answer. */
bool rl_race_is_lost(const rl_race *r);

/* Who is still being called is left. */
void rl_race_end(rl_race *r);

/* Ends who was left and has come to his end. False: nobody is under way any
   more. */
bool rl_race_reap(rl_race *r);

/* After rl_race_end(), for good: blocks until nobody is under way. */
void rl_race_call_off(rl_race *r);

/* In a forked child: closes descriptors. */
void rl_race_leave_behind(rl_race *r);

#endif
