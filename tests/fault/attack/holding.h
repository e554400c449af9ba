/*
 * One hold from its acquire to its last unlock: each call is timed, both judges
 * are served.
 */
#ifndef ATTACK_HOLDING_H
#define ATTACK_HOLDING_H

#include "history.h"

/* What a thread, or an owner of a loop, has in mind with its next hold. */
typedef struct plan {
    int lock;
    int64_t wait_ms, lease_ms;
    int levels;
    int64_t stay_us;
    bool extend;
    int64_t extend_ms; /* to this lease */
    int64_t after_us;  /* that one stays then */
    int64_t leave_us; /* on a loop: the owner is freed when it has waited for so
                         long; 0: never */
    int permits;      /* of a semaphore */
    /* Of a Multi lock a member, of a read-write lock the other side. */
    int before;        /* that is held by itself before; -1: none */
    bool before_first; /* and unlocked first */
} plan;

/* Tells how it ended; NULL: it was not granted. */
const hold *hold_once(const plan *p, int thread);
/* A thread, or an owner, that ends while it holds. */
void hold_and_abandon(const plan *p);

#endif
