/*
 * A master on 127.0.0.1, its replica, and three Sentinels, which take half a
 * second of silence for a death.
 */
#ifndef BENCH_SENTINELS_H
#define BENCH_SENTINELS_H

#include "servers.h"

/* What the Sentinels call it. */
#define BENCH_MASTER "bench"

enum { BENCH_COPIES = 2, BENCH_SENTINELS = 3 };

typedef struct bench_sentinels {
    bench_server copy[BENCH_COPIES]; /* uri: redis://127.0.0.1:port */
    bench_server at[BENCH_SENTINELS];
    char uri[256]; /* redis-sentinel:// */
    char dir[32];
} bench_sentinels;

/* They end with the program. Once for each program. */
void bench_start_sentinels(bench_sentinels *n);

/* Until the Sentinels know of the replica, and it has what the master has. */
void bench_await_sentinels(bench_sentinels *n);

/* Which of the two is the master now. */
bench_server *bench_master(bench_sentinels *n);
bench_server *bench_other(bench_sentinels *n, const bench_server *one);

/* Again, as a replica of the other one, after bench_stop(). */
void bench_restart_copy(bench_sentinels *n, bench_server *s);

#endif
