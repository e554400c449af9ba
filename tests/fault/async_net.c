/*
 * Faults on the way to the server, on the connection that all calls share that
 * were started: each is called back once, nobody is told another one's answer,
 * and what is unknown is undone. Each test sees first that all is well without
 * the fault.
 */
#include "storm.h"

enum { N = 50, TOLD = 2 /* of each, by the control */ };

typedef struct line {
    scene s;
    storm st;
} line;

static line line_start(int64_t lease_ms, int64_t timeout_ms)
{
    line x = {.s = scene_proxied(lease_ms, timeout_ms)};
    x.st = storm_new(x.s.cl, N);
    storm_undisturbed(&x.st);
    expect_nothing_left(x.s.sv);
    return x;
}

/* What the server has is what each was told; then the rest goes, too. */
static void expect_as_told(line *x)
{
    for (size_t i = 0; i < N; i++) {
        char name[32];
        bool owned = x->st.r[i].status == RLOCK_OK;
        snprintf(name, sizeof name, "storm:%zu", i);
        EXPECT_INT(request_holds(&x->st.r[i]), owned);
        EVENTUALLY(SOON, levels(x->s.sv, name) == (owned ? 1 : 0));
    }
}

/* Those that hold give it back; all can be used as ever, and nothing is left.
 */
static void line_end(line *x)
{
    proxy_rule(x->s.px, NULL, 1, PROXY_CUT_AFTER, NULL);
    expect_as_told(x);
    for (size_t i = 0; i < N; i++)
        if (request_holds(&x->st.r[i]))
            EXPECT_STATUS(loop_unlock(x->s.cl, &x->st.r[i]), RLOCK_OK);
    storm_undisturbed(&x->st);
    expect_all_undone(x->s.sv);
    storm_free(&x->st);
    scene_stop(&x->s);
}

/* The nth acquire meets it, while all are under way. */
static line acquire_with(int nth, proxy_action action, const char *answer,
                         int64_t wait_ms)
{
    line x = line_start(20000, 500);
    proxy_rule(x.s.px, proxy_sha("acquire"), nth, action, answer);
    storm_acquire(&x.st, wait_ms, RLOCK_WATCHDOG);
    storm_settle(&x.st, TOLD + 1);
    EXPECT(proxy_fired(x.s.px));
    return x;
}

/* --- 159: it is cut, or answers are lost ---------------------------------- */

/* The same acquires are asked for again, also by who does not wait. */
static void expect_all_get_it(int nth, proxy_action action)
{
    line x = acquire_with(nth, action, NULL, 0);
    storm_expect(&x.st, RLOCK_OK);
    line_end(&x);
}

TEST_CASE(async_net, fault_159_cut_off_before_they_are_sent_all_have_it_once,
          expect_all_get_it(10, PROXY_CUT_BEFORE))
TEST_CASE(async_net, fault_159_cut_off_once_executed_all_have_it_once,
          expect_all_get_it(10, PROXY_CUT_AFTER))
TEST_CASE(async_net, fault_159_cut_off_in_the_first_answer_all_have_it_once,
          expect_all_get_it(1, PROXY_CUT_IN_REPLY))
TEST_CASE(async_net, fault_159_cut_off_in_an_answer_all_have_it_once,
          expect_all_get_it(25, PROXY_CUT_IN_REPLY))
TEST_CASE(async_net, fault_159_cut_off_in_the_last_answer_all_have_it_once,
          expect_all_get_it(N, PROXY_CUT_IN_REPLY))
TEST_CASE(async_net, fault_159_reset_in_an_answer_all_have_it_once,
          expect_all_get_it(25, PROXY_MID_REPLY | PROXY_RESET))

/* From the tenth on nothing is answered, and all of them are executed. */
TEST(async_net, fault_159_answers_that_are_lost_are_undone)
{
    int64_t began_ms = test_now_ms();
    line x = acquire_with(10, PROXY_SWALLOW_REPLY, NULL, 0);
    EXPECT_INT(storm_told(&x.st, RLOCK_OK), 9);
    EXPECT_INT(storm_told(&x.st, RLOCK_EIO), N - 9);
    EXPECT(test_since_ms(began_ms) < 2 * (500 + SLACK_MS));
    line_end(&x);
}

TEST(async_net, fault_159_who_waits_has_it_when_answers_were_lost)
{
    line x = acquire_with(10, PROXY_SWALLOW_REPLY, NULL, SOON);
    storm_expect(&x.st, RLOCK_OK);
    line_end(&x);
}

