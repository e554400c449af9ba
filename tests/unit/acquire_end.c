/* The wait for a lock on one server: the queue here, and the end. */
#include "wait.h"

/* --- behind others here --------------------------------------------------- */

typedef struct other_waiter {
    rl_waiter waiter;
    rl_waker waker;
    int woken;
} other_waiter;

static void wake(rl_waker *w, rl_wake why, unsigned node)
{
    (void)why;
    (void)node;
    RL_CONTAINER(w, other_waiter, waker)->woken++;
}

static void stand_in_front(wait_for *w, other_waiter *o)
{
    *o = (other_waiter){.waker = {wake}};
    EXPECT(rl_room_enter(&core(w)->rooms, &o->waiter, &play_job, NULL,
                         &o->waker, 0));
}

TEST(acquire_end, who_is_not_in_front_does_not_ask)
{
    wait_for w;
    other_waiter o;
    open_wait(&w, 1000);
    stand_in_front(&w, &o);
    EXPECT_INT(begin(&w), RL_SLEEP);
    EXPECT_INT(calls(&w), 0);
    EXPECT_INT(w.a.op.sleep_us, w.a.wait_until_us);
    EXPECT_INT(w.p.events[RLOCK_EVENT_CONTENDED], 1);
    rl_room_leave(&core(&w)->rooms, &o.waiter, true);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* The doorbell has broken since the try that queued: its leave is under way, or
   there is no connection any more. */
static void open_leaving_owner(wait_for *w, bool away)
{
    open_wait(w, 60000);
    hear_bell(w);
    EXPECT_INT(begin(w), RL_ASK);
    EXPECT_INT(answer(w, IS_BUSY), RL_SLEEP);
    rl_rooms_hear_no_more(&core(w)->rooms);
    EXPECT_INT(play_sleep(&w->p), RL_ASK);
    EXPECT_INT(play_args(&w->p, 0), BRIEF);
    w->p.client[0].away = away;
    EXPECT_INT(answer(w, GRANTED(123)), RL_DONE);
}

/* A lease is running. */
TEST(acquire_end, an_owner_waits_for_no_answer_to_its_leave)
{
    wait_for w;
    open_leaving_owner(&w, false);
    EXPECT_STR(play_called(&w.p, 0), "leave");
    EXPECT_INT(w.a.status, RLOCK_OK);
    answer(&w, YES);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, that_an_owner_cannot_leave_the_queue_changes_nothing)
{
    wait_for w;
    open_leaving_owner(&w, true);
    close_wait(&w, RLOCK_OK);
}

/* It may be executed after that one has queued, and take it out again. */
TEST(acquire_end, who_queues_before_an_owners_leave_is_answered_looks_again)
{
    wait_for w;
    other_waiter o;
    open_leaving_owner(&w, false);
    stand_in_front(&w, &o);
    answer(&w, YES);
    EXPECT_INT(o.woken, 1);
    rl_room_leave(&core(&w)->rooms, &o.waiter, false);
    close_wait(&w, RLOCK_OK);
}

static rl_try judge_and_free_owner(rl_acquire *a, int64_t now_us)
{
    rl_try result = rl_attempt_one.judge(a, now_us);
    rl_holds_abandon(&a->home->holds, a->owner->serial, now_us);
    return result;
}

/* The owner is freed by another thread before it has left the room, or not. */
static void expect_next_woken(bool freed, int woken)
{
    wait_for w;
    other_waiter o;
    rl_attempt attempt = rl_attempt_one;
    open_waiting(&w, 60000);
    if (freed)
        attempt.judge = judge_and_free_owner;
    w.a.attempt = &attempt;
    stand_in_front(&w, &o); /* too late: behind */
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT_INT(w.a.status, RLOCK_OK);
    EXPECT_INT(o.woken, woken);
    rl_room_leave(&core(&w)->rooms, &o.waiter, false);
    play_close(&w.p);
}

TEST_CASE(acquire_end, who_gets_the_lock_wakes_nobody_as_it_is_to_hand_it_over,
          expect_next_woken(false, 0))
TEST_CASE(acquire_end, whose_hold_is_over_already_has_the_next_look,
          expect_next_woken(true, 1))

/* What failed before it does not count against those behind. */
TEST(acquire_end, who_gets_the_lock_ends_an_outage)
{
    wait_for w;
    other_waiter o;
    open_waiting(&w, 60000);
    stand_in_front(&w, &o); /* too late: behind */
    rl_rooms *rooms = &core(&w)->rooms;
    rl_room_failed(rooms, &w.a.waiter, w.p.now_us);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT_INT(rl_room_failed(rooms, &o.waiter, 7), 7);
    rl_room_leave(rooms, &o.waiter, false);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, who_never_came_to_the_front_asks_once_before_its_time_is_up)
{
    wait_for w;
    other_waiter o;
    open_wait(&w, 1000);
    hear_bell(&w);
    stand_in_front(&w, &o);
    EXPECT_INT(begin(&w), RL_SLEEP);
    play_pass(&w.p, 1200 * MS); /* nor was it woken in time */
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(play_args(&w.p, 0), BRIEF); /* it will not wait any more */
    EXPECT_INT(w.a.one->until_us - PLAY_BEGAN_US,
               (1000 + PLAY_TIMEOUT_MS) * MS);
    EXPECT_INT(answer(&w, IS_BUSY), RL_DONE);
    rl_room_leave(&core(&w)->rooms, &o.waiter, true);
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(acquire_end, a_last_try_may_succeed)
{
    wait_for w;
    other_waiter o;
    open_wait(&w, 1000);
    stand_in_front(&w, &o);
    EXPECT_INT(begin(&w), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    rl_room_leave(&core(&w)->rooms, &o.waiter, false);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, a_last_try_that_fails_says_why)
{
    wait_for w;
    other_waiter o;
    open_wait(&w, 1000);
    stand_in_front(&w, &o);
    EXPECT_INT(begin(&w), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, NOPERM), RL_DONE);
    rl_room_leave(&core(&w)->rooms, &o.waiter, true);
    close_wait(&w, RLOCK_ESERVER);
}

TEST(acquire_end, the_answer_to_who_stands_in_front_counts_for_all)
{
    wait_for w;
    other_waiter o;
    open_wait(&w, 1000);
    stand_in_front(&w, &o);
    EXPECT_INT(begin(&w), RL_SLEEP);
    rl_room_is_busy(&core(&w)->rooms, &o.waiter, 500, w.p.now_us + 1);
    EXPECT_INT(play_sleep(&w.p), RL_DONE);
    EXPECT_INT(calls(&w), 0);
    rl_room_leave(&core(&w)->rooms, &o.waiter, true);
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(acquire_end, who_finds_somebody_waiting_after_its_try_stands_behind)
{
    wait_for w;
    other_waiter o;
    open_wait(&w, 1000);
    EXPECT_INT(begin(&w), RL_ASK);
    stand_in_front(&w, &o);
    EXPECT_INT(answer(&w, BUSY(100, 500, 0)), RL_SLEEP);
    EXPECT_INT(w.a.op.sleep_us, w.a.wait_until_us);
    rl_room_leave(&core(&w)->rooms, &o.waiter, true);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, who_comes_after_a_release_is_held_back_for_who_was_rung)
{
    wait_for w;
    open_wait(&w, 60000);
    rl_rooms_hold_back(&core(&w)->rooms, "job", 3, w.p.now_us + 400);
    EXPECT_INT(begin(&w), RL_SLEEP);
    EXPECT_INT(w.a.op.sleep_us, w.p.now_us + 400);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT_INT(w.p.events[RLOCK_EVENT_CONTENDED], 0);
    close_wait(&w, RLOCK_OK);
}

/* --- the end -------------------------------------------------------------- */

TEST(acquire_end, the_time_is_up)
{
    wait_for w;
    open_waiting(&w, 1000);
    EXPECT_INT(w.a.op.sleep_us, w.a.wait_until_us);
    EXPECT_INT(play_sleep(&w.p), RL_DONE);
    EXPECT_INT(calls(&w), 1);
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(acquire_end, who_has_queued_leaves_the_queue_when_its_time_is_up)
{
    wait_for w;
    open_wait(&w, 1000);
    hear_bell(&w);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_STR(play_called(&w.p, 0), "leave");
    EXPECT_STR(play_arg(&w.p, 0, 1), core(&w)->bell);
    EXPECT_INT(answer(&w, "*3\r\n:1\r\n$3\r\nwho\r\n:2360\r\n"), RL_DONE);
    EXPECT_STR(w.a.fault.text, "held by who for 2.3 s");
    close_wait(&w, RLOCK_TIMEOUT);
}

/* It is canceled, or its time is up, after its latest try took so long. */
static void expect_leave_until(int64_t try_ms, bool canceled, int64_t until_us)
{
    wait_for w;
    open_wait(&w, 1000);
    hear_bell(&w);
    EXPECT_INT(begin(&w), RL_ASK);
    w.cancels += canceled;
    play_pass(&w.p, try_ms * MS);
    rl_next next = answer(&w, IS_BUSY);
    EXPECT_INT(next == RL_SLEEP ? play_sleep(&w.p) : next, RL_ASK);
    EXPECT_STR(play_called(&w.p, 0), "leave");
    EXPECT_INT(w.a.one->until_us - PLAY_BEGAN_US, until_us);
    EXPECT_INT(answer(&w, LEFT), RL_DONE);
    close_wait(&w, canceled ? RLOCK_CANCELED : RLOCK_TIMEOUT);
}

TEST_CASE(acquire_end, a_leave_takes_as_long_as_a_command,
          expect_leave_until(100, true, (100 + PLAY_TIMEOUT_MS) * MS))
TEST_CASE(acquire_end, a_leave_ends_with_the_call,
          expect_leave_until(1500, false, (1000 + PLAY_TIMEOUT_MS) * MS))

TEST(acquire_end, that_the_queue_cannot_be_left_changes_nothing)
{
    wait_for w;
    open_wait(&w, 1000);
    hear_bell(&w);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(play_lose(&w.p, 0), RL_DONE);
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(acquire_end, a_wait_without_end_has_none)
{
    wait_for w;
    open_waiting(&w, RLOCK_FOREVER);
    EXPECT_INT(w.a.wait_until_us, RL_NEVER);
    for (int i = 0; i < 100; i++) {
        EXPECT_INT(play_sleep(&w.p), RL_ASK);
        EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    }
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, a_cancel_ends_the_wait)
{
    wait_for w;
    open_waiting(&w, 60000);
    rl_rooms_cancel(&core(&w)->rooms, &play_job, &w);
    EXPECT_INT(play_wake(&w.p), RL_DONE);
    close_wait(&w, RLOCK_CANCELED);
}

TEST(acquire_end, a_cancel_before_the_wait_counts)
{
    wait_for w;
    open_wait(&w, 60000);
    w.cancels++;
    EXPECT_INT(begin(&w), RL_DONE);
    EXPECT_INT(calls(&w), 0);
    close_wait(&w, RLOCK_CANCELED);
}

TEST(acquire_end, a_cancel_during_the_first_try_counts_before_the_next)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    w.cancels++;
    hear_bell(&w);
    EXPECT_INT(answer(&w, IS_BUSY), RL_DONE);
    close_wait(&w, RLOCK_CANCELED);
}

/* Nobody saw it wait, so nobody could wake it. */
TEST(acquire_end, a_cancel_during_the_first_try_is_not_slept_over)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    w.cancels++;
    EXPECT_INT(answer(&w, IS_BUSY), RL_DONE);
    close_wait(&w, RLOCK_CANCELED);
}

TEST(acquire_end, a_grant_is_kept_though_a_cancel_came)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    w.cancels++;
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, a_canceled_client_does_not_wait)
{
    wait_for w;
    open_wait(&w, 60000);
    atomic_store(&core(&w)->canceled, true);
    EXPECT_INT(begin(&w), RL_DONE);
    close_wait(&w, RLOCK_CANCELED);
}

TEST(acquire_end, a_close_ends_the_wait)
{
    wait_for w;
    open_waiting(&w, 60000);
    rl_rooms_close(&core(&w)->rooms);
    EXPECT_INT(play_wake(&w.p), RL_DONE);
    close_wait(&w, RLOCK_ECLOSED);
}

/* --- a server that fails -------------------------------------------------- */

TEST(acquire_end, an_outage_is_waited_out)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_lose(&w.p, 0), RL_SLEEP);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 15 * MS, 25 * MS);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, pauses_between_tries_grow_to_half_a_second)
{
    wait_for w;
    open_wait(&w, 60000);
    w.p.client[0].away = true;
    EXPECT_INT(begin(&w), RL_SLEEP);
    for (int i = 0; i < 8; i++)
        EXPECT_INT(play_sleep(&w.p), RL_SLEEP);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 375 * MS, 625 * MS);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, after_an_answer_the_pauses_begin_anew)
{
    wait_for w;
    open_wait(&w, 60000);
    w.p.client[0].away = true;
    EXPECT_INT(begin(&w), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_SLEEP);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    w.p.client[0].away = true;
    EXPECT_INT(play_sleep(&w.p), RL_SLEEP);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 15 * MS, 25 * MS);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire_end, an_outage_longer_than_a_lease_ends_the_wait)
{
    wait_for w;
    open_wait(&w, RLOCK_FOREVER);
    int64_t began_us = w.p.now_us;
    w.p.client[0].away = true;
    rl_next next = begin(&w);
    for (int i = 0; i < 1000 && next == RL_SLEEP; i++)
        next = play_sleep(&w.p);
    EXPECT_INT(next, RL_DONE);
    EXPECT_BETWEEN(w.p.now_us - began_us, PLAY_LEASE_MS * MS,
                   (PLAY_LEASE_MS + 700) * MS);
    close_wait(&w, RLOCK_EIO);
}

