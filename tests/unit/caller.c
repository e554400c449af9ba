/* The calling thread's sleep: why it ends, who has rung, and how long it is. */
#include "run/caller.h"

#include "base/clock.h"
#include "test.h"

#define MS INT64_C(1000)

/* By then a test has failed. */
#define FOREVER_US (20000 * MS)

typedef struct call {
    rl_wake why;
    unsigned node;
} call;

/* An operation that only sleeps: what wakes it before each sleep, how long that
   is at most, and what is known behind it. */
typedef struct sleeper {
    rl_op op;
    size_t sleeps, n;
    call calls[3][2];
    int64_t us[3];
    rl_wake why[4];
    unsigned rung[4];
    int64_t slept_us[4];
    int64_t began_us;
    int tells, tells_before; /* the first sleep */
    test_thread *thread;
} sleeper;

static rl_next resume(rl_op *op, rl_wake why, int64_t now_us)
{
    sleeper *s = RL_CONTAINER(op, sleeper, op);
    s->why[s->n] = why;
    s->rung[s->n] = op->rung;
    s->slept_us[s->n] = now_us - s->began_us;
    if (s->n == s->sleeps)
        return RL_DONE;
    for (size_t i = 0; i < 2; i++)
        if (s->calls[s->n][i].why != RL_WAKE_NONE)
            op->waker->wake(op->waker, s->calls[s->n][i].why,
                            s->calls[s->n][i].node);
    op->rung = 0;
    s->began_us = now_us;
    op->sleep_us = now_us + s->us[s->n++];
    return RL_SLEEP;
}

static void sleep_through(sleeper *s, size_t sleeps)
{
    s->op.resume = resume;
    s->sleeps = sleeps;
    s->began_us = rl_now_us();
    rl_drive(&s->op);
    EXPECT_INT(s->n, sleeps);
    EXPECT_INT(s->why[0], RL_WAKE_NONE);
}

TEST(caller, a_sleep_ends_by_itself_and_nobody_has_rung)
{
    sleeper s = {.us = {20 * MS, 20 * MS}};
    sleep_through(&s, 2);
    for (size_t i = 1; i <= 2; i++) {
        EXPECT_INT(s.why[i], RL_WAKE_NONE);
        EXPECT_INT(s.rung[i], 0);
        EXPECT(s.slept_us[i] >= 20 * MS);
    }
}

TEST(caller, who_sleeps_leaves_the_processor_to_others)
{
    sleeper s = {.us = {200 * MS}};
    int64_t before_us = test_clock_us(CLOCK_THREAD_CPUTIME_ID);
    sleep_through(&s, 1);
    EXPECT(test_clock_us(CLOCK_THREAD_CPUTIME_ID) - before_us < 10 * MS);
}

TEST(caller, a_ring_ends_a_sleep_and_says_which_nodes_have_rung)
{
    sleeper s = {
        .us = {FOREVER_US, 10 * MS, FOREVER_US},
        .calls = {{{RL_WAKE_RUNG, 3}, {RL_WAKE_RUNG, 5}},
                  {{RL_WAKE_NONE, 0}},
                  {{RL_WAKE_RUNG, 0}}},
    };
    sleep_through(&s, 3);
    EXPECT_INT(s.why[1], RL_WAKE_RUNG);
    EXPECT_INT(s.rung[1], 1 << 3 | 1 << 5);
    EXPECT_INT(s.why[2], RL_WAKE_NONE);
    EXPECT_INT(s.rung[2], 0);
    EXPECT_INT(s.why[3], RL_WAKE_RUNG);
    EXPECT_INT(s.rung[3], 1);
}

static void expect_why(call first, call second, rl_wake why, unsigned rung)
{
    sleeper s = {.us = {FOREVER_US}, .calls = {{first, second}}};
    sleep_through(&s, 1);
    EXPECT_INT(s.why[1], why);
    EXPECT_INT(s.rung[1], rung);
    EXPECT(s.slept_us[1] < FOREVER_US / 2);
}

#define LOOK   ((call){RL_WAKE_LOOK, 2})
#define RUNG   ((call){RL_WAKE_RUNG, 1})
#define CANCEL ((call){RL_WAKE_CANCEL, 2})
#define CLOSE  ((call){RL_WAKE_CLOSE, 2})

TEST_CASE(caller, who_is_to_look_has_not_been_rung,
          expect_why(LOOK, LOOK, RL_WAKE_LOOK, 0))
TEST_CASE(caller, a_ring_counts_more_than_a_look,
          expect_why(LOOK, RUNG, RL_WAKE_RUNG, 2))
TEST_CASE(caller, a_ring_is_not_forgotten_for_a_look,
          expect_why(RUNG, LOOK, RL_WAKE_RUNG, 2))
TEST_CASE(caller, a_cancel_counts_more_than_a_ring,
          expect_why(CANCEL, RUNG, RL_WAKE_CANCEL, 2))
TEST_CASE(caller, a_close_counts_more_than_a_cancel,
          expect_why(CANCEL, CLOSE, RL_WAKE_CLOSE, 0))

static void expect_next(call first, int64_t us, rl_wake why)
{
    sleeper s = {.us = {FOREVER_US, us}, .calls = {{first}}};
    sleep_through(&s, 2);
    EXPECT_INT(s.why[1], first.why);
    EXPECT_INT(s.why[2], why);
    EXPECT(s.slept_us[2] < FOREVER_US / 2);
}

TEST_CASE(caller, a_look_ends_one_sleep_only,
          expect_next(LOOK, 10 * MS, RL_WAKE_NONE))
TEST_CASE(caller, a_ring_ends_one_sleep_only,
          expect_next(RUNG, 10 * MS, RL_WAKE_NONE))
TEST_CASE(caller, after_a_cancel_nothing_sleeps,
          expect_next(CANCEL, FOREVER_US, RL_WAKE_CANCEL))
TEST_CASE(caller, after_a_close_nothing_sleeps,
          expect_next(CLOSE, FOREVER_US, RL_WAKE_CLOSE))

static void tell(rl_op *op)
{
    sleeper *s = RL_CONTAINER(op, sleeper, op);
    s->tells++;
    s->tells_before += s->n == 1 && s->why[1] == RL_WAKE_NONE;
}

TEST(caller, the_program_is_told_once_and_before_the_sleep)
{
    sleeper s = {.op = {.tell = tell}, .us = {1 * MS, 1 * MS}};
    sleep_through(&s, 2);
    EXPECT(s.tells == 1 && s.tells_before == 1);
}

static intptr_t ring(void *arg)
{
    sleeper *s = arg;
    test_pause_ms(20);
    s->op.waker->wake(s->op.waker, RL_WAKE_RUNG, 0);
    return 0;
}

static void ring_from_elsewhere(rl_op *op)
{
    sleeper *s = RL_CONTAINER(op, sleeper, op);
    s->thread = test_spawn(ring, s);
}

TEST(caller, another_thread_ends_a_sleep_at_once)
{
    sleeper s = {.op = {.tell = ring_from_elsewhere}, .us = {FOREVER_US}};
    sleep_through(&s, 1);
    EXPECT_INT(test_join(s.thread), 0);
    EXPECT_INT(s.why[1], RL_WAKE_RUNG);
    EXPECT(s.slept_us[1] < FOREVER_US / 2);
}
