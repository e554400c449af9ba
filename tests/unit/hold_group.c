/* Holds that are one lock together, and clients that are closed. */
#include "hold/side.h"

#include "hold.h"

/* --- in a group ----------------------------------------------------------- */

/* Red on three nodes. */
static rl_group *open_red(play *p, rl_hold *h[3], int64_t lease_ms)
{
    play_open(p, 3);
    rl_group *g = rl_group_new(&p->home, 2);
    EXPECT(g);
    rl_group_set_renewed(g, lease_ms == RLOCK_WATCHDOG);
    EXPECT(rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    for (size_t i = 0; i < 3; i++)
        h[i] = play_member(p, i, &play_red, g, lease_ms);
    return g;
}

TEST(hold_group, of_a_quorum_is_vacant_when_its_node_lost_it)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    lose(&p, 1, h[1], RL_LOSS_GONE);
    EXPECT_INT(h[1]->state, RL_VACANT);
    EXPECT_INT(due_us(&play_core(&p, 1)->holds, h[1]),
               p.now_us + PLAY_LEASE_MS * MS / 3 * 7 / 8);
    EXPECT(rl_group_is_owned(g));
    EXPECT_INT(take_reports(&p, 1), 0);
    rl_group_unref(g);
    play_close(&p);
}

static void grant_again(play *p, size_t i, rl_hold *h)
{
    rl_holds *t = &play_core(p, i)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, h, h->token, p->now_us, true, p->now_us);
    rl_mutex_unlock(&t->mutex);
}

TEST(hold_group, a_node_that_was_granted_anew_is_as_old_as_the_whole)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    rl_holds *t = &play_core(&p, 1)->holds;
    g->began_us = p.now_us;
    t->max_hold_ms = 40000;
    int64_t end_us = p.now_us + 40000 * MS;
    lose(&p, 1, h[1], RL_LOSS_GONE);
    p.now_us += 10000 * MS;
    play_hold(&p, 1, "other", LEASE_MS);
    EXPECT_INT(rl_holds_oldest(t), p.now_us); /* the control */
    p.now_us += 10000 * MS;
    grant_again(&p, 1, h[1]);
    EXPECT_INT(rl_holds_oldest(t), g->began_us);
    rl_mutex_lock(&t->mutex);
    rl_hold_prolong_locked(t, h[1], end_us - MS, PLAY_LEASE_MS, end_us - MS);
    EXPECT(!rl_hold_is_valid_locked(t, h[1], end_us));
    rl_mutex_unlock(&t->mutex);
    EXPECT_INT(h[1]->loss, RL_LOSS_TOO_LONG);
    EXPECT_INT(h[1]->state, RL_LOST); /* not vacant: it is not asked again */
    rl_group_unref(g);
    play_close(&p);
}

TEST(hold_group, of_a_quorum_that_is_not_renewed_is_not_asked_for_again)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, LEASE_MS);
    lose(&p, 1, h[1], RL_LOSS_EXPIRED);
    EXPECT_INT(h[1]->state, RL_LOST);
    EXPECT_INT(due_us(&play_core(&p, 1)->holds, h[1]), 0);
    rl_group_unref(g);
    play_close(&p);
}

TEST(hold_group, a_quorum_that_is_lost_is_told_once_and_counted_at_home)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    lose(&p, 2, h[2], RL_LOSS_GONE);
    lose(&p, 1, h[1], RL_LOSS_GONE);
    lose(&p, 0, h[0], RL_LOSS_GONE);
    EXPECT(!rl_group_is_owned(g));
    EXPECT_INT(take_reports(&p, 0), 0);
    EXPECT_INT(take_reports(&p, 1), LOST);
    EXPECT_INT(take_reports(&p, 2), 0);
    EXPECT_INT(play_losses(&play_core(&p, 0)->stats), 1);
    EXPECT_INT(play_losses(&play_core(&p, 1)->stats), 0);
    EXPECT_INT(h[1]->state, RL_LOST); /* there is nothing to come back to */
    rl_group_unref(g);
    play_close(&p);
}

