/*
 * Latches: a count that falls, by whom and how it is set, and what is no latch.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"

/* --- the count ------------------------------------------------------------ */

TEST(latch, it_is_open_when_all_have_counted_down)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 3, 0), RLOCK_OK);
    EXPECT_INT(left_of(l), 3);
    EXPECT_INT(key_ttl(s.sv, GATE), -1);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_INT(left_of(l), 2);
    EXPECT_STATUS(rlock_latch_wait(l, 0), RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, "latch '" GATE "' at ");
    EXPECT_CONTAINS(rlock_last_error()->message, "2 left to count down");
    EXPECT_STATUS(rlock_latch_count_down(l, 2), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_wait(l, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_wait(l, RLOCK_FOREVER), RLOCK_OK);
    EXPECT_INT(left_of(l), 0);
    expect_gate_gone(s.sv, GATE);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, what_is_not_set_is_open)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_wait(l, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_wait(l, 1000), RLOCK_OK);
    EXPECT_INT(left_of(l), 0);
    EXPECT_STATUS(rlock_latch_delete(l), RLOCK_NOT_HELD);
    expect_gate_gone(s.sv, GATE);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, it_is_set_once_until_it_is_open)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 2, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(l, 9, 0), RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, "it is set");
    EXPECT_INT(left_of(l), 2);
    EXPECT_STATUS(rlock_latch_count_down(l, 2), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(l, 9, 0), RLOCK_OK);
    EXPECT_INT(left_of(l), 9);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, what_is_counted_below_zero_stays_at_zero)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 2, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_count_down(l, 5), RLOCK_OK);
    EXPECT_INT(left_of(l), 0);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_count_down(l, RLOCK_COUNT_MAX), RLOCK_OK);
    EXPECT_INT(left_of(l), 0);
    expect_gate_gone(s.sv, GATE);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, the_largest_count_is_counted_exactly)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, RLOCK_COUNT_MAX, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_INT(left_of(l), RLOCK_COUNT_MAX - 1);
    EXPECT_STATUS(rlock_latch_count_down(l, RLOCK_COUNT_MAX - 2), RLOCK_OK);
    EXPECT_INT(left_of(l), 1);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, it_lives_as_long_as_it_was_told)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 2, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, GATE), 1, 60000);
    EXPECT_STATUS(rlock_latch_delete(l), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(l, 2, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_wait(l, SOON), RLOCK_OK);
    expect_gate_gone(s.sv, GATE);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* Nobody rings when its time is over. */
TEST(latch, one_whose_time_is_over_is_open_at_the_end_of_a_wait)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    for (int ms = 400; ms <= 1200; ms += 400) {
        EXPECT_STATUS(rlock_latch_set(l, 1, 100), RLOCK_OK);
        EXPECT_STATUS(rlock_latch_wait(l, ms), RLOCK_OK);
    }
    EXPECT_STATUS(rlock_latch_set(l, 1, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_wait(l, 400), RLOCK_TIMEOUT); /* the control */
    EXPECT_CONTAINS(rlock_last_error()->message, "1 left to count down");
    rlock_latch_free(l);
    scene_stop(&s);
}

/* Their tombstones, tokens and channels are shared, but not their queues. */
TEST(latch, a_name_and_itself_in_braces_are_two_latches)
{
    scene s = scene_start(0, 0);
    rlock_latch *plain = test_latch(s.cl, GATE);
    rlock_latch *braced = test_latch(s.cl, "{" GATE "}");
    EXPECT_STATUS(rlock_latch_set(plain, 1, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(braced, 2, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(plain, RLOCK_FOREVER);
    gate_waiter *b = gate_wait(braced, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    EVENTUALLY(SOON, server_int(s.sv, "ZCARD rlock_queue:{" GATE "}{}") == 1);
    EXPECT_STATUS(rlock_latch_count_down(plain, 1), RLOCK_OK);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    EXPECT(!gate_has_returned(b));
    EXPECT_STATUS(rlock_latch_count_down(braced, 2), RLOCK_OK);
    EXPECT_STATUS(gate_end(b, NULL), RLOCK_OK);
    rlock_latch_free(plain);
    rlock_latch_free(braced);
    scene_stop(&s);
}

TEST(latch, a_name_may_have_any_bytes)
{
    scene s = scene_start(0, 0);
    rlock_latch *l;
    EXPECT_STATUS(rlock_latch_new_n(s.cl, "a\0b", 3, &l), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS %b", "a\0b", (size_t)3), 1);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS %b", "a\0b", (size_t)3), 0);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* --- what is no latch ----------------------------------------------------- */

static void expect_all_refuse(rlock_latch *l, rlock_status wanted)
{
    int64_t left;
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), wanted);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), wanted);
    EXPECT_STATUS(rlock_latch_wait(l, 0), wanted);
    EXPECT_STATUS(rlock_latch_wait(l, 1000), wanted);
    EXPECT_STATUS(rlock_latch_count(l, &left), wanted);
    EXPECT_INT(left, 0);
    EXPECT_STATUS(rlock_latch_delete(l), wanted);
}

TEST(latch, what_is_no_count_is_left_alone)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_all_refuse(l, RLOCK_EWRONGTYPE);
    EXPECT_CONTAINS(rlock_last_error()->message, "latch '" SCENE_LOCK "'");
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "SET " SCENE_LOCK " text");
    expect_all_refuse(l, RLOCK_EWRONGTYPE);
    EXPECT_CONTAINS(rlock_last_error()->message, "the string is no count");
    EXPECT_STR(server_str(s.sv, "GET " SCENE_LOCK), "text");
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, a_latch_is_no_lock)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_latch_set(l, 2, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_EWRONGTYPE);
    EXPECT_INT(left_of(l), 2);
    rlock_latch_free(l);
    scene_stop(&s);
}

