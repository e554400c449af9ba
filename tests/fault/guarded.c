/*
 * Guarded calls when something goes wrong: answers that do not come, commands
 * that come too late, and processes that are stopped.
 */
#include <hiredis/hiredis.h>

#include "other_client.h"

#define INCR "return redis.call('INCR', 'n')"

static rlock_status incr(rlock *lk)
{
    return rlock_eval(lk, INCR, 0, 0, NULL, NULL, NULL);
}

/* The script is there, and a connection is. */
static scene ready_scene(int64_t timeout_ms)
{
    scene s = scene_held_proxied(0, timeout_ms);
    EXPECT_STATUS(incr(s.lk), RLOCK_OK);
    EXPECT_STATUS(incr(s.lk), RLOCK_OK);
    proxy_forget(s.px);
    return s;
}

static void expect_n(scene *s, const char *wanted)
{
    EXPECT_STR(server_str(s->sv, "GET n"), wanted);
}

/* --- answers that do not come --------------------------------------------- */

/* after: how often it has been executed by then. */
static void expect_unknown(proxy_action action, const char *after)
{
    redisReply *r = (redisReply *)&r;
    scene s = ready_scene(600);
    proxy_rule(s.px, "EVALSHA", 1, action, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_eval(s.lk, INCR, 0, 0, NULL, NULL, &r), RLOCK_EIO);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 600 + SLACK_MS);
    EXPECT(!r);
    EXPECT_CONTAINS(rlock_last_error()->message, "lock 'job' at unix:");
    EXPECT_CONTAINS(rlock_last_error()->message, "may have been executed");
    EXPECT_INT(proxy_count(s.px, "EVALSHA"), 1);
    EXPECT(rlock_is_held(s.lk));
    expect_n(&s, after);
    EXPECT_STATUS(incr(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST_CASE(guarded, a_call_that_is_cut_before_it_arrives_is_not_repeated,
          expect_unknown(PROXY_CUT_BEFORE, "2"))
TEST_CASE(guarded, a_call_that_is_cut_after_it_was_executed_is_not_repeated,
          expect_unknown(PROXY_CUT_AFTER, "3"))
TEST_CASE(guarded, a_call_whose_reply_is_cut_is_not_repeated,
          expect_unknown(PROXY_CUT_IN_REPLY, "3"))
TEST_CASE(guarded, a_call_without_a_reply_ends_in_time_and_is_not_repeated,
          expect_unknown(PROXY_SWALLOW_REPLY, "3"))

/* What is answered must not be taken for the answer to the next one. */
TEST(guarded, a_reply_that_is_late_is_nobodys)
{
    scene s = ready_scene(300);
    redisReply *r;
    proxy_rule(s.px, "EVALSHA", 1, PROXY_HOLD_REPLY, NULL);
    EXPECT_STATUS(incr(s.lk), RLOCK_EIO);
    EXPECT_STATUS(rlock_command(s.lk, &r, "GET n"), RLOCK_OK);
    proxy_let_go(s.px);
    EXPECT_INT(r->type, REDIS_REPLY_STRING);
    EXPECT_STR(r->str, "3");
    freeReplyObject(r);
    scene_stop(&s);
}

static void expect_refused_answer(const char *answer, rlock_status wanted)
{
    redisReply *r;
    scene s = ready_scene(600);
    proxy_rule(s.px, "EVALSHA", 1, PROXY_ANSWER, answer);
    EXPECT_STATUS(rlock_eval(s.lk, INCR, 0, 0, NULL, NULL, &r), wanted);
    freeReplyObject(r);
    EXPECT(rlock_is_held(s.lk));
    scene_stop(&s);
}

TEST_CASE(guarded, a_server_that_is_loading_is_asked_again,
          expect_refused_answer(
              "-LOADING Redis is loading the dataset in memory\r\n", RLOCK_OK))
TEST_CASE(guarded, a_reply_that_is_none_is_no_answer,
          expect_refused_answer("*2147483647\r\n", RLOCK_EIO))
TEST_CASE(guarded, a_text_that_is_endless_is_no_answer,
          expect_refused_answer("$9223372036854775807\r\n", RLOCK_EIO))
TEST_CASE(guarded, a_server_that_lets_nobody_in_is_told_of,
          expect_refused_answer("-NOAUTH Authentication required.\r\n",
                                RLOCK_ESERVER))

TEST(guarded, a_server_that_is_gone_has_executed_nothing)
{
    scene s = ready_scene(400);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EXPECT_STATUS(incr(s.lk), RLOCK_EIO);
    EXPECT(!strstr(rlock_last_error()->message, "may have been executed"));
    expect_n(&s, "2");
    proxy_refuse(s.px, false);
    EVENTUALLY(SOON, incr(s.lk) == RLOCK_OK);
    scene_stop(&s);
}

/* A connection that was closed while nobody used it costs no call. */
TEST(guarded, a_connection_that_was_closed_meanwhile_is_made_anew)
{
    scene s = ready_scene(0);
    proxy_cut_all(s.px);
    EVENTUALLY(SOON, incr(s.lk) == RLOCK_OK);
    scene_stop(&s);
}

/* --- commands that come too late ------------------------------------------ */

/* It was sent while the lock was held, and lay in the network since. */
TEST(guarded, a_call_that_arrives_after_another_owners_write_changes_nothing)
{
    scene s = ready_scene(300);
    proxy_rule(s.px, "EVALSHA", 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(incr(s.lk), RLOCK_EIO);
    EXPECT(proxy_fired(s.px));
    proxy_rule(s.px, NULL, 1, PROXY_CUT_BEFORE, NULL);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    other_client r = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_command(r.lk, NULL, "SET n 100"), RLOCK_OK);
    proxy_let_go(s.px);
    expect_n(&s, "100");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    other_client_leave(&r);
    scene_stop(&s);
}

/* The control: as long as the hold has the lock, it may. */
TEST(guarded, a_call_that_arrives_late_in_time_is_executed)
{
    scene s = ready_scene(300);
    proxy_rule(s.px, "EVALSHA", 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(incr(s.lk), RLOCK_EIO);
    proxy_let_go(s.px);
    expect_n(&s, "3");
    scene_stop(&s);
}

/*
 * A late copy of the hold's own acquire has taken the lock again, after
 * somebody else had it.
 */
TEST(guarded, a_hold_that_was_taken_again_by_its_late_acquire_is_lost)
{
    char holder[300];
    int count;
    scene s = scene_proxied(0, 300);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(rlock_command(s.lk, NULL, "SET n 1"), RLOCK_OK);
    other_client r = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_command(r.lk, NULL, "SET n 2"), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    proxy_let_go(s.px);
    read_lock(s.sv, holder, sizeof holder, &count);
    EXPECT_INT(count, 1);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "SET n 3"), RLOCK_LOST);
    expect_n(&s, "2");
    other_client_leave(&r);
    scene_stop(&s);
}

/* --- processes that are stopped ------------------------------------------- */

/* arg: its lease in ms. */
static void write_twice(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    rlock_client *cl = server_client(NULL, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_acquire(lk, 0, *(int *)arg), RLOCK_OK);
    EXPECT_STATUS(rlock_command(lk, NULL, "SET n first"), RLOCK_OK);
    child_tell(c, 'w');
    child_expect(c, 'g'); /* it is stopped somewhere here */
    EXPECT_STATUS(rlock_command(lk, NULL, "SET n late"), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    child_tell(c, 'd');
    rlock_free(lk);
    rlock_client_free(cl);
}

static void expect_stopped_writer_refused(int lease_ms, bool by_force)
{
    child *c = child_start(write_twice, &lease_ms);
    scene s = scene_start(0, 0);
    child_give_uri(c, s.sv);
    child_expect(c, 'w');
    expect_n(&s, "first");
    child_stop(c);
    child_tell(c, 'g');
    if (by_force)
        EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "SET n second"), RLOCK_OK);
    child_continue(c);
    child_expect(c, 'd');
    child_end(c);
    expect_n(&s, "second");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST_CASE(guarded, a_process_that_was_stopped_beyond_its_lease_cannot_write,
          expect_stopped_writer_refused(800, false))

/* By its own clock it has the lock still: the server knows better. */
TEST_CASE(guarded, a_process_whose_lock_was_forced_meanwhile_cannot_write,
          expect_stopped_writer_refused(60000, true))

/* --- a forked child ------------------------------------------------------- */

static void expect_forked(child *c, void *arg)
{
    redisReply *r = arg;
    child_expect(c, 'g');
    EXPECT_STATUS(rlock_command(arg, &r, "SET n child"), RLOCK_EFORKED);
    EXPECT(!r);
    EXPECT_STATUS(incr(arg), RLOCK_EFORKED);
}

TEST(guarded, a_forked_child_may_not_write)
{
    scene s = scene_held(0, 0);
    child *c = child_start(expect_forked, s.lk);
    child_tell(c, 'g');
    child_end(c);
    EXPECT_STATUS(incr(s.lk), RLOCK_OK);
    expect_n(&s, "1");
    scene_stop(&s);
}
