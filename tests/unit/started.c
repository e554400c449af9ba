/* Jobs that have been started: who goes on when, also where memory runs out. */
#include <errno.h>

#include "base/clock.h"
#include "run/async.h"
#include "run/desk.h"
#include "shim.h"
#include "test.h"

/* Nobody sleeps as long as that. */
#define LONG_US INT64_C(60000000)

typedef struct stage {
    rl_loop loop;
    rl_async a;
} stage;

/* A job of one operation that only sleeps, so often. */
typedef struct sleeper {
    rl_started s;
    rl_job job;
    rl_op op;
    int sleeps, resumed, overs;
    rl_wake calls; /* it is woken by that as it is about to sleep */
    rl_wake why;   /* the latest */
    unsigned rung;
} sleeper;

static rl_next resume(rl_op *op, rl_wake why, int64_t now_us)
{
    sleeper *x = RL_CONTAINER(op, sleeper, op);
    x->resumed++;
    x->why = why;
    x->rung = op->rung;
    op->rung = 0;
    if (x->resumed > x->sleeps)
        return RL_DONE;
    if (x->calls != RL_WAKE_NONE)
        op->waker->wake(op->waker, x->calls, 0);
    x->calls = RL_WAKE_NONE;
    op->sleep_us = now_us + LONG_US;
    return RL_SLEEP;
}

static rl_op *no_more(rl_job *j)
{
    return rl_job_over(j, RLOCK_OK);
}

static rl_op *first(rl_job *j)
{
    return rl_job_ask(j, &RL_CONTAINER(j, sleeper, job)->op, no_more);
}

static void over(rl_started *s)
{
    RL_CONTAINER(s, sleeper, s)->overs++;
}

static void open_stage(stage *g)
{
    memset(g, 0, sizeof *g);
    rl_loop_init(&g->loop);
    EXPECT(rl_loop_open(&g->loop));
    rl_async_init(&g->a, &g->loop, NULL);
    EXPECT(rl_async_furnish(&g->a));
}

static void close_stage(stage *g)
{
    EXPECT(g->a.jobs == 0 && g->a.at_desks == 0);
    rl_async_fini(&g->a, false);
    rl_loop_stop(&g->loop);
    rl_loop_fini(&g->loop, false);
}

static void drive_at(stage *g, int64_t now_us)
{
    g->a.most_steps = 100;
    rl_async_take_inbox(&g->a);
    rl_async_take_woken(&g->a);
    rl_async_take_due(&g->a, now_us);
    rl_async_admit(&g->a);
}

static void drive(stage *g)
{
    drive_at(g, rl_now_us());
}

static void start(stage *g, sleeper *x, int sleeps)
{
    *x = (sleeper){
        .job = {.next = first}, .op = {.resume = resume}, .sleeps = sleeps};
    x->s.job = &x->job;
    x->s.over = over;
    rl_async_put(&g->a, &x->s);
}

static void lose_memory(void)
{
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
}

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
