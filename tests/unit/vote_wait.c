/* The lock of a majority: the wait for it. */
#include <errno.h>

#include "election.h"
#include "shim.h"

/* --- the wait ------------------------------------------------------------- */

/* All nodes are held by another, and whoever waits has been told so. */
static void open_waiting(election *e, int64_t wait_ms)
{
    open_asked(e, wait_ms, LEASE_MS);
    EXPECT_INT(answer(e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(e, 1, IS_BUSY), RL_SLEEP);
    EXPECT(e->a.waiter.room);
}

/* The third node answers the vote and its undoing, which are nobody's now. */
static void settle(election *e)
{
    answer(e, 2, IS_BUSY);
    answer(e, 2, NO);
    EXPECT_INT(e->p.client[2].line.pending, 0);
    EXPECT_INT(play_core(&e->p, 2)->holds.undoing, 0);
}

static void get_quorum(election *e)
{
    EXPECT_INT(answer(e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(e, 1, VOTED(100, 900)), RL_DONE);
}

static void get_it(election *e)
{
    get_quorum(e);
    close_owned(e);
}

TEST(vote_wait, who_waits_looks_by_itself_lest_it_missed_rings)
{
    election e;
    open_waiting(&e, 60000);
    EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 300 * MS, 500 * MS);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    EXPECT_STR(play_called(&e.p, 0), "hash/acquire");
    EXPECT_STR(play_called(&e.p, 1), "hash/acquire");
    get_it(&e);
}

TEST(vote_wait, each_try_has_a_new_holder_id)
{
    election e;
    char first[128];
    open_asked(&e, 60000, LEASE_MS);
    snprintf(first, sizeof first, "%s", play_arg(&e.p, 0, HOLDER_ARG));
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_SLEEP);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    EXPECT(strcmp(play_arg(&e.p, 0, HOLDER_ARG), first) != 0);
    get_it(&e);
}

/* Those who split the votes must not meet again. */
TEST(vote_wait, after_split_votes_it_tries_again_soon_at_a_random_time)
{
    election e;
    open_asked(&e, 60000, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 2, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 0, YES), RL_SLEEP);
    EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 0, 10 * MS);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    get_it(&e);
}

/* Until now nobody would have heard; the next try queues everywhere. */
static void wait_with_bells(election *e)
{
    open_waiting(e, 60000);
    for (size_t i = 0; i < NODES; i++)
        rl_rooms_hear(&play_core(&e->p, i)->rooms);
    settle(e);
    for (size_t i = 0; i < NODES; i++)
        e->p.client[i].listens = 0;
    EXPECT_INT(play_sleep(&e->p), RL_ASK);
    for (size_t i = 0; i < NODES; i++)
        EXPECT_INT(e->p.client[i].listens, 1);
    for (size_t i = 0; i < NODES; i++)
        EXPECT_STR(play_arg(&e->p, i, BELL_ARG), play_core(&e->p, i)->bell);
    EXPECT_INT(answer(e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(e, 1, IS_BUSY), RL_SLEEP);
    settle(e);
}

static void ring(election *e, size_t i)
{
    EXPECT(rl_rooms_wake(&play_core(&e->p, i)->rooms, "job", 3, RL_WAKE_RUNG));
}

TEST(vote_wait, the_rings_of_a_quorum_say_that_it_is_free)
{
    election e;
    wait_with_bells(&e);
    ring(&e, 0);
    ring(&e, 2);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    EXPECT_STR(play_called(&e.p, 1), "hash/acquire");
    get_it(&e);
}

TEST(vote_wait, after_the_first_ring_the_others_get_3_ms)
{
    election e;
    wait_with_bells(&e);
    ring(&e, 1);
    EXPECT_INT(play_wake(&e.p), RL_SLEEP);
    EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 2250, 3750);
    int64_t rung_us = e.p.now_us;
    rl_next next = RL_SLEEP;
    for (int i = 0; i < 50 && next == RL_SLEEP; i++)
        next = play_sleep(&e.p); /* the limit is drawn anew */
    EXPECT_INT(next, RL_ASK);
    EXPECT_BETWEEN(e.p.now_us - rung_us, 2250, 3750);
    get_it(&e);
}

