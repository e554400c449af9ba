/*
 * Many who want the same Red lock at once, on threads and in other processes,
 * and what they do to each other: nobody may be inside with another, and tokens
 * grow from one to the next.
 */
#ifndef TEST_SUPPORT_ARENA_H
#define TEST_SUPPORT_ARENA_H

#include <stdatomic.h>

#include "nodes.h"

/* In memory that children share. */
typedef struct arena {
    atomic_int inside, entered, clashes, ended;
    atomic_bool over;
    atomic_ullong last_token;
} arena;

arena *arena_new(void);
/* Was entered so often, and never with a clash; frees it. */
void arena_end(arena *a, int entered);
/* Until it has been entered so many times more. */
void arena_go_on(arena *a, int times);

/* Enters so many times. */
typedef struct runner {
    arena *a;
    rlock *lk;
    int rounds; /* 0: until it is over */
    int64_t lease_ms;
    bool nodes_fail; /* then an unlock may miss its majority */
} runner;

/* For test_spawn(). */
intptr_t arena_run(void *runner);
/*
 * For child_start(): takes the URIs of three nodes, makes the lock, tells 'r'
 * and runs.
 */
void arena_run_in_child(child *c, void *runner);
/* Gives n children the nodes, to each in another order, and waits until they
   run. */
void arena_start_children(const nodes *ns, child *const c[], size_t n);

#endif
