/* Extends: what is under way is waited for, and whom it does not wait for. */
#include "op/extend.h"

#include <errno.h>

#include "play.h"
#include "shim.h"

#define NODES 3

typedef struct stretch {
    play p;
    rl_extend x;
    rl_part *parts[NODES];
    rl_group *g;
    rl_hold *h[NODES];
} stretch;

static void add_part(stretch *s, size_t i)
{
    rl_part *x = rl_part_new();
    EXPECT(x);
    x->core = play_core(&s->p, i);
    x->hold = s->h[i];
    x->op = &s->x.op;
    s->x.op.part[i] = x;
    s->x.op.n++;
}

static void begin(stretch *s, int64_t until_us)
{
    rl_op_init(&s->x.op, s->parts);
    s->x.op.quorum = 1;
    for (size_t i = 0; i < s->p.n; i++)
        add_part(s, i);
    if (s->p.n > 1) {
        s->x.op.quorum = NODES / 2 + 1;
        s->x.op.several = s->x.op.early = true;
    }
    rl_extend_init(&s->x, LEASE_MS, until_us);
}

/* A hold of one server, or of three nodes. */
static void open_stretch(stretch *s, size_t n)
{
    play_open(&s->p, n);
    s->g = NULL;
    if (n > 1) {
        s->g = rl_group_new(&s->p.home, NODES / 2 + 1);
        rl_group_set_renewed(s->g, true);
        EXPECT(rl_group_move(s->g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    }
    for (size_t i = 0; i < n; i++)
        s->h[i] = n == 1
                      ? play_hold(&s->p, i, "job", RLOCK_WATCHDOG)
                      : play_member(&s->p, i, &play_red, s->g, RLOCK_WATCHDOG);
}

/* The keeper's renewal lands: it wakes who waits for it. */
static void land(stretch *s, size_t i)
{
    s->h[i]->in_flight = false;
    rl_waker *w = s->h[i]->extra->landing;
    if (w)
        w->wake(w, RL_WAKE_LOOK, 0);
}

static bool is_ok(const stretch *s, size_t i)
{
    return s->x.op.part[i] && s->x.op.part[i]->ok;
}

static void close_stretch(stretch *s)
{
    rl_op_let_go(&s->x.op);
    play_forget(&s->p);
    rl_group_unref(s->g);
    play_close(&s->p);
}

static int64_t soon(const stretch *s)
{
    return s->p.now_us + 1000 * MS;
}

TEST(extend, asks_at_once_when_no_renewal_is_under_way)
{
    stretch s;
    open_stretch(&s, 1);
    begin(&s, soon(&s));
    EXPECT(s.h[0]->paused);
    EXPECT_INT(play_begin(&s.p, &s.x.op), RL_ASK);
    EXPECT_STR(play_called(&s.p, 0), "hash/extend");
    EXPECT_INT(play_answer(&s.p, 0, YES), RL_DONE);
    EXPECT(is_ok(&s, 0) && !s.h[0]->renewed);
    close_stretch(&s);
}

TEST(extend, waits_for_a_renewal_that_is_under_way)
{
    stretch s;
    open_stretch(&s, 1);
    s.h[0]->in_flight = true;
    begin(&s, soon(&s));
    EXPECT_INT(play_begin(&s.p, &s.x.op), RL_SLEEP);
    EXPECT_INT(s.p.client[0].calls, 0);
    EXPECT(s.h[0]->extra->landing == &s.p.waker);
    EXPECT_INT(s.x.op.sleep_us, soon(&s));
    land(&s, 0);
    EXPECT_INT(s.p.why, RL_WAKE_LOOK);
    EXPECT_INT(play_wake(&s.p), RL_ASK);
    EXPECT(!s.h[0]->extra->landing);
    EXPECT_INT(play_answer(&s.p, 0, YES), RL_DONE);
    EXPECT(is_ok(&s, 0));
    close_stretch(&s);
}

/* It may still be executed after the extend, and undo it. */
TEST(extend, is_refused_where_a_renewal_does_not_end)
{
    stretch s;
    open_stretch(&s, 1);
    s.h[0]->in_flight = true;
    begin(&s, soon(&s));
    EXPECT_INT(play_begin(&s.p, &s.x.op), RL_SLEEP);
    EXPECT_INT(play_sleep(&s.p), RL_DONE);
    EXPECT_INT(s.p.client[0].calls, 0);
    EXPECT(!is_ok(&s, 0));
    EXPECT_CONTAINS(s.x.op.part[0]->fault.text, "a renewal does not end");
    EXPECT(!s.h[0]->extra->landing); /* nobody waits any more */
    EXPECT(s.h[0]->renewed && !s.h[0]->paused);
    close_stretch(&s);
}

/* Without memory to note that it has no answer, it is not sent. */
TEST(extend, without_memory_is_refused_before_it_is_sent)
{
    stretch s;
    open_stretch(&s, 1);
    int64_t deadline_us = s.h[0]->expiry.due_us;
    s.h[0]->in_flight = true; /* and nobody would be told that it has ended */
    begin(&s, soon(&s));
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    rl_next next = play_begin(&s.p, &s.x.op);
    shim_clear(shim_here());
    EXPECT_INT(next, RL_DONE);
    EXPECT_INT(s.p.client[0].calls, 0);
    EXPECT(!is_ok(&s, 0));
    EXPECT_INT(s.x.op.part[0]->fault.status, RLOCK_ENOMEM);
    EXPECT_INT(s.h[0]->expiry.due_us, deadline_us);
    EXPECT(s.h[0]->renewed && !s.h[0]->paused);
    close_stretch(&s);
}

TEST(extend, of_a_quorum_asks_all_at_once)
{
    stretch s;
    open_stretch(&s, NODES);
    begin(&s, soon(&s));
    EXPECT_INT(play_begin(&s.p, &s.x.op), RL_ASK);
    for (size_t i = 0; i < NODES; i++)
        EXPECT_STR(play_called(&s.p, i), "hash/extend");
    EXPECT_INT(play_answer(&s.p, 2, YES), RL_ASK);
    EXPECT_INT(play_answer(&s.p, 0, YES), RL_DONE);
    close_stretch(&s);
}

TEST(extend, of_a_quorum_waits_2_ms_for_a_renewal_that_it_does_not_need)
{
    stretch s;
    open_stretch(&s, NODES);
    s.h[1]->in_flight = true;
    begin(&s, soon(&s));
    EXPECT_INT(play_begin(&s.p, &s.x.op), RL_SLEEP);
    EXPECT_INT(s.x.op.sleep_us, s.p.now_us + 2000);
    EXPECT_INT(play_sleep(&s.p), RL_ASK);
    EXPECT(s.p.client[0].calls == 1 && s.p.client[1].calls == 0);
    EXPECT_INT(play_answer(&s.p, 0, YES), RL_ASK);
    EXPECT_INT(play_answer(&s.p, 2, YES), RL_DONE);
    EXPECT(!is_ok(&s, 1) && !s.h[1]->extra->landing);
    close_stretch(&s);
}

TEST(extend, of_a_quorum_waits_for_as_many_renewals_as_it_needs)
{
    stretch s;
    open_stretch(&s, NODES);
    s.h[1]->in_flight = s.h[2]->in_flight = true;
    begin(&s, soon(&s));
    EXPECT_INT(play_begin(&s.p, &s.x.op), RL_SLEEP);
    EXPECT_INT(s.x.op.sleep_us, soon(&s));
    play_pass(&s.p, 10 * MS);
    land(&s, 1);
    EXPECT_INT(play_wake(&s.p), RL_SLEEP);
    EXPECT_INT(s.x.op.sleep_us, s.p.now_us + 2000);
    land(&s, 2);
    EXPECT_INT(play_wake(&s.p), RL_ASK);
    EXPECT_INT(play_answer(&s.p, 0, YES), RL_ASK);
    EXPECT_INT(play_answer(&s.p, 2, YES), RL_DONE);
    close_stretch(&s);
}

TEST(extend, of_a_quorum_is_over_without_hope)
{
    stretch s;
    open_stretch(&s, NODES);
    begin(&s, soon(&s));
    EXPECT_INT(play_begin(&s.p, &s.x.op), RL_ASK);
    EXPECT_INT(play_answer(&s.p, 0, NOPERM), RL_ASK);
    EXPECT_INT(play_answer(&s.p, 1, NO), RL_DONE);
    EXPECT(!is_ok(&s, 0) && !is_ok(&s, 1));
    EXPECT_INT(s.x.op.part[1]->fault.status, RLOCK_LOST);
    close_stretch(&s);
}

TEST(extend, an_answer_that_comes_late_prolongs_nothing)
{
    stretch s;
    open_stretch(&s, NODES);
    begin(&s, soon(&s));
    int64_t before_us = s.h[1]->expiry.due_us;
    EXPECT_INT(play_begin(&s.p, &s.x.op), RL_ASK);
    EXPECT_INT(play_answer(&s.p, 0, YES), RL_ASK);
    EXPECT_INT(play_answer(&s.p, 2, YES), RL_DONE);
    rl_op_let_go(&s.x.op);
    play_answer(&s.p, 1, YES);
    EXPECT(s.h[1]->expiry.due_us <= before_us);
    EXPECT_INT(rl_hold_cap_ms(s.h[1], s.p.now_us), LEASE_MS);
    EXPECT_INT(rl_hold_cap_ms(s.h[1], s.p.now_us + 1), RL_NEVER);
    close_stretch(&s);
}