/* A member of a Multi lock in that state, which is lost: what is told, and what
   becomes of the whole. */
static void lose_as_member(rl_group_state whole, unsigned told,
                           rl_group_state then)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    g->whole = rl_group_new(&p.home, 0);
    EXPECT(g->whole);
    rl_group_move(g->whole, RL_GROUP_FORMING, whole);
    lose(&p, 2, h[2], RL_LOSS_GONE);
    EXPECT(rl_group_move(g->whole, whole, whole));
    lose(&p, 1, h[1], RL_LOSS_GONE);
    EXPECT(!rl_group_is_owned(g));
    EXPECT_INT(take_reports(&p, 1), told);
    EXPECT(rl_group_move(g->whole, then, then));
    EXPECT_INT(play_losses(&play_core(&p, 0)->stats), 1);
    rl_group_unref(g);
    play_close(&p);
}

TEST_CASE(hold_group, a_quorum_that_is_lost_for_a_whole_that_forms_is_not_told,
          lose_as_member(RL_GROUP_FORMING, 0, RL_GROUP_SPOILT))
TEST_CASE(hold_group, nor_for_one_that_has_lost_another_member,
          lose_as_member(RL_GROUP_SPOILT, 0, RL_GROUP_SPOILT))
TEST_CASE(hold_group, a_quorum_that_is_lost_for_a_whole_that_is_owned_is_told,
          lose_as_member(RL_GROUP_OWNED, LOST, RL_GROUP_OWNED))
TEST_CASE(hold_group, and_for_one_that_was_lost_before,
          lose_as_member(RL_GROUP_LOST, LOST, RL_GROUP_LOST))
TEST_CASE(hold_group, and_for_one_whose_owner_or_home_has_gone,
          lose_as_member(RL_GROUP_OVER, LOST, RL_GROUP_OVER))

TEST(hold_group, that_was_vacant_joins_its_group_again_when_granted)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    rl_holds *t = &play_core(&p, 1)->holds;
    lose(&p, 1, h[1], RL_LOSS_GONE);
    rl_mutex_lock(&t->mutex);
    rl_group_join(g, 1, p.now_us, RL_NEVER);
    rl_hold_grant_locked(t, h[1], 200, p.now_us, true, p.now_us);
    rl_mutex_unlock(&t->mutex);
    EXPECT_INT(h[1]->state, RL_HELD);
    lose(&p, 0, h[0], RL_LOSS_EXPIRED);
    EXPECT(rl_group_is_owned(g));
    lose(&p, 2, h[2], RL_LOSS_GONE);
    EXPECT(!rl_group_is_owned(g));
    rl_group_unref(g);
    play_close(&p);
}

/* One is back, and then another one is gone, since some time after us. */
static bool is_owned_after(play *p, int64_t confirmed_ms, int64_t back_ms,
                           int64_t lease_ms)
{
    rl_hold *h[3];
    rl_group *g = open_red(p, h, RLOCK_WATCHDOG);
    int64_t began_us = p->now_us;
    lose(p, 1, h[1], RL_LOSS_GONE);
    rl_holds *t = &play_core(p, 1)->holds;
    rl_mutex_lock(&t->mutex);
    p->now_us = began_us + back_ms * MS; /* asked for at once, granted then */
    rl_group_join(g, 1, p->now_us, RL_NEVER);
    rl_hold_grant_locked(t, h[1], 200, began_us, true, p->now_us);
    rl_mutex_unlock(&t->mutex);
    t = &play_core(p, 0)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_prolong_locked(t, h[0], began_us + confirmed_ms * MS, lease_ms,
                           p->now_us);
    rl_mutex_unlock(&t->mutex);
    lose(p, 0, h[0], RL_LOSS_GONE);
    bool owned = rl_group_is_owned(g);
    rl_group_unref(g);
    play_close(p);
    return owned;
}

TEST(hold_group, one_that_is_back_counts_from_when_it_was_granted)
{
    play p;
    EXPECT(!is_owned_after(&p, 99, 100, PLAY_LEASE_MS));
    EXPECT(is_owned_after(&p, 100, 100, PLAY_LEASE_MS));
}