TEST(acquire_end, an_error_that_stays_ends_the_wait_at_once)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, NOPERM), RL_DONE);
    close_wait(&w, RLOCK_ESERVER);
}

TEST(acquire_end, when_time_is_up_in_an_outage_the_outage_is_told)
{
    wait_for w;
    open_wait(&w, 1000);
    w.p.client[0].away = true;
    rl_next next = begin(&w);
    while (next == RL_SLEEP)
        next = play_sleep(&w.p);
    EXPECT_INT(next, RL_DONE);
    EXPECT_CONTAINS(w.a.fault.text, "nobody is at home");
    close_wait(&w, RLOCK_EIO);
}

/* What is waited for may have been granted by the try that had no answer. */
TEST(acquire_end, a_try_without_answer_is_undone_though_a_later_one_was_busy)
{
    wait_for w;
    open_wait(&w, 1000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_cut(&w.p, 0), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_DONE);
    EXPECT_INT(core(&w)->holds.undoing, 1);
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(acquire_end, a_call_ends_with_the_command_after_its_wait)
{
    wait_for w;
    open_waiting(&w, 1000);
    EXPECT_INT(w.a.call_until_us,
               PLAY_BEGAN_US + (1000 + PLAY_TIMEOUT_MS) * MS);
    play_pass(&w.p, 900 * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(w.a.one->until_us, w.p.now_us + PLAY_TIMEOUT_MS * MS);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}
