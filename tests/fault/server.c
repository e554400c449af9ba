/*
 * Faults of the server: it ends, comes back, does not answer for a while, is
 * out of room, or is another server. Each test sees first that all is well
 * without the fault.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "other_client.h"

/* --- 1 to 4: it ends, and comes back with or without its data ------------ */

TEST(server, fault_001_a_server_that_stays_down_loses_the_hold)
{
    scene s = scene_undisturbed(NULL, 1000, 200);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_kill(s.sv);
    expect_hold_lost(&s);
    EXPECT(stats_of(s.cl).renew_failures > 0);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 200, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 200, 1500);
    scene_stop(&s);
}

TEST(server, fault_002_a_server_that_comes_back_empty_loses_the_hold)
{
    scene s = scene_undisturbed(NULL, 6000, 500);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_kill(s.sv);
    server_restart(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 20000);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0); /* not made again */
    expect_hold_lost(&s);
    scene_stop(&s);
}

/* The first owner may not have been told yet. */
TEST(server, fault_002_the_token_tells_who_has_the_lock_of_an_emptied_server)
{
    scene s = scene_undisturbed(NULL, 0, 0);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    uint64_t lost = rlock_token(s.lk);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    server_kill(s.sv);
    server_restart(s.sv);
    EXPECT_STATUS(rlock_acquire(b.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(rlock_token(b.lk) > lost);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}

/* Redis 7 has several files in a folder, older ones have one. */
static const char *appended_file(const server *sv)
{
    const char *path =
        server_file(sv, "appendonlydir/appendonly.aof.1.incr.aof");
    return access(path, F_OK) == 0 ? path : server_file(sv, "appendonly.aof");
}

static off_t appended(const server *sv)
{
    struct stat st;
    EXPECT_INT(stat(appended_file(sv), &st), 0);
    return st.st_size;
}

/* The server is killed when it has written down the acquire; a power cut takes
   most of that back, from the middle of a command. */
static void lose_power(bool power_cut)
{
    enum { SOME = 20 };
    scene s = scene_server("--appendonly yes --appendfsync everysec");
    scene_client(&s, 6000, 500);
    off_t before = appended(s.sv);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(5000, appended(s.sv) > before + SOME);
    server_kill(s.sv);
    if (power_cut)
        EXPECT_INT(truncate(appended_file(s.sv), before + SOME), 0);
    server_restart(s.sv);
    if (power_cut) {
        expect_hold_lost(&s);
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    } else {
        expect_renewals(&s, 1);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    scene_stop(&s);
}

TEST(server, fault_003_a_power_cut_that_takes_the_acquire_loses_the_hold)
{
    lose_power(false); /* the control */
    lose_power(true);
}

/*
 * The log breaks off in the last command of a grant, which sets the TTL. The server
 * drops it and what came before, but leaves that in the log: the next restart finds
 * it there, with the commands of another script behind it.
 */
static void lose_the_end_of_a_grant(bool rewritten)
{
    enum { IN_THE_TTL = 20 };
    scene s = scene_undisturbed(SERVER_DURABLE, 0, 500);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    server_kill(s.sv);
    EXPECT(server_cut_log(s.sv, IN_THE_TTL));
    server_restart(s.sv);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    if (rewritten)
        server_rewrite_log(s.sv);
    server_cmd(s.sv, "EVAL %s 0",
               "redis.call('SET', 'a', 1) redis.call('SET', 'b', 1)");
    server_restart(s.sv);
    if (rewritten) {
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    } else if (levels(s.sv, SCENE_LOCK) > 0) { /* as Redis 7.0 does */
        EXPECT_INT(server_int(s.sv, "PTTL " SCENE_LOCK), -1);
        EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    }
    scene_stop(&s);
}

TEST_CASE(server, fault_003_a_grant_whose_end_the_log_lacks_may_have_no_end,
          lose_the_end_of_a_grant(false))
TEST_CASE(server, fault_003_a_rewritten_log_has_no_half_of_a_grant,
          lose_the_end_of_a_grant(true))

TEST(server, fault_004_a_restart_that_keeps_the_data_keeps_the_hold)
{
    scene s = scene_undisturbed(SERVER_DURABLE, 6000, 500);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_restart(s.sv);
    expect_renewals(&s, 1);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(server, fault_004_a_lease_runs_on_while_the_server_is_down)
{
    scene s = scene_undisturbed(SERVER_DURABLE, 0, 500);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    server_kill(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    server_restart(s.sv);
    EVENTUALLY(500, levels(s.sv, SCENE_LOCK) == 0);
    expect_hold_lost(&s);
    scene_stop(&s);
}

/* --- 5 to 9: it does not answer for a while ------------------------------ */

TEST(server, fault_005_a_pause_shorter_than_the_lease_keeps_the_hold)
{
    scene s = scene_undisturbed(NULL, 3000, 200);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_EIO);
    server_resume(s.sv);
    expect_renewals(&s, 2);
    EXPECT(rlock_is_held(s.lk));
    EVENTUALLY(5000, levels(s.sv, "other") == 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    rlock_free(other);
    scene_stop(&s);
}

TEST(server, fault_006_a_pause_longer_than_the_lease_loses_the_hold)
{
    scene s = scene_undisturbed(NULL, 1000, 200);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "PERSIST %s", SCENE_LOCK); /* the server has it still */
    server_pause(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    server_resume(s.sv);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    expect_hold_lost(&s);
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    scene_stop(&s);
}

static void sleep_in_server(int64_t lease_ms, const char *seconds, bool lost)
{
    scene s = scene_undisturbed(server_unlocked(""), lease_ms, 200);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "DEBUG SLEEP %s", seconds), "OK");
    if (lost) {
        expect_hold_lost(&s);
    } else {
        expect_renewals(&s, 1);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    scene_stop(&s);
}

TEST(server, fault_007_a_server_that_sleeps_is_a_paused_one)
{
    sleep_in_server(3000, "0.7", false);
    sleep_in_server(1000, "1.3", true);
}

/* Sends a script that does not end, and waits for no answer. */
static redisContext *occupy(server *sv, const char *script)
{
    redisContext *cx = redisConnectUnix(server_path(sv));
    int done = 0;
    EXPECT(cx && !cx->err);
    redisAppendCommand(cx, "EVAL %s 0", script);
    while (!done)
        EXPECT_INT(redisBufferWrite(cx, &done), REDIS_OK);
    EVENTUALLY(5000, strncmp(server_str(sv, "PING"), "BUSY", 4) == 0);
    return cx;
}

TEST(server, fault_008_a_busy_script_is_waited_out)
{
    scene s = scene_undisturbed("--lua-time-limit 20", 0, 0);
    redisContext *cx = occupy(s.sv, "while true do end");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "BUSY");
    waiter *w = waiter_start(s.lk, 20000, RLOCK_WATCHDOG);
    EVENTUALLY(5000, stats_of(s.cl).waiting_now == 1);
    EXPECT_STR(server_str(s.sv, "SCRIPT KILL"), "OK");
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_nothing_left(s.sv); /* nothing was in doubt */
    redisFree(cx);
    scene_stop(&s);
}

/* One that has written something only ends with the server. */
TEST(server, fault_009_a_busy_script_that_cannot_be_killed_loses_the_hold)
{
    scene s = scene_server("--lua-time-limit 20");
    s.px = proxy_start(s.sv);
    scene_client(&s, 1000, 0);
    expect_undisturbed(&s);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    redisContext *cx =
        occupy(s.sv, "redis.call('SET', 'x', 1) while true do end");
    EXPECT_CONTAINS(server_str(s.sv, "SCRIPT KILL"), "UNKILLABLE");
    expect_hold_lost(&s);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 200, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "BUSY");
    EXPECT_BETWEEN(test_now_ms() - began_ms, 200, 3200 + 500);
    EXPECT_INT(proxy_count(s.px, "KILL"), 0);
    redisFree(cx);
    scene_stop(&s);
}

TEST(server, fault_010_a_server_that_is_loading_is_asked_again)
{
    const char *loading = "-LOADING Redis is loading the dataset\r\n";
    scene s = scene_undisturbed_proxied(1000, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, loading);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_ANSWER, loading);
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, 5000);
    expect_renewals(&s, 2);
    EXPECT(rlock_is_held(s.lk));
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_ANSWER, loading);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- 26: another server -------------------------------------------------- */