TEST(hold_group, one_that_was_confirmed_for_less_than_it_has_was_there)
{
    play p;
    EXPECT(!is_owned_after(&p, 99, 100, 1000));
    EXPECT(is_owned_after(&p, 100, 100, 1000));
}

static void count_holder(rl_owner_record *x, void *n)
{
    (void)x;
    (*(int *)n)++;
}

static int holders(play *p, const rl_target *what, int64_t now_us)
{
    int n = 0;
    rl_mutex_lock(&table(p)->mutex);
    rl_holds_each_holder_locked(table(p), what, now_us, count_holder, &n);
    rl_mutex_unlock(&table(p)->mutex);
    return n;
}

TEST(hold_group, of_a_quorum_is_its_owners_also_where_one_node_lost_it)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, LEASE_MS);
    int64_t end_us = h[1]->expiry.due_us;
    lose(&p, 0, h[0], RL_LOSS_GONE);
    EXPECT_INT(holders(&p, &play_red, end_us - 1), 1);
    EXPECT_INT(holders(&p, &play_red, end_us), 0);
    rl_group_unref(g);
    play_close(&p);
}

TEST(hold_group, of_a_lock_by_itself_is_its_owners_until_its_deadline)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    int64_t end_us = h->expiry.due_us;
    EXPECT_INT(holders(&p, &play_job, end_us - 1), 1);
    EXPECT_INT(holders(&p, &play_job, end_us), 0);
    lose(&p, 0, h, RL_LOSS_GONE);
    EXPECT_INT(holders(&p, &play_job, end_us - 1), 0);
    play_close(&p);
}

/* --- whose notifier is late ----------------------------------------------- */

/* All are granted, and then the first is renewed no more. */
static rl_group *open_with_one_late(play *p, rl_hold *h[3])
{
    rl_group *g = open_red(p, h, RLOCK_WATCHDOG);
    play_pass(p, 20000 * MS);
    for (size_t i = 1; i < 3; i++) {
        rl_holds *t = &play_core(p, i)->holds;
        rl_mutex_lock(&t->mutex);
        rl_hold_prolong_locked(t, h[i], p->now_us, PLAY_LEASE_MS, p->now_us);
        rl_mutex_unlock(&t->mutex);
    }
    p->now_us = h[0]->expiry.due_us;
    return g;
}

TEST(hold_group, that_ran_out_unnoticed_does_not_count_when_another_is_lost)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_with_one_late(&p, h);
    lose(&p, 1, h[1], RL_LOSS_GONE);
    EXPECT(!rl_group_is_owned(g));
    EXPECT_INT(take_reports(&p, 1), LOST);
    EXPECT_INT(h[1]->state, RL_LOST); /* there is nothing to come back to */
    rl_group_unref(g);
    play_close(&p);
}

/* One is vacant; then the leases of the others run out. */
TEST(hold_group, that_ran_out_unnoticed_is_lost_when_a_node_wants_to_join)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    rl_holds *t = &play_core(&p, 1)->holds;
    lose(&p, 1, h[1], RL_LOSS_GONE);
    rl_mutex_lock(&t->mutex);
    EXPECT(rl_hold_may_join_locked(t, h[1], h[0]->expiry.due_us - 1));
    p.now_us = h[0]->expiry.due_us;
    EXPECT(!rl_hold_may_join_locked(t, h[1], p.now_us));
    rl_mutex_unlock(&t->mutex);
    EXPECT(h[1]->loss == RL_LOSS_EXPIRED && h[1]->ended_us == p.now_us);
    EXPECT_INT(take_reports(&p, 1), LOST);
    EXPECT_INT(play_losses(&play_core(&p, 0)->stats), 1);
    rl_group_unref(g);
    play_close(&p);
}

