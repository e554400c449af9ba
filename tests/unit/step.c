/* What an operation asks of a hold, or does to it, in one step. */
#include "hold/step.h"

#include "hold.h"

/* --- what is so ----------------------------------------------------------- */

TEST(step, a_deadline_is_told_until_it_has_passed)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    int64_t deadline_us = p.now_us + GOOD_US(LEASE_MS);
    EXPECT_INT(rl_hold_deadline(table(&p), h, deadline_us - 1), deadline_us);
    EXPECT_INT(rl_hold_deadline(table(&p), h, deadline_us), 0);
    EXPECT_INT(h->state, RL_LOST);
    play_close(&p);
}

TEST(step, a_hold_tells_whether_it_is_renewed)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_hold *other = play_hold(&p, 0, "other", RLOCK_WATCHDOG);
    EXPECT(!rl_hold_is_renewed(table(&p), h));
    EXPECT(rl_hold_is_renewed(table(&p), other));
    play_close(&p);
}

TEST(step, a_reference_more_keeps_the_hold)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_hold_ref(table(&p), h);
    end(&p, h);
    EXPECT_INT(h->refs, 1);
    EXPECT_INT(table(&p)->records.count, 1);
    rl_holds_put(table(&p), h);
    EXPECT_INT(table(&p)->records.count, 0);
    play_close(&p);
}

TEST(step, a_hold_may_be_deep_until_it_has_come_up)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT(!h->deep && !h->astray);
    rl_hold_go_deep(table(&p), h, false);
    EXPECT(h->deep && !h->astray);
    rl_hold_go_deep(table(&p), h, true);
    EXPECT(h->deep && h->astray);
    rl_hold_go_deep(table(&p), h, false);
    rl_hold_come_up(table(&p), h);
    EXPECT(!h->deep && h->astray); /* what is under way stays so */
    play_close(&p);
}

/* --- what becomes of it --------------------------------------------------- */

TEST(step, a_hold_that_lapses_ends_with_its_lease)
{
    play p;
    rl_hold *h = open_with_hold(&p, RLOCK_WATCHDOG);
    int64_t deadline_us = h->expiry.due_us;
    EXPECT(due_us(table(&p), h) > 0);
    rl_hold_lapse(table(&p), h);
    EXPECT(!h->renewed && !h->paused && h->state == RL_HELD);
    EXPECT(due_us(table(&p), h) == 0 && h->expiry.due_us == deadline_us);
    play_close(&p);
}

/* An extend of it is under way, and says what comes next. */
TEST(step, one_that_is_not_renewed_need_not_lapse)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_hold_pause_renewal(table(&p), h);
    rl_hold_lapse(table(&p), h);
    EXPECT(h->paused && !h->renewed);
    play_close(&p);
}

TEST(step, a_draft_is_undone_when_it_is_said)
{
    play p;
    play_open(&p, 1);
    rl_hold *h = play_draft(&p, 0, &play_job, LEASE_MS);
    rl_hold_undo(table(&p), h, p.now_us + 5 * MS);
    EXPECT_INT(h->state, RL_UNDOING);
    EXPECT_INT(table(&p)->undoing, 1);
    EXPECT_INT(due_us(table(&p), h), p.now_us + 5 * MS);
    play_close(&p);
}

/* To a thread that has woken; what was lost meanwhile is nobody's. */
static void expect_arrival(int64_t late_us, bool arrives)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_unlist_locked(table(&p), h);
    rl_mutex_unlock(&table(&p)->mutex);
    h->passing = true;
    p.now_us = h->expiry.due_us + late_us;
    EXPECT_INT(rl_hold_arrive(table(&p), h, p.now_us), arrives);
    EXPECT(!h->passing && (find(&p, 1) == h) == arrives);
    EXPECT_INT(h->state, arrives ? RL_HELD : RL_OVER);
    EXPECT_INT(take_reports(&p, 0), 0);
    if (!arrives)
        rl_holds_put(table(&p), h);
    play_close(&p);
}

TEST_CASE(step, what_is_passed_on_is_found_once_its_thread_has_woken,
          expect_arrival(-1, true))
TEST_CASE(step, what_was_lost_on_the_way_is_over, expect_arrival(0, false))

/* --- on a node of a Red lock ---------------------------------------------- */

