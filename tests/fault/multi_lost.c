/* Multi locks: lost answers, time limits, and members that are lost. */
#include "multi_scene.h"

/* --- lost answers -------------------------------------------------------- */

/*
 * The reply to all, or to the k-th, is lost with its connection, and asked for
 * again. What may come late once more is released by itself, with a tombstone.
 */
static void answers_lost(proxy_action action)
{
    scene s = scene_proxied(0, 0);
    multi_scene m = multi_scene_of(&s, "abcde");
    for (int k = 1; k <= 5; k++) {
        for (int level = 1; level <= 2; level++) {
            proxy_rule(s.px, proxy_sha(level == 1 ? "take_many" : "acquire"),
                       level == 1 ? 1 : k, action, NULL);
            EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
            EXPECT(proxy_fired(s.px));
            EXPECT(multi_scene_all_at(&m, level));
            EXPECT_INT(rlock_hold_count(m.all), level);
        }
        proxy_rule(s.px, proxy_sha("extend"), k, action, NULL);
        EXPECT_STATUS(rlock_extend(m.all, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT(proxy_fired(s.px));
        for (int level = 1; level >= 0; level--) {
            proxy_rule(s.px, proxy_sha("release"), k, action, NULL);
            EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
            EXPECT(proxy_fired(s.px));
            EXPECT(multi_scene_all_at(&m, level));
        }
    }
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("free_many"), 1, action, NULL);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT(proxy_fired(s.px) && multi_scene_all_at(&m, 0));
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    multi_scene_end_undone(&m, &s);
}

TEST_CASE(multi_lost,
          a_connection_that_breaks_before_the_kth_request_counts_once,
          answers_lost(PROXY_CUT_BEFORE))
TEST_CASE(multi_lost, a_connection_that_breaks_before_the_kth_reply_counts_once,
          answers_lost(PROXY_CUT_AFTER))
TEST_CASE(multi_lost, a_connection_that_breaks_in_the_kth_reply_counts_once,
          answers_lost(PROXY_CUT_IN_REPLY))

/* From now on there is only the connection that is open already. */
static void keep_one_connection(scene *s)
{
    EXPECT_STATUS(rlock_client_ping(s->cl), RLOCK_OK);
    proxy_refuse(s->px, true);
}

TEST(multi_lost, a_reply_that_never_comes_leaves_nothing)
{
    scene s = scene_proxied(0, 150);
    multi_scene m = multi_scene_of(&s, "abcde");
    keep_one_connection(&s);
    proxy_rule(s.px, proxy_sha("take_many"), 1, PROXY_SWALLOW_REPLY, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_trylock(m.all), began_ms, 150), RLOCK_EIO);
    proxy_refuse(s.px, false);
    expect_blame(1);
    EXPECT(!rlock_is_held(m.all));
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    multi_scene_end_undone(&m, &s);
}

