/* Asking who waits, when the server breaks off, hangs, or talks nonsense. */
#include "scene.h"

#define TIMEOUT_MS 500

static void count(const rlock_wait *w, void *n)
{
    (void)w;
    ++*(int *)n;
}

/* A client in the queue, and one that looks, through a proxy. */
static scene scene_of_one_waiter(void)
{
    scene s = scene_proxied(0, TIMEOUT_MS);
    int n = 0;
    server_int(s.sv, "ZADD rlock_queue:{job} 1000 rlock_bell:somebody");
    EXPECT_STATUS(rlock_waits_for(s.cl, count, &n), RLOCK_OK);
    EXPECT_INT(n, 1); /* the control */
    return s;
}

/* Nothing is told, in time; and the next call tells all. */
static void expect_failure(scene *s, rlock_status wanted)
{
    int n = 0;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(
        in_time(rlock_waits_for(s->cl, count, &n), began_ms, TIMEOUT_MS),
        wanted);
    EXPECT(proxy_fired(s->px));
    EXPECT_CONTAINS(rlock_last_error()->message, proxy_uri(s->px));
    EXPECT_INT(n, 0);
    EXPECT_STATUS(rlock_waits_for(s->cl, count, &n), RLOCK_OK);
    EXPECT_INT(n, 1);
    server_int(s->sv, "DEL rlock_queue:{job}");
    expect_undisturbed(s);
    scene_stop(s);
}

static void expect_broken(const char *needle, proxy_action how)
{
    scene s = scene_of_one_waiter();
    proxy_rule(s.px, needle, 1, how, NULL);
    expect_failure(&s, RLOCK_EIO);
}

TEST_CASE(waits, a_scan_that_is_cut_tells_nothing,
          expect_broken("SCAN", PROXY_CUT_IN_REPLY))
TEST_CASE(waits, a_scan_that_is_not_answered_tells_nothing,
          expect_broken("SCAN", PROXY_SWALLOW_REPLY))
TEST_CASE(waits, a_lock_whose_answer_is_cut_tells_nothing,
          expect_broken(proxy_sha("waits"), PROXY_CUT_IN_REPLY))
TEST_CASE(waits, a_lock_whose_answer_does_not_come_tells_nothing,
          expect_broken(proxy_sha("waits"), PROXY_SWALLOW_REPLY))

static void expect_nonsense(const char *needle, const char *answer)
{
    scene s = scene_of_one_waiter();
    proxy_rule(s.px, needle, 1, PROXY_ANSWER, answer);
    expect_failure(&s, RLOCK_EIO);
}

TEST_CASE(waits, a_scan_that_is_answered_with_a_number_is_refused,
          expect_nonsense("SCAN", ":7\r\n"))
TEST_CASE(waits, a_lock_that_is_answered_with_a_text_is_refused,
          expect_nonsense(proxy_sha("waits"), "$1\r\nx\r\n"))
TEST_CASE(waits, a_lock_that_has_no_number_of_holders_is_refused,
          expect_nonsense(proxy_sha("waits"), "*2\r\n:1\r\n:-1\r\n"))
TEST_CASE(waits, a_lock_that_is_answered_with_lists_is_refused,
          expect_nonsense(proxy_sha("waits"), "*1\r\n*1\r\n:1\r\n"))

/* As many pieces as come, whatever was announced. */
TEST(waits, an_answer_of_a_strange_length_does_no_harm)
{
    scene s = scene_of_one_waiter();
    int n = 0;
    proxy_rule(
        s.px, proxy_sha("waits"), 1, PROXY_ANSWER,
        "*7\r\n:1\r\n:1\r\n$1\r\nx\r\n$1\r\n1\r\n:1\r\n$1\r\nb\r\n$1\r\n1\r\n");
    EXPECT_STATUS(rlock_waits_for(s.cl, count, &n), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(n, 0);
    server_int(s.sv, "DEL rlock_queue:{job}");
    scene_stop(&s);
}
