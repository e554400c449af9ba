/*
 * One hold from its acquire to its last unlock: each call is timed, both judges
 * are served.
 */
#ifndef ATTACK_HOLDING_H
#define ATTACK_HOLDING_H

#include "history.h"

/* What a thread has in mind with its next hold. */
typedef struct plan {
    int lock;
    int64_t wait_ms, lease_ms;
    int levels;
    int64_t stay_us;
    bool extend;
    /* Of a Multi lock. */
    int before;        /* the member that is held by itself before; -1: none */
    bool before_first; /* and unlocked first */
} plan;

/* To be called by a thread before anything else, and at its end. */
void holding_begin(void);
void holding_end(void);

/* Tells how it ended; NULL: it was not granted. */
const hold *hold_once(const plan *p, int thread);
/* A thread that ends while it holds. */
void hold_and_abandon(const plan *p);

#endif
