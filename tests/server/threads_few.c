/* Which threads a client has: those that it needs, for as long as it does. */
#include <stdatomic.h>

#include "cluster.h"
#include "descriptor.h"
#include "nodes.h"
#include "sentinels.h"
#include "storm.h"
#include "tasks.h"

static uint64_t reconnects(const scene *s)
{
    return stats_of(s->cl).reconnects;
}

/* The keeper's connection breaks, and is made anew. */
static void break_connection(scene *s)
{
    uint64_t before = reconnects(s);
    proxy_cut_all(s->px);
    EVENTUALLY(SOON, reconnects(s) > before);
}

TEST(threads_few, one_that_connects_is_there_only_while_it_is_needed)
{
    scene s = scene_held_proxied(0, 0);
    EXPECT_INT(tasks_named("rlock-connector"), 0);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EVENTUALLY(SOON, tasks_named("rlock-connector") == 1);
    proxy_refuse(s.px, false);
    EVENTUALLY(SOON, reconnects(&s) > 0);
    EVENTUALLY(SOON, tasks_named("rlock-connector") == 0);
    scene_stop(&s);
}

TEST(threads_few, another_one_connects_after_the_first_has_ended)
{
    scene s = scene_held_proxied(0, 0);
    for (int i = 0; i < 3; i++) {
        break_connection(&s);
        EVENTUALLY(SOON, tasks_named("rlock-connector") == 0);
    }
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(threads_few, a_client_is_closed_while_one_connects)
{
    scene s = scene_held_proxied(0, 0);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EVENTUALLY(SOON, tasks_named("rlock-connector") == 1);
    scene_stop(&s);
    EXPECT_INT(tasks_named("rlock-"), 0);
}

/* --- how many ------------------------------------------------------------- */

static void ignore(const rlock_event *ev, void *arg)
{
    (void)ev;
    (void)arg;
}

TEST(threads_few, a_lock_needs_one_and_an_on_event_one_more)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    server *sv = server_start(NULL);
    rlock_client *cl;
    o.uri = server_uri(sv);
    o.on_event = ignore;
    for (int i = 1; i <= 2; i++) {
        EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
        rlock *lk = test_lock(cl, SCENE_LOCK);
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        o.dispatch_events = true;
        EVENTUALLY(SOON, tasks_named("rlock-") == (i == 1 ? 2 : 1));
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        rlock_free(lk);
        rlock_client_free(cl);
    }
    server_stop(sv);
}

TEST(threads_few, who_waits_needs_no_other)
{
    scene s = scene_server(NULL);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = server_uri(s.sv);
    EXPECT_STATUS(rlock_client_new(&o, &s.cl), RLOCK_OK);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    EVENTUALLY(SOON, tasks_named("rlock-") == 1);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    rlock_free(s.lk);
    rlock_client_free(s.cl);
    server_stop(s.sv);
}

