/* Asking which locks there are, when the server breaks off, hangs, or talks
   nonsense. */
#include "scene.h"

#define TIMEOUT_MS 500
#define ID         "web3:1:2:1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52"

static bool count(const rlock_lock_info *l, void *n)
{
    (void)l;
    ++*(int *)n;
    return true;
}

static rlock_status look(scene *s, int *n)
{
    *n = 0;
    return rlock_scan(s->cl, NULL, RLOCK_SCAN_ALL, count, n);
}

/* A lock that a side key tells of, and one that none does. */
static scene scene_of_two_locks(void)
{
    scene s = scene_proxied(0, TIMEOUT_MS);
    int n;
    server_int(s.sv, "HSET other " ID " 1");
    server_cmd(s.sv, "SET text " ID);
    server_int(s.sv, "ZADD rlock_queue:{other} 1000 rlock_bell:somebody");
    EXPECT_STATUS(look(&s, &n), RLOCK_OK);
    EXPECT_INT(n, 2); /* the control */
    return s;
}

/* Nothing is told, in time; and the next call tells all. */
static void expect_failure(const char *needle, proxy_action how,
                           const char *answer)
{
    scene s = scene_of_two_locks();
    int n;
    proxy_rule(s.px, needle, 1, how, answer);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(look(&s, &n), began_ms, TIMEOUT_MS), RLOCK_EIO);
    EXPECT(proxy_fired(s.px));
    EXPECT_CONTAINS(rlock_last_error()->message, proxy_uri(s.px));
    EXPECT_INT(n, 0);
    EXPECT_STATUS(look(&s, &n), RLOCK_OK);
    EXPECT_INT(n, 2);
    server_cmd(s.sv, "DEL other text rlock_queue:{other}");
    expect_undisturbed(&s);
    scene_stop(&s);
}

#define FAILS(name, needle, how, answer)                                       \
    TEST_CASE(scan, name, expect_failure(needle, how, answer))

FAILS(a_page_that_is_cut_tells_nothing, "SCAN", PROXY_CUT_IN_REPLY, NULL)
FAILS(a_page_that_does_not_come_tells_nothing, "SCAN", PROXY_SWALLOW_REPLY,
      NULL)
FAILS(a_lock_whose_answer_is_cut_tells_nothing, proxy_sha("survey"),
      PROXY_CUT_IN_REPLY, NULL)
FAILS(a_lock_whose_answer_does_not_come_tells_nothing, proxy_sha("survey"),
      PROXY_SWALLOW_REPLY, NULL)
FAILS(a_hash_whose_answer_is_cut_tells_nothing, "HRANDFIELD", PROXY_CUT_BEFORE,
      NULL)
FAILS(a_string_whose_answer_does_not_come_tells_nothing, "GETRANGE",
      PROXY_SWALLOW_REPLY, NULL)
FAILS(a_page_that_is_a_number_is_refused, "SCAN", PROXY_ANSWER, ":7\r\n")
FAILS(a_lock_that_is_answered_with_a_text_is_refused, proxy_sha("survey"),
      PROXY_ANSWER, "$1\r\nx\r\n")
FAILS(a_lock_that_is_answered_with_too_little_is_refused, proxy_sha("survey"),
      PROXY_ANSWER, "*1\r\n:1\r\n")
FAILS(a_lock_that_is_answered_with_other_types_is_refused, proxy_sha("survey"),
      PROXY_ANSWER, "*7\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n")

/* What is longer than was asked for is no holder id. */
TEST(scan, a_string_of_a_strange_length_does_no_harm)
{
    scene s = scene_of_two_locks();
    int n;
    proxy_rule(s.px, "GETRANGE", 1, PROXY_ANSWER, "$-1\r\n");
    EXPECT_STATUS(look(&s, &n), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(n, 1);
    server_cmd(s.sv, "DEL other text rlock_queue:{other}");
    scene_stop(&s);
}
