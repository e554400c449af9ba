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

/* With an owner of its own, and this lock, or a lock "name:i"; it frees both. */
request request_of(loop *l, rlock *lk);
request request_new(loop *l, const char *name, int i);
void request_free(request *r);

/* n of them, so many pairs each, until they are over. */
void loop_run(loop *l, request *r, int n, int pairs);

/* It waits, until loop_cancel() ends the waits of all that there are. */
void request_wait(request *r);
void loop_cancel(loop *l);

/* Waits until something is to be delivered, and has it delivered. */
void loop_turn(loop *l);

#endif