TEST(server, fault_026_errors_are_known_by_their_words_however_wrapped)
{
    static const char *const errors[] = {
        "-ERR Error running script (call to f_0): @user_script:1: -LOADING x",
        "-LOADING Valkey is loading the dataset in memory",
        "-BUSY Valkey is busy running a script. You can only call SCRIPT KILL",
        "-MISCONF Valkey is configured to save RDB snapshots, but it's unable",
        "-NOREPLICAS Not enough good replicas to write. script: 0, on @user:1.",
        "-ERR user_script:1: -READONLY You can't write against a replica."};
    scene s = scene_undisturbed_proxied(0, 0);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        char answer[200];
        snprintf(answer, sizeof answer, "%s\r\n", errors[i]);
        proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, answer);
        EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT(proxy_fired(s.px));
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
        expect_nothing_left(s.sv); /* nothing was in doubt */
    }
    scene_stop(&s);
}

TEST(server, fault_026_valkey_is_a_server_like_any_other)
{
    if (system("command -v valkey-server >/dev/null") != 0)
        SKIP("there is no valkey-server here");
    EXPECT_INT(setenv("RLOCK_TEST_SERVER", "valkey-server", 1), 0);
    scene s = scene_undisturbed("--lua-time-limit 20", 1000, 0);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    waiter *w = waiter_start(b.lk, 20000, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, b.cl, 1);
    server_cmd(s.sv, "SCRIPT FLUSH");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    redisContext *cx = occupy(s.sv, "while true do end");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "BUSY");
    EXPECT_STR(server_str(s.sv, "SCRIPT KILL"), "OK");
    EVENTUALLY(5000, strcmp(server_str(s.sv, "PING"), "PONG") == 0);
    redisFree(cx);
    EXPECT_STR(server_str(s.sv, "REPLICAOF 127.0.0.1 1"), "OK");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "READONLY");
    EXPECT_STR(server_str(s.sv, "REPLICAOF NO ONE"), "OK");
    expect_nothing_left(s.sv); /* nothing was in doubt */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "FLUSHALL");
    expect_hold_lost(&s);
    other_client_leave(&b);
    scene_stop(&s);
}
