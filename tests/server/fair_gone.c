/*
 * Fair locks over several processes, when those who stand in line are killed,
 * stopped, or hear nothing; in a cluster, and with Sentinels.
 */
#include "cluster_scene.h"
#include "other_client.h"
#include "sentinels.h"

#define LINE "rlock_line:{" SCENE_LOCK "}"

static rlock *fair_lock(rlock_client *cl)
{
    return test_fair_lock(cl, SCENE_LOCK);
}

static long long in_line(server *sv)
{
    return server_int(sv, "ZCARD " LINE);
}

/* --- processes ------------------------------------------------------------ */

enum { ROUNDS = SANITIZED ? 10 : 40, THREADS = 3, PROCESSES = 3 };

static intptr_t take_turns(void *lk)
{
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    return 0;
}

static void crowd_in_child(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    test_thread *t[THREADS];
    (void)arg;
    opts.uri = child_take_uri(c);
    rlock_client *cl = server_client(NULL, &opts);
    rlock *lk = fair_lock(cl);
    child_expect(c, 'g');
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(take_turns, lk);
    for (int i = 0; i < THREADS; i++)
        test_join(t[i]);
    EXPECT_INT(stats_of(cl).lost, 0);
    rlock_free(lk);
    rlock_client_free(cl);
    child_tell(c, 'd');
}

/* How many calls a section costs there is told by the benchmarks. */
TEST(fair_gone, threads_of_several_processes_all_have_their_turns)
{
    server *sv = children_meet(PROCESSES, crowd_in_child);
    EXPECT(!key_exists(sv, SCENE_LOCK));
    EXPECT_INT(in_line(sv), 0);
    server_stop(sv);
}

/* So many threads wait, and then the process stands still for good. */
static void wait_in_child(child *c, void *n)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    rlock *lk = fair_lock(server_client(NULL, &opts));
    for (intptr_t i = 1; i < (intptr_t)n; i++)
        test_spawn(lock_once, lk);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
}

/* One has the lock; a child's threads stand in line, and one of ours behind. */
typedef struct row {
    child *c;
    scene s;
    rlock *lk;
    other_client holder;
    rlock *held;
    waiter *w;
} row;

static void row_start(row *r, intptr_t children)
{
    r->c = child_start(wait_in_child, (void *)children);
    r->s = scene_server(NULL);
    scene_client(&r->s, 0, 0);
    r->lk = fair_lock(r->s.cl);
    r->holder = other_client_join(&r->s, NULL);
    r->held = fair_lock(r->holder.cl);
    EXPECT_STATUS(rlock_lock(r->held), RLOCK_OK);
    child_give_uri(r->c, r->s.sv);
    EVENTUALLY(SOON, in_line(r->s.sv) == children);
    r->w = waiter_start(r->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, in_line(r->s.sv) == children + 1 &&
                         queued(r->s.sv, SCENE_LOCK) == 2);
}

/* How long after the unlock ours has it. */
static int64_t row_unlock(row *r)
{
    int64_t freed_ms = test_now_ms(), at_ms;
    EXPECT_STATUS(rlock_unlock(r->held), RLOCK_OK);
    EXPECT_STATUS(waiter_status(r->w, &at_ms), RLOCK_OK);
    return at_ms - freed_ms;
}

static void row_stop(row *r)
{
    EXPECT_STATUS(waiter_end(r->w), RLOCK_OK);
    EXPECT_INT(stats_of(r->s.cl).lost, 0);
    rlock_free(r->held);
    rlock_free(r->lk);
    other_client_leave(&r->holder);
    scene_stop(&r->s);
}

static void expect_dead_cost_nothing(intptr_t dead)
{
    row r;
    row_start(&r, dead);
    child_kill(r.c);
    EVENTUALLY(SOON, server_cmd(r.s.sv, "PUBSUB CHANNELS *")->elements == 1);
    EXPECT_BETWEEN(row_unlock(&r), 0, WELL_BEFORE_POLL_MS);
    row_stop(&r);
}

TEST_CASE(fair_gone, one_that_was_killed_ahead_costs_nothing,
          expect_dead_cost_nothing(1))
TEST_CASE(fair_gone, many_that_were_killed_ahead_cost_nothing,
          expect_dead_cost_nothing(20))

/* It is told, and does nothing with it: until its claim is over. */
TEST(fair_gone, one_that_is_stopped_ahead_costs_a_claim_at_most)
{
    row r;
    row_start(&r, 1);
    child_stop(r.c);
    EXPECT_BETWEEN(row_unlock(&r), 0, 3000 + SLACK_MS);
    row_stop(&r);
    child_kill(r.c);
}

/* A message that was for it has gone with its connection. */
TEST(fair_gone, who_hears_again_asks_what_it_has_missed)
{
    scene s = scene_proxied(0, 0);
    other_client o = other_client_join(&s, NULL);
    rlock *mine = fair_lock(s.cl), *theirs = fair_lock(o.cl);
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(theirs), RLOCK_OK);
    waiter *w = waiter_start(mine, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, in_line(s.sv) == 1 && queued(s.sv, SCENE_LOCK) == 1);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EVENTUALLY(SOON, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 0);
    EXPECT_STATUS(rlock_unlock(theirs), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK)); /* unheard, and taken back */
    proxy_refuse(s.px, false);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    rlock_free(mine);
    rlock_free(theirs);
    other_client_leave(&o);
    scene_stop(&s);
}

