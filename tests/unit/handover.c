/* Hand-over: who is offered the lock, and what each answer means for both. */
#include "pair.h"
#include "room.h"

/* --- what is said --------------------------------------------------------- */

TEST(handover, an_unlock_says_who_is_next)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_STR(play_called(&t.p, 0), "hash/handover");
    EXPECT_STR(play_word(&t.p, 0, 2), "4");
    EXPECT_STR(play_key(&t.p, 0, 1), "job");
    EXPECT_STR(play_key(&t.p, 0, 2), "rlock_token:{job}");
    EXPECT_CONTAINS(play_key(&t.p, 0, 3), "rlock_undone:{job}:");
    EXPECT_CONTAINS(play_key(&t.p, 0, 3),
                    strrchr(play_holder(t.next).text, ':') + 1);
    EXPECT_STR(play_key(&t.p, 0, 4), "rlock_queue:{job}");
    EXPECT_STR(play_arg(&t.p, 0, HOLDER_ARG), play_holder(t.h).text);
    EXPECT_STR(play_arg(&t.p, 0, NEXT_ARG), play_holder(t.next).text);
    EXPECT_STR(play_arg(&t.p, 0, HAND_LEASE_ARG), "10000");
    EXPECT_STR(play_arg(&t.p, 0, PATIENCE_ARG), "10000");
    EXPECT_STR(play_arg(&t.p, 0, HAND_CHANNEL_ARG),
               "redisson_lock__channel:{job}");
    EXPECT_STR(play_arg(&t.p, 0, HAND_BELL), ""); /* it is not queued */
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST(handover, a_client_that_may_be_queued_is_taken_out_of_the_queue)
{
    pair t;
    open_queued_pair(&t);
    EXPECT(t.a.waiter.room->queued);
    EXPECT(unlock(&t));
    EXPECT_STR(play_arg(&t.p, 0, HAND_BELL), core(&t)->bell);
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE); /* and need not leave it */
    close_pair(&t, RLOCK_OK);
}

