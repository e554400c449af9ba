/* Jobs that have been started: who goes on when, also where memory runs out. */
#include "stage.h"

static void expect_over(const sleeper *x, int resumed, rl_wake why)
{
    EXPECT_INT(x->overs, 1);
    EXPECT_INT(x->resumed, resumed);
    EXPECT_INT(x->why, why);
}

/* --- a sleep -------------------------------------------------------------- */

/* Two of them: without memory nobody knows who is the first. */
static void put_to_sleep(stage *g, sleeper x[2], int sleeps, bool memory)
{
    open_stage(g);
    if (!memory)
        lose_memory();
    for (int i = 0; i < 2; i++)
        start(g, &x[i], sleeps);
    drive(g);
    shim_clear(shim_here());
    drive(g);
    for (int i = 0; i < 2; i++) {
        EXPECT(x[i].resumed == 1 && x[i].overs == 0 && !x[i].s.desk);
        EXPECT_INT(x[i].why, RL_WAKE_NONE);
        EXPECT(x[i].s.reserved == memory);
    }
}

static void expect_end_in_time(bool memory)
{
    stage g;
    sleeper x[2];
    put_to_sleep(&g, x, 1, memory);
    int64_t due_us = rl_max(x[0].s.due.due_us, x[1].s.due.due_us);
    EXPECT_BETWEEN(due_us - rl_now_us(), LONG_US / 2, LONG_US);
    drive_at(&g, rl_min(x[0].s.due.due_us, x[1].s.due.due_us) - 1);
    EXPECT(x[0].overs == 0 && x[1].overs == 0);
    drive_at(&g, due_us);
    for (int i = 0; i < 2; i++)
        expect_over(&x[i], 2, RL_WAKE_NONE);
    close_stage(&g);
}

TEST_CASE(started, a_sleep_ends_in_time, expect_end_in_time(true))
TEST_CASE(started, without_memory_it_does_too, expect_end_in_time(false))

static void expect_ring(bool memory)
{
    stage g;
    sleeper x[2];
    put_to_sleep(&g, x, 1, memory);
    x[1].s.waker.wake(&x[1].s.waker, RL_WAKE_LOOK, 4);
    x[1].s.waker.wake(&x[1].s.waker, RL_WAKE_RUNG, 3);
    x[1].s.waker.wake(&x[1].s.waker, RL_WAKE_LOOK, 5);
    drive(&g);
    expect_over(&x[1], 2, RL_WAKE_RUNG);
    EXPECT_INT(x[1].rung, 1 << 3);
    EXPECT(x[0].resumed == 1 && x[0].overs == 0);
    rl_started_cancel(&x[0].s);
    drive(&g);
    expect_over(&x[0], 2, RL_WAKE_CANCEL);
    EXPECT_INT(x[0].rung, 0);
    close_stage(&g);
}

TEST_CASE(started, a_ring_ends_it_and_that_of_nobody_else, expect_ring(true))
TEST_CASE(started, without_memory_a_ring_does_too, expect_ring(false))

static void expect_close(bool memory)
{
    stage g;
    sleeper x[2];
    put_to_sleep(&g, x, 2, memory);
    rl_async_close_waits(&g.a);
    for (int i = 0; i < 3; i++)
        drive(&g);
    for (int i = 0; i < 2; i++) { /* once told, they wait for somebody */
        EXPECT(x[i].resumed == 2 && x[i].overs == 0);
        EXPECT_INT(x[i].why, RL_WAKE_CLOSE);
        x[i].s.waker.wake(&x[i].s.waker, RL_WAKE_LOOK, 0);
    }
    drive(&g);
    for (int i = 0; i < 2; i++)
        expect_over(&x[i], 3, RL_WAKE_LOOK);
    close_stage(&g);
}

TEST_CASE(started, each_is_told_once_that_the_client_closes, expect_close(true))
TEST_CASE(started, without_memory_each_is_told_too, expect_close(false))

TEST(started, who_is_woken_as_he_lies_down_goes_on)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 1);
    x.calls = RL_WAKE_RUNG;
    drive(&g);
    expect_over(&x, 2, RL_WAKE_RUNG);
    EXPECT_INT(x.rung, 1);
    close_stage(&g);
}

/* Without it, nobody could be told of who falls asleep. */
TEST(started, room_to_sleep_is_had_before_it_begins)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 1);
    rl_async_take_inbox(&g.a);
    lose_memory();
    g.a.most_steps = 1;
    rl_async_admit(&g.a);
    shim_clear(shim_here());
    EXPECT(x.resumed == 1 && x.s.reserved && x.s.due.at);
    drive_at(&g, x.s.due.due_us);
    expect_over(&x, 2, RL_WAKE_NONE);
    close_stage(&g);
}

