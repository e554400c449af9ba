/*
 * redis-cluster:// and the option to listen on Redisson's channels, which are
 * sharded there. A name and the same in braces share their channels, bells
 * included, and are two locks nevertheless.
 */
#include "cluster_scene.h"

#define CHANNEL "redisson_lock__channel:{job}"
#define BARE    "job"
#define BRACED  "{job}"

/* Where both have their slot. */
static server *settle(cluster_scene *l, bool redisson_channel)
{
    need_sharded_channels();
    cluster_scene_start(l, 0);
    rlock_client_free(l->cl);
    l->opts.redisson_channel = redisson_channel;
    EXPECT_STATUS(rlock_client_new(&l->opts, &l->cl), RLOCK_OK);
    return cluster_server(l->c, cluster_owner(l->c, BARE));
}

static long long queued_for(server *sv, const char *name)
{
    return server_int(sv, "ZCARD rlock_queue:{job}%s",
                      strcmp(name, BRACED) == 0 ? "{}" : "");
}

static long long listeners(server *sv)
{
    redisReply *r = server_cmd(sv, "PUBSUB SHARDNUMSUB %s", CHANNEL);
    EXPECT_INT(r->elements, 2);
    return r->element[1]->integer;
}

static void expect_soon_after(int64_t freed_ms, waiter *w)
{
    int64_t at_ms;
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT(at_ms - freed_ms < WELL_BEFORE_POLL_MS);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
}

static void expect_woken_by_java(cluster_scene *l, server *sv, const char *name)
{
    rlock *lk = cluster_scene_lock(l, name);
    take_by_hand(sv, name, 60000);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, listeners(sv) == 1 && queued_for(sv, name) == 1);
    int64_t freed_ms = test_now_ms();
    server_cmd(sv, "DEL %s", name);
    server_cmd(sv, "SPUBLISH %s 0", CHANNEL);
    expect_soon_after(freed_ms, w);
    rlock_free(lk);
}

TEST(cluster_ears, a_release_of_redisson_ends_a_wait_at_once)
{
    cluster_scene l;
    server *sv = settle(&l, true);
    for (int i = 0; i < 2; i++)
        expect_woken_by_java(&l, sv, BARE);
    cluster_scene_stop(&l);
}

/* So that no release rings a connection that is about to end. */
TEST(cluster_ears, a_client_that_has_listened_takes_leave)
{
    cluster_scene l;
    server *sv = settle(&l, true);
    expect_woken_by_java(&l, sv, BARE);
    long long before = server_calls(sv, "sunsubscribe");
    EXPECT_STATUS(rlock_client_close(l.cl, 0), RLOCK_OK);
    l.cl = NULL;
    EXPECT_INT(server_calls(sv, "sunsubscribe"), before + 1);
    EVENTUALLY(SOON, listeners(sv) == 0);
    cluster_scene_stop(&l);
}

TEST(cluster_ears, a_name_and_the_same_in_braces_both_hear_redisson)
{
    cluster_scene l;
    server *sv = settle(&l, true);
    expect_woken_by_java(&l, sv, BARE);
    expect_woken_by_java(&l, sv, BRACED);
    cluster_scene_stop(&l);
}

TEST(cluster_ears, a_name_and_the_same_in_braces_are_each_rung)
{
    cluster_scene l, other;
    server *sv = settle(&l, false);
    cluster_scene_join(&l, &other);
    rlock *mine[] = {cluster_scene_lock(&l, BARE),
                     cluster_scene_lock(&l, BRACED)};
    rlock *theirs[] = {cluster_scene_lock(&other, BARE),
                       cluster_scene_lock(&other, BRACED)};
    waiter *w[2];
    for (int i = 0; i < 2; i++) {
        EXPECT_STATUS(rlock_lock(mine[i]), RLOCK_OK);
        w[i] = waiter_start(theirs[i], RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, queued_for(sv, i ? BRACED : BARE) == 1);
    }
    for (int i = 1; i >= 0; i--) {
        int64_t freed_ms = test_now_ms();
        EXPECT_STATUS(rlock_unlock(mine[i]), RLOCK_OK);
        expect_soon_after(freed_ms, w[i]);
        rlock_free(mine[i]);
        rlock_free(theirs[i]);
    }
    EXPECT_INT(stats_of(other.cl).wakeups_futile, 0);
    cluster_scene_leave(&other);
    cluster_scene_stop(&l);
}

/* The test's own connection is one of them. */
static int connections(server *sv)
{
    int n = 0;
    for (const char *at = server_str(sv, "CLIENT LIST TYPE normal"); *at; at++)
        n += *at == '\n';
    return n;
}

TEST(cluster_ears, who_was_heard_is_not_connected_to_again_for_nobody)
{
    cluster_scene l;
    server *sv = settle(&l, true);
    expect_woken_by_java(&l, sv, BARE);
    EVENTUALLY(SOON, listeners(sv) == 0);
    server_cmd(sv, "CLIENT KILL TYPE normal SKIPME yes");
    test_pause_ms(300); /* what is made again, is by then */
    EVENTUALLY(SOON, connections(sv) == 1);
    cluster_scene_stop(&l);
}
