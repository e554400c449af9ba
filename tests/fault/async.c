/*
 * Faults of the server while many calls that were started are under way: each
 * is called back once, with the status and in the time that the header says,
 * and what is unknown is undone. Each test sees first that all is well without
 * the fault.
 */
#include "cluster.h"
#include "other_client.h"
#include "storm.h"

#define MANY 100

typedef struct rough {
    scene s;
    storm st;
} rough;

/* In which each has taken its lock and given it back. */
static rough rough_of(scene s, size_t n)
{
    rough x = {.s = s};
    x.st = storm_new(s.cl, n);
    storm_undisturbed(&x.st);
    expect_nothing_left(s.sv);
    return x;
}

static rough rough_start(size_t n, int64_t lease_ms, int64_t timeout_ms)
{
    return rough_of(scene_start(lease_ms, timeout_ms), n);
}

/* They can be used as ever, and leave nothing. */
static void rough_end(rough *x)
{
    if (x->s.cl) {
        storm_undisturbed(&x->st);
        expect_all_undone(x->s.sv);
    }
    storm_free(&x->st);
    scene_stop(&x->s);
}

enum { TOLD = 2 }; /* of each, by the control */

/*
 * What was sent may be executed after we have looked: freeing the client is
 * over when all has been undone, and from then on tombstones refuse it.
 */
static void expect_undone_soon(rough *x)
{
    EVENTUALLY(SOON, server_cmd(x->s.sv, "KEYS storm:*")->elements == 0);
    scene_free_client(&x->s);
    EVENTUALLY(SOON, server_cmd(x->s.sv, "KEYS storm:*")->elements == 0);
    expect_all_undone(x->s.sv);
}

/* --- 152: it ends, comes back, or is stopped ------------------------------ */

TEST(async, fault_152_a_wait_survives_an_outage_within_a_watchdog_lease)
{
    rough x = rough_start(MANY, 20000, 300);
    server_kill(x.s.sv);
    storm_acquire(&x.st, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(x.s.cl).waiting_now == MANY);
    EXPECT(storm_told(&x.st, RLOCK_OK) == MANY); /* of the control */
    server_restart(x.s.sv);
    storm_settle(&x.st, TOLD + 1);
    storm_expect(&x.st, RLOCK_OK);
    EXPECT(storm_holding(&x.st) == MANY);
    storm_unlock(&x.st);
    storm_settle(&x.st, TOLD + 2);
    storm_expect(&x.st, RLOCK_OK);
    rough_end(&x);
}

TEST(async, fault_152_a_wait_ends_with_an_outage_longer_than_the_lease)
{
    rough x = rough_start(MANY, 1000, 300);
    server_kill(x.s.sv);
    int64_t began_ms = test_now_ms();
    storm_acquire(&x.st, RLOCK_FOREVER, RLOCK_WATCHDOG);
    storm_settle(&x.st, TOLD + 1);
    storm_expect(&x.st, RLOCK_EIO);
    storm_expect_between(&x.st, began_ms, 1000, 1000 + 500 + 300 + SLACK_MS);
    server_restart(x.s.sv);
    rough_end(&x);
}

TEST(async, fault_152_who_does_not_wait_is_told_of_a_dead_server_at_once)
{
    rough x = rough_start(MANY, 0, 300);
    server_kill(x.s.sv);
    int64_t began_ms = test_now_ms();
    storm_acquire(&x.st, 0, RLOCK_WATCHDOG);
    storm_settle(&x.st, TOLD + 1);
    storm_expect(&x.st, RLOCK_EIO);
    storm_expect_between(&x.st, began_ms, 0, 300 + SLACK_MS);
    EXPECT_CONTAINS(x.st.r[MANY - 1].error.message, "'storm:99'");
    server_restart(x.s.sv);
    rough_end(&x);
}

/* The server grants them when it goes on, and nobody is there. */
TEST(async, fault_152_what_a_stopped_server_grants_later_is_undone)
{
    rough x = rough_start(MANY, 0, 300);
    server_pause(x.s.sv);
    int64_t began_ms = test_now_ms();
    storm_acquire(&x.st, 0, 60000);
    storm_settle(&x.st, TOLD + 1);
    storm_expect(&x.st, RLOCK_EIO);
    storm_expect_between(&x.st, began_ms, 300, 300 + SLACK_MS);
    EXPECT(storm_holding(&x.st) == 0);
    server_resume(x.s.sv);
    expect_undone_soon(&x);
    rough_end(&x);
}

