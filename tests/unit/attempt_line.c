/* The wait in a fair lock's line: asked once to stand, then for all of the client
   by the front, granted by a message, confirmed, given up. */
#include <errno.h>

#include "op/grant.h"
#include "shim.h"
#include "wait.h"

#define CLAIM_MS 3000

/* Busy, in line, and so many before it; is the client new there? */
#define STANDS(ticket, rank, anew)                                             \
    "*6\r\n:0\r\n:30000\r\n$3\r\n" #ticket "\r\n:0\r\n:" #rank "\r\n:" #anew   \
    "\r\n"

#define UUID "6f1e1e0c-5d07-4f36-9a4e-00000000000a"

/* Busy, and so is called who has it, for 2.3 s. */
#define HELD_BY(who)                                                           \
    "*7\r\n:0\r\n:30000\r\n$1\r\n0\r\n:0\r\n:-1\r\n$53\r\n" who "\r\n:"        \
    "2345\r\n"

static const rl_target fair_job = {.name = "job",
                                   .len = 3,
                                   .scope = RLOCK_LAYOUT_HASH,
                                   .layout = RL_LAYOUT_FAIR};

static void open_fair(wait_for *w, int64_t wait_ms, int64_t lease_ms)
{
    open_wait(w, wait_ms);
    w->a.attempt = &rl_attempt_line;
    w->a.what = &fair_job;
    w->a.lease_ms = lease_ms;
    hear_bell(w);
}

/* It stands, and sleeps. */
static void open_standing(wait_for *w, int64_t lease_ms)
{
    open_fair(w, 60000, lease_ms);
    EXPECT_INT(begin(w), RL_ASK);
    EXPECT_INT(answer(w, STANDS(500, 0, 0)), RL_SLEEP);
}

/* The message of a grant whose beat is of that time. */
static rl_next grant(wait_for *w, int64_t beat_us)
{
    rl_notice n = {.name = "job",
                   .len = 3,
                   .id = w->a.draft->id,
                   .token = 123,
                   .beat_us = beat_us,
                   .claim_ms = CLAIM_MS};
    rl_rooms_grant(&core(w)->rooms, &n);
    return play_wake(&w->p);
}

static void close_owned(wait_for *w)
{
    EXPECT_INT(w->a.token, 123);
    close_wait(w, RLOCK_OK);
}

/* --- standing ------------------------------------------------------------- */

TEST(attempt_line, who_waits_stands_with_the_first_try)
{
    wait_for w;
    open_fair(&w, 60000, RLOCK_WATCHDOG);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_STR(play_called(&w.p, 0), "fair/acquire");
    EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
    EXPECT_STR(play_arg(&w.p, 0, TICKET_ARG), "0");
    EXPECT_INT(atoll(play_arg(&w.p, 0, 6)), w.p.now_us); /* the beat */
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, who_does_not_wait_says_the_least)
{
    wait_for w;
    open_fair(&w, 0, RLOCK_WATCHDOG);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_args(&w.p, 0), BRIEF);
    EXPECT_INT(answer(&w, IS_BUSY), RL_DONE);
    EXPECT_INT(calls(&w), 1); /* it has nothing to leave */
    close_wait(&w, RLOCK_BUSY);
}

static void expect_nothing_asked(int64_t wait_ms, shim_call fails)
{
    wait_for w;
    open_fair(&w, wait_ms, RLOCK_WATCHDOG);
    shim_fail(shim_here(), fails, 1, SHIM_EVER, ENOMEM);
    rl_next next = begin(&w);
    shim_clear(shim_here());
    EXPECT_INT(next, RL_DONE);
    EXPECT_INT(calls(&w), 0);
    EXPECT_CONTAINS(w.a.fault.text, "out of memory");
    close_wait(&w, RLOCK_ENOMEM);
}

TEST_CASE(attempt_line, without_memory_the_server_is_not_asked,
          expect_nothing_asked(0, SHIM_ALLOC))
