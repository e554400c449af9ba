/*
 * Acquiring a Red lock on 5 servers of which 2 are far away, against the same
 * with all of them near: a majority is near, so distance should not count.
 * Unlocks are not timed; each sample of either kind follows after a pause.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rlock/multi.h>

#include "servers.h"

#define NODES         5
#define FAR           2     /* the last ones */
#define ROUND_TRIP_US 30000 /* to them */
#define ROUNDS        400
#define WARM_UP       20
#define PAUSE_US      1000

static bench_server servers[NODES];
static bench_round_trip_us *round_trip_us;

typedef struct party {
    rlock_client *cl[NODES];
    rlock *lk;
} party;

static party join(const char *uris[NODES], const char *name)
{
    party p;
    for (int i = 0; i < NODES; i++)
        p.cl[i] = bench_client(uris[i]);
    bench_ok(rlock_red_new(p.cl, NODES, name, &p.lk));
    return p;
}

static void leave(party *p)
{
    rlock_free(p->lk);
    for (int i = 0; i < NODES; i++)
        rlock_client_free(p->cl[i]);
}

/* In microseconds. */
static double sample(const party *p)
{
    bench_pause_us(PAUSE_US);
    int64_t began = bench_now_ns();
    bench_ok(rlock_lock(p->lk));
    double us = (double)(bench_now_ns() - began) / 1000;
    bench_ok(rlock_unlock(p->lk));
    return us;
}

static void measure(const party p[2], double *us[2], double worst[2])
{
    for (int round = -WARM_UP; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            int kind = (round + WARM_UP + i) % 2;
            double took = sample(&p[kind]);
            if (round < 0)
                continue;
            us[kind][round] = took;
            worst[kind] = took > worst[kind] ? took : worst[kind];
        }
    }
}

int main(int argc, char **argv)
{
    const char *near[NODES], *far[NODES];
    char relayed[FAR][128];
    double *us[2], worst[2] = {0};
    bench_start_servers(servers, NODES, bench_uri(argc, argv));
    round_trip_us = bench_share(sizeof *round_trip_us);
    atomic_store(round_trip_us, ROUND_TRIP_US);
    for (int i = 0; i < NODES; i++) {
        near[i] = far[i] = servers[i].uri;
        if (i < NODES - FAR)
            continue;
        far[i] = relayed[i - (NODES - FAR)];
        bench_start_relay(near[i], round_trip_us, relayed[i - (NODES - FAR)]);
    }
    party p[2] = {join(near, "bench:near"), join(far, "bench:far")};
    for (int i = 0; i < 2; i++)
        us[i] = bench_alloc(ROUNDS, sizeof(double));
    measure(p, us, worst);
    double all_near = bench_median(us[0], ROUNDS);
    double two_far = bench_median(us[1], ROUNDS);
    bench_row("acquiring Red on 5 servers, 2 of them 30 ms away, as a multiple "
              "of all near",
              2, two_far / all_near, "",
              "%.0f µs against %.0f µs; slowest %.1f ms and %.1f ms", two_far,
              all_near, worst[1] / 1000, worst[0] / 1000);
    for (int i = 0; i < 2; i++) {
        leave(&p[i]);
        free(us[i]);
    }
    return 0;
}
