/*
 * Answers that no script gives, keys of another type, connections that cannot
 * be made any more: no hold ends by them, and no command is sent twice that must
 * not be.
 */
#include "dialer.h"

/* --- force-unlock -------------------------------------------------------- */

TEST(odd_answers, a_force_unlock_whose_reply_is_lost_is_not_asked_again)
{
    scene s = scene_proxied(0, 0);
    rlock_client *b = server_client(s.sv, NULL);
    rlock *next = test_lock(b, SCENE_LOCK);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(next, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, b, 1);
    proxy_rule(s.px, proxy_sha("force_release"), 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(proxy_count(s.px, proxy_sha("force_release")), 1);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(b).releases, 1);
    rlock_free(next);
    rlock_client_free(b);
    scene_stop(&s);
}

/* Who was woken has a hold of his own, which the second try leaves alone. */
TEST(odd_answers, a_hold_that_is_freed_by_name_is_asked_for_again)
{
    scene s = scene_proxied(0, 0);
    rlock_client *b = server_client(s.sv, NULL);
    rlock *next = test_lock(b, SCENE_LOCK);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(next, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, b, 1);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, BY_HAND), RLOCK_EIO);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(proxy_count(s.px, proxy_sha("release")), 2);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(b).releases, 1);
    rlock_free(next);
    rlock_client_free(b);
    scene_stop(&s);
}

/* --- connections --------------------------------------------------------- */

/* The caller of unlock did nothing wrong. */
TEST(odd_answers, a_callback_that_fails_later_is_an_io_error)
{
    dialer d = {0};
    scene s = scene_dialed(&d, 0, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    atomic_store(&d.spoiled, true);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_EIO);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_EIO);
    atomic_store(&d.spoiled, false);
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    rlock_free(other);
    scene_stop(&s);
}

/* False: the client had begun to connect again before the server stood still. */
static bool frees_without_connecting(void)
{
    dialer d = {0};
    scene s = scene_dialed(&d, 9000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int before = atomic_load(&d.dialed);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    server_pause(s.sv);
    bool in_time = atomic_load(&d.dialed) == before;
    int64_t began_ms = test_now_ms();
    scene_free_client(&s);
    if (in_time) {
        EXPECT_INT(atomic_load(&d.dialed), before);
        EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 900);
    }
    server_resume(s.sv);
    scene_stop(&s);
    return in_time;
}

/* There is nothing to undo for a hold that is only not renewed any more. */
TEST(odd_answers, freeing_a_client_does_not_connect_to_a_dead_server)
{
    EVENTUALLY(SOON, frees_without_connecting());
}

/* --- answers and keys ---------------------------------------------------- */

static void answer_first_level(const char *answer)
{
    scene s = scene_proxied(0, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, answer);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, answer);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_INT(rlock_hold_count(s.lk), 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(odd_answers, an_answer_that_fits_no_first_level_is_an_io_error)
{
    answer_first_level("*1\r\n:-1\r\n");
    answer_first_level("*3\r\n:-1\r\n:5\r\n$1\r\n7\r\n");
    answer_first_level("$1\r\n0\r\n");
    answer_first_level("*2\r\n:1\r\n$3\r\n123\r\n");
    answer_first_level("*2\r\n:0\r\n:5\r\n");
}

TEST(odd_answers, an_answer_that_fits_no_reentry_is_an_io_error)
{
    scene s = scene_proxied(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER,
               "*3\r\n:0\r\n:5000\r\n$1\r\n7\r\n");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_EIO);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

TEST(odd_answers, a_question_about_a_free_lock_is_no_failure)
{
    scene s = scene_start(0, 0);
    bool locked = true;
    int64_t ttl_ms = 0;
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -2);
    EXPECT_INT(rlock_last_error()->status, RLOCK_OK);
    EXPECT_STR(rlock_last_error()->message, "");
    scene_stop(&s);
}

TEST(odd_answers, a_token_key_of_another_type_ends_no_hold)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    server_cmd(s.sv, "DEL rlock_token:{%s}", SCENE_LOCK);
    server_cmd(s.sv, "HSET rlock_token:{%s} a b", SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "HGET rlock_token:{%s} a", SCENE_LOCK), "b");
    scene_stop(&s);
}

TEST(odd_answers, a_foreign_key_in_the_queues_place_gets_no_expiry)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    server_cmd(s.sv, "SET rlock_queue:{%s} x", SCENE_LOCK);
    long long before = script_calls(s.sv);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    /* It looks once, and when its bell is up once more, to queue. */
    EVENTUALLY(5000, script_calls(s.sv) >= before + 2);
    EXPECT_INT(server_int(s.sv, "PTTL rlock_queue:{%s}", SCENE_LOCK), -1);
    EXPECT_STR(server_str(s.sv, "GET rlock_queue:{%s}", SCENE_LOCK), "x");
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}

TEST(odd_answers, making_a_client_disturbs_no_lock_of_any_name)
{
    scene s = scene_start(0, 0);
    rlock *lk = test_lock(s.cl, "rlock_probe");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    uint64_t token = rlock_token(lk);
    rlock_client_free(server_client(s.sv, NULL));
    EXPECT(token == strtoull(server_str(s.sv, "GET rlock_token:{rlock_probe}"),
                             NULL, 10));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    scene_stop(&s);
}
