#include "rounds.h"

#include <sys/resource.h>

#define TICK_US 250000

double bench_cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static rlock_stats stats_of(rlock_client *cl)
{
    rlock_stats stats;
    bench_ok(rlock_client_stats(cl, &stats, sizeof stats));
    bench_check(stats.lost == 0, "locks lost");
    return stats;
}

uint64_t bench_renewals(rlock_client *cl)
{
    return stats_of(cl).renewals;
}

/* Once through all of them is one. */
double bench_round(rlock_client *cl, redisContext *cx, int n, double *cpu,
                   double *server)
{
    uint64_t first = bench_renewals(cl), last = first;
    int64_t began = bench_now_ns();
    *server = bench_server_us(cx);
    *cpu = bench_cpu_s();
    while (last - first < (uint64_t)n) {
        bench_pause_us(TICK_US);
        last = bench_renewals(cl);
    }
    bench_check(stats_of(cl).renew_failures == 0, "renewals failed");
    double rounds = (double)(last - first) / n;
    *cpu = (bench_cpu_s() - *cpu) / rounds;
    *server = (bench_server_us(cx) - *server) / 1e6 / rounds;
    return (double)(bench_now_ns() - began) / 1e9;
}
