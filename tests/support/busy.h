/*
 * Threads of one process that take a lock in turns, as fast as they can, and
 * hand it over to each other.
 */
#ifndef TEST_SUPPORT_BUSY_H
#define TEST_SUPPORT_BUSY_H

#include <stdatomic.h>

#include "test.h"

enum { BUSY = 4 };

typedef struct busy {
    rlock *lk;
    void (*inside)(struct busy *b); /* in each section; or NULL */
    atomic_bool stop;
    atomic_int sections;
    test_thread *thread[BUSY];
} busy;

/* Returns when there have been so many sections. */
void busy_start(busy *b, int sections);
void busy_stop(busy *b);

#endif
