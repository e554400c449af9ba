/*
 * The watch over a server: what a client that holds a lock, and calls nothing,
 * notices of the end, the silence and the restart of the server; and what that
 * costs.
 */
#include "scene.h"
#include "sentinels.h"

/* After somebody else has been granted it. */
enum { OF_ONE_MS = 1200, OF_SENTINELS_MS = 500 };

/* Somebody else takes it as soon as that can be had. When. */
static int64_t taken_ms(const char *uri, const char *name)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    rlock *lk;
    o.uri = uri;
    /* Sentinels that have given up a failover begin the next one later. */
    EVENTUALLY(2 * SOON, rlock_client_new(&o, &cl) == RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, name, &lk), RLOCK_OK);
    EVENTUALLY(SOON, rlock_trylock(lk) == RLOCK_OK);
    int64_t at_ms = test_now_ms();
    rlock_free(lk);
    rlock_client_free(cl);
    return at_ms;
}

static void expect_noticed(scene *s, int64_t since_ms, int64_t limit_ms)
{
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_time(s->ev, RLOCK_EVENT_LOST) - since_ms <
           limit_ms + SLACK_MS);
    EXPECT_CONTAINS(events_message(s->ev, RLOCK_EVENT_LOST),
                    "the server no longer knows it");
    EXPECT(!rlock_is_held(s->lk));
}

/* --- one server ----------------------------------------------------------- */

static void restart_empty(int64_t lease_ms)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, lease_ms), RLOCK_OK);
    EXPECT(rlock_is_held(s.lk));
    server_kill(s.sv);
    server_restart(s.sv);
    expect_noticed(&s, taken_ms(server_uri(s.sv), SCENE_LOCK), OF_ONE_MS);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(stats_of(s.cl).lost, 1);
    scene_stop(&s);
}

TEST_CASE(watch, an_idle_hold_is_lost_when_its_server_comes_back_empty,
          restart_empty(RLOCK_WATCHDOG))
TEST_CASE(watch, a_lease_of_its_own_is_lost_when_its_server_comes_back_empty,
          restart_empty(20000))

