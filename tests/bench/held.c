/*
 * What 100,000 locks cost the client that holds them: memory, and the CPU of
 * one round of renewals. Both come from the process as a whole, all threads
 * together, while the main thread sleeps.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

#define LOCKS 100000

#define TICK_US 50000

/* Resident, including what the allocator keeps for itself. */
static double memory(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    bench_check(f && fscanf(f, "%*d %ld", &pages) == 1, "/proc/self/statm");
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static rlock *take(rlock_client *cl, int i)
{
    char name[32];
    snprintf(name, sizeof name, "bench:%d", i);
    rlock *lk = bench_lock(cl, name);
    bench_ok(rlock_lock(lk));
    return lk;
}

static uint64_t renewals(rlock_client *cl)
{
    rlock_stats stats;
    bench_ok(rlock_client_stats(cl, &stats, sizeof stats));
    bench_check(stats.lost == 0 && stats.renew_failures == 0, "locks lost");
    return stats.renewals;
}

/* Wherever a round begins: once through all locks is one. */
static double one_round(rlock_client *cl, redisContext *cx, double *cpu,
                        double *server)
{
    uint64_t first = renewals(cl), last = first;
    int64_t began = bench_now_ns();
    *server = bench_server_us(cx);
    *cpu = cpu_s();
    while (last - first < LOCKS) {
        bench_pause_us(TICK_US);
        last = renewals(cl);
    }
    double rounds = (double)(last - first) / LOCKS;
    *cpu = (cpu_s() - *cpu) / rounds;
    *server = (bench_server_us(cx) - *server) / 1e6 / rounds;
    return (double)(bench_now_ns() - began) / 1e9;
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    rlock_client *cl = bench_client(uri);
    redisContext *cx = bench_connect(uri);
    rlock *first = take(cl, LOCKS); /* starts the threads */
    double before = memory(), cpu, server;
    for (int i = 0; i < LOCKS; i++)
        take(cl, i); /* the handles stay to the end */
    double each = (memory() - before) / LOCKS;
    double seconds = one_round(cl, cx, &cpu, &server);

    bench_row("one renewal round of 100,000 held locks, client CPU", 0.1, cpu,
              " s", "%.1f µs a lock, in the course of %.1f s",
              cpu * 1e6 / LOCKS, seconds);
    bench_row("- the server's", 0.35, server, " s", "%.1f µs a lock",
              server * 1e6 / LOCKS);
    bench_row("client memory per held lock", 320, each, " bytes",
              "growth of the resident set; handle and hold");
    redisFree(cx);
    rlock_free(first);
    rlock_client_free(cl);
    return 0;
}
