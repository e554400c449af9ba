/*
 * Renewals that replicas have to have: they are believed when these have been
 * asked, once for all that have come.
 */
#include "renewals.h"

#define TOUCH RL_SCRIPT_TOUCH

/* Holds that want so many replicas. */
static void open_confirmed(round *r, size_t n, uint8_t replicas)
{
    open_round(r, 0);
    r->e.core.set.replica_wait_ms = 1000;
    r->replicas = replicas;
    for (size_t i = 0; i < n; i++)
        add_hold(r, RLOCK_LAYOUT_HASH);
}

/* The end of what is to be sent: a WAIT for so many. */
static bool waits_for(round *r, int replicas)
{
    const char *bytes;
    char wait[64];
    size_t n = rl_line_bytes(line(r), &bytes);
    snprintf(wait, sizeof wait, "WAIT\r\n$1\r\n%d\r\n", replicas);
    return n > 0 && times(bytes, n, wait) == 1;
}

TEST(confirm_renewals, the_replicas_are_asked_when_the_server_has_said_yes)
{
    round r;
    open_confirmed(&r, 3, 2);
    EXPECT_INT(asks(&r, MANY), 1);
    play_pass(&r.p, 50 * MS);
    answer(&r, "$3\r\n111\r\n");
    EXPECT_INT(renewed(&r), 0);
    EXPECT(waits_for(&r, 2));
    EXPECT_INT(sends(&r, TOUCH), 1);
    answer(&r, YES);
    EXPECT_INT(renewed(&r), 0);
    answer(&r, ":2\r\n");
    EXPECT_INT(renewed(&r), 3);
    for (size_t i = 0; i < 3; i++)
        EXPECT_INT(r.h[i]->expiry.due_us,
                   r.p.now_us - 50 * MS + GOOD_US(PLAY_LEASE_MS));
    EXPECT_INT(r.e.node.keeper.in_flight, 0);
    close_round(&r);
}

TEST(confirm_renewals, without_replicas_nobody_is_asked)
{
    round r;
    open_confirmed(&r, 3, 0);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "$3\r\n111\r\n");
    EXPECT_INT(renewed(&r), 3);
    EXPECT_INT(line(&r)->pending, 0);
    close_round(&r);
}

/* Whatever is answered before WAIT is was executed before it. */
TEST(confirm_renewals, one_wait_is_enough_for_what_is_in_flight)
{
    round r;
    open_confirmed(&r, 120, 1);
    EXPECT_INT(asks(&r, MANY), 3);
    char all[64];
    snprintf(all, sizeof all, "$50\r\n%.50s\r\n",
             "11111111111111111111111111111111111111111111111111");
    answer(&r, all);
    EXPECT_INT(sends(&r, TOUCH), 1);
    answer(&r, all);
    answer(&r, "$20\r\n11111111111111111111\r\n");
    EXPECT_INT(line(&r)->pending, 1);
    EXPECT_INT(sends(&r, TOUCH), 0);
    answer(&r, ":1\r\n:1\r\n");
    EXPECT_INT(renewed(&r), 120);
    EXPECT_INT(line(&r)->pending, 0);
    close_round(&r);
}

static void expect_short(round *r, size_t n, const char *why)
{
    EXPECT_INT(renewed(r), 0);
    EXPECT_INT(failed(r), n);
    EXPECT_INT(atomic_load(&r->e.core.stats.replica_shortfalls), n);
    EXPECT_CONTAINS(r->e.core.holds.failure.text, why);
    for (size_t i = 0; i < n; i++) {
        EXPECT_INT(r->h[i]->state, RL_HELD);
        EXPECT_INT(r->h[i]->expiry.due_us,
                   r->p.now_us - 50 * MS + GOOD_US(PLAY_LEASE_MS));
        EXPECT(r->h[i]->work.at > 0); /* it is tried again */
    }
    EXPECT_INT(r->e.node.keeper.in_flight, 0);
}

static void short_after(const char *replies, const char *why)
{
    round r;
    open_confirmed(&r, 3, 2);
    play_pass(&r.p, 50 * MS);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "$3\r\n111\r\n");
    EXPECT_INT(sends(&r, TOUCH), 1);
    answer(&r, replies);
    expect_short(&r, 3, why);
    close_round(&r);
}

TEST_CASE(confirm_renewals, that_too_few_have_move_no_deadline,
          short_after(":1\r\n:1\r\n", "1 of 2 replicas within"))
TEST_CASE(confirm_renewals, move_no_deadline_after_an_error,
          short_after(":1\r\n-UNBLOCKED force unblock\r\n", "UNBLOCKED"))
TEST_CASE(confirm_renewals, move_no_deadline_when_the_touch_is_refused,
          short_after("-NOPERM no\r\n:2\r\n", "NOPERM"))

