/*
 * Faults of the server and of its data: rows 1 to 26 of the catalogue. Each
 * test sees first that all is well without the fault.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "rival.h"

/* A fallback poll comes no later than that after the last look. */
#define POLL_MS 4000

/* A scene in which nothing is wrong yet. */
static scene undisturbed(const char *args, int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_server(args);
    scene_client(&s, lease_ms, timeout_ms);
    expect_undisturbed(&s);
    return s;
}

static scene undisturbed_proxied(int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_proxied(lease_ms, timeout_ms);
    expect_undisturbed(&s);
    return s;
}

/* --- 1 to 4: it ends, and comes back with or without its data ------------ */

TEST(server, fault_001_a_server_that_stays_down_loses_the_hold)
{
    scene s = undisturbed(NULL, 1000, 200);
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
    scene s = undisturbed(NULL, 6000, 500);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_kill(s.sv);
    server_restart(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 20000);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0); /* not made again */
    expect_hold_lost(&s);
    scene_stop(&s);
}

/* Until its lease ends the first owner cannot know. */
TEST(server, fault_002_the_token_tells_who_has_the_lock_of_an_emptied_server)
{
    scene s = undisturbed(NULL, 0, 0);
    rival b = rival_join(&s, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    server_kill(s.sv);
    server_restart(s.sv);
    EXPECT_STATUS(rlock_acquire(b.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(rlock_is_held(s.lk));
    EXPECT(rlock_token(b.lk) > rlock_token(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    rival_leave(&b);
    scene_stop(&s);
}

/* A file of the server's, by its name; valid until the next. */
static const char *file_of(const server *sv, const char *name)
{
    static char path[300];
    int dir = (int)(strrchr(server_path(sv), '/') - server_path(sv));
    snprintf(path, sizeof path, "%.*s/%s", dir, server_path(sv), name);
    return path;
}

/* Redis 7 has several files in a folder, older ones have one. */
static const char *appended_file(const server *sv)
{
    const char *path = file_of(sv, "appendonlydir/appendonly.aof.1.incr.aof");
    return access(path, F_OK) == 0 ? path : file_of(sv, "appendonly.aof");
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

TEST(server, fault_004_a_restart_that_keeps_the_data_keeps_the_hold)
{
    scene s = undisturbed("--appendonly yes --appendfsync always", 6000, 500);
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
    scene s = undisturbed("--appendonly yes --appendfsync always", 0, 500);
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
    scene s = undisturbed(NULL, 3000, 200);
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
    scene s = undisturbed(NULL, 1000, 200);
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
    scene s = undisturbed("--enable-debug-command yes", lease_ms, 200);
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
    scene s = undisturbed("--busy-reply-threshold 20", 0, 0);
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
    scene s = scene_server("--busy-reply-threshold 20");
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
    scene s = undisturbed_proxied(1000, 0);
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

/* --- 11 to 15: somebody touches the data --------------------------------- */

TEST(server, fault_011_after_a_flush_the_hold_is_lost_and_tokens_still_grow)
{
    scene s = undisturbed(NULL, 1000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    server_cmd(s.sv, "FLUSHALL");
    expect_hold_lost(&s);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) > token);
    scene_stop(&s);
}

TEST(server, fault_012_a_lock_that_was_taken_away_is_not_the_old_holders)
{
    scene s = undisturbed(NULL, 3000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    expect_hold_lost(&s);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    scene_stop(&s);
}

TEST(server, fault_012_a_lock_that_was_forced_is_not_the_old_holders)
{
    scene s = undisturbed(NULL, 3000, 0);
    rival b = rival_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    expect_hold_lost(&s);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    rival_leave(&b);
    scene_stop(&s);
}

TEST(server, fault_013_a_lock_without_expiry_gets_one_again)
{
    scene s = undisturbed(NULL, 1000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "PERSIST %s", SCENE_LOCK), 1);
    EVENTUALLY(5000, server_int(s.sv, "PTTL %s", SCENE_LOCK) > 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(server, fault_013_a_lease_that_was_shortened_is_set_right)
{
    scene s = undisturbed(NULL, 3000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int renewed = events_count(s.ev, RLOCK_EVENT_RENEWED);
    events_wait(s.ev, RLOCK_EVENT_RENEWED, renewed + 1, 5000);
    EXPECT_INT(server_int(s.sv, "PEXPIRE %s 1800", SCENE_LOCK), 1);
    EVENTUALLY(5000, server_int(s.sv, "PTTL %s", SCENE_LOCK) > 1800);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(server, fault_013_a_lock_that_was_renamed_is_lost)
{
    scene s = undisturbed(NULL, 1000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "RENAME %s elsewhere", SCENE_LOCK);
    expect_hold_lost(&s);
    scene_stop(&s);
}

/* Freed by hand, so that it rings nobody. */
static void wait_for_delete(bool persist)
{
    scene s = scene_start(0, 0);
    int64_t at_ms;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    if (persist)
        EXPECT_INT(server_int(s.sv, "PERSIST %s", SCENE_LOCK), 1);
    int64_t freed_ms = test_now_ms();
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, POLL_MS);
    waiter_end(w);
    scene_stop(&s);
}

TEST(server, fault_013_waiters_look_again_also_when_the_expiry_was_taken_away)
{
    wait_for_delete(false); /* the control */
    wait_for_delete(true);
}

TEST(server, fault_014_a_key_of_another_type_is_reported_and_left_alone)
{
    scene s = undisturbed(NULL, 0, 0);
    server_cmd(s.sv, "SET %s x", SCENE_LOCK);
    long long before = script_calls(s.sv);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_EWRONGTYPE);
    EXPECT_INT(script_calls(s.sv) - before, 1);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_EWRONGTYPE);
    EXPECT_STR(server_str(s.sv, "GET %s", SCENE_LOCK), "x");
    scene_stop(&s);
}

/* As Redis up to 6 says it. */
TEST(server, fault_014_a_key_of_another_type_is_known_by_its_word_anywhere)
{
    scene s = undisturbed_proxied(0, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER,
               "-ERR Error running script (call to f_0): @user_script:1: "
               "WRONGTYPE Operation against a key\r\n");
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_EWRONGTYPE);
    EXPECT_INT(proxy_count(s.px, proxy_sha("acquire")), 2); /* in all */
    scene_stop(&s);
}

static void expect_strangers(scene *s, const char *count)
{
    rlock_holder holder;
    server_cmd(s->sv, "HSET %s somebody %s", SCENE_LOCK, count);
    EXPECT_STATUS(rlock_trylock(s->lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s->lk, 30, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_holder_info(s->lk, &holder), RLOCK_OK);
    EXPECT_STR(holder.raw, "somebody");
    EXPECT_STR(server_str(s->sv, "HGET %s somebody", SCENE_LOCK), count);
}

TEST(server, fault_015_a_count_that_is_no_number_is_a_strangers)
{
    scene s = undisturbed(NULL, 0, 0);
    expect_strangers(&s, "abc");
    expect_strangers(&s, "99999999999999999999");
    scene_stop(&s);
}

/* The levels are told to the server, which does not count. */
TEST(server, fault_015_a_count_of_ours_that_was_spoiled_is_set_right)
{
    scene s = undisturbed(NULL, 0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    char holder[600];
    snprintf(holder, sizeof holder, "%s",
             server_cmd(s.sv, "HKEYS %s", SCENE_LOCK)->element[0]->str);
    server_cmd(s.sv, "HSET %s %s abc", SCENE_LOCK, holder);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    server_cmd(s.sv, "HSET %s %s 99999999999999999999", SCENE_LOCK, holder);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- 16 to 22: it has no room, or forgets the scripts --------------------- */

TEST(server, fault_016_a_server_out_of_memory_still_renews_and_releases)
{
    scene s = undisturbed(NULL, 1000, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_trylock(other), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "OOM");
    expect_renewals(&s, 3);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    server_cmd(s.sv, "CONFIG SET maxmemory 0");
    EXPECT_STATUS(rlock_trylock(other), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    expect_nothing_left(s.sv);
    rlock_free(other);
    scene_stop(&s);
}

static void expect_warnings(const char *args, int n)
{
    scene s = undisturbed(args, 0, 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_WARNING), n);
    if (n > 0)
        EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_WARNING),
                        "allkeys-lru");
    scene_stop(&s);
}

TEST(server, fault_017_a_server_that_may_evict_locks_is_warned_of)
{
    expect_warnings("--maxmemory 100mb", 0); /* the control */
    expect_warnings("--maxmemory-policy allkeys-lru", 0);
    expect_warnings("--maxmemory 100mb --maxmemory-policy allkeys-lru", 1);
}

TEST(server, fault_017_a_lock_that_was_evicted_is_lost)
{
    scene s = undisturbed("--maxmemory 100mb --maxmemory-policy allkeys-random",
                          3000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    server_cmd(s.sv, "CONFIG SET maxmemory 100mb");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    expect_hold_lost(&s);
    scene_stop(&s);
}

/* A server that saves now and then, and is allowed to be told where. */
#define SAVING "--save 3600 1000000 --enable-protected-configs yes"

/* Whether a SET that does nothing would be let through. */
static bool refuses_writes(server *sv)
{
    return strncmp(server_str(sv, "SET no_key x XX"), "MISCONF", 7) == 0;
}

/* A disk on which nobody can write, root neither; or the old one. */
static void fill_disk(server *sv, bool full)
{
    EXPECT_STR(
        server_str(sv, "CONFIG SET dir %s", full ? "/proc" : file_of(sv, "")),
        "OK");
    server_cmd(sv, "BGSAVE");
    EVENTUALLY(10000, refuses_writes(sv) == full);
}

TEST(server, fault_018_a_disk_that_is_full_for_a_while_is_waited_out)
{
    scene s = undisturbed(SAVING, 6000, 0);
    rlock *other = test_lock(s.cl, "other"), *third = test_lock(s.cl, "third");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(third, 0, 60000), RLOCK_OK);
    fill_disk(s.sv, true);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "MISCONF");
    EXPECT_STATUS(rlock_unlock(third), RLOCK_ESERVER);
    waiter *w = waiter_start(other, 20000, RLOCK_WATCHDOG);
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, 10000);
    EXPECT(rlock_is_held(s.lk));
    fill_disk(s.sv, false);
    expect_renewals(&s, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EVENTUALLY(10000, levels(s.sv, "third") == 0); /* released after all */
    EXPECT_INT(stats_of(s.cl).lost, 0);
    expect_nothing_left(s.sv); /* nothing was in doubt */
    rlock_free(other);
    rlock_free(third);
    scene_stop(&s);
}

TEST(server, fault_018_a_disk_that_stays_full_loses_the_hold)
{
    scene s = undisturbed(SAVING, 1000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    fill_disk(s.sv, true);
    expect_hold_lost(&s);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_RENEW_FAILED), "MISCONF");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 200, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 200, 3200 + 500);
    scene_stop(&s);
}

TEST(server, fault_019_a_server_without_room_for_clients_is_no_answer)
{
    scene s = scene_start(1000, 0);
    long long room = server_info(s.sv, "connected_clients");
    server_cmd(s.sv, "CONFIG SET maxclients %lld", room);
    rlock_status status = rlock_trylock(s.lk);
    EXPECT(status == RLOCK_ESERVER || status == RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "clients");
    waiter *w = waiter_start(s.lk, 20000, RLOCK_WATCHDOG);
    EVENTUALLY(5000, stats_of(s.cl).waiting_now == 1);
    server_cmd(s.sv, "CONFIG SET maxclients 100"); /* the control */
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* Paused for long enough that the call is given up before. */
static void give_up_in_pause(const char *what)
{
    scene s = undisturbed(NULL, 6000, 150);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "CLIENT PAUSE 2000 %s", what);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_EIO);
    EVENTUALLY(5000, server_cmd(s.sv, "KEYS rlock_undone:*")->elements == 1);
    EXPECT_INT(levels(s.sv, "other"), 0);
    expect_renewals(&s, 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    rlock_free(other);
    scene_stop(&s);
}

TEST(server, fault_020_a_call_in_a_paused_server_is_undone)
{
    give_up_in_pause("WRITE");
    give_up_in_pause("ALL");
}

TEST(server, fault_021_killed_connections_are_opened_again)
{
    scene s = undisturbed(NULL, 1000, 0);
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        server_cmd(s.sv, "CLIENT KILL TYPE normal");
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
        server_cmd(s.sv, "CLIENT KILL TYPE normal");
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
        server_cmd(s.sv, "CLIENT KILL TYPE normal");
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    events_wait(s.ev, RLOCK_EVENT_RECONNECTED, 1, 5000);
    EXPECT(stats_of(s.cl).reconnects >= 5);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

/*
 * The test's own connection is the one that is not idle. The server looks at
 * whole seconds, and now and then: a connection is closed up to 3 s after its
 * last use, so renewals are to come less often than that.
 */
TEST(server, fault_021_connections_closed_when_idle_are_opened_again)
{
    scene s = undisturbed(NULL, 12000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(server_info(s.sv, "connected_clients") > 1);
    server_cmd(s.sv, "CONFIG SET timeout 1");
    EVENTUALLY(10000, server_info(s.sv, "connected_clients") == 1);
    server_cmd(s.sv, "CONFIG SET timeout 0");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv); /* nothing was in doubt */
    scene_stop(&s);
}

TEST(server, fault_022_a_server_without_the_scripts_gets_them)
{
    scene s = undisturbed(NULL, 1500, 0);
    const char *flush = "SCRIPT FLUSH";
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    server_cmd(s.sv, flush);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, flush);
    expect_renewals(&s, 4);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    server_cmd(s.sv, flush);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    server_cmd(s.sv, flush);
    EXPECT_STATUS(rlock_extend(s.lk, 10000), RLOCK_OK);
    server_cmd(s.sv, flush);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_cmd(s.sv, flush);
    EXPECT_STATUS(rlock_force_unlock(other), RLOCK_OK);
    EXPECT(stats_of(s.cl).script_loads >= 5);
    expect_nothing_left(s.sv);
    rlock_free(other);
    scene_stop(&s);
}

/* The first renewal of a pipeline finds the script, the others do not. */
TEST(server, fault_022_scripts_that_go_in_mid_pipeline_are_sent_once)
{
    enum { LOCKS = 3 };
    const char *names[LOCKS] = {"a", "b", "c"};
    rlock *lk[LOCKS];
    scene s = undisturbed_proxied(6000, 0);
    for (int i = 0; i < LOCKS; i++) {
        lk[i] = test_lock(s.cl, names[i]);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    expect_renewals(&s, LOCKS); /* the control; from now on they go together */
    uint64_t loads = stats_of(s.cl).script_loads;
    proxy_rule(s.px, proxy_sha("renew"), 2, PROXY_HOLD_REQUEST, NULL);
    EVENTUALLY(10000, proxy_fired(s.px));
    server_cmd(s.sv, "SCRIPT FLUSH");
    proxy_let_go(s.px);
    expect_renewals(&s, LOCKS);
    EXPECT_INT(stats_of(s.cl).script_loads - loads, 1);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    for (int i = 0; i < LOCKS; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- 23 to 25: time ------------------------------------------------------ */

/* Now a little before the expiry, now a little after it. */
TEST(server, fault_023_an_unlock_as_the_lease_ends_hurts_no_other_holder)
{
    scene s = undisturbed(NULL, 0, 0);
    rival b = rival_join(&s, NULL);
    for (int i = 0; i < 40; i++) {
        EXPECT_STATUS(rlock_acquire(s.lk, 5000, 40), RLOCK_OK);
        int64_t until_us = test_now_us() + 30000 + i * 400;
        waiter *w = waiter_start(b.lk, 20000, RLOCK_WATCHDOG);
        while (test_now_us() < until_us)
            ;
        rlock_status status = rlock_unlock(s.lk);
        EXPECT(status == RLOCK_OK || status == RLOCK_LOST);
        EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    }
    rival_leave(&b);
    expect_all_undone(s.sv); /* a grant may come too late for such a lease */
    scene_stop(&s);
}

/* The renewal comes when another owner has the lock already. */
TEST(server, fault_023_a_renewal_after_the_lease_prolongs_no_other_hold)
{
    scene s = undisturbed_proxied(1000, 0);
    rival b = rival_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REQUEST, NULL);
    EVENTUALLY(5000, proxy_fired(s.px));
    proxy_refuse(s.px, true); /* no second attempt */
    EXPECT_STATUS(rlock_acquire(b.lk, 20000, 20000), RLOCK_OK);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(server_int(s.sv, "PEXPIRE %s 500", SCENE_LOCK), 1);
    proxy_let_go(s.px);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 1, 500);
    expect_hold_lost(&s);
    rival_leave(&b);
    scene_stop(&s);
}

#define HOUR_S 3600

static scene scene_clocked(int64_t lease_ms)
{
    scene s = {.sv = server_start_clocked(NULL), .opts = RLOCK_OPTIONS_INIT};
    server_load_scripts(s.sv);
    scene_client(&s, lease_ms, 0);
    expect_undisturbed(&s);
    return s;
}

TEST(server, fault_024_a_server_clock_put_forward_loses_the_hold)
{
    scene s = scene_clocked(3000);
    rival b = rival_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t first = rlock_token(s.lk);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    server_set_clock(s.sv, HOUR_S);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    uint64_t second = rlock_token(b.lk);
    EXPECT(second > first);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    expect_hold_lost(&s);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    server_set_clock(s.sv, 0); /* tokens do not fall with it */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) > second);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rival_leave(&b);
    scene_stop(&s);
}

TEST(server, fault_025_a_server_clock_put_back_disturbs_no_holder)
{
    scene s = scene_clocked(1500);
    rival b = rival_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t first = rlock_token(s.lk);
    server_set_clock(s.sv, -HOUR_S);
    EXPECT(server_int(s.sv, "PTTL %s", SCENE_LOCK) > HOUR_S * 1000);
    expect_renewals(&s, 3);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    EXPECT(rlock_token(b.lk) > first);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 1, 30000);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    rival_leave(&b);
    scene_stop(&s);
}

/* Its TTL is an hour too long; whoever frees it rings nobody. */
static void wait_for_orphan(long long ahead_s)
{
    scene s = scene_clocked(0);
    int64_t at_ms;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    server_set_clock(s.sv, ahead_s);
    EXPECT(server_int(s.sv, "PTTL %s", SCENE_LOCK) > -ahead_s * 1000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t freed_ms = test_now_ms();
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, POLL_MS);
    waiter_end(w);
    scene_stop(&s);
}

TEST(server, fault_025_waiters_do_not_sleep_as_long_as_a_clock_put_back_says)
{
    wait_for_orphan(0); /* the control */
    wait_for_orphan(-HOUR_S);
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
    scene s = undisturbed_proxied(0, 0);
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
    scene s = undisturbed("--busy-reply-threshold 20", 1000, 0);
    rival b = rival_join(&s, NULL);
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
    rival_leave(&b);
    scene_stop(&s);
}
