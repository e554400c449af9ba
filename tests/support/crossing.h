/*
 * Two threads that have one of two locks each, and wait for the other's: a circle,
 * of clients that know nothing of each other.
 */
#ifndef TEST_SUPPORT_CROSSING_H
#define TEST_SUPPORT_CROSSING_H

#include "server.h"

#include <stdatomic.h>

typedef struct crossing {
    rlock *mine, *wanted; /* the caller's */
    atomic_bool has;      /* its own */
    struct crossing *other;
    rlock_status status; /* of the wait */
    test_thread *thread;
} crossing;

/* Each has its own when it returns, and will soon wait. */
void crossing_start(crossing c[2]);
/* Its wait ends like this, and it lets go of its own. */
void crossing_end(crossing *c, rlock_status wanted);

#endif
