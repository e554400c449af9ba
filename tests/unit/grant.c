/* What an acquire's reply means: each shape that the scripts answer, and those
   that they do not. */
#include "op/op.h"

#include "test.h"

static const rl_grant stale = {.token = 99,
                               .ttl_ms = 99,
                               .ticket = 99,
                               .rank = 99,
                               .clock_us = 99,
                               .foreign = true,
                               .odd = true};

static rl_verdict read_grant(const char *bytes, int level, rl_grant *g,
                             rl_fault *f)
{
    rl_reply r;
    void *whole = NULL;
    redisReader *reader = redisReaderCreateWithFunctions(&rl_reply_builder);
    memset(&r, 0, sizeof r);
    reader->privdata = &r;
    EXPECT_INT(redisReaderFeed(reader, bytes, strlen(bytes)), REDIS_OK);
    EXPECT(redisReaderGetReply(reader, &whole) == REDIS_OK && whole);
    *g = stale;
    *f = (rl_fault){.status = RLOCK_OK};
    rl_verdict v = rl_grant_read(&r, level, g, f);
    redisReaderFree(reader);
    return v;
}

static void expect_granted(const char *bytes, int level, uint64_t token,
                           int64_t clock_us)
{
    rl_grant g;
    rl_fault f;
    EXPECT_INT(read_grant(bytes, level, &g, &f), RL_ACQUIRED);
    EXPECT(g.token == token && g.clock_us == clock_us && !g.odd);
    EXPECT_INT(f.status, RLOCK_OK);
}

#define GRANTED(name, bytes, level, token, clock_us)                           \
    TEST_CASE(grant, name, expect_granted(bytes, level, token, clock_us))

GRANTED(a_token_is_one, "$2\r\n55\r\n", 1, 55, 0)
GRANTED(the_least_token_is_one, "$1\r\n1\r\n", 1, 1, 0)
GRANTED(a_token_with_a_clock_is_one, "*3\r\n:1\r\n$2\r\n55\r\n$1\r\n7\r\n", 1,
        55, 7)
GRANTED(above_the_first_level_there_may_be_no_token, "$1\r\n0\r\n", 2, 0, 0)
GRANTED(above_the_first_level_there_may_be_one, "$2\r\n55\r\n", 2, 55, 0)

/* What it says of who has the lock is in the words of a fault. */
static void expect_busy(const char *bytes, rl_grant wanted, const char *text)
{
    rl_grant g;
    rl_fault f;
    EXPECT_INT(read_grant(bytes, 1, &g, &f), RL_BUSY);
    EXPECT_INT(g.ttl_ms, wanted.ttl_ms);
    EXPECT_INT(g.ticket, wanted.ticket);
    EXPECT_INT(g.foreign, wanted.foreign);
    EXPECT_INT(g.rank, wanted.rank);
    EXPECT(!g.odd && g.clock_us == 0);
    EXPECT_INT(f.status, RLOCK_BUSY);
    EXPECT_INT(f.sys_errno, 0);
    EXPECT_STR(f.text, text);
}

#define BUSY(name, bytes, text, ...)                                           \
    TEST_CASE(grant, name, expect_busy(bytes, (rl_grant){__VA_ARGS__}, text))
#define OURS    "*7\r\n:0\r\n:300\r\n$1\r\n5\r\n:0\r\n:2\r\n"
#define FOREIGN "*7\r\n:0\r\n:-1\r\n$1\r\n5\r\n:1\r\n:-1\r\n"

BUSY(five_say_that_it_is_held, "*5\r\n:0\r\n:300\r\n$1\r\n5\r\n:0\r\n:2\r\n",
     "held by another", .ttl_ms = 300, .ticket = 5, .rank = 2)
BUSY(seven_say_by_whom, OURS "$3\r\nwho\r\n$4\r\n2360\r\n",
     "held by who for 2.3 s", .ttl_ms = 300, .ticket = 5, .rank = 2)
