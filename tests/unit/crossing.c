/*
 * An extend and renewals of one hold, on two connections: whose answers cross,
 * or stay away. Whichever the server has executed last says how long it keeps
 * the hold, and nobody is told which that was; so no more is believed than what
 * both orders allow.
 */
#include "renewals.h"

#define S INT64_C(1000000)

/* The lease of an extend; that of a renewal is longer, PLAY_LEASE_MS. */
#define SHORT_MS 10000

typedef struct crossing {
    round r;
    rl_line own; /* the owner's; r has the keeper's */
    rl_op op;
    rl_part *x; /* the extend that is under way */
    int64_t began_us;
} crossing;

static rl_hold *hold_of(crossing *c)
{
    return c->r.h[0];
}

static int64_t now_us(const crossing *c)
{
    return c->r.p.now_us;
}

/* Until when it is believed in, seen from when the hold began. */
static int64_t believed_us(crossing *c)
{
    rl_hold *h = hold_of(c);
    rl_mutex_lock(&table(&c->r)->mutex);
    bool valid = rl_hold_is_valid_locked(table(&c->r), h, now_us(c));
    rl_mutex_unlock(&table(&c->r)->mutex);
    return valid ? h->expiry.due_us - c->began_us : 0;
}

/* The time is so many seconds after the hold began. */
static void at(crossing *c, int64_t s)
{
    c->r.p.now_us = c->began_us + s * S;
}

static void open_crossing(crossing *c, int64_t max_hold_ms)
{
    memset(c, 0, sizeof *c);
    open_round(&c->r, 0);
    table(&c->r)->max_hold_ms = max_hold_ms;
    add_hold(&c->r, RLOCK_LAYOUT_HASH);
    EXPECT(rl_line_init(&c->own));
    c->began_us = now_us(c);
}

static void break_own(crossing *c)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "the connection broke");
    rl_line_fail(&c->own, &f, now_us(c));
}

static void close_crossing(crossing *c)
{
    break_own(c);
    rl_line_fini(&c->own);
    close_round(&c->r);
}

static void send_extend(crossing *c, int64_t lease_ms)
{
    const char *bytes;
    rl_core *core = &c->r.e.core;
    c->x = rl_part_new();
    EXPECT(c->x);
    c->x->op = &c->op;
    EXPECT(rl_hold_make_extra(hold_of(c)));
    rl_part_extend(c->x, core, hold_of(c), lease_ms, RL_NEVER, now_us(c));
    rl_part_push(c->x, &c->own, now_us(c));
    rl_line_sent(&c->own, rl_line_bytes(&c->own, &bytes));
}

/* Its op does without it. */
static void leave_extend(crossing *c)
{
    rl_part_let_go(c->x);
    c->x = NULL;
}

static void answer_extend(crossing *c)
{
    rl_line_feed(&c->own, YES, strlen(YES), now_us(c));
}

static void send_renewal(crossing *c)
{
    set_due(&c->r, hold_of(c));
    EXPECT_INT(asks(&c->r, SINGLY), 1);
}

TEST(crossing, a_renewal_under_way_when_a_late_extend_is_answered_may_be_undone)
{
    crossing c;
    open_crossing(&c, 0);
    send_extend(&c, SHORT_MS);
    at(&c, 1);
    leave_extend(&c);
    at(&c, 6);
    send_renewal(&c);
    at(&c, 7);
    answer_extend(&c); /* executed at 6.5, say: after the renewal */
    at(&c, 8);
    answer(&c.r, YES);
    EXPECT_BETWEEN(believed_us(&c), 9 * S, 6 * S + GOOD_US(SHORT_MS));
    close_crossing(&c);
}

TEST(crossing, a_renewal_before_a_late_extend_is_answered_may_be_undone)
{
    crossing c;
    open_crossing(&c, 0);
    send_extend(&c, SHORT_MS);
    at(&c, 1);
    leave_extend(&c);
    at(&c, 4);
    send_renewal(&c);
    at(&c, 5);
    answer(&c.r, YES);
    at(&c, 9);
    answer_extend(&c); /* executed at 4.5, say */
    EXPECT_BETWEEN(believed_us(&c), 9 * S, 4 * S + GOOD_US(SHORT_MS));
    close_crossing(&c);
}