TEST(handover, a_client_that_was_taken_out_of_the_queue_knows_that)
{
    pair t;
    open_queued_pair(&t);
    EXPECT(t.a.waiter.room->queued);
    EXPECT(unlock(&t));
    EXPECT_INT(play_answer(&t.p, 0, FREED), RL_DONE);
    EXPECT(!t.a.waiter.room->queued);
    switch_to(&t, &t.a.op, RL_SLEEP);
    EXPECT_INT(play_wake(&t.p), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

/* A ring that goes elsewhere is nothing to wait for by who is in no queue. */
TEST(handover, whoever_stands_in_line_was_taken_out_of_the_queue_with_it)
{
    pair t;
    guest reader = {.woken = 0};
    rl_target reading = play_job;
    reading.scope = reading.layout = RL_LAYOUT_READ;
    open_queued_pair(&t);
    enter(rooms(&t), &reader, &reading);
    rl_room_ticket(rooms(&t), &reader.waiter);
    EXPECT(reader.waiter.room->queued);
    EXPECT(unlock(&t));
    EXPECT_INT(play_answer(&t.p, 0, FREED), RL_DONE);
    EXPECT(!reader.waiter.room->queued);
    switch_to(&t, &t.a.op, RL_SLEEP);
    EXPECT_INT(play_wake(&t.p), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    leave(rooms(&t), &reader, false);
    close_pair(&t, RLOCK_OK);
}

/* --- who is offered it ---------------------------------------------------- */

static void expect_no_offer(pair *t)
{
    EXPECT(!unlock(t));
    t->x = (rl_part){.heap = false};
    rl_part_release(&t->x, core(t), t->h, 0, t->p.now_us);
    play_one(&t->p, &t->op, &t->x);
    EXPECT_INT(play_begin(&t->p, &t->op), RL_ASK);
    EXPECT_STR(play_called(&t->p, 0) + strlen(play_called(&t->p, 0)) - 7,
               "release");
    EXPECT_INT(play_answer(&t->p, 0, YES), RL_DONE);
}

TEST(handover, who_is_awake_is_offered_nothing_and_looks_again)
{
    pair t;
    open_pair(&t);
    EXPECT_INT(play_sleep(&t.p), RL_ASK); /* it asks by itself */
    rl_op *asking = t.p.op;
    EXPECT(!rl_part_hand_over(&t.x, core(&t), t.h, t.p.now_us));
    rl_rooms_look(rooms(&t), "job", 3, RLOCK_LAYOUT_HASH, true);
    switch_to(&t, asking, RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, IS_BUSY), RL_SLEEP);
    EXPECT_INT(t.p.why, RL_WAKE_LOOK);
    EXPECT_INT(play_wake(&t.p), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    forget_hold(&t);
    close_pair(&t, RLOCK_OK);
}

TEST(handover, who_has_been_canceled_is_offered_nothing)
{
    pair t;
    open_pair(&t);
    rl_rooms_cancel(rooms(&t), &play_job, &t);
    rl_room_rest(rooms(&t), &t.a.waiter, t.a.draft, false, RL_NEVER);
    expect_no_offer(&t);
    end_wait(&t);
    close_pair(&t, RLOCK_CANCELED);
}

TEST(handover, whose_wait_is_over_is_offered_nothing)
{
    pair t;
    open_pair(&t);
    t.p.now_us = t.a.wait_until_us;
    EXPECT(!rl_part_hand_over(&t.x, core(&t), t.h, t.p.now_us));
    EXPECT_INT(play_sleep(&t.p), RL_DONE);
    forget_hold(&t);
    close_pair(&t, RLOCK_TIMEOUT);
}

TEST(handover, a_draft_in_doubt_is_offered_nothing)
{
    pair t;
    open_pair(&t);
    t.a.draft->unknown = true;
    expect_no_offer(&t);
    end_wait(&t);
    EXPECT_INT(core(&t)->holds.undoing, 1);
    close_pair(&t, RLOCK_CANCELED);
}

TEST(handover, a_hold_in_doubt_is_released_with_its_tombstone)
{
    pair t;
    open_pair(&t);
    t.h->unknown = true;
    expect_no_offer(&t);
    end_wait(&t);
    close_pair(&t, RLOCK_CANCELED);
}

TEST(handover, one_lock_of_a_group_is_freed)
{
    pair t;
    open_pair(&t);
    t.h->group = rl_group_new(&t.p.home, 0);
    expect_no_offer(&t);
    end_wait(&t);
    close_pair(&t, RLOCK_CANCELED);
}

TEST(handover, other_layouts_are_freed)
{
    static const rl_target string_job = {.name = "job",
                                         .len = 3,
                                         .scope = RLOCK_LAYOUT_STRING,
                                         .layout = RLOCK_LAYOUT_STRING};
    pair t;
    open_pair_of(&t, &string_job, 60000);
    t.h->scope = RLOCK_LAYOUT_STRING;
    EXPECT(!rl_part_hand_over(&t.x, core(&t), t.h, t.p.now_us));
    t.h->scope = RLOCK_LAYOUT_HASH;
    expect_no_offer(&t);
    end_wait(&t);
    close_pair(&t, RLOCK_CANCELED);
}

/* For programs that only poll. */
TEST(handover, after_a_while_the_lock_is_freed_once)
{
    pair t;
    open_pair(&t);
    t.a.waiter.room->streak_us = t.p.now_us - 50001;
    EXPECT(!rl_part_hand_over(&t.x, core(&t), t.h, t.p.now_us));
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

static void hand_over_to(pair *t, rl_hold *h, const rl_acquire *next)
{
    EXPECT_INT(rl_hold_count_down(&core(t)->holds, h, 0, t->p.now_us),
               RL_COUNTED);
    EXPECT(rl_part_hand_over(&t->x, core(t), h, t->p.now_us));
    EXPECT(t->x.heir == &next->waiter);
    EXPECT_INT(t->p.why, RL_WAKE_NONE);
    play_one(&t->p, &t->op, &t->x);
    EXPECT_INT(play_begin(&t->p, &t->op), RL_ASK);
    EXPECT_INT(play_answer(&t->p, 0, HANDED(124)), RL_DONE);
    EXPECT(t->x.ok);
}

/* Behind the two there is a third one, who has never asked. Of them the first to
   come has been handed the lock, and so long after is about to unlock it. */
static void expect_third_next(int64_t us, bool offered)
{
    pair t;
    rl_acquire third;
    rl_owner owner = {.serial = 77, .tid = 77};
    atomic_uint cancels;
    open_pair(&t);
    make_acquire(&t, &third, &owner, &owner, &cancels, &play_job, 60000,
                 LEASE_MS);
    EXPECT_INT(play_begin(&t.p, &third.op), RL_SLEEP);
    EXPECT_INT(t.p.client[0].calls, 1);
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    t.p.why = RL_WAKE_NONE;
    play_pass(&t.p, us);
    if (offered)
        hand_over_to(&t, t.next, &third);
    else
        EXPECT(!rl_part_hand_over(&t.x, core(&t), t.next, t.p.now_us));
    switch_to(&t, &third.op, RL_SLEEP);
    rl_rooms_cancel(rooms(&t), &play_job, &owner);
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT_INT(third.status, offered ? RLOCK_OK : RLOCK_CANCELED);
    EXPECT_INT(third.token, offered ? 124 : 0);
    close_pair(&t, RLOCK_OK);
}

TEST_CASE(handover, who_has_never_asked_is_handed_it_when_it_comes_to_the_front,
          expect_third_next(50000, true))
TEST_CASE(handover, a_while_begins_with_the_first_of_several_hand_overs,
          expect_third_next(50001, false))

static void expect_patience(pair *t, const char *us)
{
    EXPECT(unlock(t));
    EXPECT_STR(play_arg(&t->p, 0, PATIENCE_ARG), us);
}

/* Who is fast would have more of them in the time that others wait. */
TEST(handover, after_so_many_sections_in_a_row_whoever_waits_elsewhere_is_next)
{
    pair t;
    for (int before = 0; before < 40; before++) {
        open_pair(&t);
        t.h->in_a_row = (uint8_t)before;
        expect_patience(&t, before < 31 ? "10000" : "0");
        EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
        EXPECT_INT(t.next->in_a_row, before + 1);
        close_pair(&t, RLOCK_OK);
    }
}

TEST(handover, more_in_a_row_than_can_be_counted_are_too_many)
{
    pair t;
    open_pair(&t);
    t.h->in_a_row = UINT8_MAX;
    expect_patience(&t, "0");
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    EXPECT_INT(t.next->in_a_row, UINT8_MAX);
    close_pair(&t, RLOCK_OK);
}

TEST(handover, a_lock_that_was_freed_is_the_first_in_a_row_again)
{
    pair t;
    open_pair(&t);
    t.h->in_a_row = 31;
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, FREED), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(124)), RL_DONE);
    EXPECT_INT(t.next->in_a_row, 0);
    close_pair(&t, RLOCK_OK);
}

/* --- answers -------------------------------------------------------------- */

TEST(handover, the_next_owns_it_from_before_the_call)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    int64_t sent_us = t.p.now_us;
    play_pass(&t.p, 500 * MS);
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    EXPECT(t.x.ok && t.h->state == RL_OVER);
    EXPECT_INT(t.a.token, 123);
    EXPECT(t.next->state == RL_HELD && t.next->count == 1);
    EXPECT_INT(t.next->token, 123);
    EXPECT_INT(t.next->expiry.due_us, sent_us + GOOD_US(LEASE_MS));
    EXPECT_INT(t.p.rival.holds, 1);
    EXPECT_INT(core(&t)->stats.wakeups, 1);
    EXPECT_INT(core(&t)->stats.wakeups_futile, 0);
    EXPECT(!t.next->unknown);
    close_pair(&t, RLOCK_OK);
}

