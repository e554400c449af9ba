/* Alarms: raised once, closed once, found by the holds that they are about. */
#include "hold/alarm.h"

#include <errno.h>

#include "alarm.h"
#include "hold.h"
#include "shim.h"

static const rl_uuid some = {{1, 2, 3}}, other = {{1, 2, 4}};

static bool is_found(const rl_alarms *l, const rl_uuid *of)
{
    rl_alarm *a = rl_alarms_find(l, of);
    if (a)
        rl_alarm_unref(a);
    return a != NULL;
}

/* --- lists ---------------------------------------------------------------- */

TEST(alarm, is_found_by_what_it_is_about_until_it_is_over)
{
    tally b;
    rl_alarms l = {NULL};
    EXPECT(!is_found(&l, &some));
    hang(&l, &b, &some, false);
    EXPECT(is_found(&l, &some) && !is_found(&l, &other));
    rl_alarm_end(b.alarm);
    EXPECT(!is_found(&l, &some));
    rl_alarms_leave(&l);
    EXPECT_INT(b.closed, 1);
}

TEST(alarm, is_raised_once_and_closed_once)
{
    tally b;
    rl_alarms l = {NULL};
    hang(&l, &b, &some, false);
    EXPECT_INT(b.raised, 0);
    rl_alarms_raise(&l);
    rl_alarms_raise(&l);
    EXPECT(b.raised == 1 && b.closed == 0);
    rl_alarms_end(&l);
    EXPECT(!l.first && b.closed == 1);
}

TEST(alarm, of_a_hold_that_is_lost_is_raised_at_once)
{
    tally b;
    rl_alarms l = {NULL};
    hang(&l, &b, &some, true);
    EXPECT_INT(b.raised, 1);
    rl_alarms_leave(&l);
}

TEST(alarm, of_several_holds_ends_with_the_first_and_is_not_raised_then)
{
    tally b;
    rl_alarms first = {NULL}, second = {NULL};
    hang(&first, &b, &some, false);
    EXPECT(rl_alarms_add(&second, b.alarm, false));
    rl_alarms_end(&first);
    EXPECT_INT(b.closed, 1);
    rl_alarms_raise(&second);
    EXPECT_INT(b.raised, 0);
    rl_alarms_leave(&second);
    EXPECT_INT(b.closed, 1);
}

TEST(alarm, that_is_kept_is_open_until_nobody_has_it)
{
    tally b;
    rl_alarms l = {NULL}, kept = {NULL};
    hang(&l, &b, &some, false);
    rl_alarms_keep(&l, &kept);
    rl_alarms_leave(&l);
    EXPECT_INT(b.closed, 0);
    rl_alarms_leave(&kept);
    EXPECT_INT(b.closed, 1);
}

/* A member may be held for long while its Multi lock comes and goes. */
TEST(alarm, those_that_are_over_leave_with_the_next_one)
{
    tally b[3];
    rl_alarms l = {NULL};
    for (int i = 0; i < 3; i++) {
        hang(&l, &b[i], &some, false);
        EXPECT(l.first->alarm == b[i].alarm && !l.first->next);
        rl_alarm_end(b[i].alarm);
    }
    rl_alarms_leave(&l);
}

TEST(alarm, those_that_are_not_over_stay_in_their_order)
{
    tally b[4];
    rl_alarms l = {NULL};
    for (int i = 0; i < 3; i++)
        hang(&l, &b[i], &some, false);
    rl_alarm_end(b[1].alarm);
    hang(&l, &b[3], &some, false);
    EXPECT(l.first->alarm == b[3].alarm);
    EXPECT(l.first->next->alarm == b[2].alarm);
    EXPECT(l.first->next->next->alarm == b[0].alarm);
    EXPECT(!l.first->next->next->next);
    EXPECT(b[0].closed == 0 && b[1].closed == 1 && b[2].closed == 0);
    rl_alarms_leave(&l);
}

TEST(alarm, without_memory_is_not_added_and_nobody_has_it)
{
    tally b;
    rl_alarms l = {NULL}, other_list = {NULL};
    hang(&l, &b, &some, false);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool added = rl_alarms_add(&other_list, b.alarm, false);
    rl_alarms_keep(&l, &other_list);
    shim_clear(shim_here());
    EXPECT(!added && !other_list.first);
    rl_alarms_leave(&l);
    EXPECT_INT(b.closed, 1);
}