/* --- without pub/sub ------------------------------------------------------ */

static void expect_served(rlock *first, rlock *second, rlock *third, server *sv)
{
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(first), RLOCK_OK);
    waiter *a = waiter_start(second, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, in_line(sv) == 1);
    waiter *b = waiter_start(third, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, in_line(sv) == 2);
    EXPECT_STATUS(rlock_unlock(first), RLOCK_OK);
    EXPECT_STATUS(waiter_status(a, &at_ms), RLOCK_OK);
    EXPECT(!waiter_returned(b));
    EXPECT_STATUS(waiter_end(a), RLOCK_OK);
    EXPECT_STATUS(waiter_end(b), RLOCK_OK);
}

/* It polls, and is served in its turn all the same. */
TEST(fair_gone, who_must_not_subscribe_waits_in_line)
{
    scene s = scene_server(NULL);
    server_cmd(s.sv, "ACL SETUSER default resetchannels");
    scene_client(&s, 0, 0);
    other_client o = other_client_join(&s, NULL);
    rlock *mine = fair_lock(s.cl), *theirs = fair_lock(o.cl);
    expect_served(mine, theirs, mine, s.sv);
    expect_served(theirs, mine, mine, s.sv);
    rlock_free(mine);
    rlock_free(theirs);
    other_client_leave(&o);
    scene_stop(&s);
}

/* --- a cluster ------------------------------------------------------------ */

/* Its bells are sharded channels, which both names have in common. */
TEST(fair_gone, in_a_cluster_each_has_its_turn_too)
{
    enum { N = 20 };
    cluster_scene l, visitor;
    cluster_scene_start(&l, 0);
    cluster_scene_join(&l, &visitor);
    rlock *a = test_fair_lock(l.cl, "job"),
          *b = test_fair_lock(visitor.cl, "job");
    rlock *braced = test_fair_lock(visitor.cl, "{job}");
    EXPECT_STATUS(rlock_lock(braced), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        rlock *first = i % 2 ? a : b, *second = i % 2 ? b : a;
        EXPECT_STATUS(rlock_lock(first), RLOCK_OK);
        waiter *w = waiter_start(second, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(i % 2 ? visitor.cl : l.cl).waiting_now == 1);
        EXPECT_STATUS(rlock_unlock(first), RLOCK_OK);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    }
    EXPECT_STATUS(rlock_unlock(braced), RLOCK_OK);
    EXPECT_INT(cluster_scene_levels(&l, "job"), 0);
    EXPECT_INT(stats_of(l.cl).lost + stats_of(visitor.cl).lost, 0);
    rlock_free(braced);
    rlock_free(a);
    rlock_free(b);
    cluster_scene_leave(&visitor);
    cluster_scene_stop(&l);
}

TEST(fair_gone, who_waits_in_line_goes_on_when_a_replica_takes_over)
{
    cluster_scene l, visitor;
    cluster_scene_start(&l, 9000);
    cluster_scene_join(&l, &visitor);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *a = test_fair_lock(l.cl, name),
          *b = test_fair_lock(visitor.cl, name);
    EXPECT_STATUS(rlock_lock(a), RLOCK_OK);
    waiter *w = waiter_start(b, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(visitor.cl).waiting_now == 1);
    EVENTUALLY(SOON, cluster_int(l.c, 0, "WAIT 1 100") == 1);
    cluster_kill(l.c, 0);
    cluster_await_owner(l.c, name, 3);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    watch_renewals(l.cl, 1);
    EXPECT(rlock_is_held(a) && !waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(a), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(a);
    rlock_free(b);
    cluster_scene_leave(&visitor);
    cluster_scene_stop(&l);
}

/* --- Sentinels ------------------------------------------------------------ */

TEST(fair_gone, who_waits_in_line_goes_on_at_the_master_that_is_elected)
{
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *all = sentinels_start(master, 1);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = sentinels_uri(all);
    scene one = scene_with(master, &opts), two = scene_with(master, &opts);
    rlock *a = fair_lock(one.cl), *b = fair_lock(two.cl);
    EXPECT_STATUS(rlock_lock(a), RLOCK_OK);
    waiter *w = waiter_start(b, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, in_line(master) == 1);
    EVENTUALLY(SOON, replica_follows(master));
    server_kill(master);
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    EVENTUALLY(SOON, in_line(replica) == 1); /* it has looked there */
    EXPECT(rlock_is_held(a) && !waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(a), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).lost + stats_of(two.cl).lost, 0);
    rlock_free(a);
    rlock_free(b);
    scene_leave(&one);
    scene_leave(&two);
    sentinels_stop(all);
    server_stop(replica);
    server_stop(master);
}