static void expect_a_look(const char *reply, rlock_status unlocked)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, reply), RL_ASK);
    EXPECT_INT(t.x.ok ? RLOCK_OK : t.x.fault.status, unlocked);
    EXPECT_STR(play_called(&t.p, 0), "hash/acquire");
    EXPECT_STR(play_arg(&t.p, 0, HOLDER_ARG), play_holder(t.next).text);
    EXPECT(!t.next->unknown);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(124)), RL_DONE);
    EXPECT_INT(core(&t)->stats.wakeups, 0);
    close_pair(&t, RLOCK_OK);
}

TEST(handover, a_lock_that_was_freed_instead_is_looked_for)
{
    expect_a_look(FREED, RLOCK_OK);
}

TEST(handover, a_lock_that_was_lost_is_looked_for)
{
    expect_a_look(NOT_HELD, RLOCK_LOST);
}

TEST(handover, a_lock_that_is_refused_is_looked_for_and_undone)
{
    expect_a_look(NOPERM, RLOCK_ESERVER);
}

TEST(handover, for_who_was_rung_the_next_makes_way)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    play_pass(&t.p, 300);
    EXPECT_INT(answer(&t, FREED_RUNG), RL_SLEEP);
    EXPECT(t.x.ok);
    EXPECT_BETWEEN(t.a.op.sleep_us - t.p.now_us, 300, 1000);
    EXPECT_INT(play_sleep(&t.p), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(124)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST(handover, when_another_client_was_granted_it_the_next_asks_at_once)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, FREED_GRANTED), RL_ASK);
    EXPECT(t.x.ok);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(124)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST(handover, what_has_waited_in_the_queue_makes_the_next_grant_too)
{
    pair t;
    open_pair(&t);
    t.h->stood = true;
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    EXPECT(t.next->stood);
    close_pair(&t, RLOCK_OK);
}