TEST_CASE(attempt_line, without_randomness_nobody_stands_in_line,
          expect_nothing_asked(60000, SHIM_GETRANDOM))

TEST(attempt_line, who_hears_nothing_says_so_and_again_when_it_does)
{
    wait_for w;
    open_fair(&w, 60000, RLOCK_WATCHDOG);
    rl_rooms_hear_no_more(&core(&w)->rooms);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_arg(&w.p, 0, BELL_ARG)[0], '-');
    EXPECT_INT(answer(&w, STANDS(500, 0, 1)), RL_SLEEP);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 187 * MS, 313 * MS);
    hear_bell(&w);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
    EXPECT_STR(play_arg(&w.p, 0, TICKET_ARG), "500");
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, whom_the_server_has_not_put_in_line_looks_by_itself)
{
    wait_for w;
    open_fair(&w, 60000, RLOCK_WATCHDOG);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, STANDS(500, -1, 0)), RL_SLEEP);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 187 * MS, 313 * MS);
    EXPECT(rl_room_has_to_ask(&core(&w)->rooms, &w.a.waiter));
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_owned(&w);
}

/* Another one that waits for it here, in front or behind. */
typedef struct other {
    rl_waiter waiter;
    rl_waker waker;
    int woken;
} other;

static void note_wake(rl_waker *w, rl_wake why, unsigned node)
{
    (void)why;
    (void)node;
    RL_CONTAINER(w, other, waker)->woken++;
}

static void enter(wait_for *w, other *o)
{
    *o = (other){.waker = {note_wake}};
    EXPECT(rl_room_enter(&core(w)->rooms, &o->waiter, &fair_job, NULL,
                         &o->waker, w->p.now_us));
}

static void leave(wait_for *w, other *o)
{
    rl_room_leave(&core(w)->rooms, &o->waiter, false);
}

TEST(attempt_line, who_stands_behind_the_front_asks_no_more)
{
    wait_for w;
    other front;
    open_fair(&w, 60000, RLOCK_WATCHDOG);
    enter(&w, &front);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, STANDS(500, 1, 0)), RL_SLEEP);
    for (int i = 0; i < 5; i++)
        EXPECT_INT(play_sleep(&w.p), RL_SLEEP);
    EXPECT_INT(calls(&w), 1);
    leave(&w, &front); /* now it is the front, and speaks for all */
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, the_front_looks_every_two_seconds)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 1500 * MS, 2500 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, TICKET_ARG), "500");
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_owned(&w);
}

/* Another of the client's that stands in line. */
static void stand_behind(wait_for *w, other *x)
{
    enter(w, x);
    rl_room_stand(&core(w)->rooms, &x->waiter, &w->a.draft->id);
}

TEST(attempt_line, when_its_client_was_taken_for_dead_the_others_ask_again)
{
    wait_for w;
    other behind;
    open_standing(&w, RLOCK_WATCHDOG);
    stand_behind(&w, &behind);
    EXPECT(!rl_room_has_to_ask(&core(&w)->rooms, &behind.waiter));
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, STANDS(500, 0, 1)), RL_SLEEP);
    EXPECT_INT(behind.woken, 1);
    EXPECT(rl_room_has_to_ask(&core(&w)->rooms, &behind.waiter));
    leave(&w, &behind);
    EXPECT_INT(grant(&w, w.p.now_us), RL_DONE);
    close_owned(&w);
}

/* It is granted the lock by a message, so long after the client's last try. */
static void expect_next_woken(int64_t ms, int woken)
{
    wait_for w;
    other behind;
    open_standing(&w, RLOCK_WATCHDOG);
    stand_behind(&w, &behind);
    play_pass(&w.p, ms * MS);
    EXPECT_INT(grant(&w, w.p.now_us), RL_DONE);
    EXPECT_INT(behind.woken, woken);
    leave(&w, &behind);
    close_owned(&w);
}

/* Who is next in the server's line is told by it. */
TEST_CASE(attempt_line, who_is_granted_it_leaves_without_waking_the_next_one,
          expect_next_woken(1900, 0))
