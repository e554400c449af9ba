/*
 * Who is called when there is something to do for jobs that have been started:
 * who starts one, who dispatches, or the loop; and how it all ends.
 */
#include "jobs.h"

/* --- who has something for it --------------------------------------------- */

/* A job that sleeps, as the loop does until so many ms from now. */
static void open_sleeping(stage *g, job *x, int64_t loop_ms)
{
    open_stage(g);
    EXPECT(rl_completions_fd(&g->o.e.completions) >= 0);
    make_job(g, x, 60000 * MS);
    rl_async_put(g->a, &x->s);
    take_turn(g);
    EXPECT(x->resumed == 1 && !x->overs);
    g->a->sleeps_us = rl_now_us() + loop_ms * MS;
    EXPECT(!g->a->called && !is_called(g) && !is_readable(g));
}

static void wake(job *x)
{
    x->s.waker.wake(&x->s.waker, RL_WAKE_RUNG, 0);
}

TEST(async_calls, the_loop_is_called_for_who_is_woken_and_once)
{
    stage g;
    job x;
    open_sleeping(&g, &x, 1000);
    wake(&x);
    EXPECT(is_called(&g) && g.a->called && !is_readable(&g));
    wake(&x);
    EXPECT(!is_called(&g)); /* it will come */
    take_turn(&g);
    EXPECT(x.overs == 1 && x.why == RL_WAKE_RUNG);
    close_stage(&g);
}

static void expect_calls(int64_t since_ms, int64_t loop_ms, bool loop,
                         bool dispatch)
{
    stage g;
    job x;
    open_sleeping(&g, &x, 60000);
    atomic_store(&g.a->dispatched_us, rl_now_us());
    pass(&g, since_ms);
    g.a->sleeps_us = rl_now_us() + loop_ms * MS;
    wake(&x);
    EXPECT_INT(is_called(&g), loop);
    EXPECT_INT(is_readable(&g), dispatch);
    rl_async_dispatch(g.a);
    EXPECT(x.overs == 1 && !is_readable(&g));
    close_stage(&g);
}

TEST_CASE(async_calls, who_dispatches_is_called_and_the_loop_looks_soon,
          expect_calls(0, BACKUP_MS, false, true))
TEST_CASE(async_calls, both_are_called_when_the_loop_would_sleep_for_long,
          expect_calls(0, 1000, true, true))
TEST_CASE(async_calls, who_has_dispatched_long_ago_is_not_called,
          expect_calls(ATTENDED_MS, BACKUP_MS, true, false))

/* --- who starts one ------------------------------------------------------- */

TEST(async_calls, who_starts_a_job_takes_its_first_step)
{
    stage g;
    job x;
    open_stage(&g);
    make_job(&g, &x, 0);
    rl_async_start(g.a, &x.s);
    EXPECT(x.resumed == 1 && x.overs == 1);
    close_stage(&g);
}

static void expect_started(int64_t loop_ms, bool called)
{
    stage g;
    job x;
    open_sleeping(&g, &x, loop_ms);
    job y;
    make_job(&g, &y, 0);
    rl_async_start(g.a, &y.s);
    EXPECT_INT(y.overs, 1);
    EXPECT_INT(is_called(&g), called);
    wake(&x);
    take_turn(&g);
    close_stage(&g);
}

/* What came of it may be due before the loop looks. */
TEST_CASE(async_calls, who_starts_a_job_calls_a_loop_that_sleeps_for_long,
          expect_started(1000, true))
TEST_CASE(async_calls, who_starts_a_job_lets_a_loop_sleep_that_wakes_soon,
          expect_started(BACKUP_MS / 2, false))

static intptr_t start_one(void *arg)
{
    job *x = arg;
    rl_async_start(x->g->a, &x->s);
    EXPECT_INT(x->resumed, 0);
    return 0;
}

