/*
 * Nothing on the client's loop blocks, whatever servers do: renewals, rings and
 * losses of all servers wait for each other there.
 */
#include "loop.h"

#include "cluster_scene.h"
#include "loop_thread.h"
#include "nodes.h"
#include "sentinels.h"
#include "storm.h"

enum { LOCKS = 100 };

/*
 * Of its own time: here mostly 0.1 to 0.2 ms, with thousands 0.5 to 3.5 ms, and
 * once in a while 6. A build with sanitizers takes longer.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LONGEST_US 100000
#else
#define LONGEST_US 10000
#endif

static void expect_it_never_blocked(void)
{
    EXPECT(loop_thread_turns() > 10);
    EXPECT_STR(loop_thread_blocked_in(), "");
    EXPECT_INT(loop_thread_blocked(), 0);
    EXPECT_BETWEEN(loop_thread_longest_us(), 1, LONGEST_US);
}

static void take_many(rlock_client *cl, rlock *lk[LOCKS])
{
    char name[16];
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "many%d", i);
        lk[i] = test_lock(cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
}

/* Whether they are still held or not. */
static void give_back(rlock *lk[LOCKS])
{
    for (int i = 0; i < LOCKS; i++) {
        rlock_unlock(lk[i]);
        rlock_free(lk[i]);
    }
}

static void expect_news(const scene *s, rlock_event_type type)
{
    int before = events_count(s->ev, type);
    EVENTUALLY(SOON, events_count(s->ev, type) > before);
}

TEST(loop, does_not_block_while_a_server_hangs_breaks_and_starts_anew)
{
    rlock *lk[LOCKS];
    scene s = scene_held_proxied(BRISK_MS, 300);
    take_many(s.cl, lk);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    proxy_cut_all(s.px);
    expect_news(&s, RLOCK_EVENT_RECONNECTED);
    server_pause(s.sv);
    expect_news(&s, RLOCK_EVENT_RENEW_FAILED);
    server_resume(s.sv);
    expect_renewals(&s, LOCKS);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    expect_news(&s, RLOCK_EVENT_RENEW_FAILED);
    proxy_refuse(s.px, false);
    expect_renewals(&s, LOCKS);
    server_cmd(s.sv, "FLUSHALL");
    EVENTUALLY(SOON, stats_of(s.cl).lost >= LOCKS);
    rlock_cancel(s.lk);
    waiter_end(w);
    give_back(lk);
    scene_stop(&s);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_thousands_have_been_started)
{
    scene s = scene_start(BRISK_MS, 0);
    storm st = storm_new(s.cl, 2000);
    storm_acquire(&st, SOON, RLOCK_WATCHDOG);
    storm_settle(&st, 1);
    storm_expect(&st, RLOCK_OK);
    expect_renewals(&s, 2000);
    storm_unlock(&st);
    storm_settle(&st, 2);
    storm_free(&st);
    scene_stop(&s);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_nodes_of_a_red_lock_hang)
{
    nodes ns = nodes_proxied(5);
    party p = party_join(&ns, BRISK_MS, 300);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EVENTUALLY(SOON, party_holding(&p) == 5);
    proxy_freeze(ns.px[0], true);
    server_pause(ns.sv[1]);
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    }
    uint64_t before = stats_of(p.cl[2]).renewals;
    EVENTUALLY(SOON, stats_of(p.cl[2]).renewals >= before + 3);
    proxy_freeze(ns.px[0], false);
    server_resume(ns.sv[1]);
    EVENTUALLY(SOON, nodes_having(&ns) == 5);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_a_master_of_a_cluster_is_replaced)
{
    rlock *lk[LOCKS];
    cluster_scene l;
    cluster_scene_start(&l, 9000); /* it outlives the failover */
    take_many(l.cl, lk);
    server_kill(cluster_server(l.c, 0));
    EVENTUALLY(SOON, stats_of(l.cl).failovers > 0);
    uint64_t before = stats_of(l.cl).renewals;
    EVENTUALLY(SOON, stats_of(l.cl).renewals >= before + LOCKS / 2);
    give_back(lk);
    cluster_scene_stop(&l);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_sentinels_hang_and_fail_over)
{
    rlock *lk[LOCKS];
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *by = sentinels_start(master, 3);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = sentinels_uri(by);
    scene s = scene_with(master, &o);
    take_many(s.cl, lk);
    EVENTUALLY(SOON, replica_follows(master));
    sentinels_await_client(by, 3);
    sentinels_pause(by, 0);
    server_kill(master);
    events_wait(s.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    give_back(lk);
    scene_leave(&s);
    sentinels_stop(by);
    server_stop(replica);
    server_stop(master);
    expect_it_never_blocked();
}