/* A later command, of the owner's, has given more than that meanwhile. */
TEST(crossing, a_renewal_that_may_be_undone_takes_nothing_away)
{
    crossing c;
    rl_holds *t = &c.r.e.core.holds;
    open_crossing(&c, 0);
    send_extend(&c, SHORT_MS);
    at(&c, 1);
    leave_extend(&c);
    at(&c, 4);
    send_renewal(&c);
    at(&c, 5);
    answer_extend(&c);
    at(&c, 6);
    rl_mutex_lock(&t->mutex);
    rl_hold_prolong_locked(t, hold_of(&c), now_us(&c), 2 * SHORT_MS,
                           now_us(&c));
    rl_mutex_unlock(&t->mutex);
    EXPECT_INT(believed_us(&c), 6 * S + GOOD_US(2 * SHORT_MS));
    answer(&c.r, YES);
    EXPECT_INT(believed_us(&c), 6 * S + GOOD_US(2 * SHORT_MS));
    close_crossing(&c);
}

/* A cap for ever would let a hold of many nodes run out without need. */
TEST(crossing, a_renewal_sent_after_a_late_extend_was_answered_counts_in_full)
{
    crossing c;
    open_crossing(&c, 0);
    send_extend(&c, SHORT_MS);
    at(&c, 1);
    leave_extend(&c);
    at(&c, 7);
    answer_extend(&c);
    EXPECT_BETWEEN(believed_us(&c), 9 * S, GOOD_US(SHORT_MS));
    at(&c, 8);
    send_renewal(&c);
    at(&c, 9);
    answer(&c.r, YES);
    EXPECT_INT(believed_us(&c), 8 * S + GOOD_US(PLAY_LEASE_MS));
    close_crossing(&c);
}

TEST(crossing, after_an_extend_without_an_answer_no_renewal_gives_more_than_it)
{
    crossing c;
    open_crossing(&c, 0);
    send_extend(&c, SHORT_MS);
    at(&c, 1);
    break_own(&c);
    rl_ask_give_up(&c.x->ask, now_us(&c));
    leave_extend(&c);
    EXPECT_BETWEEN(believed_us(&c), 9 * S, GOOD_US(SHORT_MS));
    for (int64_t s = 3; s < 30; s += 3) {
        at(&c, s);
        send_renewal(&c);
        answer(&c.r, YES);
        EXPECT_INT(believed_us(&c), s * S + GOOD_US(SHORT_MS));
        /* And so the next one is due earlier. */
        EXPECT_INT(rl_heap_first(&table(&c.r)->first.work)->due_us,
                   now_us(&c) + SHORT_MS * 1000 / 3);
    }
    close_crossing(&c);
}

TEST(crossing, a_renewal_that_answers_an_extend_that_failed_counts_in_full)
{
    crossing c;
    open_crossing(&c, 0);
    send_extend(&c, SHORT_MS);
    at(&c, 1);
    rl_line_feed(&c.own, NOPERM, strlen(NOPERM), now_us(&c)); /* not executed */
    leave_extend(&c);
    at(&c, 2);
    send_renewal(&c);
    answer(&c.r, YES);
    EXPECT_INT(believed_us(&c), 2 * S + GOOD_US(PLAY_LEASE_MS));
    close_crossing(&c);
}

/* --- max_hold_ms ---------------------------------------------------------- */

#define MAX_HOLD_MS 70000

TEST(crossing, renewals_end_at_max_hold_ms_to_the_millisecond)
{
    crossing c;
    open_crossing(&c, MAX_HOLD_MS);
    for (int64_t s = 10; s < 70; s += 10) {
        at(&c, s);
        EXPECT_INT(asks(&c.r, SINGLY), 1); /* a third of the lease each */
        answer(&c.r, YES);
        EXPECT_INT(believed_us(&c),
                   rl_min(s * S + GOOD_US(PLAY_LEASE_MS), MAX_HOLD_MS * MS));
    }
    c.r.p.now_us = c.began_us + MAX_HOLD_MS * MS - 1;
    EXPECT(believed_us(&c) > 0);
    c.r.p.now_us++;
    EXPECT_INT(believed_us(&c), 0);
    EXPECT_INT(hold_of(&c)->loss, RL_LOSS_TOO_LONG);
    EXPECT_INT(asks(&c.r, SINGLY), 0);
    close_crossing(&c);
}

TEST(crossing, an_extend_by_the_watchdog_ends_at_max_hold_ms)
{
    crossing c;
    open_crossing(&c, MAX_HOLD_MS);
    for (int64_t s = 10; s < 60; s += 10) {
        at(&c, s);
        EXPECT_INT(asks(&c.r, SINGLY), 1);
        answer(&c.r, YES);
    }
    at(&c, 60);
    send_extend(&c, RLOCK_WATCHDOG);
    answer_extend(&c);
    EXPECT(c.x->ok);
    leave_extend(&c);
    EXPECT_INT(believed_us(&c), MAX_HOLD_MS * MS);
    close_crossing(&c);
}
