/* A script call that replicas have to confirm: WAIT goes right behind it. */
#include "ask.h"

#include "shim.h"

static void touch(const rl_slot *slot, rl_bytes *to)
{
    (void)slot;
    rl_put_array(to, 1);
    rl_put_text(to, "TOUCHED");
}

static void open_confirmed(call *c, uint8_t replicas)
{
    open_call(c);
    c->ask.until_us = 10 * 1000 * 1000;
    c->ask.confirm.replicas = replicas;
    c->ask.confirm.wait_ms = 1000;
}

/* What is to be sent, as text. */
static const char *unsent(call *c)
{
    static char text[8192];
    const char *bytes;
    size_t n = rl_line_bytes(&c->line, &bytes);
    EXPECT(n < sizeof text);
    memcpy(text, bytes, n);
    text[n] = '\0';
    return text;
}

static void expect_short(const call *c, int acked, const char *why)
{
    expect_end(c, RL_ANSWERED);
    EXPECT(!rl_ask_is_durable(&c->ask));
    EXPECT_INT(c->ask.confirm.acked, acked);
    EXPECT_INT(c->fault.status, RLOCK_EQUORUM);
    EXPECT_INT(c->fault.sys_errno, 0);
    EXPECT(c->fault.transient);
    EXPECT_CONTAINS(c->fault.text, why);
    EXPECT(!c->ask.unknown && !c->ask.confirm.kept);
}

TEST(confirm, without_replicas_nothing_follows_a_call)
{
    call c;
    open_confirmed(&c, 0);
    rl_ask_push(&c.ask, &c.line, 3);
    EXPECT(!strstr(unsent(&c), "WAIT"));
    send_all(&c);
    EXPECT(hear(&c, ":1\r\n"));
    expect_end(&c, RL_ANSWERED);
    EXPECT(rl_ask_is_durable(&c.ask));
    close_call(&c);
}

TEST(confirm, a_wait_follows_the_call)
{
    call c;
    open_confirmed(&c, 2);
    rl_ask_push(&c.ask, &c.line, 3);
    const char *wait = "*3\r\n$4\r\nWAIT\r\n$1\r\n2\r\n$4\r\n1000\r\n";
    const char *at = strstr(unsent(&c), wait);
    EXPECT(at && strcmp(at, wait) == 0);
    EXPECT_INT(c.line.pending, 1);
    close_call(&c);
}

TEST(confirm, a_touch_goes_in_between)
{
    call c;
    open_confirmed(&c, 2);
    c.ask.confirm.touch = touch;
    rl_ask_push(&c.ask, &c.line, 3);
    const char *touched = strstr(unsent(&c), "TOUCHED");
    EXPECT(touched && strstr(touched, "WAIT"));
    close_call(&c);
}

/* Half of the attempt's time is the call's own. */
TEST(confirm, replicas_are_waited_for_no_longer_than_there_is_time)
{
    call c;
    open_confirmed(&c, 1);
    c.ask.until_us = 500 * 1000 + 3;
    rl_ask_push(&c.ask, &c.line, 3);
    EXPECT(strstr(unsent(&c), "WAIT\r\n$1\r\n1\r\n$3\r\n250\r\n"));
    close_call(&c);
}

/* Redis takes 0 for no limit at all. */
TEST(confirm, replicas_are_waited_for_a_moment_when_there_is_no_time)
{
    call c;
    open_confirmed(&c, 1);
    c.ask.until_us = 1000 + 3;
    rl_ask_push(&c.ask, &c.line, 3);
    EXPECT(strstr(unsent(&c), "WAIT\r\n$1\r\n1\r\n$1\r\n1\r\n"));
    close_call(&c);
}

TEST(confirm, ends_with_the_calls_reply_once_enough_have_it)
{
    call c;
    open_confirmed(&c, 2);
    push(&c);
    EXPECT(hear(&c, ":42\r\n"));
    EXPECT_INT(c.done, 0);
    EXPECT_INT(c.line.pending, 1);
    EXPECT(hear(&c, ":3\r\n"));
    expect_end(&c, RL_ANSWERED);
    EXPECT_INT(c.number, 42);
    EXPECT(rl_ask_is_durable(&c.ask));
    EXPECT_INT(c.fault.status, RLOCK_OK);
    EXPECT_INT(c.line.pending, 0);
    close_call(&c);
}

