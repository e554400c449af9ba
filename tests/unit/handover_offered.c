/* Hand-over: what comes while the lock is offered, and who is woken. */
#include "pair.h"

TEST(handover_offered, a_grant_is_stronger_than_a_cancel)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    t.cancels++;
    rl_rooms_cancel(rooms(&t), &play_job, &t);
    EXPECT_INT(t.p.why, RL_WAKE_NONE);
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST(handover_offered, a_grant_is_stronger_than_a_close)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    rl_rooms_close(rooms(&t));
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

static void expect_end(void (*end)(pair *t), rlock_status status)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    end(&t);
    EXPECT_INT(answer(&t, FREED), RL_DONE);
    close_pair(&t, status);
}

static void be_canceled(pair *t)
{
    rl_rooms_cancel(rooms(t), &play_job, t);
}

static void be_closed(pair *t)
{
    rl_rooms_close(rooms(t));
}

static void run_out(pair *t)
{
    t->p.now_us = t->a.wait_until_us + 1;
}

TEST_CASE(handover_offered, a_cancel_is_told_when_there_is_no_grant,
          expect_end(be_canceled, RLOCK_CANCELED))
TEST_CASE(handover_offered, a_close_is_told_when_there_is_no_grant,
          expect_end(be_closed, RLOCK_ECLOSED))
TEST_CASE(handover_offered, the_end_of_a_wait_is_told_when_there_is_no_grant,
          expect_end(run_out, RLOCK_TIMEOUT))

/* Its sleep ends by itself: it goes on until the offer has been resolved. */
TEST(handover_offered, who_is_offered_it_stays_past_its_time)
{
    pair t;
    open_pair_of(&t, &play_job, 1000);
    EXPECT(unlock(&t));
    switch_to(&t, &t.a.op, RL_SLEEP);
    EXPECT_INT(play_sleep(&t.p), RL_SLEEP);
    EXPECT_INT(t.a.op.sleep_us, RL_NEVER);
    switch_to(&t, &t.op, RL_ASK);
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST(handover_offered, a_ring_meanwhile_is_heard_when_there_is_no_grant)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT(rl_rooms_wake(rooms(&t), "job", 3, RL_WAKE_RUNG));
    EXPECT_INT(answer(&t, FREED), RL_ASK);
    EXPECT_INT(core(&t)->stats.wakeups, 1);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

/* --- who is woken --------------------------------------------------------- */

static void lose(pair *t, rl_loss why)
{
    rl_holds *table = &core(t)->holds;
    rl_mutex_lock(&table->mutex);
    rl_hold_lose_locked(table, t->h, why, t->p.now_us);
    rl_mutex_unlock(&table->mutex);
}

/* The next one is woken, asks by itself, and has it. */
static void expect_look_and_grant(pair *t)
{
    EXPECT_INT(t->p.why, RL_WAKE_LOOK);
    EXPECT_INT(play_wake(&t->p), RL_ASK);
    EXPECT_INT(play_answer(&t->p, 0, GRANTED(123)), RL_DONE);
    close_pair(t, RLOCK_OK);
}

TEST(handover_offered, a_loss_has_the_next_look)
{
    pair t;
    open_pair(&t);
    lose(&t, RL_LOSS_GONE);
    expect_look_and_grant(&t);
}

/* Its lease ends by itself, and the server rings nobody then. */
TEST(handover_offered, a_client_in_the_queue_looks_when_a_lease_here_is_over)
{
    pair t;
    open_queued_pair(&t);
    lose(&t, RL_LOSS_EXPIRED);
    expect_look_and_grant(&t);
}

TEST(handover_offered, a_client_in_the_queue_looks_when_the_owner_here_is_gone)
{
    pair t;
    open_queued_pair(&t);
    rl_holds_abandon(&core(&t)->holds, t.p.owner.serial, t.p.now_us);
    expect_look_and_grant(&t);
}

/* Nobody releases it, so the server rings nobody. */
TEST(handover_offered, a_client_in_the_queue_looks_when_the_server_lost_it)
{
    pair t;
    open_queued_pair(&t);
    t.h->unknown = true; /* such a lock is not offered */
    EXPECT(!unlock(&t));
    rl_part_release(&t.x, core(&t), t.h, 0, t.p.now_us);
    t.x.heap = false;
    play_one(&t.p, &t.op, &t.x);
    EXPECT_INT(play_begin(&t.p, &t.op), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, NO), RL_DONE);
    EXPECT_INT(t.x.fault.status, RLOCK_LOST);
    EXPECT_INT(t.p.why, RL_WAKE_LOOK);
    switch_to(&t, &t.a.op, RL_SLEEP);
    EXPECT_INT(play_wake(&t.p), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST(handover_offered, a_client_in_the_queue_is_left_to_its_ring)
{
    pair t;
    open_queued_pair(&t);
    rl_rooms_look(rooms(&t), "job", 3, RLOCK_LAYOUT_HASH, true);
    EXPECT_INT(t.p.why, RL_WAKE_NONE);
    rl_rooms_hear_no_more(rooms(&t));
    EXPECT(rl_rooms_wake(rooms(&t), "job", 3, RL_WAKE_RUNG));
    EXPECT_INT(play_wake(&t.p), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    EXPECT_STR(play_called(&t.p, 0), "leave");
    play_answer(&t.p, 0, YES);
    close_pair(&t, RLOCK_OK);
}
