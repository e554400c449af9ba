/* A script call whose script the server lacks. */
#include "ask.h"

TEST(ask_script, sends_a_script_whole_that_the_server_lacks)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT_INT(c.loads, 0);
    EXPECT(hear(&c, NOSCRIPT));
    EXPECT_INT(c.ask.next, RL_ASK_WAITS);
    EXPECT(c.written == 2 && c.wholes == 1 && c.loads == 1);
    send_all(&c);
    EXPECT(hear(&c, ":1\r\n"));
    expect_end(&c, RL_ANSWERED);
    close_call(&c);
}

/* A script that is lacking is no failed attempt. */
TEST(ask_script, has_all_its_tries_after_a_script_was_lacking)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, NOSCRIPT));
    EXPECT_INT(c.ask.tries, RL_ASK_TRIES);
    close_call(&c);
}

/* A proxy may lead EVAL elsewhere: it does not go round for ever. */
TEST(ask_script, sends_a_script_whole_once_and_then_tries_again)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, NOSCRIPT));
    send_all(&c);
    EXPECT(hear(&c, NOSCRIPT));
    expect_again(&c);
    EXPECT_INT(c.ask.tries, RL_ASK_TRIES - 1);
    close_call(&c);
}

TEST(ask_script, keeps_sending_it_whole_when_asked_again)
{
    call c;
    open_call(&c);
    push(&c);
    EXPECT(hear(&c, NOSCRIPT));
    break_line(&c);
    expect_again(&c);
    push(&c);
    EXPECT_INT(c.wholes, 2);
    close_call(&c);
}

TEST(ask_script, that_gets_no_memory_to_be_sent_whole_is_not_executed)
{
    call c;
    open_call(&c);
    push(&c);
    c.lacking = true;
    EXPECT(hear(&c, NOSCRIPT));
    expect_end(&c, RL_NOT_EXECUTED);
    EXPECT_INT(c.fault.status, RLOCK_ENOMEM);
    close_call(&c);
}

/* Each gets its own reply, though one had to be sent once more. */
TEST(ask_script, one_that_goes_whole_is_answered_after_those_behind_it)
{
    call c, behind;
    open_call(&c);
    open_call(&behind);
    push(&c);
    rl_ask_push(&behind.ask, &c.line, 3);
    send_all(&c);
    EXPECT(hear(&c, NOSCRIPT ":2\r\n"));
    send_all(&c);
    EXPECT(hear(&c, ":1\r\n"));
    EXPECT(c.number == 1 && behind.number == 2);
    close_call(&behind);
    close_call(&c);
}

/* One of them is enough: the script is large. */
TEST(ask_script, of_two_that_lack_a_script_one_brings_it)
{
    call c, behind;
    open_call(&c);
    open_call(&behind);
    push(&c);
    rl_ask_push(&behind.ask, &c.line, 3);
    send_all(&c);
    EXPECT(hear(&c, NOSCRIPT NOSCRIPT));
    EXPECT(c.wholes == 1 && behind.wholes == 0 && behind.written == 2);
    send_all(&c);
    EXPECT(hear(&c, ":1\r\n:2\r\n"));
    EXPECT(c.number == 1 && behind.number == 2);
    close_call(&behind);
    close_call(&c);
}

/* It may have been refused, with the call that brought it. */
TEST(ask_script, goes_whole_after_all_if_the_other_did_not_bring_it)
{
    call c, behind;
    open_call(&c);
    open_call(&behind);
    push(&c);
    rl_ask_push(&behind.ask, &c.line, 3);
    send_all(&c);
    EXPECT(hear(&c, NOSCRIPT NOSCRIPT));
    send_all(&c);
    EXPECT(hear(&c, NOPERM NOSCRIPT));
    EXPECT_INT(behind.wholes, 1);
    send_all(&c);
    EXPECT(hear(&c, ":2\r\n"));
    EXPECT(c.outcome == RL_NOT_EXECUTED && behind.number == 2);
    close_call(&behind);
    close_call(&c);
}

TEST(ask_script, goes_whole_though_nobody_counts_it)
{
    call c;
    open_call(&c);
    c.ask.loads = NULL;
    push(&c);
    EXPECT(hear(&c, NOSCRIPT));
    EXPECT(c.wholes == 1 && c.loads == 0);
    close_call(&c);
}