TEST(confirm, with_a_touch_the_third_reply_counts)
{
    call c;
    open_confirmed(&c, 2);
    c.ask.confirm.touch = touch;
    push(&c);
    EXPECT(hear(&c, ":42\r\n:1\r\n"));
    EXPECT_INT(c.done, 0);
    EXPECT(hear(&c, ":2\r\n"));
    expect_end(&c, RL_ANSWERED);
    EXPECT_INT(c.number, 42);
    EXPECT(rl_ask_is_durable(&c.ask));
    close_call(&c);
}

static void expect_short_after(const char *replies, int acked, const char *why)
{
    call c;
    open_confirmed(&c, 2);
    push(&c);
    EXPECT(hear(&c, replies));
    expect_short(&c, acked, why);
    EXPECT_INT(c.number, 42);
    EXPECT(!c.line.failed);
    close_call(&c);
}

TEST_CASE(confirm, is_short_when_no_replica_has_it,
          expect_short_after(":42\r\n:0\r\n", 0,
                             "0 of 2 replicas within 1000 ms"))
TEST_CASE(confirm, is_short_when_too_few_have_it,
          expect_short_after(":42\r\n:1\r\n", 1,
                             "1 of 2 replicas within 1000 ms"))
TEST_CASE(confirm, is_short_when_fewer_than_none_have_it,
          expect_short_after(":42\r\n:-5\r\n", 0,
                             "0 of 2 replicas within 1000 ms"))
TEST_CASE(confirm, is_short_after_an_error,
          expect_short_after(":42\r\n-ERR unknown command 'WAIT'\r\n", -1,
                             "unknown command"))
TEST_CASE(confirm, is_short_when_the_server_ceased_to_be_master,
          expect_short_after(":42\r\n-UNBLOCKED force unblock\r\n", -1,
                             "UNBLOCKED"))

static void expect_short_untouched(const char *touched)
{
    call c;
    open_confirmed(&c, 1);
    c.ask.confirm.touch = touch;
    push(&c);
    EXPECT(hear(&c, ":42\r\n"));
    EXPECT(hear(&c, touched));
    EXPECT(hear(&c, ":1\r\n"));
    expect_short(&c, -1, "nothing to write");
    close_call(&c);
}

/* Then it is not known what WAIT was about. */
TEST_CASE(confirm, is_short_when_the_touch_found_nothing,
          expect_short_untouched(":0\r\n"))
TEST_CASE(confirm, is_short_when_the_touch_was_refused,
          expect_short_untouched("-NOPERM no\r\n"))

TEST(confirm, is_short_when_the_connection_breaks_behind_the_reply)
{
    call c;
    open_confirmed(&c, 1);
    push(&c);
    EXPECT(hear(&c, ":42\r\n"));
    break_line(&c);
    expect_short(&c, -1, "broken");
    EXPECT_INT(c.number, 42);
    close_call(&c);
}

TEST(confirm, is_short_when_no_answer_comes_in_time)
{
    call c;
    open_confirmed(&c, 1);
    push(&c);
    EXPECT(hear(&c, ":42\r\n"));
    rl_line_time_out(&c.line, 7);
    expect_short(&c, -1, "no reply");
    close_call(&c);
}

TEST(confirm, is_unknown_when_the_connection_breaks_before_the_reply)
{
    call c;
    open_confirmed(&c, 1);
    c.ask.tries = 1;
    push(&c);
    break_line(&c);
    expect_end(&c, RL_UNKNOWN);
    close_call(&c);
}

/* The kernel has the call, but not all of what goes behind it. */
TEST(confirm, is_unknown_when_all_but_the_wait_was_sent)
{
    call c;
    const char *bytes;
    open_confirmed(&c, 1);
    c.ask.tries = 1;
    rl_ask_push(&c.ask, &c.line, 3);
    rl_line_sent(&c.line, rl_line_bytes(&c.line, &bytes) - 1);
    break_line(&c);
    expect_end(&c, RL_UNKNOWN);
    close_call(&c);
}

TEST(confirm, an_answer_to_a_wait_that_was_not_sent_fails_the_line)
{
    call c;
    const char *bytes;
    open_confirmed(&c, 1);
    rl_ask_push(&c.ask, &c.line, 3);
    rl_line_sent(&c.line, rl_line_bytes(&c.line, &bytes) - 1);
    EXPECT(!hear(&c, ":42\r\n:1\r\n"));
    expect_short(&c, -1, "nobody had asked");
    close_call(&c);
}