/* --- again and again ------------------------------------------------------ */

TEST(started, a_ring_ends_one_sleep)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 2);
    drive(&g);
    x.s.waker.wake(&x.s.waker, RL_WAKE_RUNG, 3);
    for (int i = 0; i < 2; i++)
        drive(&g);
    EXPECT(x.resumed == 2 && x.why == RL_WAKE_RUNG && x.rung == 1 << 3);
    drive_at(&g, x.s.due.due_us);
    expect_over(&x, 3, RL_WAKE_NONE);
    EXPECT_INT(x.rung, 0);
    close_stage(&g);
}

TEST(started, what_rang_as_he_lay_down_ends_that_sleep_alone)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 2);
    x.calls = RL_WAKE_RUNG;
    for (int i = 0; i < 3; i++)
        drive(&g);
    EXPECT(x.resumed == 2 && x.why == RL_WAKE_RUNG && x.overs == 0);
    drive_at(&g, x.s.due.due_us);
    expect_over(&x, 3, RL_WAKE_NONE);
    close_stage(&g);
}

/* It waits for somebody, and sleeps on until he wakes it. */
TEST(started, who_is_canceled_is_told_so_each_time_and_may_sleep_on)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 2);
    drive(&g);
    rl_started_cancel(&x.s);
    for (int i = 0; i < 3; i++)
        drive(&g);
    EXPECT(x.resumed == 2 && x.why == RL_WAKE_CANCEL && x.rung == 0);
    x.s.waker.wake(&x.s.waker, RL_WAKE_LOOK, 0);
    drive(&g);
    expect_over(&x, 3, RL_WAKE_CANCEL);
    close_stage(&g);
}

/* Behind it nobody is there who could be woken. */
static void expect_end_alone(rl_wake calls)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 0);
    x.calls = calls;
    drive(&g);
    expect_over(&x, 1, RL_WAKE_NONE);
    EXPECT(rl_list_is_empty(&g.a.woken));
    x.s.waker.wake(&x.s.waker, RL_WAKE_LOOK, 0);
    EXPECT(rl_list_is_empty(&g.a.woken));
    drive(&g);
    expect_over(&x, 1, RL_WAKE_NONE);
    close_stage(&g);
}

TEST_CASE(started, who_is_over_is_woken_no_more, expect_end_alone(RL_WAKE_NONE))
TEST_CASE(started, who_is_woken_as_he_ends_has_ended,
          expect_end_alone(RL_WAKE_RUNG))

TEST(started, who_drives_is_called_by_what_has_come)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 1);
    drive(&g);
    g.a.called = false;
    g.a.sleeps_us = rl_now_us() + LONG_US;
    x.s.waker.wake(&x.s.waker, RL_WAKE_LOOK, 0);
    EXPECT(g.a.called);
    drive(&g);
    expect_over(&x, 2, RL_WAKE_LOOK);
    close_stage(&g);
}

/* --- one operation after the other ---------------------------------------- */

/* The first one sleeps, and so does the second. */
static void start_two(stage *g, sleeper x[2], int sleeps)
{
    x[1] = sleeper_of(sleeps);
    start(g, &x[0], sleeps);
    x[0].then = &x[1];
}

TEST(started, a_cancel_is_told_to_the_next_operation_too)
{
    stage g;
    sleeper x[2];
    open_stage(&g);
    start_two(&g, x, 1);
    drive(&g);
    rl_started_cancel(&x[0].s);
    drive(&g);
    EXPECT(x[0].resumed == 2 && x[0].why == RL_WAKE_CANCEL);
    EXPECT(x[1].resumed == 2 && x[1].why == RL_WAKE_CANCEL);
    EXPECT_INT(x[0].overs, 1);
    close_stage(&g);
}

TEST(started, that_the_client_closes_is_told_to_the_next_operation_too)
{
    stage g;
    sleeper x[2];
    open_stage(&g);
    start_two(&g, x, 1);
    drive(&g);
    rl_async_close_waits(&g.a);
    drive(&g);
    EXPECT(x[0].resumed == 2 && x[0].why == RL_WAKE_CLOSE);
    EXPECT(x[1].resumed == 2 && x[1].why == RL_WAKE_CLOSE);
    EXPECT_INT(x[0].overs, 1);
    close_stage(&g);
}

