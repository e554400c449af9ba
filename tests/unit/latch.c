/*
 * The wait for a latch, and what is done to it: what is asked, when it is looked
 * at again, and who is let go; time is moved by hand.
 */
#include "op/latch.h"
#include "op/mark.h"

#include <errno.h>

#include "play.h"
#include "shim.h"

#define LOOKED(left, queued) "*2\r\n$1\r\n" #left "\r\n:" #queued "\r\n"

static const rl_target gate = {.name = "job",
                               .len = 3,
                               .scope = RL_LATCH_SCOPE,
                               .layout = RLOCK_LAYOUT_HASH};

typedef struct wait_for {
    play p;
    rl_latch_wait w;
    rl_part part; /* that it is lent */
    atomic_uint cancels;
} wait_for;

static rl_core *core(wait_for *w)
{
    return play_core(&w->p, 0);
}

static void open_wait(wait_for *w, int64_t wait_ms)
{
    play_open(&w->p, 1);
    w->cancels = 0;
    w->part = (rl_part){.heap = false};
    w->w = (rl_latch_wait){.home = core(w),
                           .what = &gate,
                           .handle = w,
                           .cancel = {.count = &w->cancels},
                           .wait_ms = wait_ms,
                           .listen = play_listen};
    rl_latch_wait_init(&w->w, w->p.now_us);
    w->w.op.lent = &w->part;
}

static rl_next begin(wait_for *w)
{
    return play_begin(&w->p, &w->w.op);
}

static rl_next answer(wait_for *w, const char *reply)
{
    return play_answer(&w->p, 0, reply);
}

static int calls(const wait_for *w)
{
    return w->p.client[0].calls;
}

static void close_wait(wait_for *w, rlock_status status)
{
    EXPECT_INT(w->w.status, status);
    EXPECT(!w->w.waiter.room);
    EXPECT_INT(core(w)->rooms.map.count, 0);
    EXPECT(status == RLOCK_OK || w->w.fault.status == status);
    EXPECT(status == RLOCK_OK || *w->w.fault.text);
    play_close(&w->p);
}

/* --- one look ------------------------------------------------------------- */

TEST(latch, who_does_not_wait_asks_once_and_without_the_bell)
{
    wait_for w;
    open_wait(&w, 0);
    rl_rooms_hear(&core(&w)->rooms);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_STR(play_key(&w.p, 0, 1), "job");
    EXPECT_STR(play_key(&w.p, 0, 2), "rlock_queue:{job}");
    EXPECT_INT(play_args(&w.p, 0), 1);
    EXPECT_STR(play_arg(&w.p, 0, 1), "");
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    EXPECT(calls(&w) == 1 && w.p.client[0].listens == 0);
    close_wait(&w, RLOCK_OK);
}

TEST(latch, who_does_not_wait_is_told_what_is_left)
{
    wait_for w;
    open_wait(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(7, 0)), RL_DONE);
    EXPECT_CONTAINS(w.w.fault.text, "7 left");
    close_wait(&w, RLOCK_BUSY);
}

static void expect_failure(const char *reply, rlock_status status)
{
    wait_for w;
    open_wait(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, reply), RL_DONE);
    close_wait(&w, status);
}

TEST_CASE(latch, a_right_that_is_missing_ends_the_wait,
          expect_failure(NOPERM, RLOCK_ESERVER))
TEST_CASE(latch, what_is_no_count_ends_the_wait,
          expect_failure(WRONGTYPE, RLOCK_EWRONGTYPE))
TEST_CASE(latch, what_is_no_answer_opens_nothing,
          expect_failure("*2\r\n$1\r\nx\r\n:0\r\n", RLOCK_EIO))
TEST_CASE(latch, half_an_answer_opens_nothing,
          expect_failure("*1\r\n$1\r\n0\r\n", RLOCK_EIO))

/* --- waiting -------------------------------------------------------------- */