TEST(multi_lost, a_wait_gets_over_a_reply_that_never_comes)
{
    scene s = scene_proxied(0, 150);
    multi_scene m = multi_scene_of(&s, "abcde");
    proxy_rule(s.px, proxy_sha("take_many"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_acquire(m.all, 20000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT(multi_scene_all_at(&m, 1));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    multi_scene_end_undone(&m, &s);
}

TEST(multi_lost, a_level_more_without_an_answer_is_no_level)
{
    scene s = scene_proxied(0, 150);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    keep_one_connection(&s);
    proxy_rule(s.px, proxy_sha("acquire"), 2, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_EIO);
    proxy_refuse(s.px, false);
    expect_blame(2);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_INT(rlock_hold_count(m.lk[i]), 1);
    EXPECT(rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    multi_scene_end_undone(&m, &s);
}

TEST(multi_lost, an_unlock_without_an_answer_is_made_good_later)
{
    scene s = scene_proxied(0, 150);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    keep_one_connection(&s);
    proxy_rule(s.px, proxy_sha("free_many"), 1, PROXY_HOLD_REQUEST, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_unlock(m.all), began_ms, 150), RLOCK_EIO);
    proxy_refuse(s.px, false);
    EXPECT(!rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    proxy_let_go(s.px);
    multi_scene_end_undone(&m, &s);
}

/* Still one lock after that: one event when all of it is lost. */
TEST(multi_lost, a_level_more_that_came_at_last_makes_no_second_lock_of_it)
{
    scene s = scene_start(0, 600);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(rlock_acquire(m.all, 10000, RLOCK_WATCHDOG), RLOCK_EIO);
    server_resume(s.sv);
    EXPECT_INT(rlock_hold_count(m.all), 1);
    EXPECT_STATUS(rlock_acquire(m.all, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(m.all), 2);
    EXPECT(multi_scene_all_at(&m, 2));
    server_cmd(s.sv, "FLUSHALL");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    multi_scene_end_with_losses(&m, &s, 1);
}

/* A grant of an earlier try that comes late must not stay. */
TEST(multi_lost, a_request_that_comes_late_leaves_nothing)
{
    scene s = scene_proxied(0, 150);
    multi_scene m = multi_scene_of(&s, "abc");
    keep_one_connection(&s);
    proxy_rule(s.px, proxy_sha("take_many"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_EIO);
    proxy_refuse(s.px, false);
    EVENTUALLY(10000, server_cmd(s.sv, "KEYS rlock_undone:*")->elements == m.n);
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    proxy_let_go(s.px);
    EXPECT(multi_scene_all_at(&m, 0));
    multi_scene_end_undone(&m, &s);
}

/* The scripts go while they are used. */
TEST(multi_lost, a_server_that_lost_its_scripts_is_told_them_again)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abcde");
    for (int level = 1; level <= 2; level++) {
        server_cmd(s.sv, "SCRIPT FLUSH");
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
        EXPECT(multi_scene_all_at(&m, level));
    }
    server_cmd(s.sv, "SCRIPT FLUSH");
    EXPECT_STATUS(rlock_extend(m.all, 60000), RLOCK_OK);
    for (int level = 1; level >= 0; level--) {
        server_cmd(s.sv, "SCRIPT FLUSH");
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        EXPECT(multi_scene_all_at(&m, level));
    }
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* The k-th of a round trip only. */
TEST(multi_lost, a_script_that_is_missing_in_the_middle_is_told_again)
{
    scene s = scene_proxied(0, 0);
    multi_scene m = multi_scene_of(&s, "abcde");
    const char *missing = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    for (int k = 1; k <= 5; k++) {
        proxy_rule(s.px, proxy_sha("acquire"), k, PROXY_ANSWER, missing);
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
        EXPECT(proxy_fired(s.px) && multi_scene_all_at(&m, 2));
        proxy_rule(s.px, proxy_sha("release"), k, PROXY_ANSWER, missing);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        EXPECT(proxy_fired(s.px) && multi_scene_all_at(&m, 1));
    }
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* --- time limits --------------------------------------------------------- */

/* One command timeout in all, or the wait and one; one for each client. */
TEST(multi_lost, every_call_ends_in_time_when_servers_hang)
{
    enum { TIMEOUT_MS = 300 };
    scene s = scene_start(0, TIMEOUT_MS), t = scene_start(0, TIMEOUT_MS);
    multi_scene m = multi_scene_across(&s, "ac", &t, "bd");
    server_pause(s.sv);
    server_pause(t.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_trylock(m.all), began_ms, TIMEOUT_MS),
                  RLOCK_EIO);
    began_ms = test_now_ms();
    EXPECT_STATUS(
        in_time(rlock_acquire(m.all, 400, 0), began_ms, 400 + TIMEOUT_MS),
        RLOCK_EIO);
    EXPECT(test_now_ms() - began_ms >= 400);
    server_resume(s.sv);
    server_resume(t.sv);
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    EXPECT_STATUS(rlock_acquire(m.all, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    server_pause(s.sv);
    server_pause(t.sv);
    began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_lock(m.all), began_ms, 30000), RLOCK_EIO);
    began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_extend(m.all, 60000), began_ms, 2 * TIMEOUT_MS),
                  RLOCK_EIO);
    began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_unlock(m.all), began_ms, 2 * TIMEOUT_MS),
                  RLOCK_EIO);
    server_resume(s.sv);
    server_resume(t.sv);
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    multi_scene_end_across(&m, &s, &t);
}

static intptr_t hang_soon(void *sv)
{
    test_pause_ms(150);
    server_pause(sv);
    return 0;
}

/* What it has got by then is undone, but not with a time limit of its own. */
static void wait_at_a_server_that_hangs(int64_t lease_ms)
{
    enum { TIMEOUT_MS = 1500 };
    scene s = scene_start(0, TIMEOUT_MS);
    multi_scene m = multi_scene_of(&s, "ab");
    take_by_hand(s.sv, "b", 0);
    test_thread *t = test_spawn(hang_soon, s.sv);
    int64_t began_ms = test_now_ms();
    rlock_status status = rlock_acquire(m.all, 300, lease_ms);
    test_join(t);
    in_time(status, began_ms, 300 + TIMEOUT_MS);
    EXPECT(status == RLOCK_TIMEOUT || status == RLOCK_EIO);
    server_resume(s.sv);
    EVENTUALLY(10000, multi_scene_is_at(&m, 0, 0));
    server_cmd(s.sv, "DEL b");
    multi_scene_end(&m, &s);
}

TEST_CASE(multi_lost, a_wait_that_meets_a_hanging_server_ends_in_time,
          wait_at_a_server_that_hangs(RLOCK_WATCHDOG))
TEST_CASE(multi_lost, a_wait_with_a_lease_that_meets_a_hanging_server_ends,
          wait_at_a_server_that_hangs(5000))

TEST(multi_lost, a_force_unlock_ends_in_time_when_a_server_hangs)
{
    enum { TIMEOUT_MS = 300 };
    scene s = scene_start(0, TIMEOUT_MS);
    multi_scene m = multi_scene_of(&s, "abcdef");
    server_pause(s.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_force_unlock(m.all), began_ms, TIMEOUT_MS),
                  RLOCK_EIO);
    server_resume(s.sv);
    multi_scene_end(&m, &s);
}

/* Two servers; only one hangs, the first or the second to be asked. */
static void try_beside_a_hanging_one(const char *hanging, const char *other)
{
    enum { TIMEOUT_MS = 300 };
    scene s = scene_start(0, TIMEOUT_MS), t = scene_start(0, TIMEOUT_MS);
    multi_scene m = multi_scene_across(&s, hanging, &t, other);
    server_pause(s.sv);
    for (int wait_ms = 0; wait_ms <= 400; wait_ms += 400) {
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(in_time(rlock_acquire(m.all, wait_ms, RLOCK_WATCHDOG),
                              began_ms, wait_ms + TIMEOUT_MS),
                      RLOCK_EIO);
        expect_blame(1);
        EXPECT(!rlock_is_held(m.lk[1]));
        EVENTUALLY(5000, multi_scene_is_at(&m, 1, 0));
    }
    server_resume(s.sv);
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    multi_scene_end_across(&m, &s, &t);
}

TEST_CASE(multi_lost, a_try_in_which_the_first_server_hangs_ends_in_time,
          try_beside_a_hanging_one("a", "b"))
TEST_CASE(multi_lost, a_try_in_which_the_last_server_hangs_ends_in_time,
          try_beside_a_hanging_one("b", "a"))

TEST(multi_lost, extend_reaches_the_others_when_a_server_hangs)
{
    scene s = scene_start(0, 300), t = scene_proxied(0, 300);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_pause(s.sv);
    proxy_rule(t.px, proxy_sha("extend"), 1, PROXY_DRIP_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(m.all, 100000), RLOCK_EIO);
    expect_blame(1);
    EXPECT_BETWEEN(server_int(t.sv, "PTTL b"), 60000, 100000);
    EXPECT_BETWEEN(rlock_valid_ms(m.lk[1]), 60000, 100000);
    server_resume(s.sv);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end_across(&m, &s, &t);
}

/* The one that hangs is given more time than the other's lease has. */
TEST(multi_lost, an_extend_that_hangs_at_one_server_loses_nothing_at_another)
{
    scene s = scene_start(0, 2000), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(rlock_extend(m.all, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_INT(stats_of(t.cl).lost, 0);
    EXPECT(rlock_is_held(m.lk[1]));
    server_resume(s.sv);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end_across(&m, &s, &t);
}

/* --- losses -------------------------------------------------------------- */

static rlock_status lose(scene *s, multi_scene *m, void (*how)(server *sv))
{
    EXPECT_STATUS(rlock_lock(m->all), RLOCK_OK);
    how(s->sv);
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT(!rlock_is_held(m->all));
    EXPECT_INT(rlock_hold_count(m->all), 0);
    EVENTUALLY(10000, stats_of(s->cl).held_now == 0);
    EXPECT_INT(stats_of(s->cl).lost, m->n);
    return rlock_unlock(m->all);
}

static void restart_empty(server *sv)
{
    server_kill(sv);
    server_restart(sv);
}

TEST(multi_lost, an_outage_is_one_loss)
{
    scene s = scene_start(BRISK_MS, 100);
    multi_scene m = multi_scene_of(&s, "abcde");
    EXPECT_STATUS(lose(&s, &m, server_kill), RLOCK_LOST);
    multi_scene_end_with_losses(&m, &s, 1);
}

TEST(multi_lost, a_server_that_comes_back_empty_is_one_loss)
{
    scene s = scene_start(3000, 300);
    multi_scene m = multi_scene_of(&s, "abcde");
    EXPECT_STATUS(lose(&s, &m, restart_empty), RLOCK_LOST);
    EXPECT_STATUS(rlock_acquire(m.all, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end_with_losses(&m, &s, 1);
}

/* Both at the same moment, found by two clients side by side. */
TEST(multi_lost, losses_on_two_servers_at_once_are_one_event)
{
    scene s = scene_start(BRISK_MS, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    for (int i = 1; i <= 5; i++) {
        EXPECT_STATUS(rlock_acquire(m.all, 5000, RLOCK_WATCHDOG), RLOCK_OK);
        server_cmd(s.sv, "FLUSHALL");
        server_cmd(t.sv, "FLUSHALL");
        EVENTUALLY(10000, stats_of(s.cl).lost == (uint64_t)i &&
                              stats_of(t.cl).lost == (uint64_t)i);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
        events_wait(s.ev, RLOCK_EVENT_LOST, i, 10000);
    }
    multi_scene_free(&m);
    scene_free_client(&t);
    scene_free_client(&s);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 5);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
    scene_stop(&t);
}

/* The first member's client is not there any more. */
TEST(multi_lost, a_loss_is_told_when_the_first_client_is_gone)
{
    scene s = scene_start(BRISK_MS, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    scene_free_client(&s);
    server_cmd(t.sv, "DEL b");
    events_wait(t.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ECLOSED);
    multi_scene_end_across(&m, &s, &t);
}

/* The losses are told at a client that is being freed. */
TEST(multi_lost, a_loss_while_the_first_client_is_freed_does_no_harm)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    scene_free_client(&s);
    for (int i = 0; i < 20; i++) {
        events_free(s.ev);
        scene_client(&s, 0, 0);
        multi_scene m = multi_scene_across(&s, "a", &t, "b");
        EXPECT_STATUS(rlock_acquire(m.all, 0, 5000), RLOCK_OK);
        rlock_extend(m.lk[1], 3 + i % 5); /* it may be late */
        scene_free_client(&s);
        EVENTUALLY(10000, !rlock_is_held(m.lk[1]));
        rlock_unlock(m.all);
        server_cmd(s.sv, "DEL a");
        EVENTUALLY(10000, levels(t.sv, "b") == 0);
        multi_scene_free(&m);
    }
    scene_stop(&s);
    scene_stop(&t);
}

/* Released in part, it is still told once when the rest is lost. */
TEST(multi_lost, the_loss_of_what_is_left_after_a_members_unlock_is_one_event)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.lk[0]), RLOCK_OK);
    server_cmd(s.sv, "FLUSHALL");
    EVENTUALLY(10000, stats_of(s.cl).lost == 2);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    multi_scene_end_with_losses(&m, &s, 1);
}
