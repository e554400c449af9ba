/* What a client counts. */
#include "client.h"

TEST(client_stats, stats_need_a_client_and_room)
{
    scene s = scene_start(0, 0);
    rlock_stats st;
    EXPECT_STATUS(rlock_client_stats(NULL, &st, sizeof st), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_client_stats(s.cl, NULL, sizeof st), RLOCK_EINVAL);
    scene_stop(&s);
}

/* What a program has that was compiled against an older header, or a newer. */
TEST(client_stats, stats_are_as_long_as_the_program_says)
{
    scene s = scene_start(0, 0);
    struct {
        rlock_stats st;
        char behind[16];
    } program;
    memset(&program, 0xee, sizeof program);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_client_stats(s.cl, &program.st, sizeof program.st),
                  RLOCK_OK);
    EXPECT_INT(program.st.acquires, 1);
    EXPECT_INT((unsigned char)program.behind[0], 0xee);
    EXPECT_STATUS(rlock_client_stats(s.cl, &program.st, sizeof program),
                  RLOCK_OK);
    EXPECT_INT(program.behind[0], 0);
    EXPECT_STATUS(rlock_client_stats(s.cl, &program.st, 8), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message,
                    "no rlock_stats has 8 bytes (use sizeof)");
    scene_stop(&s);
}

TEST(client_stats, stats_ask_no_server)
{
    scene s = scene_start(0, 0);
    long long before = server_info(s.sv, "total_commands_processed");
    stats_of(s.cl);
    EXPECT_INT(server_info(s.sv, "total_commands_processed") - before, 1);
    scene_stop(&s);
}

TEST(client_stats, a_new_client_has_counted_nothing)
{
    scene s = scene_start(0, 0);
    rlock_stats st = stats_of(s.cl), zero;
    memset(&zero, 0, sizeof zero);
    zero.script_loads = st.script_loads;
    EXPECT_INT(memcmp(&st, &zero, sizeof st), 0);
    scene_stop(&s);
}

TEST(client_stats, acquires_and_releases_are_counted)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, -2, 0), RLOCK_EINVAL);
    EXPECT_INT(stats_of(s.cl).held_now, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).held_now, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.acquires, 2);
    EXPECT_INT(st.acquires_failed, 1);
    EXPECT_INT(st.acquires_contended, 0);
    EXPECT_INT(st.releases, 2);
    EXPECT_INT(st.held_now, 0);
    EXPECT_INT(st.lost, 0);
    EXPECT_INT(st.wait_us_total, 0);
    EXPECT(st.hold_us_total > 0);
    scene_stop(&s);
}

TEST(client_stats, waits_are_counted_and_over_at_the_end)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_and_unlock, s.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    EXPECT_INT(stats_of(s.cl).acquires_contended, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.waiting_now, 0);
    EXPECT_INT(st.held_now, 0);
    EXPECT_INT(st.acquires, 2);
    EXPECT_INT(st.acquires_contended, 1);
    EXPECT_INT(st.releases, 2);
    EXPECT_INT(st.wakeups, 1);
    EXPECT_INT(st.wakeups_futile, 0);
    EXPECT(st.wait_us_total > 0);
    scene_stop(&s);
}

TEST(client_stats, failed_waits_are_counted_and_over_at_the_end)
{
    scene s = scene_start(0, 0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock *lk = test_lock(other, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(lk, 50, 1000), RLOCK_TIMEOUT);
    rlock_stats st = stats_of(other);
    EXPECT_INT(st.acquires, 0);
    EXPECT_INT(st.acquires_failed, 2);
    EXPECT_INT(st.acquires_contended, 1);
    EXPECT_INT(st.waiting_now, 0);
    EXPECT_BETWEEN(st.wait_us_total, 49000, 5000000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST(client_stats, a_lost_hold_is_counted_once_and_held_no_more)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 150), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.lost, 1);
    EXPECT_INT(st.held_now, 0);
    EXPECT_INT(st.releases, 0);
    EXPECT_BETWEEN(st.hold_us_total, 140000, 5000000);
    scene_stop(&s);
}

TEST(client_stats, renewals_are_counted)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = BRISK_MS;
    scene s = scene_with(server_start(NULL), &opts);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).renewals == 2);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(client_stats, a_script_is_sent_whole_only_when_the_server_lacks_it)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    scene s = scene_with(server_start(NULL), &opts);
    lock_once(s.lk);
    uint64_t loads = stats_of(s.cl).script_loads;
    EXPECT_INT(loads, 3); /* probe, acquire, release */
    lock_once(s.lk);
    EXPECT_INT(stats_of(s.cl).script_loads, loads);
    server_cmd(s.sv, "SCRIPT FLUSH");
    lock_once(s.lk);
    EXPECT_INT(stats_of(s.cl).script_loads, loads + 2);
    scene_stop(&s);
}
