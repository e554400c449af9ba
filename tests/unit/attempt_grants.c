/* With the option grants: who waits says what it wants, and a release grants it that
   by a message; a hold that was waited for is freed by a release that grants. */
#include "op/grant.h"
#include "wait.h"

#define CLAIM_MS 3000

/* Of an acquire: ARGV; and KEYS. */
enum { BEAT_ARG = 7, WHO_KEY = 5 };

/* It has been told that the lock is busy, and is in the queue. */
static void open_queued(wait_for *w, int64_t lease_ms, bool grants)
{
    open_wait(w, 60000);
    core(w)->set.grants = grants;
    w->a.lease_ms = lease_ms;
    hear_bell(w);
    EXPECT_INT(begin(w), RL_ASK);
    EXPECT_INT(answer(w, IS_BUSY), RL_SLEEP);
}

static rl_next grant(wait_for *w, rl_uuid id, int64_t beat_us)
{
    rl_notice n = {.name = "job",
                   .len = 3,
                   .id = id,
                   .token = 123,
                   .beat_us = beat_us,
                   .claim_ms = CLAIM_MS};
    w->p.why = RL_WAKE_NONE;
    rl_rooms_grant(&core(w)->rooms, &n);
    return w->p.why == RL_WAKE_NONE ? RL_SLEEP : play_wake(&w->p);
}

TEST(attempt_grants, who_waits_says_what_it_wants_and_since_when)
{
    wait_for w;
    open_queued(&w, RLOCK_WATCHDOG, true);
    EXPECT_STR(play_called(&w.p, 0), "hash/acquire");
    EXPECT_STR(play_key(&w.p, 0, WHO_KEY), "rlock_undone:{job}:who");
    EXPECT_STR(play_arg(&w.p, 0, LEAST_ARG), "");
    EXPECT_INT(atoll(play_arg(&w.p, 0, BEAT_ARG)), w.p.now_us);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(attempt_grants, without_the_option_it_says_nothing_of_that)
{
    wait_for w;
    open_queued(&w, RLOCK_WATCHDOG, false);
    EXPECT_INT(play_args(&w.p, 0), TICKET_ARG);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(attempt_grants, without_the_option_no_message_is_believed)
{
    wait_for w;
    open_queued(&w, RLOCK_WATCHDOG, false);
    EXPECT_INT(grant(&w, w.a.draft->id, w.p.now_us), RL_SLEEP);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(attempt_grants, a_grant_is_begun_with_at_once_and_counts_from_its_beat)
{
    wait_for w;
    open_queued(&w, RLOCK_WATCHDOG, true);
    int64_t beat_us = w.p.now_us;
    rl_hold *h = w.a.draft;
    int before = calls(&w);
    play_pass(&w.p, 800 * MS);
    EXPECT_INT(grant(&w, h->id, beat_us), RL_DONE);
    EXPECT_INT(calls(&w), before);
    EXPECT_INT(h->expiry.due_us, beat_us + GOOD_US(CLAIM_MS));
    EXPECT(w.a.token == 123 && h->stood);
    close_wait(&w, RLOCK_OK);
}

/* The room has others: the bell is not in the queue any more. */
TEST(attempt_grants, who_is_granted_it_has_left_the_queue)
{
    wait_for w;
    rl_waiter behind;
    open_queued(&w, RLOCK_WATCHDOG, true);
    EXPECT(rl_room_enter(&core(&w)->rooms, &behind, &play_job, NULL, &w.p.waker,
                         w.p.now_us));
    EXPECT_INT(grant(&w, w.a.draft->id, w.p.now_us), RL_DONE);
    EXPECT(!behind.room->queued && behind.room->ticket == 0);
    EXPECT(!rl_room_leave(&core(&w)->rooms, &behind, false));
    close_wait(&w, RLOCK_OK);
}

TEST(attempt_grants, another_ones_grant_is_not_its_own)
{
    wait_for w;
    rl_uuid other = {{1}};
    open_queued(&w, RLOCK_WATCHDOG, true);
    EXPECT_INT(grant(&w, other, w.p.now_us), RL_SLEEP);
    EXPECT_INT(grant(&w, w.a.draft->id, w.p.now_us), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* Before it is relied on, it is asked for again, by the same holder. */
static void expect_confirmed(int64_t lease_ms, int64_t late_us)
{
    wait_for w;
    char holder[RL_HOLDER_MAX];
    open_queued(&w, lease_ms, true);
    snprintf(holder, sizeof holder, "%s", play_arg(&w.p, 0, HOLDER_ARG));
    EXPECT_INT(grant(&w, w.a.draft->id, w.p.now_us - late_us), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, HOLDER_ARG), holder);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST_CASE(attempt_grants, a_lease_of_its_own_is_asked_for,
          expect_confirmed(LEASE_MS, 0))
TEST_CASE(attempt_grants, a_claim_that_is_nearly_over_is_asked_about,
          expect_confirmed(RLOCK_WATCHDOG, 2300 * MS))

/* A release may have granted it the lock just now. */
TEST(attempt_grants, who_gives_up_is_undone_by_its_bell)
{
    wait_for w;
    open_queued(&w, RLOCK_WATCHDOG, true);
    rl_hold *h = w.a.draft;
    w.cancels++;
    rl_rooms_cancel(&core(&w)->rooms, &play_job, &w);
    EXPECT_INT(play_wake(&w.p), RL_ASK); /* it leaves the queue */
    EXPECT_STR(play_called(&w.p, 0), "leave");
    EXPECT_STR(play_key(&w.p, 0, 4), "rlock_undone:{job}:who");
    EXPECT_INT(core(&w)->holds.undoing, 1);
    EXPECT(!h->unknown && h->gone_us >= w.p.now_us + (6000 + CLAIM_MS) * MS);
    EXPECT_INT(answer(&w, LEFT), RL_DONE);
    close_wait(&w, RLOCK_CANCELED);
}

TEST(attempt_grants, who_was_not_queued_yet_has_nothing_to_undo)
{
    wait_for w;
    open_wait(&w, 60000);
    core(&w)->set.grants = true;
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    w.cancels++;
    rl_rooms_cancel(&core(&w)->rooms, &play_job, &w);
    EXPECT_INT(play_wake(&w.p), RL_DONE);
    EXPECT_INT(core(&w)->holds.undoing, 0);
    close_wait(&w, RLOCK_CANCELED);
}