TEST(threads_few, a_client_that_has_locked_nothing_has_none)
{
    server *sv = server_start(NULL);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.on_event = ignore;
    int before = tasks_named("");
    rlock_client *cl = server_client(sv, &o);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(tasks_named(""), before);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(threads_few, a_hundred_started_acquires_need_no_other)
{
    server *sv = server_start(NULL);
    rlock_client *cl = server_client(sv, NULL);
    storm st = storm_new(cl, 100);
    storm_acquire(&st, SOON, RLOCK_WATCHDOG);
    storm_settle(&st, 1);
    storm_expect(&st, RLOCK_OK);
    EVENTUALLY(SOON, tasks_named("rlock-") == 1);
    storm_unlock(&st);
    storm_settle(&st, 2);
    storm_free(&st);
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(threads_few, a_client_with_sentinels_needs_no_other)
{
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *all = sentinels_start(master, 1);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = sentinels_uri(all);
    rlock_client *cl = server_client(master, &o);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, tasks_named("rlock-") == 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    sentinels_stop(all);
    server_stop(replica);
    server_stop(master);
}

TEST(threads_few, each_client_of_a_red_lock_has_one)
{
    nodes ns = nodes_start(3);
    rlock_client *cl[3];
    rlock *lk;
    for (int i = 0; i < 3; i++)
        cl[i] = server_client(ns.sv[i], NULL);
    EXPECT_STATUS(rlock_red_new(cl, 3, SCENE_LOCK, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, tasks_named("rlock-") == 3);
    EXPECT_INT(tasks_named("rlock-loop"), 3);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    for (int i = 0; i < 3; i++)
        rlock_client_free(cl[i]);
    nodes_stop(&ns);
}

TEST(threads_few, the_masters_of_a_cluster_share_one)
{
    cluster *c = cluster_start();
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    rlock *lk[16];
    o.uri = cluster_uri(c);
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    for (int i = 0; i < 16; i++) {
        char name[16];
        snprintf(name, sizeof name, "lock%d", i);
        lk[i] = test_lock(cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    EVENTUALLY(SOON, tasks_named("rlock-") == 1);
    EXPECT_INT(tasks_named("rlock-loop"), 1);
    for (int i = 0; i < 16; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    rlock_client_free(cl);
    cluster_stop(c);
}

/* --- callbacks that block ------------------------------------------------- */

typedef struct gate {
    atomic_bool open;
    atomic_int losses;
} gate;

static void wait_at_gate(const rlock_event *ev, void *arg)
{
    gate *g = arg;
    if (ev->type != RLOCK_EVENT_LOST)
        return;
    atomic_fetch_add(&g->losses, 1);
    while (!atomic_load(&g->open))
        test_pause_ms(1);
}

static rlock_client *client_at_gate(server *sv, gate *g)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = server_uri(sv);
    o.watchdog_lease_ms = BRISK_MS;
    o.on_event = wait_at_gate;
    o.event_arg = g;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    return cl;
}

TEST(threads_few, an_on_event_that_blocks_delays_no_lost_fd)
{
    gate g = {.losses = 0};
    server *sv = server_start(NULL);
    rlock_client *cl = client_at_gate(sv, &g);
    rlock *first = test_lock(cl, "first"), *second = test_lock(cl, "second");
    EXPECT_STATUS(rlock_acquire(first, 0, 100), RLOCK_OK);
    EVENTUALLY(SOON, atomic_load(&g.losses) == 1);
    EXPECT_STATUS(rlock_acquire(second, 0, 300), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    int fd = lost_fd_of_held(second);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began_ms, 200, 300 + SLACK_MS);
    EXPECT_INT(atomic_load(&g.losses), 1);
    atomic_store(&g.open, true);
    EVENTUALLY(SOON, atomic_load(&g.losses) == 2);
    rlock_free(first);
    rlock_free(second);
    rlock_client_free(cl);
    server_stop(sv);
}

/*
 * A Multi lock of two clients, held: the whole is the first member's client's,
 * whose on_event the other one tells.
 */
typedef struct couple {
    gate g;
    server *sv, *far;
    rlock_client *home, *other; /* NULL: freed */
    rlock *lk[2], *all;
} couple;

static void unite(couple *c)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    *c = (couple){.sv = server_start(NULL), .far = server_start(NULL)};
    o.uri = server_uri(c->far);
    o.watchdog_lease_ms = BRISK_MS;
    c->home = client_at_gate(c->sv, &c->g);
    EXPECT_STATUS(rlock_client_new(&o, &c->other), RLOCK_OK);
    c->lk[0] = test_lock(c->home, "a");
    c->lk[1] = test_lock(c->other, "b");
    EXPECT_STATUS(rlock_multi_new(c->lk, 2, &c->all), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(c->all), RLOCK_OK);
}

static void part(couple *c)
{
    rlock_free(c->all);
    rlock_free(c->lk[0]);
    rlock_free(c->lk[1]);
    rlock_client_free(c->home);
    rlock_client_free(c->other);
    server_stop(c->far);
    server_stop(c->sv);
}

TEST(threads_few, an_on_event_that_blocks_delays_no_renewal_at_other_clients)
{
    couple c;
    unite(&c);
    rlock *kept = test_lock(c.other, "kept");
    EXPECT_STATUS(rlock_lock(kept), RLOCK_OK);
    server_cmd(c.far, "DEL b");
    EVENTUALLY(SOON, atomic_load(&c.g.losses) == 1);
    uint64_t before = stats_of(c.other).renewals;
    EVENTUALLY(SOON, stats_of(c.other).renewals >= before + 5);
    EXPECT(rlock_is_held(kept));
    atomic_store(&c.g.open, true);
    EXPECT_STATUS(rlock_unlock(c.all), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(kept), RLOCK_OK);
    rlock_free(kept);
    part(&c);
}

/* Its first event is the last that it has to tell, and needs a thread. */
TEST(threads_few, a_client_that_is_closed_first_tells_the_home_of_a_lost_lock)
{
    couple c;
    unite(&c);
    atomic_store(&c.g.open, true);
    EVENTUALLY(SOON, tasks_named("rlock-notifier") == 1);
    rlock_client_free(c.other);
    c.other = NULL;
    EXPECT_INT(atomic_load(&c.g.losses), 1);
    EXPECT_STATUS(rlock_unlock(c.all), RLOCK_ECLOSED);
    part(&c);
}
