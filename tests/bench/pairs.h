/* Pairs by callbacks on a loop of the benchmark's own. */
#ifndef BENCH_PAIRS_H
#define BENCH_PAIRS_H

#include "bench.h"

typedef struct loop {
    rlock_client *cl;
    int fd;
    int under_way; /* requests that have pairs left */
} loop;

/* One that makes pairs, one after the other. */
typedef struct request {
    rlock *lk;
    rlock_owner *owner;
    loop *loop;
    int left; /* pairs */
} request;

/* With a lock "name:i" and an owner of its own. */
request request_new(loop *l, const char *name, int i);

/* n of them, so many pairs each, until they are over. */
void loop_run(loop *l, request *r, int n, int pairs);

/* Waits until something is to be delivered, and has it delivered. */
void loop_turn(loop *l);

#endif
