/*
 * Renewing 30,000 locks with a lease of 6 s at a server that is 50 ms away:
 * what a client can hold should depend on its bandwidth, not on the distance.
 * The locks are taken while the server is near.
 */
#include <stdio.h>

#include "servers.h"

#define LOCKS         30000
#define LEASE_MS      6000
#define LEASES        3
#define ROUND_TRIP_US 50000

static rlock_client *join(const char *uri)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = uri;
    o.watchdog_lease_ms = LEASE_MS;
    bench_ok(rlock_client_new(&o, &cl));
    return cl;
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    bench_round_trip_us *us = bench_share(sizeof *us);
    rlock_stats before, after;
    char far[128], name[32];
    bench_start_relay(uri, us, far);
    rlock_client *cl = join(far);
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "bench:%d", i);
        bench_ok(rlock_lock(bench_lock(cl, name)));
    }
    bench_ok(rlock_client_stats(cl, &before, sizeof before));
    atomic_store(us, ROUND_TRIP_US);
    bench_pause_us(LEASES * LEASE_MS * INT64_C(1000));
    bench_ok(rlock_client_stats(cl, &after, sizeof after));
    bench_row(
        "of 30,000 locks with a lease of 6 s, 50 ms away, lost in three "
        "leases",
        0, (double)after.lost, "",
        "%llu renewals, %llu failed once, %llu held; lost on the way "
        "there: %llu",
        (unsigned long long)(after.renewals - before.renewals),
        (unsigned long long)(after.renew_failures - before.renew_failures),
        (unsigned long long)after.held_now, (unsigned long long)before.lost);
    rlock_client_free(cl);
    return 0;
}