/* Each has undone its level; the lock goes when the server can be asked. */
TEST(async, fault_152_unlocks_at_a_stopped_server_are_made_good)
{
    rough x = rough_start(MANY, 0, 300);
    storm_acquire(&x.st, 0, 60000);
    storm_settle(&x.st, TOLD + 1);
    server_pause(x.s.sv);
    int64_t began_ms = test_now_ms();
    storm_unlock(&x.st);
    storm_settle(&x.st, TOLD + 2);
    storm_expect(&x.st, RLOCK_EIO);
    storm_expect_between(&x.st, began_ms, 300, 300 + SLACK_MS);
    EXPECT(storm_holding(&x.st) == 0);
    server_resume(x.s.sv);
    expect_undone_soon(&x);
    rough_end(&x);
}

static void leave(request *r)
{
    int *inside = r->arg;
    r->then = NULL;
    EXPECT_STATUS(r->status, RLOCK_OK);
    EXPECT_INT((*inside)++, 0);
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
    (*inside)--;
}

/* It comes back without its data, and nobody is told twice, or forgotten. */
TEST(async, fault_152_waiters_of_a_server_that_came_back_get_it_in_turn)
{
    enum { N = 20 };
    scene s = scene_start(20000, 300);
    int inside = 0;
    storm st = storm_for(s.cl, s.lk, N);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (size_t i = 0; i < N; i++) {
        st.r[i].arg = &inside;
        st.r[i].then = leave;
    }
    storm_acquire(&st, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, N);
    EXPECT(storm_told(&st, RLOCK_OK) == N && st.r[0].told == 0);
    server_kill(s.sv);
    server_restart(s.sv);
    storm_settle(&st, 2); /* the acquire and the unlock */
    storm_expect(&st, RLOCK_OK);
    expect_all_undone(s.sv);
    storm_free(&st);
    scene_stop(&s);
}

/* --- 153: it answers with errors ------------------------------------------ */

TEST(async, fault_153_scripts_that_are_gone_come_back_for_all)
{
    rough x = rough_start(MANY, 0, 0);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < MANY; i++) {
            if (i % 20 == 0)
                server_cmd(x.s.sv, "SCRIPT FLUSH");
            EXPECT_STATUS(request_acquire(&x.st.r[i], 0, RLOCK_WATCHDOG),
                          RLOCK_OK);
        }
        storm_settle(&x.st, TOLD + 2 * round + 1);
        storm_expect(&x.st, RLOCK_OK);
        server_cmd(x.s.sv, "SCRIPT FLUSH");
        storm_unlock(&x.st);
        storm_settle(&x.st, TOLD + 2 * round + 2);
        storm_expect(&x.st, RLOCK_OK);
    }
    expect_nothing_left(x.s.sv); /* nothing was in doubt */
    rough_end(&x);
}

/* What passes is waited out by who waits, and told to who does not. */
static void expect_waited_out(const char *error)
{
    char answer[200];
    rough x = rough_of(scene_proxied(20000, 0), MANY);
    snprintf(answer, sizeof answer, "-%s\r\n", error);
    proxy_rule(x.s.px, proxy_sha("acquire"), PROXY_EVERY, PROXY_ANSWER, answer);
    storm_acquire(&x.st, 0, RLOCK_WATCHDOG);
    storm_settle(&x.st, TOLD + 1);
    storm_expect(&x.st, RLOCK_ESERVER);
    EXPECT_CONTAINS(x.st.r[MANY / 2].error.message, error);
    storm_acquire(&x.st, SOON, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(x.s.cl).waiting_now == MANY);
    proxy_rule(x.s.px, NULL, 0, PROXY_ANSWER, NULL);
    storm_settle(&x.st, TOLD + 2);
    storm_expect(&x.st, RLOCK_OK);
    storm_unlock(&x.st);
    storm_settle(&x.st, TOLD + 3);
    expect_nothing_left(x.s.sv); /* nothing was in doubt */
    rough_end(&x);
}