TEST(confirm, an_answer_that_is_no_number_fails_the_line)
{
    call c;
    open_confirmed(&c, 1);
    push(&c);
    EXPECT(!hear(&c, ":42\r\n$1\r\n1\r\n"));
    expect_short(&c, -1, "unexpected reply");
    close_call(&c);
}

/* A script that the server lacks goes whole, with a WAIT of its own. */
TEST(confirm, of_a_script_that_goes_whole_the_second_wait_counts)
{
    call c;
    open_confirmed(&c, 1);
    push(&c);
    EXPECT(hear(&c, NOSCRIPT));
    EXPECT_INT(c.written, 1);
    EXPECT(hear(&c, ":1\r\n"));
    EXPECT_INT(c.wholes, 1);
    EXPECT_INT(c.done, 0);
    send_all(&c);
    EXPECT(hear(&c, ":42\r\n:0\r\n"));
    expect_short(&c, 0, "0 of 1");
    close_call(&c);
}

TEST(confirm, is_made_again_when_the_connection_breaks_behind_a_noscript)
{
    call c;
    open_confirmed(&c, 1);
    push(&c);
    EXPECT(hear(&c, NOSCRIPT));
    break_line(&c);
    expect_again(&c);
    EXPECT(!c.ask.unknown);
    push(&c);
    EXPECT(hear(&c, ":42\r\n:1\r\n"));
    expect_end(&c, RL_ANSWERED);
    EXPECT(rl_ask_is_durable(&c.ask));
    close_call(&c);
}

/* Otherwise each attempt would wait for replicas that have nothing to take. */
TEST(confirm, goes_whole_when_no_answer_comes_behind_a_noscript)
{
    call c;
    open_confirmed(&c, 1);
    push(&c);
    EXPECT(hear(&c, NOSCRIPT));
    rl_line_time_out(&c.line, 7);
    expect_again(&c);
    EXPECT_STATUS(c.fault.status, RLOCK_EIO);
    EXPECT_CONTAINS(c.fault.text, "no reply");
    push(&c);
    EXPECT_INT(c.wholes, 1);
    close_call(&c);
}

TEST(confirm, is_made_again_after_an_error_that_passes)
{
    call c;
    open_confirmed(&c, 1);
    push(&c);
    EXPECT(hear(&c, LOADING));
    EXPECT(hear(&c, LOADING));
    expect_again(&c);
    EXPECT_CONTAINS(c.fault.text, "LOADING");
    push(&c);
    EXPECT(hear(&c, ":42\r\n:1\r\n"));
    expect_end(&c, RL_ANSWERED);
    EXPECT(rl_ask_is_durable(&c.ask));
    close_call(&c);
}

TEST(confirm, calls_on_one_line_get_their_own_answers)
{
    call c, d;
    open_confirmed(&c, 1);
    open_confirmed(&d, 1);
    push(&c);
    rl_ask_push(&d.ask, &c.line, 3);
    send_all(&c);
    EXPECT(hear(&c, ":1\r\n:0\r\n:2\r\n:1\r\n"));
    expect_short(&c, 0, "0 of 1");
    expect_end(&d, RL_ANSWERED);
    EXPECT_INT(d.number, 2);
    EXPECT(rl_ask_is_durable(&d.ask));
    close_call(&c);
    close_call(&d);
}

/* What an earlier attempt was told says nothing of this one. */
TEST(confirm, nobody_has_it_before_somebody_says_so)
{
    call c;
    open_confirmed(&c, 1);
    c.ask.confirm.acked = 1;
    push(&c);
    EXPECT(!rl_ask_is_durable(&c.ask));
    EXPECT_INT(c.ask.confirm.acked, -1);
    EXPECT(hear(&c, ":42\r\n"));
    EXPECT(!rl_ask_is_durable(&c.ask));
    close_call(&c);
}

/* The call itself is under way: its answer counts, as that of no replica. */
TEST(confirm, without_memory_for_its_answer_it_is_short)
{
    call c;
    open_confirmed(&c, 1);
    rl_bytes *to = rl_line_begin(&c.line);
    rl_put_raw(to, (char[1000]){0}, 1000); /* there is room on the line */
    rl_bytes_cut(to, 0);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    rl_ask_push(&c.ask, &c.line, 3);
    shim_clear(shim_here());
    EXPECT(!strstr(unsent(&c), "WAIT"));
    send_all(&c);
    EXPECT(hear(&c, ":42\r\n"));
    expect_short(&c, -1, "out of memory");
    EXPECT_INT(c.number, 42);
    close_call(&c);
}
