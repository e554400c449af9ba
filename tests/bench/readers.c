/*
 * Many who read: what a pair costs the server among ten and among 10,000 others,
 * and how long a writer waits for those who come and go.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define FEW   10
#define MANY  10000
#define PAIRS 2000
#define TURNS 5

#define READERS  24
#define READ_US  5000
#define WRITINGS 100

/* --- among many ----------------------------------------------------------- */

/* Owners of their own, who read until the client is freed. */
static void read_too(rlock *read, int n)
{
    for (int i = 0; i < n; i++) {
        rlock_owner *o;
        bench_ok(rlock_owner_new(NULL, &o));
        rlock_owner_set(o);
        bench_ok(rlock_acquire(read, 0, 600000));
        rlock_owner_set(NULL);
    }
}

/* Microseconds of the server for a pair of another one who reads. */
static double work_of(rlock *read, redisContext *raw)
{
    double before = bench_server_us(raw);
    for (int i = 0; i < PAIRS; i++) {
        bench_ok(rlock_acquire(read, 0, 30000));
        bench_ok(rlock_unlock(read));
    }
    return (bench_server_us(raw) - before) / PAIRS;
}

static void among_many(const char *uri)
{
    rlock_client *crowd = bench_client(uri), *cl = bench_client(uri);
    redisContext *raw = bench_connect(uri);
    rlock *some, *all, *few, *many;
    double us[2][TURNS];
    bench_ok(rlock_rw_new(crowd, "bench:few", &some, NULL));
    bench_ok(rlock_rw_new(crowd, "bench:many", &all, NULL));
    bench_ok(rlock_rw_new(cl, "bench:few", &few, NULL));
    bench_ok(rlock_rw_new(cl, "bench:many", &many, NULL));
    read_too(some, FEW);
    read_too(all, MANY);
    work_of(few, raw);
    bench_begin();
    for (int i = 0; i < TURNS; i++) {
        us[0][i] = work_of(few, raw);
        us[1][i] = work_of(many, raw);
    }
    double of_few = bench_median(us[0], TURNS);
    double of_many = bench_median(us[1], TURNS);
    bench_row("the server's processor time for a read pair among 10,000 "
              "readers, as a multiple of one among 10",
              1.3, of_many / of_few, "", "%.1f µs against %.1f µs", of_many,
              of_few);
    redisFree(raw);
    rlock_client_free(cl);
    rlock_client_free(crowd);
    rlock_free(some);
    rlock_free(all);
    rlock_free(few);
    rlock_free(many);
}

/* --- a writer among them -------------------------------------------------- */

static atomic_bool over;

static void *read_on(void *read)
{
    while (!atomic_load(&over)) {
        bench_ok(rlock_lock(read));
        bench_pause_us(READ_US);
        bench_ok(rlock_unlock(read));
    }
    return NULL;
}

static void write_among(const char *uri)
{
    rlock_client *cl = bench_client(uri), *other = bench_client(uri);
    rlock *read[2], *write;
    pthread_t t[READERS];
    double ms[WRITINGS];
    bench_ok(rlock_rw_new(cl, "bench:prices", &read[0], &write));
    bench_ok(rlock_rw_new(other, "bench:prices", &read[1], NULL));
    for (int i = 0; i < READERS; i++)
        bench_check(pthread_create(&t[i], NULL, read_on, read[i % 2]) == 0,
                    "no thread");
    bench_pause_us(20 * READ_US);
    for (int i = 0; i < WRITINGS; i++) {
        int64_t began_ns = bench_now_ns();
        bench_ok(rlock_lock(write));
        ms[i] = (double)(bench_now_ns() - began_ns) / 1e6;
        bench_ok(rlock_unlock(write));
        bench_pause_us(2 * READ_US);
    }
    atomic_store(&over, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(t[i], NULL);
    double median = bench_median(ms, WRITINGS);
    bench_row("longest wait of a writer among 24 readers of 5 ms, of two "
              "clients",
              50, ms[WRITINGS - 1], " ms", "of %d waits; median %.1f ms",
              WRITINGS, median);
    rlock_free(write);
    rlock_free(read[0]);
    rlock_free(read[1]);
    rlock_client_free(cl);
    rlock_client_free(other);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    among_many(uri);
    write_among(uri);
    return 0;
}