/* Or its sign of life might end before the next one is due. */
TEST_CASE(attempt_line, but_wakes_it_when_its_client_has_not_asked_for_long,
          expect_next_woken(2100, 1))

TEST(attempt_line, when_its_client_may_have_been_dropped_the_others_ask_again)
{
    wait_for w;
    other next, last;
    open_standing(&w, RLOCK_WATCHDOG);
    stand_behind(&w, &next);
    stand_behind(&w, &last);
    play_pass(&w.p, 8000 * MS); /* the process was stopped, say */
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE); /* it is free by now */
    EXPECT_INT(last.woken, 1);
    EXPECT(rl_room_has_to_ask(&core(&w)->rooms, &last.waiter));
    leave(&w, &next);
    leave(&w, &last);
    close_owned(&w);
}

/*
 * It asks who has the lock, as it has waited for long. That is no sign of life, but
 * that it stood before is; the answer to which was slow.
 */
static void ask_who_has_it(wait_for *w)
{
    w->a.warn_us = w->p.now_us;
    EXPECT_INT(play_sleep(&w->p), RL_ASK);
    play_pass(&w->p, 800 * MS);
    EXPECT_INT(answer(w, STANDS(500, 0, 0)), RL_ASK);
    EXPECT_INT(play_args(&w->p, 0), BRIEF);
    EXPECT_INT(answer(w, HELD_BY("web3:18201:18207:" UUID)), RL_SLEEP);
}

TEST(attempt_line, who_has_only_asked_who_has_it_wakes_the_next_one)
{
    wait_for w;
    other behind;
    open_standing(&w, RLOCK_WATCHDOG);
    stand_behind(&w, &behind);
    ask_who_has_it(&w);
    play_pass(&w.p, 1300 * MS);
    EXPECT_INT(grant(&w, w.p.now_us), RL_DONE);
    EXPECT_INT(behind.woken, 1);
    leave(&w, &behind);
    close_owned(&w);
}

TEST(attempt_line, when_it_has_only_asked_who_has_it_the_others_ask_again)
{
    wait_for w;
    other next, last;
    open_standing(&w, RLOCK_WATCHDOG);
    stand_behind(&w, &next);
    stand_behind(&w, &last);
    ask_who_has_it(&w);
    play_pass(&w.p, 5300 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT_INT(last.woken, 1);
    EXPECT(rl_room_has_to_ask(&core(&w)->rooms, &last.waiter));
    leave(&w, &next);
    leave(&w, &last);
    close_owned(&w);
}

TEST(attempt_line, when_a_reply_that_says_so_is_lost_the_next_one_does)
{
    wait_for w;
    other behind;
    open_standing(&w, RLOCK_WATCHDOG);
    stand_behind(&w, &behind);
    play_pass(&w.p, 8000 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(play_lose(&w.p, 0), RL_SLEEP);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT(!rl_room_has_to_ask(&core(&w)->rooms, &behind.waiter));
    EXPECT_INT(answer(&w, STANDS(500, 0, 0)), RL_SLEEP);
    EXPECT_INT(behind.woken, 1);
    EXPECT(rl_room_has_to_ask(&core(&w)->rooms, &behind.waiter));
    leave(&w, &behind);
    EXPECT_INT(grant(&w, w.p.now_us), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, when_nobody_hears_any_more_all_look_by_themselves)
{
    wait_for w;
    other behind;
    open_standing(&w, RLOCK_WATCHDOG);
    stand_behind(&w, &behind);
    rl_rooms_hear_no_more(&core(&w)->rooms);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, STANDS(500, 0, 0)), RL_SLEEP);
    EXPECT_INT(behind.woken, 0); /* when it is due */
    EXPECT(rl_room_has_to_ask(&core(&w)->rooms, &behind.waiter));
    leave(&w, &behind);
    EXPECT_INT(grant(&w, w.p.now_us), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, a_try_that_failed_may_not_have_come)
{
    wait_for w;
    other front;
    open_fair(&w, 60000, RLOCK_WATCHDOG);
    enter(&w, &front);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_lose(&w.p, 0), RL_SLEEP);
    w.p.client[0].away = false;
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    leave(&w, &front);
    close_owned(&w);
}

/* --- granted -------------------------------------------------------------- */

TEST(attempt_line, a_grant_is_begun_with_at_once)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    int64_t beat_us = w.p.now_us;
    rl_hold *h = w.a.draft;
    play_pass(&w.p, 800 * MS);
    EXPECT_INT(grant(&w, beat_us), RL_DONE);
    EXPECT_INT(calls(&w), 1);
    EXPECT_INT(core(&w)->stats.wakeups, 1);
    EXPECT_INT(h->expiry.due_us, beat_us + GOOD_US(CLAIM_MS));
    EXPECT_INT(h->renewal_us, beat_us + CLAIM_MS * MS / 3);
    EXPECT_INT(h->began_us, w.p.now_us); /* so old is a hold, in figures, too */
    close_owned(&w);
}