/* Which of the two it was, the waiter finds out by the same holder id. */
TEST(handover, without_an_answer_the_next_asks_in_doubt)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(play_cut(&t.p, 0), RL_ASK);
    EXPECT_INT(play_lose(&t.p, 0), RL_DONE);
    EXPECT(!t.x.ok);
    EXPECT_INT(t.x.fault.status, RLOCK_EIO);
    EXPECT(t.h->state == RL_UNDOING && !t.h->unknown);
    EXPECT(t.next->unknown);
    t.p.client[0].away = false;
    switch_to(&t, &t.a.op, RL_SLEEP);
    EXPECT_INT(play_wake(&t.p), RL_ASK);
    EXPECT_STR(play_arg(&t.p, 0, HOLDER_ARG), play_holder(t.next).text);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    EXPECT(t.next->unknown); /* so its release leaves a tombstone */
    close_pair(&t, RLOCK_OK);
}

TEST(handover, without_an_answer_a_next_that_gives_up_is_undone)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    rl_rooms_cancel(rooms(&t), &play_job, &t);
    EXPECT_INT(play_cut(&t.p, 0), RL_ASK);
    EXPECT_INT(play_lose(&t.p, 0), RL_DONE);
    switch_to(&t, &t.a.op, RL_SLEEP);
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT_INT(core(&t)->holds.undoing, 2); /* both holders */
    close_pair(&t, RLOCK_CANCELED);
}

TEST(handover, an_answer_that_makes_no_sense_is_none)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, "*1\r\n:7\r\n"), RL_ASK);
    EXPECT_INT(t.x.fault.status, RLOCK_EIO);
    EXPECT(t.next->unknown && t.h->state == RL_UNDOING);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

/* It was the first attempt, which was not answered, that freed it. */
TEST(handover, what_is_asked_again_may_find_it_gone)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(play_cut(&t.p, 0), RL_ASK);
    EXPECT_INT(answer(&t, NOT_HELD), RL_ASK);
    EXPECT(t.x.ok);
    EXPECT_INT(play_losses(&core(&t)->stats), 0);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

#define HAS_IT(token) "*2\r\n:5\r\n$3\r\n" #token "\r\n"

/* Or to have been handed over. */
TEST(handover, what_is_asked_again_may_find_that_the_next_has_it)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(play_cut(&t.p, 0), RL_ASK);
    EXPECT_INT(answer(&t, HAS_IT(123)), RL_DONE);
    EXPECT(t.x.ok && t.a.token == 123);
    EXPECT_INT(play_losses(&core(&t)->stats), 0);
    close_pair(&t, RLOCK_OK);
}

/* A message is on the way to the next: another client has given it the lock. */
TEST(handover, who_had_lost_it_is_told_though_the_next_has_it)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, HAS_IT(123)), RL_DONE);
    EXPECT(!t.x.ok && t.a.token == 123);
    EXPECT_INT(t.x.fault.status, RLOCK_LOST);
    EXPECT_INT(play_losses(&core(&t)->stats), 1);
    close_pair(&t, RLOCK_OK);
}

/* Too late to be believed in; so it asks, by the same holder id. */
TEST(handover, a_grant_that_comes_after_its_lease_is_none)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    play_pass(&t.p, GOOD_US(LEASE_MS));
    EXPECT_INT(answer(&t, HANDED(123)), RL_SLEEP);
    EXPECT(t.x.ok && t.next->unknown);
    EXPECT_INT(play_sleep(&t.p), RL_ASK);
    EXPECT_STR(play_arg(&t.p, 0, HOLDER_ARG), play_holder(t.next).text);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

static void expect_no_token(const char *reply)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, reply), RL_ASK);
    EXPECT_INT(t.x.fault.status, RLOCK_EIO);
    EXPECT(t.next->unknown && t.next->state == RL_DRAFT);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST_CASE(handover, the_token_0_hands_nothing_over,
          expect_no_token("$1\r\n0\r\n"))
TEST_CASE(handover, a_token_below_0_hands_nothing_over,
          expect_no_token("$2\r\n-5\r\n"))
TEST_CASE(handover, a_token_that_is_no_number_hands_nothing_over,
          expect_no_token("$2\r\nab\r\n"))

/* Of the server: any answer of its scripts ends an outage, and no other does. */
static void expect_outage(const char *reply, bool lasts)
{
    pair t;
    open_pair(&t);
    rl_room_failed(rooms(&t), &t.a.waiter, t.p.now_us);
    EXPECT(unlock(&t));
    EXPECT_INT(answer(&t, reply), RL_ASK);
    EXPECT_INT(t.a.waiter.room->outage_us, lasts ? t.p.now_us : 0);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST_CASE(handover, an_outage_ends_when_the_lock_was_freed,
          expect_outage(FREED, false))
TEST_CASE(handover, an_outage_ends_when_the_lock_was_not_there,
          expect_outage(NOT_HELD, false))
TEST_CASE(handover, an_outage_lasts_when_the_answer_makes_no_sense,
          expect_outage("*1\r\n:7\r\n", true))