TEST(started, what_rang_for_one_operation_is_not_told_to_the_next)
{
    stage g;
    sleeper x[2];
    open_stage(&g);
    start_two(&g, x, 1);
    drive(&g);
    x[0].s.waker.wake(&x[0].s.waker, RL_WAKE_RUNG, 2);
    drive(&g);
    EXPECT(x[0].resumed == 2 && x[0].why == RL_WAKE_RUNG);
    EXPECT(x[1].resumed == 1 && x[1].why == RL_WAKE_NONE);
    drive_at(&g, x[0].s.due.due_us);
    EXPECT(x[1].resumed == 2 && x[1].why == RL_WAKE_NONE && x[1].rung == 0);
    EXPECT_INT(x[0].overs, 1);
    close_stage(&g);
}

static int tellings;

static void count_telling(rl_op *op)
{
    (void)op;
    tellings++;
}

TEST(started, what_the_program_is_to_be_told_is_as_it_lies_down)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 1);
    x.op.tell = count_telling;
    tellings = 0;
    drive(&g);
    EXPECT(tellings == 1 && !x.op.tell && x.resumed == 1);
    drive_at(&g, x.s.due.due_us);
    expect_over(&x, 2, RL_WAKE_NONE);
    EXPECT_INT(tellings, 1);
    close_stage(&g);
}

/* --- legs of several servers ---------------------------------------------- */

TEST(started, without_memory_one_has_the_spare_legs)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 0);
    x.op.several = true;
    lose_memory();
    drive(&g);
    shim_clear(shim_here());
    expect_over(&x, 1, RL_WAKE_NONE);
    EXPECT(g.a.spare);
    close_stage(&g);
}

TEST(started, while_one_sleeps_another_has_the_spare_legs)
{
    stage g;
    sleeper x;
    open_stage(&g);
    start(&g, &x, 1);
    x.op.several = true;
    lose_memory();
    drive(&g);
    shim_clear(shim_here());
    EXPECT(x.resumed == 1 && x.overs == 0 && g.a.spare);
    rl_started_cancel(&x.s);
    drive(&g);
    expect_over(&x, 2, RL_WAKE_CANCEL);
    close_stage(&g);
}

TEST(started, the_next_operation_has_the_spare_legs_of_the_last)
{
    stage g;
    sleeper x[2];
    open_stage(&g);
    start_two(&g, x, 0);
    x[0].op.several = x[1].op.several = true;
    lose_memory();
    drive(&g);
    shim_clear(shim_here());
    expect_over(&x[0], 1, RL_WAKE_NONE);
    EXPECT_INT(x[1].resumed, 1);
    close_stage(&g);
}

TEST(started, who_finds_no_legs_is_tried_again_soon)
{
    stage g;
    sleeper x;
    open_stage(&g);
    struct rl_leg *spare = g.a.spare;
    g.a.spare = NULL;
    start(&g, &x, 0);
    x.op.several = true;
    lose_memory();
    int64_t before_us = rl_now_us();
    drive(&g);
    shim_clear(shim_here());
    EXPECT(x.resumed == 0 && !x.s.desk && g.a.at_desks == 0);
    EXPECT_BETWEEN(x.s.due.due_us, before_us + RL_RETRY_US,
                   rl_now_us() + RL_RETRY_US);
    g.a.spare = spare;
    drive_at(&g, x.s.due.due_us);
    expect_over(&x, 1, RL_WAKE_NONE);
    close_stage(&g);
}

TEST(started, the_spare_legs_are_one_desks_at_a_time)
{
    stage g;
    rl_desk d[2] = {{.op = NULL}, {.op = NULL}};
    rl_op op = {.several = true};
    open_stage(&g);
    lose_memory();
    EXPECT(rl_desk_get_ready(&d[0], &op, &g.a));
    EXPECT(rl_desk_get_ready(&d[0], &op, &g.a)); /* it has them already */
    EXPECT(!rl_desk_get_ready(&d[1], &op, &g.a));
    rl_desk_put_away(&d[0], &g.a);
    EXPECT(rl_desk_get_ready(&d[1], &op, &g.a));
    shim_clear(shim_here());
    EXPECT(rl_desk_get_ready(&d[0], &op, &g.a));
    for (int i = 0; i < 2; i++)
        rl_desk_put_away(&d[i], &g.a);
    EXPECT(g.a.spare && !d[0].several && !d[1].several);
    close_stage(&g);
}