TEST(hold_group, that_is_released_meanwhile_counts_to_the_end)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, LEASE_MS);
    for (size_t i = 0; i < 3; i++) {
        rl_holds *t = &play_core(&p, i)->holds;
        rl_mutex_lock(&t->mutex);
        rl_hold_end_locked(t, h[i], p.now_us);
        rl_mutex_unlock(&t->mutex);
    }
    play_pass(&p, 2 * LEASE_MS * MS);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_report_loss_locked(table(&p), h[0], RL_LOSS_GONE, p.now_us);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT(rl_group_is_owned(g));
    for (size_t i = 0; i < 3; i++)
        rl_holds_put(&play_core(&p, i)->holds, h[i]);
    rl_group_unref(g);
    play_close(&p);
}

/* --- back ----------------------------------------------------------------- */

/* Its server had it as long as its lease was believed in. */
TEST(hold_group, one_whose_lease_ran_out_was_there_until_then)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    lose(&p, 1, h[1], RL_LOSS_GONE);
    p.now_us += 100 * MS;
    rl_group_join(g, 1, p.now_us, RL_NEVER);
    lose(&p, 0, h[0], RL_LOSS_EXPIRED);
    EXPECT(rl_group_is_owned(g));
    rl_group_unref(g);
    play_close(&p);
}

TEST(hold_group, the_members_of_a_multi_lock_are_lost_with_the_first)
{
    play p;
    play_open(&p, 2);
    rl_group *g = rl_group_new(&p.home, 0);
    EXPECT(rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    rl_hold *a = play_member(&p, 0, &play_job, g, LEASE_MS);
    rl_hold *b = play_member(&p, 1, &play_job, g, LEASE_MS);
    lose(&p, 1, b, RL_LOSS_GONE);
    EXPECT(!rl_group_is_owned(g) && a->state == RL_HELD);
    EXPECT_INT(take_reports(&p, 1), LOST);
    EXPECT_INT(play_losses(&play_core(&p, 1)->stats), 1);
    rl_group_unref(g);
    play_close(&p);
}

TEST(hold_group, the_holds_of_a_group_are_abandoned_as_one)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    unsigned told = 0;
    for (size_t i = 0; i < 3; i++) {
        rl_holds_abandon(&play_core(&p, i)->holds, p.owner.serial, p.now_us);
        told += take_reports(&p, i) == ABANDONED;
    }
    EXPECT_INT(told, 1);
    rl_group_unref(g);
    play_close(&p);
}

/* --- whose owner has ended ------------------------------------------------- */

/* Of a lock of which nobody has been told it is released at once, else left. */
static void abandon(play *p, rl_hold *h, bool releases)
{
    h->refs++;
    rl_holds_abandon(table(p), p->owner.serial, p->now_us);
    EXPECT_INT(h->state, releases ? RL_UNDOING : RL_OVER);
    EXPECT_INT(due_us(table(p), h), releases ? p->now_us : 0);
    EXPECT_INT(take_reports(p, 0), releases ? 0 : ABANDONED);
    rl_holds_put(table(p), h);
}

static void abandon_multi(rl_group_state state, bool releases)
{
    play p;
    play_open(&p, 1);
    rl_group *g = rl_group_new(&p.home, 0);
    EXPECT(g && rl_group_move(g, RL_GROUP_FORMING, state));
    abandon(&p, play_member(&p, 0, &play_job, g, LEASE_MS), releases);
    rl_group_unref(g);
    play_close(&p);
}

/* A Red lock, and the Multi lock for which it was taken, if it was. */
static void abandon_red(bool taken, rl_group_state whole, bool releases)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    g->whole = taken ? rl_group_new(&p.home, 0) : NULL;
    EXPECT(!taken || rl_group_move(g->whole, RL_GROUP_FORMING, whole));
    abandon(&p, h[0], releases);
    rl_group_unref(g);
    play_close(&p);
}

#define ABANDONED_WHILE_IT(is, state, releases)                                \
    TEST_CASE(hold_group, of_an_owner_that_ended_while_its_multi_##is,         \
              abandon_multi(state, releases))                                  \
    TEST_CASE(hold_group, of_a_quorum_whose_owner_ended_while_its_multi_##is,  \
              abandon_red(true, state, releases))