TEST(latch, who_is_in_the_queue_looks_every_two_seconds)
{
    wait_for w;
    open_wait(&w, 60000);
    rl_rooms_hear(&core(&w)->rooms);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, 1), core(&w)->bell);
    EXPECT_INT(answer(&w, LOOKED(2, 1)), RL_SLEEP);
    EXPECT_INT(w.part.grant.rank, 0);
    EXPECT(rl_room_was_busy(&core(&w)->rooms, &w.w.waiter, w.p.now_us));
    EXPECT_INT(w.p.client[0].listens, 1);
    EXPECT_BETWEEN(w.w.op.sleep_us - w.p.now_us, 1500 * MS, 2500 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

static void expect_polls(bool hears)
{
    wait_for w;
    open_wait(&w, 60000);
    if (hears)
        rl_rooms_hear(&core(&w)->rooms);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(2, 0)), RL_SLEEP);
    EXPECT_INT(w.part.grant.rank, -1); /* op/op.h: it is unknown */
    EXPECT_BETWEEN(w.w.op.sleep_us - w.p.now_us, 187 * MS, 313 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST_CASE(latch, who_hears_nothing_looks_four_times_a_second,
          expect_polls(false))
TEST_CASE(latch, whom_the_server_does_not_queue_looks_four_times_a_second,
          expect_polls(true))

TEST(latch, a_ring_is_followed_by_a_look)
{
    wait_for w;
    open_wait(&w, RLOCK_FOREVER);
    rl_rooms_hear(&core(&w)->rooms);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(1, 1)), RL_SLEEP);
    EXPECT(rl_rooms_wake(&core(&w)->rooms, "job", 3, RL_WAKE_RUNG));
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* A ring for the next round says nothing of it. */
TEST(latch, a_ring_by_itself_lets_nobody_go)
{
    wait_for w;
    open_wait(&w, RLOCK_FOREVER);
    rl_rooms_hear(&core(&w)->rooms);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(1, 1)), RL_SLEEP);
    EXPECT(rl_rooms_wake(&core(&w)->rooms, "job", 3, RL_WAKE_RUNG));
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(3, 1)), RL_SLEEP);
    w.cancels++;
    EXPECT_INT(play_sleep(&w.p), RL_ASK); /* out of the queue */
    EXPECT_INT(answer(&w, LEFT), RL_DONE);
    close_wait(&w, RLOCK_CANCELED);
}

TEST(latch, a_wait_that_runs_out_leaves_the_queue)
{
    wait_for w;
    open_wait(&w, 100);
    rl_rooms_hear(&core(&w)->rooms);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(4, 1)), RL_SLEEP);
    EXPECT_INT(w.w.op.sleep_us - w.p.now_us, 100 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_STR(play_called(&w.p, 0), "latch/look");
    EXPECT_INT(answer(&w, LOOKED(3, 0)), RL_ASK);
    EXPECT_STR(play_called(&w.p, 0), "leave");
    EXPECT_INT(answer(&w, LEFT), RL_DONE);
    EXPECT_CONTAINS(w.w.fault.text, "3 left");
    close_wait(&w, RLOCK_TIMEOUT);
}

/* Four were left at first; the time is up, and it looks for the last time. */
static void open_last_look(wait_for *w)
{
    open_wait(w, 100);
    EXPECT_INT(begin(w), RL_ASK);
    EXPECT_INT(answer(w, LOOKED(4, 0)), RL_SLEEP);
    EXPECT_INT(play_sleep(&w->p), RL_ASK);
}

