/*
 * redis-cluster://: addresses whose nodes are others than before. All of it is
 * real.
 */
#include "cluster_scene.h"

/* Two for each master that there is at first. */
enum { NAMES = 6 };

typedef struct names {
    char at[NAMES][32];
} names;

static names some_names(cluster *c)
{
    names n;
    for (int i = 0; i < NAMES; i++)
        snprintf(n.at[i], sizeof n.at[i], "%s",
                 cluster_name_on(c, i % 3, i < 3 ? "a" : "b"));
    return n;
}

/* Each can be had, and is at the master of its slot. */
static void expect_locks(cluster_scene *l, const names *n)
{
    for (int i = 0; i < NAMES; i++) {
        rlock *lk = cluster_scene_lock(l, n->at[i]);
        EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_INT(cluster_scene_levels(l, n->at[i]), 1);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        rlock_free(lk);
    }
}

/* --- a cluster made anew -------------------------------------------------- */

/* With epochs that are higher than they will be then. */
static void age(cluster *c)
{
    for (int i = 0; i < 3; i++)
        cluster_promote(c, i + 3);
}

TEST(cluster_eras, a_cluster_made_anew_at_its_addresses_is_followed)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    names n = some_names(l.c);
    age(l.c);
    expect_locks(&l, &n);
    cluster_make_anew(l.c);
    expect_locks(&l, &n);
    cluster_promote(l.c, 3);
    expect_locks(&l, &n);
    cluster_make_anew(l.c);
    expect_locks(&l, &n);
    EXPECT_INT(stats_of(l.cl).nodes, 3);
    cluster_scene_stop(&l);
}

#define SOON_MS (1000 + SLACK_MS)

/* Servers that have just started refuse for 2 s to be asked. */
TEST(cluster_eras, a_hold_in_a_cluster_made_anew_is_lost_soon)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    rlock *lk = cluster_scene_lock(&l, cluster_name_on(l.c, 0, "job"));
    age(l.c);
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    int64_t before_ms = events_time(l.ev, RLOCK_EVENT_FAILOVER);
    cluster_make_anew(l.c);
    cluster_await_ok(l.c);
    int64_t served_ms = test_now_ms();
    EVENTUALLY(SOON, events_time(l.ev, RLOCK_EVENT_FAILOVER) > before_ms);
    events_wait(l.ev, RLOCK_EVENT_LOST, 1, SOON);
    int64_t lost_ms = events_time(l.ev, RLOCK_EVENT_LOST);
    EXPECT(lost_ms - events_time(l.ev, RLOCK_EVENT_FAILOVER) < SOON_MS ||
           lost_ms - served_ms < SOON_MS);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

/* --- addresses that others have now --------------------------------------- */

/* On a busy machine the last try may end before the server has said who it is. */
static bool is_refused_as_anothers(rlock *lk)
{
    EXPECT_STATUS(rlock_acquire(lk, 3000, RLOCK_WATCHDOG), RLOCK_EIO);
    return strstr(rlock_last_error()->message, "another server");
}

/* What waits there for its slot is granted by who takes over, not by it. */
TEST(cluster_eras, a_server_of_another_cluster_at_an_address_grants_nothing)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    cluster_lose_address(l.c, 0);
    server *stranger = cluster_server(l.c, 0);
    EVENTUALLY(SOON, is_refused_as_anothers(lk));
    EXPECT_INT(server_int(stranger, "DBSIZE"), 0);
    cluster_promote(l.c, 3); /* it has no address, so nobody elects one */
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(levels(cluster_server(l.c, 3), name), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(server_int(stranger, "DBSIZE"), 0);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

static void release(cluster_scene *l, rlock **lk, int n)
{
    for (int i = 0; i < n; i++) {
        EXPECT(rlock_is_held(lk[i]));
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    EXPECT_INT(stats_of(l->cl).lost, 0);
}

TEST(cluster_eras, holds_at_masters_that_have_swapped_their_addresses_are_kept)
{
    enum { HOLDS = 3 };
    cluster_scene l;
    rlock *lk[HOLDS];
    cluster_scene_start_with(&l, 15000, SERVER_DURABLE);
    names n = some_names(l.c);
    for (int i = 0; i < CLUSTER_NODES; i++)
        cluster_cmd(l.c, i, "CONFIG SET cluster-replica-no-failover yes");
    for (int i = 0; i < HOLDS; i++) {
        lk[i] = cluster_scene_lock(&l, cluster_name_on(l.c, i, "held"));
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    cluster_swap_addresses(l.c, 0, 1);
    expect_locks(&l, &n);
    watch_renewals(l.cl, HOLDS);
    release(&l, lk, HOLDS);
    cluster_scene_stop(&l);
}

/* --- whom the client asks ------------------------------------------------- */

/* All happens between two askings; what the client knew then is dead. */
TEST(cluster_eras,
     one_address_is_enough_when_all_masters_that_it_named_are_dead)
{
    cluster_scene l, other;
    char uri[80];
    cluster_scene_start(&l, 0);
    snprintf(uri, sizeof uri, "redis-cluster://127.0.0.1:%d",
             cluster_port(l.c, 0));
    l.opts.uri = uri;
    cluster_scene_join(&l, &other);
    const char *name = cluster_name_on(l.c, 1, "job");
    rlock *lk = cluster_scene_lock(&other, name);
    for (int i = 0; i < 3; i++)
        cluster_promote(l.c, i + 3);
    for (int i = 0; i < 3; i++)
        cluster_kill(l.c, i);
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(levels(cluster_server(l.c, 4), name), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_leave(&other);
    cluster_scene_stop(&l);
}