TEST_CASE(async, fault_153_a_server_that_is_loading_is_waited_out,
          expect_waited_out("LOADING Redis is loading the dataset in memory"))
TEST_CASE(async, fault_153_a_busy_script_is_waited_out,
          expect_waited_out("BUSY Redis is busy running a script."))
TEST_CASE(async, fault_153_a_disk_that_is_full_is_waited_out,
          expect_waited_out("MISCONF Redis is configured to save"))

/* A real one: the master becomes a replica, and master again. */
TEST(async, fault_153_a_master_that_was_demoted_for_a_while_is_waited_out)
{
    rough x = rough_start(MANY, 20000, 0);
    EXPECT_STR(server_str(x.s.sv, "REPLICAOF 127.0.0.1 1"), "OK");
    storm_acquire(&x.st, 0, RLOCK_WATCHDOG);
    storm_settle(&x.st, TOLD + 1);
    storm_expect(&x.st, RLOCK_ESERVER);
    EXPECT_CONTAINS(x.st.r[0].error.message, "READONLY");
    storm_acquire(&x.st, SOON, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(x.s.cl).waiting_now == MANY);
    EXPECT_STR(server_str(x.s.sv, "REPLICAOF NO ONE"), "OK");
    storm_settle(&x.st, TOLD + 2);
    storm_expect(&x.st, RLOCK_OK);
    storm_unlock(&x.st);
    storm_settle(&x.st, TOLD + 3);
    rough_end(&x);
}

/* --- 154: more than are asked for at a time ------------------------------- */

/* As long as one command may take, however many there are. */
TEST(async, fault_154_more_than_are_asked_for_at_a_time_are_told_in_time)
{
    enum { N = 700 };
    rough x = rough_start(N, 0, 500);
    server_pause(x.s.sv);
    int64_t began_ms = test_now_ms();
    storm_acquire(&x.st, 0, 60000);
    storm_settle(&x.st, TOLD + 1);
    storm_expect(&x.st, RLOCK_EIO);
    storm_expect_between(&x.st, began_ms, 500, 500 + SLACK_MS);
    server_resume(x.s.sv);
    expect_undone_soon(&x);
    rough_end(&x);
}

TEST(async, fault_154_a_server_that_hangs_disturbs_no_other_client)
{
    enum { N = 700 };
    rough x = rough_start(N, 0, 1000);
    scene other = scene_start(0, 0);
    request r = request_new(other.lk);
    server_pause(x.s.sv);
    storm_acquire(&x.st, 0, 60000);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(loop_acquire(other.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(other.cl, &r), RLOCK_OK);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, SLACK_MS);
    server_resume(x.s.sv);
    storm_settle(&x.st, TOLD + 1);
    request_free(&r);
    scene_stop(&other);
    storm_unlock(&x.st); /* of those that were granted after all */
    storm_settle(&x.st, TOLD + 2);
    rough_end(&x);
}

/* Of a cluster each master has its own connection, but all have one line. */
TEST(async, fault_154_a_master_that_hangs_disturbs_no_lock_of_another)
{
    enum { N = 700, TIMEOUT_MS = 2000 };
    cluster *c = cluster_start();
    scene s = {.opts = RLOCK_OPTIONS_INIT};
    s.opts.uri = cluster_uri(c);
    s.opts.command_timeout_ms = TIMEOUT_MS;
    EXPECT_STATUS(rlock_client_new(&s.opts, &s.cl), RLOCK_OK);
    s.lk = test_lock(s.cl, cluster_name_on(c, 0, "job"));
    storm st = storm_for(s.cl, s.lk, N);
    request r = request_new(test_lock(s.cl, cluster_name_on(c, 1, "job")));
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 60000), RLOCK_OK); /* the control */
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    cluster_pause(c, 0);
    storm_acquire(&st, 0, 60000);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 60000), RLOCK_OK);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, SLACK_MS);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    storm_settle(&st, 1);
    storm_expect_between(&st, began_ms, 0, TIMEOUT_MS + SLACK_MS);
    cluster_resume(c, 0);
    rlock_free(r.lk);
    request_free(&r);
    storm_free(&st);
    scene_leave(&s);
    cluster_stop(c);
}
