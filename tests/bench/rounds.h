/* Rounds of renewals, and what they cost. */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include "bench.h"

/* Processor time that this process has used, all threads together. */
double bench_cpu_s(void);

/* How many there have been; nothing may be lost. */
uint64_t bench_renewals(rlock_client *cl);

/*
 * Waits while each of the n holds of a client is renewed once, wherever that
 * begins, and none of the client's may have failed; *cpu and *server: seconds of
 * this process, and of the server. Returns how many seconds it took.
 */
double bench_round(rlock_client *cl, redisContext *cx, int n, double *cpu,
                   double *server);

#endif