static rl_hold *open_node(play *p, bool renewed)
{
    play_open(p, 1);
    rl_group *g = rl_group_new(&p->home, 1);
    EXPECT(g);
    rl_group_set_renewed(g, renewed);
    rl_hold *h = play_draft(p, 0, &play_red, LEASE_MS);
    rl_hold_join(h, g);
    rl_group_unref(g);
    return h;
}

static void expect_absent(bool renewed, bool answered, rl_state state,
                          bool is_asked_again)
{
    play p;
    rl_hold *h = open_node(&p, renewed);
    rl_hold_list_absent(table(&p), h, answered, p.now_us);
    EXPECT(h->state == state && h->count == 1);
    EXPECT_INT(table(&p)->map.count, 1);
    EXPECT_INT(due_us(table(&p), h),
               is_asked_again ? p.now_us + PLAY_LEASE_MS * MS / 3 * 7 / 8 : 0);
    play_close(&p);
}

TEST_CASE(step, a_node_that_refused_is_asked_again_with_the_renewals,
          expect_absent(true, true, RL_VACANT, true))
TEST_CASE(step, a_node_that_refused_is_not_asked_again_without_renewals,
          expect_absent(false, true, RL_VACANT, false))
TEST_CASE(step, a_node_that_has_not_answered_may_grant_it_yet,
          expect_absent(true, false, RL_DRAFT, false))

TEST(step, a_hold_that_joins_a_group_keeps_it)
{
    play p;
    rl_hold *h = open_node(&p, false);
    EXPECT_INT(p.homes, 1);
    rl_holds_put(table(&p), h);
    EXPECT_INT(p.homes, 0);
    play_close(&p);
}

/* Of a node that does not have it. */
static void expect_vacant_policy(bool in_flight, bool renewed, bool is_asked)
{
    play p;
    rl_hold *h = open_node(&p, false);
    rl_hold_list_absent(table(&p), h, true, p.now_us);
    h->in_flight = in_flight;
    rl_hold_set_policy(table(&p), h, renewed, p.now_us);
    EXPECT_INT(due_us(table(&p), h), is_asked ? p.now_us : 0);
    EXPECT(h->state == RL_VACANT && !h->renewed);
    play_close(&p);
}

TEST_CASE(step, a_node_without_it_is_asked_at_once_when_renewals_begin,
          expect_vacant_policy(false, true, true))
TEST_CASE(step, a_node_that_is_being_asked_is_not_asked_twice,
          expect_vacant_policy(true, true, false))
TEST_CASE(step, a_node_without_it_is_left_alone_without_renewals,
          expect_vacant_policy(false, false, false))

/* Of a node that has it. due: RENEWED as before, ANEW at once. */
enum { NOT_DUE, RENEWED, ANEW };

static void expect_policy(int64_t lease_ms, bool paused, bool renewed, int due)
{
    play p;
    rl_hold *h = open_with_hold(&p, lease_ms);
    int64_t third_us = p.now_us + PLAY_LEASE_MS * MS / 3;
    if (paused)
        rl_hold_pause_renewal(table(&p), h);
    play_pass(&p, MS);
    rl_hold_set_policy(table(&p), h, renewed, p.now_us);
    EXPECT(h->state == RL_HELD && h->renewed == renewed && !h->paused);
    int64_t us = due_us(table(&p), h);
    EXPECT_INT(us && us <= p.now_us, due == ANEW);
    EXPECT_INT(us == third_us, due == RENEWED);
    if (renewed) /* what pauses is as late as it was */
        EXPECT_INT(h->renewal_us, lease_ms ? p.now_us : third_us);
    play_close(&p);
}

TEST_CASE(step, renewals_begin_at_once_where_there_were_none,
          expect_policy(LEASE_MS, false, true, ANEW))
TEST_CASE(step, renewals_go_on_at_once_where_they_paused,
          expect_policy(RLOCK_WATCHDOG, true, true, ANEW))
TEST_CASE(step, renewals_that_go_on_keep_their_time,
          expect_policy(RLOCK_WATCHDOG, false, true, RENEWED))
TEST_CASE(step, renewals_end_when_there_shall_be_none,
          expect_policy(RLOCK_WATCHDOG, false, false, NOT_DUE))
TEST_CASE(step, without_renewals_none_end,
          expect_policy(LEASE_MS, false, false, NOT_DUE))
