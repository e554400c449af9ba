/*
 * Who drives jobs that have been started, and for how long the loop sleeps. The
 * test has the loop's turns; there is no thread but where it says so.
 */
#include "jobs.h"

/* The loop sleeps no longer. */
#define LOOK_MS 1000

static void expect_next(stage *g, int64_t ms)
{
    int64_t us = take_turn(g);
    EXPECT_BETWEEN(us, g->before_us + ms * MS, g->now_us + ms * MS);
    EXPECT(g->a->sleeps_us == us && !g->a->called);
}

/* --- for how long it sleeps ----------------------------------------------- */

TEST(async, the_loop_looks_once_a_second)
{
    stage g;
    open_stage(&g);
    expect_next(&g, LOOK_MS);
    close_stage(&g);
}

TEST(async, the_loop_is_a_backup_for_who_dispatches)
{
    stage g;
    open_stage(&g);
    rl_async_dispatch(g.a);
    EXPECT_BETWEEN(g.a->dispatched_us, 1, rl_now_us());
    expect_next(&g, BACKUP_MS);
    EXPECT(g.a->attended);
    pass(&g, ATTENDED_MS);
    expect_next(&g, LOOK_MS);
    EXPECT(!g.a->attended);
    close_stage(&g);
}

TEST(async, nobody_who_was_not_put_on_the_loop_is_helped)
{
    stage g;
    job x;
    open_stage(&g);
    atomic_store(&g.a->started, false);
    int64_t before_us = g.a->dispatched_us;
    make_job(&g, &x, 0);
    rl_async_put(g.a, &x.s);
    rl_async_dispatch(g.a);
    EXPECT(g.a->dispatched_us == before_us && x.resumed == 0);
    expect_next(&g, LOOK_MS); /* nobody is expected */
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

TEST(async, sleeps_as_long_as_its_first_job_does)
{
    stage g;
    job x[2];
    open_stage(&g);
    for (int i = 0; i < 2; i++) {
        make_job(&g, &x[i], (300 + 500 * i) * MS);
        rl_async_put(g.a, &x[i].s);
    }
    EXPECT_INT(take_turn(&g), x[0].op.sleep_us);
    EXPECT(x[0].resumed == 1 && x[1].resumed == 1);
    pass(&g, 301);
    EXPECT_INT(take_turn(&g), x[1].op.sleep_us);
    EXPECT(x[0].overs == 1 && x[0].why == RL_WAKE_NONE && x[1].overs == 0);
    pass(&g, 500);
    expect_next(&g, LOOK_MS);
    EXPECT_INT(x[1].overs, 1);
    close_stage(&g);
}

TEST(async, looks_soon_for_those_that_sleep_without_memory)
{
    stage g;
    job x;
    open_stage(&g);
    make_job(&g, &x, 15000);
    rl_async_put(g.a, &x.s);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    expect_next(&g, RL_RETRY_US / MS);
    shim_clear(shim_here());
    EXPECT(x.resumed == 1 && !x.s.reserved);
    g.ahead_ms = 0;
    pass(&g, 16);
    expect_next(&g, LOOK_MS);
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

/* --- what is asked -------------------------------------------------------- */

TEST(async, the_loop_polls_the_trunk_and_reads_what_has_come)
{
    stage g;
    job x;
    open_stage(&g);
    start_asker(&g, &x);
    EXPECT_INT(g.a->watcher.look(&g.a->watcher, g.polled, 8), 1);
    EXPECT_INT(g.polled[0].fd, -1); /* its leg's */
    rl_conn *c = give_trunk(&g);
    EXPECT_INT(g.a->watcher.look(&g.a->watcher, g.polled, 8), 2);
    EXPECT(g.polled[0].fd == c->io.fd && g.polled[0].events == POLLIN);
    EXPECT_INT(g.polled[1].fd, -1);
    EXPECT_INT(x.s.desk->at_poll, 1);
    EXPECT(x.s.desk->leg.trunk->polled);
    outpost_say(&g.o, LEFT);
    expect_next(&g, LOOK_MS);
    EXPECT(x.overs == 1 && x.part.ok);
    close_stage(&g);
}

TEST(async, who_dispatches_reads_what_has_come)
{
    stage g;
    job x;
    open_stage(&g);
    EXPECT(rl_completions_fd(&g.o.e.completions) >= 0);
    start_asker(&g, &x);
    rl_conn *c = give_trunk(&g);
    outpost_say(&g.o, LEFT);
    EXPECT(is_readable(&g));
    rl_async_dispatch(g.a);
    EXPECT(x.overs == 1 && x.part.ok && !is_readable(&g));
    /* So the loop leaves that to him from now on. */
    take_turn(&g);
    EXPECT_INT(g.a->watcher.look(&g.a->watcher, g.polled, 8), 1);
    EXPECT(g.polled[0].fd == c->io.fd && !(g.polled[0].events & POLLIN));
    close_stage(&g);
}

TEST(async, what_there_is_no_room_to_poll_is_counted_all_the_same)
{
    stage g;
    job x;
    open_stage(&g);
    start_asker(&g, &x);
    rl_conn *c = give_trunk(&g);
    struct pollfd p[2] = {{.fd = -7}, {.fd = -7}};
    EXPECT_INT(g.a->watcher.look(&g.a->watcher, p, 1), 2);
    EXPECT(p[0].fd == c->io.fd && p[1].fd == -7);
    p[0].fd = -7;
    EXPECT_INT(g.a->watcher.look(&g.a->watcher, p, 0), 2);
    EXPECT(p[0].fd == -7);
    outpost_say(&g.o, LEFT);
    take_turn(&g);
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

TEST(async, a_job_is_looked_at_when_its_time_is_over)
{
    stage g;
    job x;
    open_stage(&g);
    g.o.e.core.set.command_timeout_ms = 700;
    start_asker(&g, &x);
    give_trunk(&g);
    EXPECT_INT(take_turn(&g), x.part.until_us);
    pass(&g, 701);
    expect_next(&g, LOOK_MS);
    EXPECT(x.overs == 1 && !x.part.ok);
    close_stage(&g);
}

TEST(async, who_dispatches_takes_a_connection_that_has_come)
{
    stage g;
    job x;
    open_stage(&g);
    start_asker(&g, &x);
    outpost_give(&g.o);
    rl_async_dispatch(g.a);
    outpost_expect_asked(&g.o);
    outpost_say(&g.o, LEFT);
    rl_async_dispatch(g.a);
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

/* Nobody has a descriptor by which he would be told. */
TEST(async, the_loop_closes_a_trunk_that_ends_while_nobody_uses_it)
{
    stage g;
    job x;
    open_stage(&g);
    start_asker(&g, &x);
    give_trunk(&g);
    outpost_say(&g.o, LEFT);
    take_turn(&g);
    EXPECT_INT(x.overs, 1);
    EXPECT_INT(shutdown(outpost_peer(&g.o), SHUT_WR), 0);
    rl_async_dispatch(g.a); /* it is not asked, nor told of */
    EXPECT(!outpost_is_closed(outpost_peer(&g.o)));
    pass(&g, ATTENDED_MS);
    take_turn(&g);
    EXPECT(outpost_is_closed(outpost_peer(&g.o)));
    EXPECT(rl_list_is_empty(&g.a->trunks.all));
    close_stage(&g);
}

/* Those who asked on it are looked at in the next turn. */
TEST(async, a_trunk_that_cannot_send_is_no_reason_to_sleep)
{
    stage g;
    job x;
    open_stage(&g);
    start_asker(&g, &x);
    rl_conn *c = outpost_give(&g.o);
    EXPECT_INT(shutdown(c->io.fd, SHUT_WR), 0);
    int64_t us = take_turn(&g);
    EXPECT_BETWEEN(us, g.before_us, g.now_us);
    EXPECT(g.a->broke && !x.overs);
    us = take_turn(&g);
    EXPECT(!g.a->broke && us > g.now_us);
    EXPECT(outpost_visitor(&g.o)); /* another one is asked for */
    outpost_give(&g.o);
    take_turn(&g);
    outpost_say(&g.o, LEFT);
    take_turn(&g);
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

/* Its connection is its own, and only the loop knows when something comes. */
TEST(async, who_asks_over_a_connection_of_his_own_calls_the_loop)
{
    stage g;
    job x;
    open_stage(&g);
    take_turn(&g);
    outpost_node(&g.o)->pool->exclusive = true;
    rl_conn *c = outpost_add_idle(&g.o);
    g.a->sleeps_us = rl_now_us() + 5 * MS;
    make_asker(&g, &x);
    rl_async_start(g.a, &x.s);
    outpost_expect_asked(&g.o);
    EXPECT(is_called(&g) && g.a->unseen);
    EXPECT_INT(g.a->watcher.look(&g.a->watcher, g.polled, 8), 1);
    EXPECT(g.polled[0].fd == c->io.fd && !g.a->unseen && x.s.desk->polled);
    outpost_say(&g.o, LEFT);
    rl_async_dispatch(g.a); /* the loop may be in poll() with it */
    EXPECT_INT(x.overs, 0);
    take_turn(&g);
    EXPECT_INT(x.overs, 1);
    close_stage(&g);
}

/* --- how much in a turn --------------------------------------------------- */

static job crowd[STEPS_INSTEAD + STEPS + 10];

static int count_overs(int n)
{
    int overs = 0;
    for (int i = 0; i < n; i++)
        overs += crowd[i].overs;
    return overs;
}

static void put_crowd(stage *g, int n)
{
    for (int i = 0; i < n; i++) {
        make_job(g, &crowd[i], 0);
        rl_async_put(g->a, &crowd[i].s);
    }
}

TEST(async, a_turn_takes_so_many_steps_and_the_next_comes_at_once)
{
    stage g;
    open_stage(&g);
    put_crowd(&g, STEPS + 1);
    int64_t us = take_turn(&g);
    EXPECT_BETWEEN(us, g.before_us, g.now_us);
    EXPECT_INT(count_overs(STEPS + 1), STEPS);
    expect_next(&g, LOOK_MS);
    EXPECT_INT(count_overs(STEPS + 1), STEPS + 1);
    close_stage(&g);
}

TEST(async, who_dispatches_takes_more_steps)
{
    stage g;
    open_stage(&g);
    put_crowd(&g, STEPS_INSTEAD + 1);
    rl_async_dispatch(g.a);
    EXPECT_INT(count_overs(STEPS_INSTEAD + 1), STEPS_INSTEAD);
    take_turn(&g);
    EXPECT_INT(count_overs(STEPS_INSTEAD + 1), STEPS_INSTEAD + 1);
    close_stage(&g);
}

TEST(async, who_starts_a_job_takes_more_steps)
{
    stage g;
    open_stage(&g);
    put_crowd(&g, STEPS_INSTEAD);
    make_job(&g, &crowd[STEPS_INSTEAD], 0);
    rl_async_start(g.a, &crowd[STEPS_INSTEAD].s);
    EXPECT_INT(count_overs(STEPS_INSTEAD + 1), STEPS_INSTEAD);
    take_turn(&g);
    EXPECT_INT(count_overs(STEPS_INSTEAD + 1), STEPS_INSTEAD + 1);
    close_stage(&g);
}
