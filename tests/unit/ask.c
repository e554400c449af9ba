/* One script call until its final answer: the only place that asks again. */
#include "ask.h"

#include "base/clock.h"

TEST(ask, begins_idle_and_waits_once_it_is_on_a_line)
{
    call c;
    open_call(&c);
    EXPECT_INT(c.ask.next, RL_ASK_IDLE);
    push(&c);
    EXPECT_INT(c.ask.next, RL_ASK_WAITS);
    EXPECT(c.ask.line == &c.line && c.ask.sent_us == 3 && c.line.pending == 1);
    close_call(&c);
}

/* A part on the heap, or on a thread's stack, was something else before. */
TEST(ask, begins_with_nothing_of_what_was_there_before)
{
    rl_ask a;
    rl_fault f;
    memset(&a, 0x55, sizeof a);
    rl_ask_init(&a, RL_SCRIPT_HASH_RENEW, &f);
    EXPECT(a.redirected == 0 && a.detour == 0 && !a.redirects);
    EXPECT(a.pause_us == 0 && a.rest_until_us == 0);
    EXPECT(!a.unknown && !a.whole && !a.split && !a.slot.line && !a.slot.raw);
    EXPECT(!a.single && !a.strict && !a.patient && !a.last && !a.parts);
    EXPECT(!a.once && !a.line && !a.loads && !a.slot.subscribes);
    EXPECT(a.tries == RL_ASK_TRIES && a.send_by_us == RL_NEVER);
    EXPECT(a.confirm.replicas == 0);
}

TEST(ask, ends_with_its_reply)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, ":42\r\n"));
    expect_end(&c, RL_ANSWERED);
    EXPECT_INT(c.number, 42);
    EXPECT(!c.ask.unknown);
    close_call(&c);
}

TEST(ask, is_made_again_after_an_error_that_passes)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, LOADING));
    expect_again(&c);
    EXPECT(!c.ask.unknown);
    push(&c);
    EXPECT(hear(&c, ":1\r\n"));
    expect_end(&c, RL_ANSWERED);
    close_call(&c);
}

TEST(ask, is_given_up_after_its_tries)
{
    call c;
    open_call(&c);
    for (int i = 0; i < RL_ASK_TRIES - 1; i++) {
        push(&c);
        EXPECT(hear(&c, LOADING));
        expect_again(&c);
    }
    push(&c);
    EXPECT(hear(&c, LOADING));
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT_CONTAINS(c.fault.text, "LOADING");
    close_call(&c);
}

TEST(ask, is_not_made_again_after_an_error_that_stays)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, NOPERM));
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT_INT(c.fault.status, RLOCK_ESERVER);
    close_call(&c);
}

/* A script that failed half-way may have written. */
TEST(ask, is_unknown_after_an_error_that_nobody_knows)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, STRANGE));
    expect_end(&c, RL_UNKNOWN);
    close_call(&c);
}

TEST(ask, leaves_a_line_that_leads_elsewhere)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, READONLY));
    expect_again(&c);
    EXPECT(c.line.retired && !c.line.failed);
    close_call(&c);
}

TEST(ask, is_asked_again_when_its_connection_broke)
{
    call c;
    open_call(&c);
    push(&c);
    break_line(&c);
    expect_again(&c);
    EXPECT(c.ask.unknown);
    EXPECT_STR(c.fault.text, "broken");
    close_call(&c);
}

TEST(ask, of_which_not_all_was_sent_is_certainly_not_executed)
{
    call c;
    open_call(&c);
    c.ask.tries = 1;
    rl_ask_push(&c.ask, &c.line, 3);
    const char *bytes;
    rl_line_sent(&c.line, rl_line_bytes(&c.line, &bytes) - 1);
    break_line(&c);
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT(!c.ask.unknown);
    close_call(&c);
}

/* The first attempt may be executed at any time, whatever the others say. */
TEST(ask, that_was_unknown_once_stays_unknown_until_it_is_answered)
{
    call c;
    open_call(&c);
    push(&c);
    break_line(&c);
    push(&c);
    EXPECT(hear(&c, LOADING));
    push(&c);
    EXPECT(hear(&c, LOADING));
    expect_end(&c, RL_UNKNOWN);
    close_call(&c);
}

TEST(ask, that_was_unknown_says_so_beside_its_answer)
{
    call c;
    open_call(&c);
    push(&c);
    break_line(&c);
    push(&c);
    EXPECT(hear(&c, ":1\r\n"));
    expect_end(&c, RL_ANSWERED);
    EXPECT(c.ask.unknown);
    close_call(&c);
}

TEST(ask, that_may_run_once_is_not_made_again_when_unknown)
{
    call c;
    open_call(&c);
    c.ask.once = true;
    push(&c);
    break_line(&c);
    expect_end(&c, RL_UNKNOWN);
    close_call(&c);
}

TEST(ask, that_may_run_once_is_made_again_when_it_did_not_run)
{
    call c;
    open_call(&c);
    c.ask.once = true;
    push(&c);
    EXPECT(hear(&c, LOADING));
    expect_again(&c);
    push(&c);
    EXPECT(hear(&c, NOSCRIPT));
    send_all(&c);
    EXPECT(hear(&c, ":1\r\n"));
    expect_end(&c, RL_ANSWERED);
    close_call(&c);
}