TEST(confirm_renewals, move_no_deadline_when_each_touch_found_nothing)
{
    round r;
    open_confirmed(&r, 3, 2);
    play_pass(&r.p, 50 * MS);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "$3\r\n111\r\n");
    for (size_t i = 0; i < 3; i++) {
        EXPECT_INT(sends(&r, TOUCH), 1);
        answer(&r, ":0\r\n:2\r\n");
    }
    expect_short(&r, 3, "the lock has gone");
    close_round(&r);
}

/* It was unlocked meanwhile: nothing is known of the others. */
TEST(confirm_renewals, another_lock_is_touched_when_one_has_gone)
{
    round r;
    open_confirmed(&r, 3, 2);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "$3\r\n111\r\n");
    EXPECT_INT(sends(&r, TOUCH), 1);
    answer(&r, ":0\r\n:2\r\n");
    EXPECT_INT(renewed(&r), 0);
    EXPECT_INT(failed(&r), 1);
    EXPECT_INT(sends(&r, TOUCH), 1);
    answer(&r, ":1\r\n:2\r\n");
    EXPECT_INT(renewed(&r), 2);
    EXPECT_INT(failed(&r), 1);
    EXPECT_INT(r.e.node.keeper.in_flight, 0);
    close_round(&r);
}

TEST(confirm_renewals, move_no_deadline_when_the_connection_breaks)
{
    round r;
    open_confirmed(&r, 3, 2);
    play_pass(&r.p, 50 * MS);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "$3\r\n111\r\n");
    cut(&r);
    expect_short(&r, 3, "the connection broke");
    close_round(&r);
}

TEST(confirm_renewals, a_script_that_the_server_lacks_is_asked_about_again)
{
    round r;
    open_confirmed(&r, 1, 1);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, YES);
    EXPECT_INT(sends(&r, TOUCH), 1);
    answer(&r, "-NOSCRIPT no\r\n:1\r\n");
    EXPECT_INT(renewed(&r), 0);
    EXPECT(waits_for(&r, 1));
    sends(&r, TOUCH);
    answer(&r, ":1\r\n:1\r\n");
    EXPECT_INT(renewed(&r), 1);
    close_round(&r);
}

/* They may have been asked for fewer, by whichever came first. */
TEST(confirm_renewals, each_hold_gets_as_many_as_it_wants)
{
    round r;
    open_confirmed(&r, 1, 1);
    r.replicas = 2;
    add_hold(&r, RLOCK_LAYOUT_STRING);
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT_INT(line(&r)->pending, 2);
    sends(&r, SINGLY);
    answer(&r, ":1\r\n:1\r\n");
    EXPECT(waits_for(&r, 1));
    sends(&r, TOUCH);
    answer(&r, ":1\r\n:1\r\n");
    EXPECT_INT(renewed(&r), 1);
    EXPECT(waits_for(&r, 2));
    sends(&r, TOUCH);
    answer(&r, ":1\r\n:2\r\n");
    EXPECT_INT(renewed(&r), 2);
    EXPECT_INT(failed(&r), 0);
    close_round(&r);
}

/* All batches that there may be are out. */
TEST(confirm_renewals, when_nobody_can_ask_the_replicas_it_has_failed)
{
    round r;
    rl_keeper *k = &r.e.node.keeper;
    open_confirmed(&r, 9, 1);
    for (size_t i = 2; i < r.n; i++)
        r.h[i]->unknown = true; /* so it goes by itself */
    int64_t before_us = r.h[0]->expiry.due_us;
    play_pass(&r.p, 50 * MS);
    EXPECT_INT(asks(&r, MANY), 1);
    size_t in_flight = k->in_flight;
    EXPECT(rl_list_is_empty(&k->idle_batches));
    k->batches = SIZE_MAX;
    answer(&r, "$2\r\n11\r\n");
    EXPECT_INT(failed(&r), 2);
    EXPECT_INT(renewed(&r), 0);
    EXPECT_INT(k->in_flight, in_flight - 1);
    EXPECT(!k->unconfirmed && !k->confirming);
    EXPECT_INT(table(&r)->failure.status, RLOCK_ENOMEM);
    EXPECT_CONTAINS(table(&r)->failure.text, "out of memory");
    for (size_t i = 0; i < 2; i++)
        EXPECT(r.h[i]->expiry.due_us == before_us && !r.h[i]->in_flight);
    close_round(&r);
}

TEST(confirm_renewals, what_is_not_held_any_more_is_lost_at_once)
{
    round r;
    open_confirmed(&r, 1, 1);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, NO);
    EXPECT_INT(r.h[0]->state, RL_LOST);
    EXPECT_INT(line(&r)->pending, 0);
    close_round(&r);
}
