/* Servers that are far away, and those that say nothing: what calls cost. */
#include "lag.h"
#include "scene.h"

enum { HOLDS = 4000 };

static rlock **lock_many(rlock_client *cl, int n)
{
    rlock **lk = calloc((size_t)n, sizeof(*lk));
    EXPECT(lk);
    for (int i = 0; i < n; i++) {
        char name[20];
        snprintf(name, sizeof name, "n%d", i);
        lk[i] = test_lock(cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    return lk;
}

static void free_many(rlock **lk, int n)
{
    for (int i = 0; i < n; i++)
        rlock_free(lk[i]);
    free(lk);
}

/* One batch after the other would take longer than the lease is. */
TEST(in_flight, renewals_of_thousands_are_on_their_way_together)
{
    enum { LEASE_MS = 2500 };
    scene s = scene_server(NULL);
    lag *l = lag_start(s.sv);
    s.opts.uri = lag_uri(l);
    scene_client(&s, LEASE_MS, 0);
    rlock **lk = lock_many(s.cl, HOLDS);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    lag_set(l, 100);
    int64_t began_ms = test_now_ms();
    while (test_since_ms(began_ms) < 2 * LEASE_MS) {
        EXPECT_INT(stats_of(s.cl).lost, 0);
        test_pause_ms(20);
    }
    EXPECT_INT(stats_of(s.cl).held_now, HOLDS);
    EXPECT(stats_of(s.cl).renewals >= 4 * HOLDS);
    free_many(lk, HOLDS);
    scene_free_client(&s);
    lag_stop(l);
    scene_stop(&s);
}

/* One last try is enough for all of them. */
TEST(in_flight, a_client_with_many_open_releases_is_freed_in_time)
{
    enum { OPEN = 2000 };
    scene s = scene_proxied(0, 1000);
    rlock **lk = lock_many(s.cl, OPEN);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    for (int i = 0; i < OPEN; i++)
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_EIO);
    proxy_freeze(s.px, true);
    proxy_refuse(s.px, false);
    free_many(lk, OPEN);
    int64_t began_ms = test_now_ms();
    scene_free_client(&s);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 4000);
    proxy_freeze(s.px, false);
    scene_stop(&s);
}

/* It waits for the renewal and asks then, within one limit. */
TEST(in_flight, an_extend_behind_a_renewal_that_hangs_ends_in_time)
{
    enum { TIMEOUT_MS = 2000 };
    scene s = scene_proxied(9200, TIMEOUT_MS);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_SENT | PROXY_TIMEOUT, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, proxy_fired(s.px));
    proxy_freeze(s.px, true);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_extend(s.lk, 9000), RLOCK_EIO);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, TIMEOUT_MS + SLACK_MS);
    proxy_freeze(s.px, false);
    rlock_unlock(s.lk);
    scene_stop(&s);
}