/* How long it waits after the ring of one node, before it tries in vain. */
static int64_t pause_after_ring(election *e)
{
    rl_next next = RL_SLEEP;
    int64_t rung_us = e->p.now_us;
    ring(e, 1);
    EXPECT_INT(play_wake(&e->p), RL_SLEEP);
    for (int i = 0; i < 1000 && next == RL_SLEEP; i++)
        next = play_sleep(&e->p); /* the limit is drawn anew */
    EXPECT_INT(next, RL_ASK);
    int64_t pause_us = e->p.now_us - rung_us;
    EXPECT_INT(answer(e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(e, 1, IS_BUSY), RL_SLEEP);
    settle(e);
    return pause_us;
}

/*
 * As when the lock is held by a quorum and those who wait wake each other at
 * the node that is left: on Redisson's channel the end of a vote is a ring.
 */
TEST(vote_wait, a_minority_that_rings_again_and_again_is_answered_more_slowly)
{
    election e;
    wait_with_bells(&e);
    for (int i = 0; i < 9; i++)
        EXPECT_BETWEEN(pause_after_ring(&e), 2250, 3750);
    EXPECT_BETWEEN(pause_after_ring(&e), 4500, 7500);
    for (int i = 0; i < 20; i++)
        pause_after_ring(&e);
    EXPECT_BETWEEN(pause_after_ring(&e), 280 * MS, 500 * MS);
    ring(&e, 0);
    ring(&e, 2);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK); /* it was taken before us */
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_SLEEP);
    settle(&e);
    EXPECT_BETWEEN(pause_after_ring(&e), 2250, 3750);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    get_it(&e);
}

/* It is in the queue from when the server was asked. */
TEST(vote_wait, rings_that_come_before_the_answers_are_heard)
{
    election e;
    open_waiting(&e, 60000);
    for (size_t i = 0; i < NODES; i++)
        rl_rooms_hear(&play_core(&e.p, i)->rooms);
    settle(&e);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    ring(&e, 0);
    ring(&e, 1);
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_SLEEP);
    EXPECT_INT(e.p.why, RL_WAKE_RUNG);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    get_it(&e);
}

/* Or its bell would stay there for as long as the queue does. */
TEST(vote_wait,
     an_owner_leaves_the_queues_where_it_may_stand_and_waits_for_none)
{
    election e;
    wait_with_bells(&e);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    EXPECT_STR(play_called(&e.p, 0), "leave");
    EXPECT_INT(e.p.client[1].line.pending, 0);
    EXPECT_INT(e.p.client[2].line.pending, 0);
    answer(&e, 0, YES);
    close_owned(&e);
}

TEST(vote_wait, an_owner_leaves_no_queue_when_another_waits_behind_it)
{
    election e;
    rl_waiter behind;
    rl_rooms *rooms = &play_core(&e.p, 0)->rooms;
    wait_with_bells(&e);
    EXPECT(rl_room_enter(rooms, &behind, &play_red, NULL, &e.p.waker, 0));
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    EXPECT_STR(play_called(&e.p, 0), "hash/acquire");
    rl_room_leave(rooms, &behind, true);
    close_owned(&e);
}

/* The bell is there since a try before. */
TEST(vote_wait, an_owner_who_gave_no_bell_at_last_leaves_every_queue)
{
    election e;
    wait_with_bells(&e);
    for (size_t i = 0; i < NODES; i++)
        rl_rooms_hear_no_more(&play_core(&e.p, i)->rooms);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    EXPECT_STR(play_arg(&e.p, 0, BELL_ARG), "");
    get_quorum(&e);
    for (size_t i = 0; i < NODES; i++) {
        EXPECT_STR(play_called(&e.p, i), "leave");
        EXPECT_INT(e.p.client[i].line.pending, i == 2 ? 2 : 1);
    }
    close_owned(&e);
}

TEST(vote_wait, an_owner_leaves_behind_a_try_that_is_late)
{
    election e;
    wait_with_bells(&e);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    get_quorum(&e);
    EXPECT_INT(e.p.client[2].line.pending, 2);
    EXPECT_STR(play_called(&e.p, 2), "leave");
    answer(&e, 2, IS_BUSY);
    answer(&e, 2, YES);
    close_owned(&e);
}