static void expect_strange(const char *reply)
{
    call c;
    open_call(&c);
    c.ask.tries = 1;
    push(&c);
    EXPECT(!hear(&c, reply));
    expect_end(&c, RL_UNKNOWN);
    EXPECT(c.line.failed);
    EXPECT_INT(c.fault.status, RLOCK_EIO);
    close_call(&c);
}

TEST_CASE(ask, fails_its_line_by_a_reply_of_another_type,
          expect_strange("$1\r\n1\r\n"))
TEST_CASE(ask, fails_its_line_by_an_array_in_place_of_a_number,
          expect_strange("*1\r\n:1\r\n"))
TEST_CASE(ask, fails_its_line_by_what_is_no_reply, expect_strange("hello\r\n"))

TEST(ask, asks_again_elsewhere_after_a_strange_reply)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(!hear(&c, "+OK\r\n"));
    expect_again(&c);
    push(&c);
    EXPECT(hear(&c, ":1\r\n"));
    expect_end(&c, RL_ANSWERED);
    close_call(&c);
}

/* One strange reply: what all behind it were told may be another's. */
TEST(ask, a_strange_reply_ends_those_behind_it_as_unknown)
{
    call c, behind;
    open_call(&c);
    open_call(&behind);
    behind.ask.tries = 1;
    push(&c);
    rl_ask_push(&behind.ask, &c.line, 3);
    send_all(&c);
    EXPECT(!hear(&c, "+OK\r\n:1\r\n"));
    expect_end(&behind, RL_UNKNOWN);
    close_call(&behind);
    close_call(&c);
}

TEST(ask, that_gets_no_memory_is_not_sent)
{
    call c;
    open_call(&c);
    c.lacking = true;
    push(&c);
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT_INT(c.fault.status, RLOCK_ENOMEM);
    EXPECT(!c.line.failed && c.line.pending == 0);
    close_call(&c);
}

TEST(ask, on_a_line_that_failed_says_why_that_did)
{
    call c;
    open_call(&c);
    break_line(&c);
    rl_ask_push(&c.ask, &c.line, 3);
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT_STR(c.fault.text, "broken");
    close_call(&c);
}

TEST(ask, that_finds_no_connection_has_one_try_less)
{
    call c;
    open_call(&c);
    rl_fault_set(&c.fault, RLOCK_EIO, 0, "nobody at home");
    rl_ask_miss(&c.ask, 3);
    expect_again(&c);
    rl_ask_miss(&c.ask, 3);
    rl_ask_miss(&c.ask, 3);
    expect_end(&c, RL_NOT_EXECUTED);
    close_call(&c);
}

TEST(ask, that_finds_no_connection_after_an_unknown_try_is_unknown)
{
    call c;
    open_call(&c);
    push(&c);
    break_line(&c);
    rl_ask_miss(&c.ask, 3);
    rl_ask_miss(&c.ask, 3);
    expect_end(&c, RL_UNKNOWN);
    close_call(&c);
}

TEST(ask, that_is_refused_ends_at_once)
{
    call c;
    open_call(&c);
    rl_ask_refuse(&c.ask, 3);
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT_INT(c.written, 0);
    close_call(&c);
}

/* A line that broke, or leads elsewhere, is why; another one may do it. */
TEST(ask, that_ended_with_its_line_was_not_refused)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, NOPERM));
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT(rl_ask_is_refused(&c.ask, c.outcome));
    c.line.retired = true;
    EXPECT(!rl_ask_is_refused(&c.ask, c.outcome));
    c.line.retired = false;
    c.line.failed = true;
    EXPECT(!rl_ask_is_refused(&c.ask, c.outcome));
    close_call(&c);
}

TEST(ask, that_is_given_up_after_an_unknown_try_is_unknown)
{
    call c;
    open_call(&c);
    push(&c);
    break_line(&c);
    rl_ask_give_up(&c.ask, 3);
    expect_end(&c, RL_UNKNOWN);
    close_call(&c);
}

/* What it is written with goes with its caller. */
static void write_no_more(rl_ask *a)
{
    a->tries = 0;
    a->last = true;
}

static void expect_last(const char *reply, rl_outcome outcome)
{
    call c;
    open_call(&c);
    push(&c);
    write_no_more(&c.ask);
    EXPECT(hear(&c, reply));
    expect_end(&c, outcome);
    EXPECT_INT(c.written, 1);
    close_call(&c);
}

TEST_CASE(ask, in_its_last_try_is_answered, expect_last(":1\r\n", RL_ANSWERED))
TEST_CASE(ask, in_its_last_try_is_not_sent_whole,
          expect_last(NOSCRIPT, RL_NOT_EXECUTED))
TEST_CASE(ask, in_its_last_try_is_not_made_again,
          expect_last(LOADING, RL_NOT_EXECUTED))

TEST(ask, in_its_last_try_is_not_made_again_when_the_line_breaks)
{
    call c;
    open_call(&c);
    push(&c);
    write_no_more(&c.ask);
    break_line(&c);
    expect_end(&c, RL_UNKNOWN);
    close_call(&c);
}
