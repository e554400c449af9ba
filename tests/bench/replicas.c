/*
 * What min_replicas costs: a pair whose grant a replica has to have, against
 * one without, in turns, in round trips of a PING. The pair's release does not
 * wait; its acquire waits for one round trip more, between the servers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "servers.h"

#define CYCLES 1500
#define BLOCK  20

static rlock_client *meet(const char *uri, unsigned min_replicas)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = uri;
    o.min_replicas = min_replicas;
    bench_ok(rlock_client_new(&o, &cl));
    return cl;
}

static double block(rlock *lk)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++) {
        bench_ok(rlock_lock(lk));
        bench_ok(rlock_unlock(lk));
    }
    return (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

static double pings(redisContext *c)
{
    int64_t ns = 0;
    for (int i = 0; i < BLOCK; i++)
        ns += bench_ping_ns(c);
    return (double)ns / 1000 / BLOCK;
}

static void compare(const char *uri, redisContext *c)
{
    static double us[2][CYCLES], ping[CYCLES];
    rlock_client *cl[2] = {meet(uri, 0), meet(uri, 1)};
    rlock *lk[2] = {bench_lock(cl[0], "bench:plain"),
                    bench_lock(cl[1], "bench:confirmed")};
    bench_begin();
    for (int i = 0; i < CYCLES; i++) {
        for (int k = 0; k < 2; k++)
            us[(i + k) % 2][i] = block(lk[(i + k) % 2]);
        ping[i] = pings(c);
    }
    double p = bench_median(us[0], CYCLES), s = bench_median(us[1], CYCLES);
    double trip = bench_median(ping, CYCLES);
    bench_row("uncontended pair with min_replicas 1, more than without", 4,
              (s - p) / trip, " PINGs", "%.1f µs against %.1f µs, PING %.1f µs",
              s, p, trip);
    for (int k = 0; k < 2; k++) {
        rlock_free(lk[k]);
        rlock_client_free(cl[k]);
    }
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    char tcp[64];
    bench_server s[2];
    redisContext *c = bench_connect(uri);
    bench_open_port(uri, tcp);
    bench_start_servers(s, 2, uri);
    bench_follow(c, s[1].uri, tcp);
    bench_place(s[1].uri, true);
    bench_place(uri, true);
    compare(uri, c);
    redisFree(c);
    return 0;
}