TEST(watch, a_server_that_is_away_for_long_is_noticed_when_it_is_back)
{
    scene s = scene_held(0, 0);
    server_kill(s.sv);
    test_pause_ms(3000); /* pauses have become as long as they will */
    EXPECT(rlock_is_held(s.lk));
    server_restart(s.sv);
    expect_noticed(&s, taken_ms(server_uri(s.sv), SCENE_LOCK), OF_ONE_MS);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(watch, a_server_that_comes_back_with_its_data_is_asked_at_once)
{
    scene s = scene_undisturbed(SERVER_DURABLE, 0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t renewals = stats_of(s.cl).renewals;
    server_kill(s.sv);
    server_restart(s.sv);
    int64_t back_ms = test_now_ms();
    EVENTUALLY(SOON, stats_of(s.cl).renewals > renewals);
    EXPECT(test_since_ms(back_ms) < OF_ONE_MS + SLACK_MS);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

TEST(watch, a_lease_of_its_own_is_asked_about_once_and_not_prolonged)
{
    scene s = scene_undisturbed(SERVER_DURABLE, 0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    int64_t end_ms = test_now_ms() + key_ttl(s.sv, SCENE_LOCK);
    server_kill(s.sv);
    server_restart(s.sv);
    server_load_scripts(s.sv);
    /* Which run it is; and then the question. */
    EVENTUALLY(OF_ONE_MS + SLACK_MS, script_calls(s.sv) >= 2);
    test_pause_ms(1500);
    EXPECT(script_calls(s.sv) <= 4); /* a script may have gone whole */
    EXPECT(test_now_ms() + key_ttl(s.sv, SCENE_LOCK) <= end_ms + 5);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

/* The connection breaks, and it is the same server. */
TEST(watch, a_connection_that_breaks_is_replaced_and_nothing_is_asked)
{
    scene s = scene_held(0, 0);
    EVENTUALLY(SOON, server_info(s.sv, "connected_clients") >= 2);
    /* Who watches knows which run it is when it asks for a sign of life. */
    long long signs = server_calls(s.sv, "pexpire");
    EVENTUALLY(SOON, server_calls(s.sv, "pexpire") > signs);
    long long calls = script_calls(s.sv), met;
    met = server_info(s.sv, "total_connections_received");
    server_cmd(s.sv, "CLIENT KILL TYPE normal SKIPME yes");
    EVENTUALLY(SOON, server_info(s.sv, "total_connections_received") > met);
    EVENTUALLY(SOON, script_calls(s.sv) > calls);
    test_pause_ms(500);
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* With many holds there, each of which is tried again and again. */
TEST(watch, of_a_server_that_is_away_one_failure_in_a_second_is_told)
{
    enum { HOLDS = 20 };
    scene s = scene_start(9000, 0);
    rlock *lk[HOLDS];
    for (int i = 0; i < HOLDS; i++) {
        char name[24];
        snprintf(name, sizeof name, "held:%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    server_kill(s.sv);
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    EVENTUALLY(SOON, stats_of(s.cl).renew_failures >= 4 * HOLDS);
    int64_t began_ms = test_now_ms();
    int before = events_count(s.ev, RLOCK_EVENT_RENEW_FAILED);
    EVENTUALLY(SOON, test_since_ms(began_ms) >= 2000);
    EXPECT_BETWEEN(events_count(s.ev, RLOCK_EVENT_RENEW_FAILED) - before, 1, 3);
    EXPECT(before <= 3);
    server_restart(s.sv);
    for (int i = 0; i < HOLDS; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_LOST);
        rlock_free(lk[i]);
    }
    EXPECT_INT(stats_of(s.cl).lost, HOLDS);
    scene_stop(&s);
}

/* --- what it costs -------------------------------------------------------- */

/* Commands in so many seconds, but the one that asks. */
static long long commands_in(server *sv, int seconds)
{
    long long before = server_info(sv, "total_commands_processed");
    test_pause_ms(seconds * 1000);
    return server_info(sv, "total_commands_processed") - before - 1;
}

TEST(watch, it_costs_at_most_six_commands_in_five_seconds)
{
    scene s = scene_start(60000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_pause_ms(1000);
    EXPECT_BETWEEN(commands_in(s.sv, 5), 1, 6);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(watch, it_costs_the_same_for_a_thousand_holds_of_leases_of_their_own)
{
    enum { HOLDS = 1000 };
    scene s = scene_start(60000, 0);
    rlock *lk[HOLDS];
    for (int i = 0; i < HOLDS; i++) {
        char name[24];
        snprintf(name, sizeof name, "held:%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_acquire(lk[i], 0, 50000), RLOCK_OK);
    }
    test_pause_ms(1000);
    EXPECT_BETWEEN(commands_in(s.sv, 5), 1, 6);
    for (int i = 0; i < HOLDS; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    scene_stop(&s);
}

TEST(watch, it_costs_nothing_while_nothing_is_held)
{
    scene s = scene_start(0, 0);
    EXPECT_INT(commands_in(s.sv, 2), 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    test_pause_ms(1000);
    EXPECT_INT(commands_in(s.sv, 3), 0);
    scene_stop(&s);
}

/* --- Sentinels ------------------------------------------------------------ */

typedef struct fleet {
    server *master, *replica;
    sentinels *s;
    scene one; /* holds a lock that the replica has not got */
} fleet;

static fleet fleet_start(int64_t lease_ms)
{
    fleet f = {.master = server_start_tcp(NULL)};
    rlock_options o = RLOCK_OPTIONS_INIT;
    f.replica = replica_start(f.master);
    f.s = sentinels_start(f.master, 3);
    o.uri = sentinels_uri(f.s);
    f.one = scene_with(f.master, &o);
    server_pause(f.replica);
    server_cmd(f.master, "CLIENT KILL TYPE replica");
    EXPECT_STATUS(rlock_acquire(f.one.lk, 0, lease_ms), RLOCK_OK);
    EXPECT(rlock_is_held(f.one.lk));
    return f;
}

static void fleet_stop(fleet *f)
{
    EXPECT_STATUS(rlock_unlock(f->one.lk), RLOCK_LOST);
    scene_leave(&f->one);
    sentinels_stop(f->s);
    server_stop(f->replica);
    server_stop(f->master);
}

static void fail_over(void (*end)(server *sv), int64_t lease_ms)
{
    fleet f = fleet_start(lease_ms);
    end(f.master);
    server_resume(f.replica);
    expect_noticed(&f.one, taken_ms(sentinels_uri(f.s), SCENE_LOCK),
                   OF_SENTINELS_MS);
    fleet_stop(&f);
}

TEST_CASE(watch, with_sentinels_a_dead_master_is_noticed_by_who_is_idle,
          fail_over(server_kill, RLOCK_WATCHDOG))
TEST_CASE(watch, with_sentinels_a_silent_master_is_noticed_by_who_is_idle,
          fail_over(server_pause, RLOCK_WATCHDOG))
TEST_CASE(watch, with_sentinels_a_lease_of_its_own_is_asked_about,
          fail_over(server_kill, 20000))

/* How late who is idle is told that the new master does not have it. */
static int64_t lateness_ms(void)
{
    fleet f = fleet_start(RLOCK_WATCHDOG);
    server_kill(f.master);
    server_resume(f.replica);
    int64_t since_ms = taken_ms(sentinels_uri(f.s), SCENE_LOCK);
    events_wait(f.one.ev, RLOCK_EVENT_LOST, 1, SOON);
    int64_t late_ms = events_time(f.one.ev, RLOCK_EVENT_LOST) - since_ms;
    fleet_stop(&f);
    return late_ms;
}

/* By then the keeper pauses for up to a second, as nobody is there. Mostly, for
   the machine may be busy. */
TEST(watch, with_sentinels_a_pause_ends_when_another_master_is_in_office)
{
    enum { ROUNDS = 3, PROMPT_MS = 100 };
    int prompt = 0;
    for (int i = 0; i < ROUNDS; i++)
        prompt += lateness_ms() < PROMPT_MS;
    EXPECT(prompt > ROUNDS / 2);
}

/* No replica is asked: it comes back before anybody has missed it. */
TEST(watch, with_sentinels_a_master_that_comes_back_empty_is_noticed)
{
    fleet f = fleet_start(RLOCK_WATCHDOG);
    sentinels_kill(f.s, 0);
    sentinels_kill(f.s, 1); /* no majority: it stays in office */
    server_kill(f.master);
    server_restart(f.master);
    expect_noticed(&f.one, taken_ms(server_uri(f.master), SCENE_LOCK),
                   OF_ONE_MS);
    server_resume(f.replica);
    fleet_stop(&f);
}