/* Unlocks whose answers are lost are unlocks. */
static void unlock_with(int nth, proxy_action action, rlock_status rest)
{
    line x = line_start(20000, 500);
    storm_acquire(&x.st, 0, RLOCK_WATCHDOG);
    storm_settle(&x.st, TOLD + 1);
    proxy_rule(x.s.px, proxy_sha("release"), nth, action, NULL);
    storm_unlock(&x.st);
    storm_settle(&x.st, TOLD + 2);
    EXPECT(proxy_fired(x.s.px));
    EXPECT(storm_told(&x.st, RLOCK_OK) >= (size_t)nth - 1);
    for (size_t i = 0; i < N; i++)
        EXPECT(x.st.r[i].status == RLOCK_OK || x.st.r[i].status == rest);
    EXPECT(storm_holding(&x.st) == 0);
    proxy_rule(x.s.px, NULL, 1, PROXY_CUT_AFTER, NULL);
    EVENTUALLY(SOON, server_cmd(x.s.sv, "KEYS storm:*")->elements == 0);
    storm_undisturbed(&x.st);
    expect_all_undone(x.s.sv);
    storm_free(&x.st);
    scene_stop(&x.s);
}

TEST_CASE(async_net, fault_159_unlocks_cut_off_in_an_answer_are_unlocks,
          unlock_with(25, PROXY_CUT_IN_REPLY, RLOCK_OK))
TEST_CASE(async_net, fault_159_unlocks_that_are_not_answered_are_made_good,
          unlock_with(10, PROXY_SWALLOW_REPLY, RLOCK_EIO))

/*
 * The first one's answer is late, in whole or by half; the others stand behind
 * it with more time, and one that is started when the first has been told does
 * not.
 */
static void expect_late_answer_is_nobodys(size_t bytes)
{
    line x = line_start(20000, 800);
    request *first = x.st.r, *last = x.st.r + N - 1;
    if (bytes)
        proxy_rule_at(x.s.px, "storm:0", 1, bytes, PROXY_LATE);
    else
        proxy_rule(x.s.px, "storm:0", 1, PROXY_HOLD_REPLY, NULL);
    EXPECT_STATUS(request_acquire(first, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, proxy_fired(x.s.px));
    int64_t fired_ms = test_now_ms();
    EVENTUALLY(SOON, test_since_ms(fired_ms) > 400); /* so much more time */
    for (size_t i = 1; i < N - 1; i++)
        EXPECT_STATUS(request_acquire(&x.st.r[i], 0, RLOCK_WATCHDOG), RLOCK_OK);
    LOOP_UNTIL(x.s.cl, first->told > TOLD);
    EXPECT_STATUS(first->status, RLOCK_EIO);
    EXPECT_STATUS(loop_acquire(x.s.cl, last, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(x.st.r[1].told, TOLD); /* it did not stand behind them */
    proxy_let_go(x.s.px);
    storm_settle(&x.st, TOLD + 1);
    EXPECT_INT(storm_told(&x.st, RLOCK_OK), N - 1);
    line_end(&x);
}

TEST_CASE(async_net, fault_159_an_answer_that_comes_late_is_nobodys,
          expect_late_answer_is_nobodys(0))
TEST_CASE(async_net, fault_159_half_an_answer_that_comes_late_is_nobodys,
          expect_late_answer_is_nobodys(3))

/* --- 160: answers that make no sense -------------------------------------- */

/*
 * Somebody is answered this. Who is told that he owns it does, and nobody
 * else; who waits has it in the end.
 */
static void expect_sense_of(const char *answer)
{
    line x = acquire_with(20, PROXY_ANSWER, answer, 0);
    EXPECT(storm_told(&x.st, RLOCK_OK) >= 19);
    line_end(&x);
    x = acquire_with(20, PROXY_ANSWER, answer, SOON);
    EXPECT(storm_told(&x.st, RLOCK_OK) >= N - 1);
    line_end(&x);
}

TEST_CASE(async_net, fault_160_answers_of_another_kind_are_nobodys_grant,
          expect_sense_of(":1\r\n:1\r\n:1\r\n"))
TEST_CASE(async_net, fault_160_one_answer_too_many_is_nobodys_grant,
          expect_sense_of("+OK\r\n+OK\r\n"))
TEST_CASE(async_net, fault_160_what_is_no_answer_is_nobodys_grant,
          expect_sense_of("HTTP/1.1 400 Bad Request\r\n\r\n"))
TEST_CASE(async_net, fault_160_an_endless_answer_is_nobodys_grant,
          expect_sense_of("$2147483647\r\nx"))
TEST_CASE(async_net, fault_160_an_empty_answer_is_nobodys_grant,
          expect_sense_of("*0\r\n"))
TEST_CASE(async_net, fault_160_a_deep_answer_is_nobodys_grant,
          expect_sense_of("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
                          "*1\r\n*1\r\n:1\r\n"))
TEST_CASE(async_net, fault_160_nothing_is_nobodys_grant,
          expect_sense_of("$-1\r\n"))