TEST(async_calls, while_another_drives_the_loop_is_called_for_what_is_started)
{
    stage g;
    job x;
    open_stage(&g);
    take_turn(&g);
    make_job(&g, &x, 0);
    rl_mutex_lock(&g.a->driving);
    test_join(test_spawn(start_one, &x));
    rl_mutex_unlock(&g.a->driving);
    EXPECT(is_called(&g) && g.a->called);
    take_turn(&g);
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

static intptr_t dispatch(void *arg)
{
    rl_async_dispatch(arg);
    return 0;
}

TEST(async_calls, while_another_drives_who_dispatches_lets_him)
{
    stage g;
    job x;
    open_stage(&g);
    make_job(&g, &x, 0);
    rl_async_put(g.a, &x.s);
    rl_mutex_lock(&g.a->driving);
    test_join(test_spawn(dispatch, g.a));
    EXPECT_INT(x.resumed, 0);
    rl_mutex_unlock(&g.a->driving);
    EXPECT(g.a->dispatched_us > 0);
    take_turn(&g);
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

/* They have begun earlier, and may stand in a server's line in that order. */
TEST(async_calls, when_who_drove_had_no_steps_left_those_at_desks_go_first)
{
    stage g;
    job x, y;
    open_stage(&g);
    start_asker(&g, &x);
    give_trunk(&g);
    outpost_say(&g.o, LEFT);
    rl_conn *c = x.s.desk->leg.trunk->conn;
    EXPECT(rl_conn_receive(c) && x.part.over && !x.overs);
    make_job(&g, &y, 0);
    rl_async_start(g.a, &y.s);
    EXPECT(y.overs == 1 && !x.overs); /* it had steps left */
    g.a->most_steps = 0;
    make_job(&g, &y, 0);
    rl_async_start(g.a, &y.s);
    EXPECT(y.overs == 1 && x.overs == 1);
    close_stage(&g);
}

/* Nobody else closes what it may be polling. */
TEST(async_calls,
     what_comes_over_jobs_own_connections_is_read_by_the_loop_alone)
{
    stage g;
    job x[2], y;
    open_stage(&g);
    outpost_node(&g.o)->pool->exclusive = true;
    for (int i = 0; i < 2; i++)
        outpost_add_idle(&g.o);
    for (int i = 0; i < 2; i++)
        start_asker(&g, &x[i]);
    take_turn(&g);
    for (int i = 0; i < 2; i++) {
        outpost_expect_asked_at(&g.o, g.o.peers[i]);
        outpost_say_at(g.o.peers[i], LEFT);
    }
    rl_async_dispatch(g.a);
    g.a->most_steps = 0; /* so those at desks are looked at first */
    make_job(&g, &y, 0);
    rl_async_start(g.a, &y.s);
    EXPECT(y.overs == 1 && !x[0].overs && !x[1].overs);
    take_turn(&g);
    EXPECT(x[0].overs == 1 && x[1].overs == 1);
    close_stage(&g);
}

/* --- who dispatches ------------------------------------------------------- */

typedef struct delivery {
    rl_completion l;
    stage *g;
    job *starts;
    bool began, called; /* within the delivery: the job was; the loop was */
} delivery;

static void deliver(rl_completion *l)
{
    delivery *d = RL_CONTAINER(l, delivery, l);
    is_called(d->g);
    rl_async_start(d->g->a, &d->starts->s);
    d->began = d->starts->resumed > 0;
    d->called = is_called(d->g);
}

/* By who dispatches there. */
static void start_when_called_back(stage *g, delivery *d, job *x, stage *there)
{
    *d = (delivery){.l = {.deliver = deliver}, .g = g, .starts = x};
    make_job(g, x, 0);
    rl_completions_post(&there->o.e.completions, &d->l);
    rl_async_dispatch(there->a);
}

/* So what is started there is sent together. */
TEST(async_calls, what_is_started_when_called_back_begins_behind_all_callbacks)
{
    stage g;
    job x;
    delivery d;
    open_stage(&g);
    start_when_called_back(&g, &d, &x, &g);
    EXPECT(!d.began && x.overs == 1);
    make_job(&g, &x, 0); /* it is over: not in a callback any more */
    rl_async_start(g.a, &x.s);
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

TEST(async_calls, what_is_started_at_another_client_begins_at_once)
{
    stage g, other;
    job x;
    delivery d;
    open_stage(&g);
    open_stage(&other);
    start_when_called_back(&g, &d, &x, &other);
    EXPECT(d.began && x.overs == 1);
    close_stage(&other);
    close_stage(&g);
}

static void expect_called_back(int64_t loop_ms, bool called)
{
    stage g;
    job x, y;
    delivery d;
    open_sleeping(&g, &x, 60000);
    d = (delivery){.l = {.deliver = deliver}, .g = &g, .starts = &y};
    make_job(&g, &y, 0);
    rl_completions_post(&g.o.e.completions, &d.l);
    atomic_store(&g.a->started, false); /* so that only the callback is seen */
    g.a->sleeps_us = rl_now_us() + loop_ms * MS;
    rl_async_dispatch(g.a);
    EXPECT(!d.began && d.called == called && y.overs == 1);
    wake(&x);
    take_turn(&g);
    close_stage(&g);
}

/* A callback may take long. */
TEST_CASE(async_calls, a_loop_that_sleeps_for_long_is_called_by_a_callback,
          expect_called_back(1000, true))
TEST_CASE(async_calls, a_loop_that_wakes_soon_is_not_called_by_a_callback,
          expect_called_back(BACKUP_MS / 2, false))

static rl_op *fail_and_end(rl_job *j)
{
    rl_error_set(RLOCK_EIO, 0, "what a job says");
    return rl_job_over(j, RLOCK_EIO);
}

TEST(async_calls, jobs_leave_the_error_of_who_dispatches_as_it_was)
{
    stage g;
    job x, y;
    delivery d;
    open_stage(&g);
    rl_error_set(RLOCK_EINVAL, 0, "what the program did");
    make_job(&g, &x, 0);
    x.job.next = fail_and_end;
    rl_async_put(g.a, &x.s);
    d = (delivery){.l = {.deliver = deliver}, .g = &g, .starts = &y};
    make_job(&g, &y, 0);
    y.job.next = fail_and_end;
    rl_completions_post(&g.o.e.completions, &d.l);
    rl_async_dispatch(g.a);
    EXPECT(x.overs == 1 && y.overs == 1);
    EXPECT_STR(rlock_last_error()->message, "what the program did");
    close_stage(&g);
}

/* --- what comes while it drives ------------------------------------------- */

static void put_other(job *x)
{
    rl_async_put(x->g->a, &x->other->s);
}

static void wake_other(job *x)
{
    wake(x->other);
}

static void close_all(job *x)
{
    rl_async_close(x->g->a);
}

/* At its end, which is in the middle of a turn: the loop does not sleep. */
static void expect_no_sleep(void (*at_end)(job *x))
{
    stage g;
    job x, other;
    open_stage(&g);
    make_job(&g, &other, 60000 * MS);
    if (at_end != put_other)
        rl_async_put(g.a, &other.s);
    take_turn(&g);
    make_job(&g, &x, 0);
    x.at_end = at_end;
    x.other = &other;
    rl_async_put(g.a, &x.s);
    EXPECT_INT(take_turn(&g), 0);
    EXPECT(x.overs == 1 && g.a->called && g.a->sleeps_us == 0);
    EXPECT(!is_called(&g)); /* it looks anyway */
    take_turn(&g);
    if (at_end == put_other)
        wake(&other);
    take_turn(&g);
    EXPECT_INT(other.overs, 1);
    close_stage(&g);
}

TEST_CASE(async_calls, the_loop_does_not_sleep_on_what_was_started_meanwhile,
          expect_no_sleep(put_other))
TEST_CASE(async_calls, the_loop_does_not_sleep_on_who_was_woken_meanwhile,
          expect_no_sleep(wake_other))
TEST_CASE(async_calls, the_loop_does_not_sleep_on_a_close_meanwhile,
          expect_no_sleep(close_all))

/* --- the end -------------------------------------------------------------- */

TEST(async_calls, a_close_ends_every_sleep)
{
    stage g;
    job x;
    open_sleeping(&g, &x, 1000);
    rl_async_close(g.a);
    EXPECT(is_called(&g));
    take_turn(&g);
    EXPECT(x.overs == 1 && x.why == RL_WAKE_CLOSE && g.a->closing);
    close_stage(&g);
}

TEST(async_calls, a_close_calls_no_loop_that_it_was_never_on)
{
    stage g;
    open_stage(&g);
    take_turn(&g);
    atomic_store(&g.a->started, false);
    rl_async_close(g.a);
    EXPECT(!is_called(&g) && g.a->stopping);
    rl_async_stop(g.a); /* at once */
    EXPECT(!g.a->ending);
    close_stage(&g);
}

/* Nobody starts anything any more. */
static void stop(stage *g)
{
    rl_mutex_lock(&g->a->mutex);
    g->a->ending = true;
    rl_mutex_unlock(&g->a->mutex);
}

TEST(async_calls, leaves_the_loop_when_every_job_is_over)
{
    stage g;
    job x, y;
    open_sleeping(&g, &x, 1000);
    make_asker(&g, &y);
    rl_async_start(g.a, &y.s);
    int server = (give_trunk(&g), outpost_peer(&g.o));
    stop(&g);
    EXPECT(take_turn(&g) != RL_LOOP_LEAVE);
    wake(&x);
    EXPECT(take_turn(&g) != RL_LOOP_LEAVE);
    EXPECT(x.overs == 1 && y.overs == 0);
    outpost_say(&g.o, LEFT);
    /* Its answer is read before it is seen that it was the last. */
    EXPECT_INT(take_turn(&g), RL_LOOP_LEAVE);
    EXPECT(y.overs == 1 && outpost_is_closed(server));
    close_stage(&g);
}

TEST(async_calls, does_not_leave_the_loop_before_it_has_begun_what_was_started)
{
    stage g;
    job x;
    open_stage(&g);
    make_job(&g, &x, 0);
    rl_async_put(g.a, &x.s);
    stop(&g);
    EXPECT_INT(take_turn(&g), 0); /* that was the last: at once */
    EXPECT_INT(x.overs, 1);
    EXPECT_INT(take_turn(&g), RL_LOOP_LEAVE);
    close_stage(&g);
}

/* --- the loop itself ------------------------------------------------------ */

TEST(async_calls, is_put_on_the_loop_once_and_started_with_it)
{
    stage g;
    job x;
    open_stage(&g);
    atomic_store(&g.a->started, false);
    shim_fail(shim_here(), SHIM_THREAD, 1, 1, EAGAIN);
    bool ok = rl_async_run(g.a);
    shim_clear(shim_here());
    EXPECT(!ok && !g.a->started && !g.a->watcher.in);
    EXPECT(rl_async_run(g.a) && g.a->started);
    EXPECT(rl_async_run(g.a));
    make_job(&g, &x, 30 * MS);
    rl_async_start(g.a, &x.s);
    EVENTUALLY(SOON, x.overs == 1);
    rl_async_close(g.a);
    rl_async_stop(g.a);
    EXPECT(!g.a->watcher.in && g.a->jobs == 0);
    rl_loop_stop(&g.o.e.loop);
    close_stage(&g);
}