TEST(latch, one_that_has_opened_unheard_is_open_when_the_wait_is_over)
{
    wait_for w;
    open_last_look(&w);
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(latch, when_the_last_look_fails_it_is_told_what_was_left)
{
    wait_for w;
    open_last_look(&w);
    EXPECT_INT(play_lose(&w.p, 0), RL_DONE);
    EXPECT_CONTAINS(w.w.fault.text, "4 left");
    close_wait(&w, RLOCK_TIMEOUT);
}

/* It is canceled, or its time is up, after its latest look took so long. */
static void expect_leave_until(int64_t look_ms, bool canceled, int64_t until_us)
{
    wait_for w;
    open_wait(&w, 1000);
    rl_rooms_hear(&core(&w)->rooms);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(w.w.one->until_us - w.p.now_us, PLAY_TIMEOUT_MS * MS);
    play_pass(&w.p, look_ms * MS);
    EXPECT_INT(answer(&w, LOOKED(4, 1)), canceled ? RL_SLEEP : RL_ASK);
    if (canceled) {
        rl_rooms_cancel(&core(&w)->rooms, &gate, &w);
        EXPECT_INT(play_wake(&w.p), RL_ASK);
    }
    EXPECT_STR(play_called(&w.p, 0), "leave");
    EXPECT_INT(w.w.one->until_us - PLAY_BEGAN_US, until_us);
    EXPECT_INT(answer(&w, LEFT), RL_DONE);
    close_wait(&w, canceled ? RLOCK_CANCELED : RLOCK_TIMEOUT);
}

TEST_CASE(latch, a_leave_takes_as_long_as_a_command,
          expect_leave_until(100, true, (100 + PLAY_TIMEOUT_MS) * MS))
TEST_CASE(latch, a_leave_ends_with_the_call,
          expect_leave_until(1500, false, (1000 + PLAY_TIMEOUT_MS) * MS))

TEST(latch, a_server_that_is_away_is_asked_again_until_the_wait_is_over)
{
    wait_for w;
    open_wait(&w, 1000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_lose(&w.p, 0), RL_SLEEP);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(latch, when_time_is_up_in_an_outage_the_outage_is_told)
{
    wait_for w;
    open_wait(&w, 1000);
    w.p.client[0].away = true;
    rl_next next = begin(&w);
    while (next == RL_SLEEP)
        next = play_sleep(&w.p);
    EXPECT_INT(next, RL_DONE);
    EXPECT_CONTAINS(w.w.fault.text, "nobody is at home");
    close_wait(&w, RLOCK_EIO);
}

TEST(latch, when_time_is_up_after_an_outage_it_is_told_what_is_left)
{
    wait_for w;
    open_wait(&w, 200);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_lose(&w.p, 0), RL_SLEEP);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(4, 0)), RL_SLEEP);
    play_pass(&w.p, 200 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(4, 0)), RL_DONE);
    EXPECT_CONTAINS(w.w.fault.text, "4 left");
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(latch, after_an_answer_the_pauses_begin_anew)
{
    wait_for w;
    open_wait(&w, 60000);
    w.p.client[0].away = true;
    EXPECT_INT(begin(&w), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_SLEEP);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(4, 0)), RL_SLEEP);
    w.p.client[0].away = true;
    EXPECT_INT(play_sleep(&w.p), RL_SLEEP);
    EXPECT_BETWEEN(w.w.op.sleep_us - w.p.now_us, 15 * MS, 25 * MS);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(latch, the_end_of_the_client_ends_it)
{
    wait_for w;
    open_wait(&w, RLOCK_FOREVER);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(1, 0)), RL_SLEEP);
    rl_rooms_close(&core(&w)->rooms);
    EXPECT_INT(play_wake(&w.p), RL_DONE);
    close_wait(&w, RLOCK_ECLOSED);
}

TEST(latch, without_memory_nobody_waits_and_nothing_is_sent)
{
    wait_for w;
    open_wait(&w, 1000);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    rl_next next = begin(&w);
    shim_clear(shim_here());
    EXPECT_INT(next, RL_DONE);
    EXPECT_INT(calls(&w), 0);
    close_wait(&w, RLOCK_ENOMEM);
}

/* --- several of one client ------------------------------------------------ */

/* As the front's, of who has waited since then. */
static void enter_first(wait_for *w, rl_waiter *front, int64_t began_us)
{
    EXPECT(rl_room_enter(&core(w)->rooms, front, &gate, NULL, &w->p.waker,
                         began_us));
}

