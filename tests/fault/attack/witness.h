/*
 * The first judge. It knows nothing of Redis: a holder goes in and out of a
 * section in shared memory, and whoever finds another one inside has seen an
 * overlap. What it sees goes into the history as a note; whether a documented
 * window excuses it is decided at the end, when all faults are known.
 */
#ifndef ATTACK_WITNESS_H
#define ATTACK_WITNESS_H

#include "history.h"

typedef struct visit {
    arena *a;
    history *h;
    hold *r;
    const rlock *lk;
    const rlock_permit *permit; /* instead; NULL: it is a lock */
    uint64_t me;
    uint64_t
        beside; /* who reads: the writer that was inside when it came in, or
                         itself; 0: none */
    uint64_t counter; /* as it was at the last look */
    int64_t limit_us; /* nobody can believe in the lease any longer */
    bool lost;        /* the library has said that it is not held */
} visit;

/* The holder goes in; the first look at the counter. */
void witness_enter(visit *v);
/* A re-entry or an extend has just begun the lease anew. */
void witness_prolong(visit *v);
/* An extend to this lease is over, with an answer or without. */
void witness_extended(visit *v, int64_t lease_ms, bool answered);
/*
 * Asks the library whether the lock is held, and notes when it was so last. A
 * "held" while somebody else has come in since is an overlap.
 */
bool witness_check(visit *v);
/* Its owner has the other side of the lock as well, by that visit. */
void witness_join(visit *reading, const visit *writing);
/*
 * Adds one to what the counter was, which is wrong if anybody else has done so
 * since, and writes to the resource. Of a lock that is shared nothing is written.
 */
void witness_update(visit *v);
/*
 * The careless program: writes to the resource without looking at the lock. To
 * be refused when the hold was lost and a younger one has written.
 */
void witness_write(visit *v);
void witness_leave(visit *v);

#endif