TEST(vote_wait, who_gives_up_leaves_every_queue)
{
    election e;
    wait_with_bells(&e);
    rl_rooms_cancel(&play_core(&e.p, 0)->rooms, &play_red, &e);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    for (size_t i = 0; i < NODES; i++) {
        EXPECT_STR(play_called(&e.p, i), "leave");
        EXPECT_STR(play_arg(&e.p, i, 1), play_core(&e.p, i)->bell);
    }
    EXPECT_INT(answer(&e, 0, LEFT), RL_ASK);
    EXPECT_INT(answer(&e, 1, LEFT), RL_ASK);
    EXPECT_INT(answer(&e, 2, LEFT), RL_DONE);
    close_failed(&e, RLOCK_CANCELED, 0);
}

/* Node 2 has not answered the vote before: it may yet put the bell there. */
TEST(vote_wait, a_queue_is_left_behind_the_try_of_before_that_is_late)
{
    election e;
    wait_with_bells(&e);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 1, BUSY(30000, 700, 0)), RL_SLEEP);
    EXPECT_INT(e.a.waiter.room->ticket, 500); /* of the home's server */
    rl_rooms_cancel(&play_core(&e.p, 0)->rooms, &play_red, &e);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    EXPECT(!e.b.part[0]->behind && !e.b.part[1]->behind);
    EXPECT(e.b.part[2]->behind == &e.p.client[2].line);
    EXPECT_INT(answer(&e, 0, LEFT), RL_ASK);
    EXPECT_INT(answer(&e, 1, LEFT), RL_ASK);
    EXPECT_INT(answer(&e, 2, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 2, NO), RL_ASK);
    EXPECT_INT(answer(&e, 2, LEFT), RL_DONE);
    close_failed(&e, RLOCK_CANCELED, 0);
}

/* As of the try before, which has queued us there. */
TEST(vote_wait, a_node_that_says_nothing_of_its_queue_leaves_us_our_place)
{
    election e;
    wait_with_bells(&e);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    EXPECT_STR(play_arg(&e.p, 0, TICKET_ARG), "500");
    EXPECT_INT(answer(&e, 0, STRANGE), RL_ASK);
    EXPECT_INT(answer(&e, 1, BUSY(30000, 700, 0)), RL_SLEEP);
    settle(&e);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    EXPECT_STR(play_arg(&e.p, 0, TICKET_ARG), "500");
    EXPECT_STR(play_arg(&e.p, 1, TICKET_ARG), "700");
    get_it(&e);
}

/* Each answers that it has taken the bell out. */
TEST(vote_wait, who_lacks_memory_for_another_try_leaves_every_queue)
{
    election e;
    wait_with_bells(&e);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rl_next next = play_sleep(&e.p);
    shim_clear(shim_here());
    EXPECT_INT(next, RL_ASK);
    for (size_t i = 0; i < NODES; i++)
        EXPECT_STR(play_called(&e.p, i), "leave");
    EXPECT_INT(answer(&e, 0, LEFT), RL_ASK);
    EXPECT_INT(answer(&e, 1, LEFT), RL_ASK);
    EXPECT_INT(answer(&e, 2, LEFT), RL_DONE);
    EXPECT_STR(e.a.fault.text, "out of memory or randomness");
    close_failed(&e, RLOCK_ENOMEM, 0);
}

TEST(vote_wait, what_each_node_said_is_told_when_the_time_is_up)
{
    election e;
    open_waiting(&e, 200);
    EXPECT_INT(play_sleep(&e.p), RL_DONE);
    EXPECT_CONTAINS(e.a.fault.text, "1 held by another; 2 held by another");
    EXPECT_INT(e.a.status, RLOCK_TIMEOUT);
    EXPECT_INT(e.a.fault.status, RLOCK_TIMEOUT);
    play_forget(&e.p);
    settle(&e);
    play_close(&e.p);
}

TEST(vote_wait, a_node_whose_client_is_closed_is_left_at_once)
{
    election e;
    wait_with_bells(&e);
    rl_rooms_close(&play_core(&e.p, 1)->rooms);
    EXPECT_INT(e.p.why, RL_WAKE_LOOK);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    EXPECT_INT(e.dropped, 1u << 1);
    EXPECT_INT(play_core(&e.p, 1)->rooms.listeners.count, 0);
    EXPECT_INT(e.p.client[1].line.pending, 0);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    close_owned(&e);
}