TEST(latch, who_is_not_the_first_here_takes_the_firsts_answer)
{
    wait_for w;
    rl_waiter front;
    open_wait(&w, RLOCK_FOREVER);
    enter_first(&w, &front, w.p.now_us);
    EXPECT_INT(begin(&w), RL_SLEEP);
    EXPECT_BETWEEN(w.w.op.sleep_us - w.p.now_us, 1500 * MS, 2500 * MS);
    rl_room_is_open(&core(&w)->rooms, &front, w.p.now_us);
    EXPECT_INT(play_wake(&w.p), RL_DONE);
    EXPECT_INT(calls(&w), 0);
    rl_room_leave(&core(&w)->rooms, &front, true);
    close_wait(&w, RLOCK_OK);
}

/* That look was sent before: the latch may have been set since. */
TEST(latch, what_was_found_open_before_says_nothing_to_who_comes_later)
{
    wait_for w;
    rl_waiter front;
    open_wait(&w, RLOCK_FOREVER);
    enter_first(&w, &front, w.p.now_us - 50 * MS);
    rl_room_is_open(&core(&w)->rooms, &front, w.p.now_us - 20 * MS);
    EXPECT_INT(begin(&w), RL_SLEEP);
    rl_room_leave(&core(&w)->rooms, &front, true);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(latch, who_was_never_the_first_looks_before_the_wait_is_over)
{
    wait_for w;
    rl_waiter front;
    open_wait(&w, 100);
    enter_first(&w, &front, w.p.now_us);
    EXPECT_INT(begin(&w), RL_SLEEP);
    play_pass(&w.p, 150 * MS); /* it was not woken in time */
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, 1), "");
    EXPECT_INT(w.w.one->until_us - PLAY_BEGAN_US, (100 + PLAY_TIMEOUT_MS) * MS);
    EXPECT_INT(answer(&w, LOOKED(2, 0)), RL_DONE);
    rl_room_leave(&core(&w)->rooms, &front, true);
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(latch, who_was_never_the_first_takes_the_firsts_no_when_the_wait_is_over)
{
    wait_for w;
    rl_waiter front;
    open_wait(&w, 100);
    enter_first(&w, &front, w.p.now_us);
    EXPECT_INT(begin(&w), RL_SLEEP);
    rl_room_is_busy(&core(&w)->rooms, &front, 0, w.p.now_us + 95 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_DONE);
    EXPECT_INT(calls(&w), 0);
    rl_room_leave(&core(&w)->rooms, &front, true);
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(latch, who_waits_for_one_is_not_the_longest_to_wait_for_a_lock)
{
    wait_for w;
    rl_waiter front;
    open_wait(&w, 0);
    enter_first(&w, &front, 5);
    EXPECT_INT(rl_rooms_longest(&core(&w)->rooms), RL_NEVER);
    rl_room_leave(&core(&w)->rooms, &front, true);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, LOOKED(0, 0)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* --- what is done to it --------------------------------------------------- */

typedef struct deed {
    play p;
    rl_op op;
    rl_part x;
    rl_hold *draft;
    char mark[200];
} deed;

static void open_deed(deed *d, int64_t amount)
{
    char uuid[RL_UUID_LEN + 1];
    d->x.heap = false;
    play_open(&d->p, 1);
    d->draft = rl_mark_new(play_core(&d->p, 0), &gate, &d->p.owner, amount,
                           d->p.now_us);
    EXPECT(d->draft);
    rl_uuid_write(&d->draft->id, uuid);
    snprintf(d->mark, sizeof d->mark, "rlock_undone:{job}:%s", uuid);
}

static void close_deed(deed *d)
{
    rl_holds_put(&play_core(&d->p, 0)->holds, d->draft);
    play_close(&d->p);
}

TEST(latch, a_count_down_is_asked_again_with_the_same_mark)
{
    deed d;
    open_deed(&d, 3);
    rl_part_count_down(&d.x, play_core(&d.p, 0), d.draft, d.p.now_us);
    play_one(&d.p, &d.op, &d.x);
    EXPECT_INT(play_begin(&d.p, &d.op), RL_ASK);
    for (int i = 0; i < 2; i++) {
        EXPECT_STR(play_key(&d.p, 0, 1), "job");
        EXPECT_STR(play_key(&d.p, 0, 2), "rlock_queue:{job}");
        EXPECT_STR(play_key(&d.p, 0, 3), d.mark);
        EXPECT_INT(play_args(&d.p, 0), 3);
        EXPECT_STR(play_arg(&d.p, 0, 1), "3");
        EXPECT_STR(play_arg(&d.p, 0, 2), "120000");
        EXPECT_STR(play_arg(&d.p, 0, 3),
                   "redisson_countdownlatch__channel__{job}");
        if (i == 0)
            EXPECT_INT(play_cut(&d.p, 0), RL_ASK);
    }
    EXPECT_INT(play_answer(&d.p, 0, ":4\r\n"), RL_DONE);
    EXPECT(d.x.ok && d.x.code == 4 && !rl_latch_is_owed(&d.x));
    close_deed(&d);
}

static void expect_owed(const char *reply, bool owed)
{
    deed d;
    open_deed(&d, 1);
    rl_part_count_down(&d.x, play_core(&d.p, 0), d.draft, d.p.now_us);
    play_one(&d.p, &d.op, &d.x);
    EXPECT_INT(play_begin(&d.p, &d.op), RL_ASK);
    while (d.p.next == RL_ASK)
        play_answer(&d.p, 0, reply);
    EXPECT(!d.x.ok && rl_latch_is_owed(&d.x) == owed);
    close_deed(&d);
}

TEST_CASE(latch, a_count_down_that_a_replica_refuses_is_owed,
          expect_owed(READONLY, true))
TEST_CASE(latch, a_count_down_that_is_put_off_is_owed,
          expect_owed(LOADING, true))
TEST_CASE(latch, a_count_down_that_is_forbidden_is_not_owed,
          expect_owed(NOPERM, false))
TEST_CASE(latch, a_count_down_of_what_is_no_count_is_not_owed,
          expect_owed(WRONGTYPE, false))

TEST(latch, a_set_says_how_long_it_lives)
{
    deed d;
    open_deed(&d, 12);
    d.draft->lease_ms = 5000;
    rl_part_latch_set(&d.x, play_core(&d.p, 0), d.draft, d.p.now_us);
    play_one(&d.p, &d.op, &d.x);
    EXPECT_INT(play_begin(&d.p, &d.op), RL_ASK);
    EXPECT_STR(play_key(&d.p, 0, 1), "job");
    EXPECT_STR(play_key(&d.p, 0, 2), d.mark);
    EXPECT_STR(play_arg(&d.p, 0, 1), "12");
    EXPECT_STR(play_arg(&d.p, 0, 2), "5000");
    EXPECT_STR(play_arg(&d.p, 0, 3), "120000");
    EXPECT_INT(play_answer(&d.p, 0, YES), RL_DONE);
    EXPECT(d.x.ok && d.x.code == 1);
    close_deed(&d);
}

TEST(latch, a_delete_is_sent_once)
{
    deed d;
    open_deed(&d, 1);
    rl_part_latch_delete(&d.x, play_core(&d.p, 0), &gate, d.p.now_us);
    play_one(&d.p, &d.op, &d.x);
    EXPECT_INT(play_begin(&d.p, &d.op), RL_ASK);
    EXPECT_INT(play_args(&d.p, 0), 1);
    EXPECT_INT(play_cut(&d.p, 0), RL_DONE);
    EXPECT_INT(d.p.client[0].calls, 1);
    EXPECT_INT(d.x.fault.status, RLOCK_EIO);
    close_deed(&d);
}

TEST(latch, without_memory_or_randomness_there_is_no_mark)
{
    play p;
    play_open(&p, 1);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    rl_hold *h = rl_mark_new(play_core(&p, 0), &gate, &p.owner, 1, p.now_us);
    shim_clear(shim_here());
    EXPECT(!h);
    EXPECT_INT(play_core(&p, 0)->holds.records.count, 0);
    play_close(&p);
}