/* Asked for again, by the same holder. */
static void expect_confirmed(wait_for *w)
{
    play_id id = play_holder(w->a.draft);
    EXPECT_STR(play_called(&w->p, 0), "fair/acquire");
    EXPECT_STR(play_arg(&w->p, 0, HOLDER_ARG), id.text);
    EXPECT_INT(answer(w, GRANTED(123)), RL_DONE);
    EXPECT_INT(calls(w), 2);
    close_owned(w);
}

TEST(attempt_line, one_that_is_nearly_over_is_confirmed)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    int64_t beat_us = w.p.now_us;
    play_pass(&w.p, GOOD_US(CLAIM_MS) - 750 * MS + 1);
    EXPECT_INT(grant(&w, beat_us), RL_ASK);
    expect_confirmed(&w);
}

TEST(attempt_line, one_for_a_lease_of_its_own_is_confirmed)
{
    wait_for w;
    open_standing(&w, LEASE_MS);
    EXPECT_INT(grant(&w, w.p.now_us), RL_ASK);
    expect_confirmed(&w);
}

TEST(attempt_line, one_that_replicas_have_to_have_is_confirmed)
{
    wait_for w;
    open_fair(&w, 60000, RLOCK_WATCHDOG);
    core(&w)->set.min_replicas = 1;
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, STANDS(500, 0, 0) ":1\r\n"), RL_SLEEP);
    EXPECT_INT(grant(&w, w.p.now_us), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123) ":1\r\n"), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, one_that_comes_late_is_asked_about_and_waited_on)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    int64_t beat_us = w.p.now_us;
    play_pass(&w.p, 10000 * MS);
    EXPECT_INT(grant(&w, beat_us), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, TICKET_ARG), "500");
    EXPECT_INT(answer(&w, STANDS(500, 0, 0)), RL_SLEEP);
    EXPECT_INT(grant(&w, w.p.now_us), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, one_that_comes_during_a_try_has_it_ask_again)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    rl_notice n = {.name = "job", .len = 3, .id = w.a.draft->id, .token = 123};
    rl_rooms_grant(&core(&w)->rooms, &n);
    EXPECT_INT(answer(&w, STANDS(500, 0, 0)), RL_SLEEP);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, one_for_somebody_else_is_nobodys)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    rl_notice n = {.name = "job", .len = 3, .token = 123};
    rl_rooms_grant(&core(&w)->rooms, &n); /* another uuid */
    n.id = w.a.draft->id;
    n.len = 2; /* another name */
    rl_rooms_grant(&core(&w)->rooms, &n);
    EXPECT_INT(w.p.why, RL_WAKE_NONE);
    EXPECT_INT(grant(&w, w.p.now_us), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, a_grant_is_stronger_than_a_cancel)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    rl_notice n = {.name = "job",
                   .len = 3,
                   .id = w.a.draft->id,
                   .token = 123,
                   .beat_us = w.p.now_us,
                   .claim_ms = CLAIM_MS};
    rl_rooms_grant(&core(&w)->rooms, &n);
    w.cancels++;
    rl_rooms_cancel(&core(&w)->rooms, &fair_job, &w);
    EXPECT_INT(play_wake(&w.p), RL_DONE);
    close_owned(&w);
}