/* What it rang before says nothing of those that are left. */
TEST(vote_wait, the_ring_of_a_node_whose_client_is_closed_does_not_count)
{
    election e;
    wait_with_bells(&e);
    ring(&e, 1);
    EXPECT_INT(play_wake(&e.p), RL_SLEEP);
    rl_rooms_close(&play_core(&e.p, 1)->rooms);
    EXPECT_INT(play_wake(&e.p), RL_SLEEP);
    EXPECT_INT(e.a.op.rung, 0);
    ring(&e, 0);
    EXPECT_INT(play_wake(&e.p), RL_SLEEP);
    ring(&e, 2);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    close_owned(&e);
}

/* Not a moment before. */
TEST(vote_wait, who_has_waited_for_a_second_says_who_it_is)
{
    election e;
    wait_with_bells(&e);
    e.p.now_us = PLAY_BEGAN_US + 1000 * MS - 1;
    ring(&e, 0);
    ring(&e, 1);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    EXPECT_STR(play_word(&e.p, 2, 2), "4");
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_SLEEP);
    settle(&e);
    play_pass(&e.p, 1);
    ring(&e, 0);
    ring(&e, 1);
    EXPECT_INT(play_wake(&e.p), RL_ASK);
    EXPECT_STR(play_word(&e.p, 2, 2), "5");
    EXPECT_STR(play_key(&e.p, 2, 5), "rlock_undone:{job}:who");
    get_it(&e);
}

static void split_votes(election *e)
{
    EXPECT_INT(answer(e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(e, 1, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(e, 2, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(e, 0, YES), RL_SLEEP);
}

/* The pauses that are drawn from become longer, up to what it looks by itself. */
TEST(vote_wait, votes_that_split_again_and_again_are_tried_ever_more_rarely)
{
    static const int64_t span_ms[] = {10, 20, 40, 80, 160, 320, 400, 400};
    election e;
    open_asked(&e, 600000, LEASE_MS);
    for (size_t i = 0; i < sizeof span_ms / sizeof *span_ms; i++) {
        split_votes(&e);
        EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 0, span_ms[i] * MS);
        EXPECT_INT(e.a.pause_us, rl_min(span_ms[i] * 2, (int64_t)400) * MS);
        EXPECT_INT(play_sleep(&e.p), RL_ASK);
    }
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_SLEEP);
    EXPECT_INT(e.a.pause_us, 0);
    settle(&e);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    split_votes(&e);
    EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 0, 10 * MS);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    get_it(&e);
}

/* As of a lock of one server: too few answer, and are asked ever more rarely. */
TEST(vote_wait, without_a_quorum_pauses_between_tries_grow_to_half_a_second)
{
    election e;
    open_election(&e, 600000, LEASE_MS);
    for (size_t i = 0; i < NODES; i++)
        e.p.client[i].away = true;
    EXPECT_INT(begin(&e), RL_SLEEP);
    EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 15 * MS, 25 * MS);
    EXPECT_INT(play_sleep(&e.p), RL_SLEEP);
    EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 30 * MS, 50 * MS);
    for (int i = 0; i < 8; i++)
        EXPECT_INT(play_sleep(&e.p), RL_SLEEP);
    EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 375 * MS, 625 * MS);
    for (size_t i = 0; i < NODES; i++)
        e.p.client[i].away = false;
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    get_it(&e);
}

/* They have answered: it is none of those who split the votes. */
TEST(vote_wait, a_grant_that_was_too_late_is_tried_again_after_a_short_pause)
{
    election e;
    open_asked(&e, 600000, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(200, 900)), RL_ASK);
    e.p.now_us = rl_lease_deadline(PLAY_BEGAN_US, LEASE_MS);
    EXPECT_INT(answer(&e, 0, YES), RL_ASK);
    EXPECT_INT(answer(&e, 0, YES), RL_ASK);
    EXPECT_INT(answer(&e, 1, YES), RL_SLEEP);
    EXPECT_BETWEEN(e.a.op.sleep_us - e.p.now_us, 15 * MS, 25 * MS);
    EXPECT_INT(play_sleep(&e.p), RL_ASK);
    answer(&e, 2, IS_BUSY);
    answer(&e, 2, NO);
    get_it(&e);
}
