/* Permits of a semaphore: how they are waited for, and what is done to it. */
#include "op/permit.h"

#include "op/mark.h"

#include "wait.h"

/* Busy, in line behind another one. */
#define STANDS "*6\r\n:0\r\n:30000\r\n$3\r\n500\r\n:0\r\n:1\r\n:0\r\n"

static rl_semaphore five = {.permits = 5, .weight = 2, .idle_s = 9};
static const rl_target permits = {.name = "job",
                                  .len = 3,
                                  .scope = RL_LAYOUT_PERMIT,
                                  .layout = RL_LAYOUT_PERMIT,
                                  .semaphore = &five};
static const rl_target fair_job = {.name = "job",
                                   .len = 3,
                                   .scope = RLOCK_LAYOUT_HASH,
                                   .layout = RL_LAYOUT_FAIR};

/* --- waiting -------------------------------------------------------------- */

static void open_in_line(wait_for *w, const rl_target *what)
{
    open_wait(w, 60000);
    w->a.attempt = &rl_attempt_line;
    w->a.what = what;
    hear_bell(w);
}

TEST(permit, who_wants_some_says_how_many_and_how_many_there_are)
{
    wait_for w;
    open_in_line(&w, &permits);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_STR(play_called(&w.p, 0), "permit/acquire");
    EXPECT_STR(play_arg(&w.p, 0, 2), "10000");
    EXPECT_STR(play_arg(&w.p, 0, 3), "2");
    EXPECT_STR(play_arg(&w.p, 0, 4), "5");
    EXPECT_STR(play_arg(&w.p, 0, 5), "9");
    EXPECT_STR(play_arg(&w.p, 0, 6), core(&w)->bell);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT_INT(w.a.token, 0); /* they have none */
    close_wait(&w, RLOCK_OK);
}

static void ignore(rl_waker *w, rl_wake why, unsigned node)
{
    (void)w;
    (void)why;
    (void)node;
}

/* For how long who is not the front sleeps, once it stands. */
static void expect_sleep(const rl_target *what, int64_t least_ms,
                         int64_t most_ms)
{
    wait_for w;
    rl_waiter front;
    rl_waker waker = {ignore};
    open_in_line(&w, what);
    EXPECT(rl_room_enter(&core(&w)->rooms, &front, what, NULL, &waker,
                         w.p.now_us));
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, STANDS), RL_SLEEP);
    for (int i = 0; i < 5; i++) {
        EXPECT_INT(play_sleep(&w.p), RL_SLEEP);
        EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, least_ms * MS,
                       most_ms * MS);
    }
    EXPECT_INT(calls(&w), 1);
    rl_rooms_cancel(&core(&w)->rooms, what, &w);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, NO), RL_DONE);
    rl_room_leave(&core(&w)->rooms, &front, false);
    close_wait(&w, RLOCK_CANCELED);
}

/* Of permits, others may come back without a ring. */
TEST_CASE(permit, who_stands_for_some_looks_four_times_a_second,
          expect_sleep(&permits, 187, 313))
TEST_CASE(permit, who_stands_for_a_lock_looks_every_two_seconds,
          expect_sleep(&fair_job, 1500, 2500))

/* --- what is done to it --------------------------------------------------- */

typedef struct deed {
    play p;
    rl_op op;
    rl_part x;
} deed;

static void go(deed *d)
{
    play_one(&d->p, &d->op, &d->x);
    EXPECT_INT(play_begin(&d->p, &d->op), RL_ASK);
}

static void open_deed(deed *d)
{
    d->x = (rl_part){.heap = false};
    play_open(&d->p, 1);
}

TEST(permit, so_many_are_free)
{
    deed d;
    open_deed(&d);
    rl_part_available(&d.x, play_core(&d.p, 0), &permits, d.p.now_us);
    go(&d);
    EXPECT_STR(play_called(&d.p, 0), "permit/available");
    EXPECT_STR(play_arg(&d.p, 0, 1), "5");
    EXPECT_INT(play_answer(&d.p, 0, ":4\r\n"), RL_DONE);
    EXPECT(d.x.ok && d.x.code == 4);
    play_close(&d.p);
}

TEST(permit, why_it_cannot_be_said_how_many_are_free)
{
    deed d;
    open_deed(&d);
    rl_part_available(&d.x, play_core(&d.p, 0), &permits, d.p.now_us);
    go(&d);
    EXPECT_INT(play_answer(&d.p, 0, WRONGTYPE), RL_DONE);
    EXPECT(!d.x.ok && d.x.fault.status == RLOCK_EWRONGTYPE);
    play_close(&d.p);
}

static rl_hold *begin_add(deed *d, int64_t gone_ms)
{
    open_deed(d);
    rl_core *c = play_core(&d->p, 0);
    rl_hold *mark = rl_mark_new(c, &permits, &d->p.owner, -3, d->p.now_us);
    EXPECT(mark);
    if (gone_ms)
        mark->gone_us = d->p.now_us + gone_ms * MS;
    rl_part_add_permits(&d->x, c, mark, d->p.now_us);
    go(d);
    return mark;
}

static void end_add(deed *d, rl_hold *mark)
{
    rl_holds_put(&play_core(&d->p, 0)->holds, mark);
    play_close(&d->p);
}

TEST(permit, some_are_added_once_however_often_that_is_asked)
{
    deed d;
    rl_hold *mark = begin_add(&d, 0);
    char id[RL_UUID_LEN + 1];
    rl_uuid_write(&mark->id, id);
    for (int i = 0; i < 2; i++) {
        EXPECT_STR(play_called(&d.p, 0), "permit/add");
        EXPECT_CONTAINS(play_key(&d.p, 0, 3), id);
        EXPECT_STR(play_arg(&d.p, 0, 1), "-3");
        if (i == 0)
            EXPECT_INT(play_cut(&d.p, 0), RL_ASK);
    }
    EXPECT_INT(play_answer(&d.p, 0, YES), RL_DONE);
    EXPECT(d.x.ok && d.x.code == 1);
    end_add(&d, mark);
}

/* After that the server has forgotten the mark, and would add them twice. */
static void expect_asked_until(int64_t gone_ms, int64_t until_ms)
{
    deed d;
    rl_hold *mark = begin_add(&d, gone_ms);
    EXPECT_INT(d.x.until_us - d.p.now_us, until_ms * MS);
    EXPECT_INT(play_answer(&d.p, 0, NO), RL_DONE);
    EXPECT(d.x.ok && d.x.code == 0);
    end_add(&d, mark);
}

TEST_CASE(permit, an_add_takes_as_long_as_a_command,
          expect_asked_until(0, PLAY_TIMEOUT_MS))
TEST_CASE(permit, an_add_is_asked_for_while_its_mark_is_known,
          expect_asked_until(700, 700))