/* --- given up ------------------------------------------------------------- */

static void expect_released(wait_for *w, rlock_status status, int args)
{
    EXPECT_STR(play_called(&w->p, 0), "fair/release");
    EXPECT_INT(play_args(&w->p, 0), args);
    EXPECT_INT(answer(w, NO), RL_DONE);
    close_wait(w, status);
}

TEST(attempt_line, who_gives_up_releases_what_it_may_have_got)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    w.cancels++;
    rl_rooms_cancel(&core(&w)->rooms, &fair_job, &w);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    expect_released(&w, RLOCK_CANCELED, BRIEF);
}

/* It stands, and then its time is over. */
static void open_over(wait_for *w)
{
    open_fair(w, 1000, RLOCK_WATCHDOG);
    EXPECT_INT(begin(w), RL_ASK);
    EXPECT_INT(answer(w, STANDS(500, 0, 0)), RL_SLEEP);
    EXPECT_INT(play_sleep(&w->p), RL_ASK);
    EXPECT_STR(play_called(&w->p, 0), "fair/acquire");
    EXPECT_INT(play_args(&w->p, 0), BRIEF);
}

TEST(attempt_line, whose_time_is_over_asks_who_has_it_and_releases_it)
{
    wait_for w;
    open_over(&w);
    play_pass(&w.p, 700 * MS);
    EXPECT_INT(answer(&w, HELD_BY("web3:18201:18207:" UUID)), RL_ASK);
    EXPECT_INT(w.a.one->until_us - PLAY_BEGAN_US,
               (1000 + PLAY_TIMEOUT_MS) * MS);
    EXPECT_STR(w.a.fault.text, "held by web3:18201:18207 for 2.3 s");
    expect_released(&w, RLOCK_TIMEOUT, BRIEF);
}

/* Also to who does not stand any more: those behind begin anew to count. */
TEST(attempt_line, an_answer_in_the_end_ends_an_outage)
{
    wait_for w;
    other front;
    open_fair(&w, 1000, RLOCK_WATCHDOG);
    enter(&w, &front);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, STANDS(500, 1, 0)), RL_SLEEP);
    EXPECT_INT(rl_room_failed(&core(&w)->rooms, &front.waiter, 7), 7);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(play_args(&w.p, 0), BRIEF);
    EXPECT_INT(answer(&w, IS_BUSY), RL_ASK);
    EXPECT_INT(rl_room_failed(&core(&w)->rooms, &front.waiter, 8), 8);
    leave(&w, &front);
    expect_released(&w, RLOCK_TIMEOUT, BRIEF);
}

TEST(attempt_line, who_gets_it_in_the_end_has_it)
{
    wait_for w;
    open_over(&w);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_owned(&w);
}

TEST(attempt_line, with_a_try_in_doubt_it_leaves_a_tombstone)
{
    wait_for w;
    open_fair(&w, 60000, RLOCK_WATCHDOG);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_cut(&w.p, 0), RL_ASK); /* asked again */
    EXPECT_INT(answer(&w, STANDS(500, 0, 0)), RL_SLEEP);
    w.cancels++;
    rl_rooms_cancel(&core(&w)->rooms, &fair_job, &w);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, TOMBSTONE_ARG), "60000");
    expect_released(&w, RLOCK_CANCELED, 4);
}

TEST(attempt_line, what_is_not_answered_is_left_to_the_keeper)
{
    wait_for w;
    open_standing(&w, RLOCK_WATCHDOG);
    w.cancels++;
    rl_rooms_cancel(&core(&w)->rooms, &fair_job, &w);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_INT(play_lose(&w.p, 0), RL_DONE);
    EXPECT_INT(core(&w)->holds.undoing, 1);
    close_wait(&w, RLOCK_CANCELED);
}