BUSY(seven_may_not_know_for_how_long, FOREIGN "$3\r\nwho\r\n:-1\r\n",
     "held by who", .ttl_ms = -1, .ticket = 5, .foreign = true, .rank = -1)
BUSY(seven_may_not_know_by_whom, FOREIGN "$0\r\n\r\n:-1\r\n", "held by another",
     .ttl_ms = -1, .ticket = 5, .foreign = true, .rank = -1)

TEST(grant, above_the_first_level_a_hold_may_be_gone)
{
    rl_grant g;
    rl_fault f;
    EXPECT_INT(read_grant("*1\r\n:-1\r\n", 2, &g, &f), RL_GONE);
    EXPECT(!g.odd && f.status == RLOCK_OK);
}

static void expect_failed(const char *bytes, int level, bool odd,
                          const char *text)
{
    rl_grant g;
    rl_fault f;
    EXPECT_INT(read_grant(bytes, level, &g, &f), RL_FAILED);
    EXPECT_INT(g.odd, odd);
    EXPECT_INT(f.status, RLOCK_EIO);
    EXPECT_INT(f.sys_errno, 0);
    EXPECT(!f.transient);
    EXPECT_STR(f.text, text);
}

TEST_CASE(grant, one_that_was_given_up_is_none,
          expect_failed("*1\r\n:-2\r\n", 1, false, "the acquire was given up"))

/* Who reads beside others, and wants to write. */
TEST(grant, who_is_refused_would_wait_for_ever)
{
    rl_grant g;
    rl_fault f;
    EXPECT_INT(read_grant("*1\r\n:-3\r\n", 1, &g, &f), RL_FAILED);
    EXPECT(!g.odd && !f.transient);
    EXPECT_INT(f.status, RLOCK_EDEADLK);
}

/* It may have been granted, so it is odd. */
#define ODD(name, level, bytes)                                                \
    TEST_CASE(                                                                 \
        grant, name,                                                           \
        expect_failed(bytes, level, true, "unexpected reply to an acquire"))

ODD(no_token_is_none, 1, "$1\r\n0\r\n")
ODD(a_negative_token_is_none, 1, "$2\r\n-5\r\n")
ODD(a_negative_token_is_none_above_the_first_level, 2, "$2\r\n-5\r\n")
ODD(a_word_is_no_token, 1, "$2\r\nno\r\n")
ODD(an_empty_text_is_none, 1, "$0\r\n\r\n")
ODD(a_number_is_none, 1, ":55\r\n")
ODD(no_token_with_a_clock_is_none, 1, "*3\r\n:1\r\n$1\r\n0\r\n$1\r\n7\r\n")
ODD(a_token_without_its_clock_is_none, 1, "*2\r\n:1\r\n$2\r\n55\r\n")
ODD(a_token_with_more_is_none, 1, "*4\r\n:1\r\n$2\r\n55\r\n$1\r\n7\r\n:1\r\n")
ODD(four_say_nothing_of_who_has_it, 1, "*4\r\n:0\r\n:300\r\n$1\r\n5\r\n:0\r\n")
ODD(six_say_nothing_of_who_has_it, 1,
    "*6\r\n:0\r\n:300\r\n$1\r\n5\r\n:0\r\n:2\r\n$3\r\nwho\r\n")
ODD(above_the_first_level_nobody_is_told_busy, 2,
    "*5\r\n:0\r\n:300\r\n$1\r\n5\r\n:0\r\n:2\r\n")
ODD(on_the_first_level_nothing_is_gone, 1, "*1\r\n:-1\r\n")
ODD(another_code_is_none, 1, "*1\r\n:-4\r\n")
ODD(above_the_first_level_nobody_is_refused, 2, "*1\r\n:-3\r\n")
ODD(a_code_that_is_a_text_is_none, 1, "*1\r\n$2\r\n-2\r\n")
ODD(an_empty_list_is_none, 1, "*0\r\n")
