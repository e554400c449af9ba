/*
 * A server that has no room (for data, on its disk, for clients), or that
 * forgets the scripts. Each test sees first that all is well without the fault.
 */
#include "scene.h"

TEST(room, fault_016_a_server_out_of_memory_still_renews_and_releases)
{
    scene s = scene_undisturbed(NULL, 1000, 0);
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
    scene s = scene_undisturbed(args, 0, 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_WARNING), n);
    if (n > 0)
        EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_WARNING),
                        "allkeys-lru");
    scene_stop(&s);
}

TEST(room, fault_017_a_server_that_may_evict_locks_is_warned_of)
{
    expect_warnings("--maxmemory 100mb", 0); /* the control */
    expect_warnings("--maxmemory-policy allkeys-lru", 0);
    expect_warnings("--maxmemory 100mb --maxmemory-policy allkeys-lru", 1);
}

TEST(room, fault_017_a_lock_that_was_evicted_is_lost)
{
    scene s = scene_undisturbed(
        "--maxmemory 100mb --maxmemory-policy allkeys-random", 3000, 0);
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
#define SAVING server_unlocked("--save 3600 1000000")

/* Whether a SET that does nothing would be let through. */
static bool refuses_writes(server *sv)
{
    return strncmp(server_str(sv, "SET no_key x XX"), "MISCONF", 7) == 0;
}

/* A disk on which nobody can write, root neither; or the old one. */
static void fill_disk(server *sv, bool full)
{
    EXPECT_STR(server_str(sv, "CONFIG SET dir %s",
                          full ? "/proc" : server_file(sv, "")),
               "OK");
    server_cmd(sv, "BGSAVE");
    EVENTUALLY(10000, refuses_writes(sv) == full);
}

TEST(room, fault_018_a_disk_that_is_full_for_a_while_is_waited_out)
{
    scene s = scene_undisturbed(SAVING, 6000, 0);
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

TEST(room, fault_018_a_disk_that_stays_full_loses_the_hold)
{
    scene s = scene_undisturbed(SAVING, 1000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    fill_disk(s.sv, true);
    expect_hold_lost(&s);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_RENEW_FAILED), "MISCONF");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 200, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 200, 3200 + 500);
    scene_stop(&s);
}

TEST(room, fault_019_a_server_without_room_for_clients_is_no_answer)
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
    scene s = scene_undisturbed(NULL, 6000, 150);
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

TEST(room, fault_020_a_call_in_a_paused_server_is_undone)
{
    give_up_in_pause("WRITE");
    give_up_in_pause("ALL");
}

TEST(room, fault_021_killed_connections_are_opened_again)
{
    scene s = scene_undisturbed(NULL, 1000, 0);
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
 * The test's own connection is one that is not idle. The server looks at whole
 * seconds, and now and then: a connection is closed 3 s after its last use, and
 * on a busy machine later. Over the keeper's a sign of life is asked for while
 * something is held.
 */
TEST(room, fault_021_connections_closed_when_idle_are_opened_again)
{
    scene s = scene_undisturbed(NULL, 24000, 0);
    EXPECT(server_info(s.sv, "connected_clients") > 1);
    server_cmd(s.sv, "CONFIG SET timeout 1");
    EVENTUALLY(10000, server_info(s.sv, "connected_clients") == 1);
    server_cmd(s.sv, "CONFIG SET timeout 5");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(20000, server_info(s.sv, "connected_clients") == 2);
    server_cmd(s.sv, "CONFIG SET timeout 0");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv); /* nothing was in doubt */
    scene_stop(&s);
}

TEST(room, fault_022_a_server_without_the_scripts_gets_them)
{
    scene s = scene_undisturbed(NULL, 1500, 0);
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

/* The first call of a pipeline finds the script, the others do not. */
TEST(room, fault_022_scripts_that_go_in_mid_pipeline_are_sent_once)
{
    enum { LOCKS = 120 }; /* more than two batches */
    rlock *lk[LOCKS];
    char name[16];
    scene s = scene_undisturbed_proxied(6000, 0);
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "n%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    expect_renewals(&s, LOCKS); /* the control; from now on they go together */
    uint64_t loads = stats_of(s.cl).script_loads;
    proxy_rule(s.px, proxy_sha("renew_many"), 2, PROXY_HOLD_REQUEST, NULL);
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
