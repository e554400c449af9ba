/*
 * Reaches one of several servers, whichever answers first: they are called one
 * after the other, a moment apart, so that one that is silent, or far away,
 * keeps nobody waiting for the next one.
 *
 * Belongs to one thread, whose signal wakes it when there is news.
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
    bool (*is_off)(void *arg); /* it is to end; the signal was raised */
    /* One cannot be reached. */
    void (*failed)(void *arg, const rl_place *at, const rl_fault *why);
    void *arg;
    rl_racer racer[RL_RACERS];
    int64_t next_us; /* when the next one is called */
    bool exhausted;  /* there is none */
} rl_race;

void rl_race_init(rl_race *r); /* what stands above `racer` is set already */

/* From here on next() is asked anew; arg is for all three. */
void rl_race_begin(rl_race *r, void *arg);

/*
 * The next connection that is there, to whom, and how long it has taken. NULL:
 * nobody is left, or it is off. Blocks.
 */
rl_conn *rl_race_take(rl_race *r, rl_place *at, int64_t *took_us);

/* Who is still being called is called off. */
void rl_race_end(rl_race *r);

/* In a forked child: closes descriptors. */
void rl_race_leave_behind(rl_race *r);

#endif