/* --- holds ---------------------------------------------------------------- */

TEST(alarm, of_a_hold_is_raised_at_its_deadline_and_closed_by_its_end)
{
    play p;
    tally b;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    hang(&rl_hold_make_extra(h)->alarms, &b, &h->id, false);
    p.now_us = h->expiry.due_us - 1;
    expire(&p);
    EXPECT_INT(b.raised, 0);
    play_pass(&p, 1);
    expire(&p);
    EXPECT(b.raised == 1 && b.closed == 0);
    end(&p, h);
    EXPECT_INT(b.closed, 1);
    play_close(&p);
}

TEST(alarm, of_a_hold_needs_nobody_who_listens_to_events)
{
    play p;
    tally b;
    play_open(&p, 1);
    table(&p)->wants_reports = false;
    rl_hold *h = play_hold(&p, 0, "job", LEASE_MS);
    hang(&rl_hold_make_extra(h)->alarms, &b, &h->id, false);
    lose(&p, 0, h, RL_LOSS_GONE);
    EXPECT_INT(b.raised, 1);
    play_close(&p);
    EXPECT_INT(b.closed, 1);
}

TEST(alarm, of_an_owner_that_ended_is_raised_and_closed)
{
    play p;
    tally b;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    hang(&rl_hold_make_extra(h)->alarms, &b, &h->id, false);
    rl_holds_abandon(table(&p), p.owner.serial, p.now_us);
    EXPECT(b.raised == 1 && b.closed == 1);
    play_close(&p);
}

TEST(alarm, of_a_client_that_is_closed_is_raised_and_kept)
{
    play p;
    tally b;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    hang(&rl_hold_make_extra(h)->alarms, &b, &h->id, false);
    rl_holds_close(table(&p), &p.home, p.now_us);
    EXPECT_INT(b.raised, 1);
    rl_alarms kept = table(&p)->kept;
    play_close(&p);
    EXPECT_INT(b.closed, 0);
    rl_alarms_leave(&kept);
    EXPECT_INT(b.closed, 1);
}

/* --- groups --------------------------------------------------------------- */

typedef struct hanging {
    rl_alarm_visit visit;
    tally *b;
} hanging;

static void hang_here(rl_alarm_visit *v, rl_alarms *l, const rl_uuid *id,
                      bool lost)
{
    hang(l, RL_CONTAINER(v, hanging, visit)->b, id, lost);
}

/* Of two of these nodes, with an alarm. */
static rl_group *open_red(play *p, rl_hold *h[3], tally *b)
{
    hanging v = {{hang_here}, b};
    play_open(p, 3);
    rl_group *g = rl_group_new(&p->home, 2);
    EXPECT(g);
    EXPECT(rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    for (size_t i = 0; i < 3; i++)
        h[i] = play_member(p, i, &play_red, g, LEASE_MS);
    rl_group_visit_alarms(g, &v.visit, &some);
    return g;
}

TEST(alarm, of_a_quorum_is_raised_when_too_few_are_left)
{
    play p;
    tally b;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, &b);
    lose(&p, 2, h[2], RL_LOSS_GONE);
    EXPECT_INT(b.raised, 0);
    lose(&p, 0, h[0], RL_LOSS_GONE);
    EXPECT(b.raised == 1 && b.closed == 0);
    rl_group_end_alarms(g);
    EXPECT_INT(b.closed, 1);
    rl_group_unref(g);
    play_close(&p);
}

TEST(alarm, of_a_quorum_is_raised_and_kept_when_its_home_is_closed)
{
    play p;
    tally b;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, &b);
    rl_holds_close(&play_core(&p, 1)->holds, &(rl_home){.stats = NULL},
                   p.now_us);
    EXPECT_INT(b.raised, 0);
    rl_holds_close(table(&p), &p.home, p.now_us);
    EXPECT_INT(b.raised, 1);
    rl_alarms kept[2] = {table(&p)->kept, play_core(&p, 1)->holds.kept};
    rl_group_unref(g);
    play_close(&p);
    rl_alarms_leave(&kept[0]);
    EXPECT_INT(b.closed, 0);
    rl_alarms_leave(&kept[1]);
    EXPECT_INT(b.closed, 1);
}