ABANDONED_WHILE_IT(forms, RL_GROUP_FORMING, true)
ABANDONED_WHILE_IT(has_lost_a_member, RL_GROUP_SPOILT, true)
ABANDONED_WHILE_IT(is_owned, RL_GROUP_OWNED, false)
TEST_CASE(hold_group, of_a_quorum_by_itself_whose_owner_ended_is_left,
          abandon_red(false, RL_GROUP_FORMING, false))

/* --- its release ----------------------------------------------------------- */

TEST(hold_group, a_node_has_one_part_for_its_release)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, LEASE_MS);
    rl_part *x = rl_part_new(), *y = rl_part_new();
    EXPECT(x && y);
    EXPECT(rl_hold_keep_spare(h[0], x) && !rl_hold_keep_spare(h[0], y));
    EXPECT(rl_hold_keep_spare(h[1], y)); /* it goes with its hold */
    EXPECT(rl_hold_take_spare(h[0]) == x && !rl_hold_take_spare(h[0]));
    EXPECT(rl_hold_keep_spare(h[0], x));
    rl_group_unref(g);
    play_close(&p);
}

static void expect_no_spare(play *p, rl_hold *h)
{
    rl_part *x = rl_part_new();
    EXPECT(x && !rl_hold_keep_spare(h, x) && !rl_hold_take_spare(h));
    rl_part_let_go(x);
    play_close(p);
}

TEST(hold_group, of_a_lock_by_itself_needs_no_part_for_its_release)
{
    play p;
    expect_no_spare(&p, open_with_hold(&p, LEASE_MS));
}

TEST(hold_group, of_a_multi_lock_needs_no_part_for_its_release)
{
    play p;
    play_open(&p, 1);
    rl_group *g = rl_group_new(&p.home, 0);
    rl_hold *h = play_member(&p, 0, &play_job, g, LEASE_MS);
    rl_group_unref(g);
    expect_no_spare(&p, h);
}

/* --- its client is closed ------------------------------------------------- */

TEST(hold_group,
     of_a_lock_that_is_held_elsewhere_too_is_lost_when_its_client_closes)
{
    play p;
    rl_hold *h[3];
    rl_home other = {.stats = NULL};
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    rl_holds_close(&play_core(&p, 1)->holds, &other, p.now_us);
    EXPECT(h[1]->state == RL_LOST && h[1]->loss == RL_LOSS_CLOSED);
    EXPECT_INT(due_us(&play_core(&p, 1)->holds, h[1]), 0);
    EXPECT(rl_group_is_owned(g));
    rl_group_unref(g);
    play_close(&p);
}

TEST(hold_group, of_a_quorum_ends_with_its_home_and_is_not_told)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    rl_holds_close(&play_core(&p, 0)->holds, &p.home, p.now_us);
    EXPECT(rl_group_is_void(g));
    lose(&p, 1, h[1], RL_LOSS_GONE);
    lose(&p, 2, h[2], RL_LOSS_GONE);
    EXPECT_INT(take_reports(&p, 1) | take_reports(&p, 2), 0);
    rl_group_unref(g);
    play_close(&p);
}

TEST(hold_group, of_a_lock_by_itself_runs_on_when_its_client_closes)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_holds_close(table(&p), &p.home, p.now_us);
    EXPECT_INT(h->state, RL_HELD);
    EXPECT_INT(take_reports(&p, 0), 0);
    play_close(&p);
}

/* It may have been renewed, before it was vacant. */
TEST(hold_group, a_node_that_is_granted_anew_is_renewed_only_if_the_whole_is)
{
    play p;
    rl_hold *h[3];
    rl_group *g = open_red(&p, h, RLOCK_WATCHDOG);
    rl_holds *t = &play_core(&p, 1)->holds;
    lose(&p, 1, h[1], RL_LOSS_GONE);
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, h[1], 100, p.now_us, false, p.now_us);
    rl_mutex_unlock(&t->mutex);
    EXPECT(h[1]->state == RL_HELD && !h[1]->renewed);
    rl_group_unref(g);
    play_close(&p);
}