static void expect_einval(rlock_status s, const char *why)
{
    EXPECT_STATUS(s, RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
}

TEST(latch, what_is_out_of_range_is_refused_and_nothing_is_sent)
{
    scene s = scene_proxied(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    int before = proxy_count(s.px, "");
    expect_einval(rlock_latch_set(l, 0, 0), "count is out of range");
    expect_einval(rlock_latch_set(l, -1, 0), "count is out of range");
    expect_einval(rlock_latch_set(l, RLOCK_COUNT_MAX + 1, 0), "count");
    expect_einval(rlock_latch_set(l, 1, -1), "ttl_ms is out of range");
    expect_einval(rlock_latch_set(l, 1, INT64_MAX), "ttl_ms");
    expect_einval(rlock_latch_count_down(l, 0), "n is out of range");
    expect_einval(rlock_latch_count_down(l, -1), "n is out of range");
    expect_einval(rlock_latch_count_down(l, INT64_MAX), "n is out of range");
    expect_einval(rlock_latch_wait(l, -2), "wait_ms is negative");
    expect_einval(rlock_latch_wait_start(l, -2, NULL, NULL), "wait_ms");
    EXPECT_INT(proxy_count(s.px, ""), before);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, null_is_refused_or_accepted_as_it_is_said)
{
    scene s = scene_start(0, 0);
    int64_t left;
    rlock_latch *l = test_latch(s.cl, GATE), *none;
    expect_einval(rlock_latch_new(NULL, GATE, &none), "the client is NULL");
    EXPECT(!none);
    expect_einval(rlock_latch_new(s.cl, NULL, &none), "the name is NULL");
    expect_einval(rlock_latch_new(s.cl, "", &none), "1 to 512 bytes");
    expect_einval(rlock_latch_new(s.cl, "rlock_queue:x", &none), "begin with");
    expect_einval(rlock_latch_new(s.cl, GATE, NULL), "out is NULL");
    expect_einval(rlock_latch_set(NULL, 1, 0), "the latch is NULL");
    expect_einval(rlock_latch_count_down(NULL, 1), "the latch is NULL");
    expect_einval(rlock_latch_wait(NULL, 0), "the latch is NULL");
    expect_einval(rlock_latch_wait_start(NULL, 0, NULL, NULL), "the latch");
    expect_einval(rlock_latch_count(NULL, &left), "the latch is NULL");
    expect_einval(rlock_latch_count(l, NULL), "out is NULL");
    expect_einval(rlock_latch_delete(NULL), "the latch is NULL");
    rlock_latch_cancel(NULL);
    rlock_latch_free(NULL);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* --- the client ----------------------------------------------------------- */

TEST(latch, a_handle_outlives_its_client)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    scene_free_client(&s);
    expect_all_refuse(l, RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_latch_wait_start(l, 0, NULL, NULL), RLOCK_ECLOSED);
    rlock_latch_cancel(l);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, a_child_of_fork_is_refused)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    int status;
    pid_t child = fork();
    if (child == 0) {
        expect_all_refuse(l, RLOCK_EFORKED);
        EXPECT_STATUS(rlock_latch_wait_start(l, 0, NULL, NULL), RLOCK_EFORKED);
        rlock_latch_cancel(l);
        rlock_latch_free(l);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT_INT(status, 0);
    EXPECT_INT(left_of(l), 1);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, a_missing_right_is_named)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 2, 0), RLOCK_OK);
    server_cmd(s.sv, "ACL SETUSER default -decrby");
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "latch '" GATE "'");
    server_cmd(s.sv, "ACL SETUSER default +decrby");
    EXPECT_INT(left_of(l), 2);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_INT(left_of(l), 1);
    rlock_latch_free(l);
    scene_stop(&s);
}
