/* The hold table: what is lost, told and undone. */
#include <time.h>

#include "hold.h"

/* --- lost ----------------------------------------------------------------- */

TEST(hold_lost, that_expires_is_lost_and_told_once)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    p.now_us = h->expiry.due_us - 1;
    expire(&p);
    EXPECT_INT(h->state, RL_HELD);
    play_pass(&p, 1);
    expire(&p);
    EXPECT(h->state == RL_LOST && h->loss == RL_LOSS_EXPIRED);
    EXPECT_INT(take_reports(&p, 0), LOST);
    expire(&p);
    EXPECT(!is_valid(&p, h));
    EXPECT_INT(take_reports(&p, 0), 0);
    EXPECT_INT(play_losses(&play_core(&p, 0)->stats), 1);
    EXPECT_INT(play_core(&p, 0)->stats.held_now, 0);
    play_close(&p);
}

TEST(hold_lost, all_that_are_past_their_deadline_expire_and_no_others)
{
    play p;
    play_open(&p, 1);
    rl_hold *a = play_hold(&p, 0, "a", 1000);
    rl_hold *b = play_hold(&p, 0, "b", 2000);
    rl_hold *c = play_hold(&p, 0, "c", 9000);
    p.now_us = b->expiry.due_us;
    expire(&p);
    EXPECT(a->state == RL_LOST && b->state == RL_LOST && c->state == RL_HELD);
    play_close(&p);
}

TEST(hold_lost, that_is_lost_stays_in_the_table_for_its_owners_unlocks)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    lose(&p, 0, h, RL_LOSS_GONE);
    EXPECT(find(&p, p.owner.serial) == h);
    end(&p, h);
    EXPECT(!find(&p, p.owner.serial));
    EXPECT_INT(take_reports(&p, 0), LOST);
    play_close(&p);
}

TEST(hold_lost, a_loss_is_told_though_the_hold_is_over_by_then)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_report_locked(table(&p), h, RLOCK_EVENT_RENEWED);
    rl_mutex_unlock(&table(&p)->mutex);
    lose(&p, 0, h, RL_LOSS_GONE);
    end(&p, h);
    EXPECT_INT(take_reports(&p, 0), LOST); /* but no renewal */
    play_close(&p);
}

TEST(hold_lost, nothing_is_queued_for_a_client_that_does_not_listen)
{
    play p;
    play_open(&p, 1);
    table(&p)->wants_reports = false;
    rl_hold *h = play_hold(&p, 0, "job", LEASE_MS);
    lose(&p, 0, h, RL_LOSS_GONE);
    EXPECT_INT(take_reports(&p, 0), 0);
    EXPECT_INT(play_losses(&play_core(&p, 0)->stats), 1);
    play_close(&p);
}

/* --- who sleeps ----------------------------------------------------------- */

TEST(hold_lost, a_sleeper_is_woken_only_by_what_is_due_earlier)
{
    play p;
    play_open(&p, 1);
    play_hold(&p, 0, "a", RLOCK_WATCHDOG);
    EXPECT_INT(p.client[0].wakes[PLAY_KEEPER], 1);
    EXPECT_INT(p.client[0].wakes[PLAY_NOTIFIER], 1);
    play_pass(&p, 1000);
    rl_hold *b = play_hold(&p, 0, "b", RLOCK_WATCHDOG);
    end(&p, b);
    EXPECT_INT(p.client[0].wakes[PLAY_KEEPER], 1);
    EXPECT_INT(p.client[0].wakes[PLAY_NOTIFIER], 1);
    play_hold(&p, 0, "c", 1000); /* ends earlier, is not renewed */
    EXPECT_INT(p.client[0].wakes[PLAY_KEEPER], 1);
    EXPECT_INT(p.client[0].wakes[PLAY_NOTIFIER], 2);
    play_close(&p);
}

TEST(hold_lost, a_sleeper_that_is_awake_is_not_woken)
{
    play p;
    play_open(&p, 1);
    table(&p)->first.sleeps_us = 0;
    table(&p)->sleeps_us = 0;
    rl_hold *h = play_hold(&p, 0, "job", RLOCK_WATCHDOG);
    lose(&p, 0, h, RL_LOSS_GONE);
    EXPECT_INT(p.client[0].wakes[PLAY_KEEPER], 0);
    EXPECT_INT(p.client[0].wakes[PLAY_NOTIFIER], 0);
    play_close(&p);
}

TEST(hold_lost, both_sleepers_are_woken_to_stop)
{
    play p;
    play_open(&p, 1);
    rl_holds_stop(table(&p));
    EXPECT(table(&p)->stopping);
    EXPECT_INT(p.client[0].wakes[PLAY_KEEPER], 1);
    EXPECT_INT(p.client[0].wakes[PLAY_NOTIFIER], 1);
    play_close(&p);
}

TEST(hold_lost, the_notifier_is_woken_when_a_connection_is_back)
{
    play p;
    play_open(&p, 1);
    rl_holds_reconnected(table(&p));
    EXPECT(table(&p)->reconnected);
    EXPECT_INT(p.client[0].wakes[PLAY_NOTIFIER], 1);
    play_close(&p);
}

/* --- undone --------------------------------------------------------------- */

static void undo(play *p, rl_hold *h, int64_t at_us)
{
    rl_mutex_lock(&table(p)->mutex);
    rl_hold_undo_locked(table(p), h, at_us);
    rl_mutex_unlock(&table(p)->mutex);
}

/* Of a latch it is a count-down. */
static void expect_undone(const rl_target *what, size_t uncounted)
{
    play p;
    play_open(&p, 1);
    rl_hold *h = play_draft(&p, 0, what, LEASE_MS);
    undo(&p, h, p.now_us + 5);
    EXPECT(h->state == RL_UNDOING && table(&p)->undoing == 1);
    EXPECT_INT(table(&p)->uncounted, uncounted);
    EXPECT_INT(due_us(table(&p), h), p.now_us + 5);
    EXPECT_INT(p.client[0].wakes[PLAY_KEEPER], 1);
    rl_mutex_lock(&table(&p)->mutex);
    rl_heap_remove(&table(&p)->first.work, &h->work);
    rl_hold_undone_locked(table(&p), h);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT_INT(table(&p)->undoing, 0);
    EXPECT_INT(table(&p)->uncounted, 0);
    EXPECT_INT(table(&p)->records.count, 0);
    play_close(&p);
}

static const rl_target gate = {.name = "gate",
                               .len = 4,
                               .scope = RL_LATCH_SCOPE,
                               .layout = RLOCK_LAYOUT_HASH};

TEST_CASE(hold_lost, that_is_to_be_undone_is_the_keepers,
          expect_undone(&play_job, 0))
TEST_CASE(hold_lost, of_a_latch_is_a_count_down_until_it_is_undone,
          expect_undone(&gate, 1))

/* A server that was stopped may execute it a minute later. */
TEST(hold_lost, of_unknown_outcome_is_undone_for_at_least_a_minute)
{
    play p;
    play_open(&p, 1);
    rl_hold *h = play_draft(&p, 0, &play_job, 1000);
    h->unknown = true;
    rl_hold_expect(h, p.now_us, 1000);
    undo(&p, h, p.now_us);
    EXPECT_INT(h->gone_us, p.now_us + RL_LATE_MS * MS);
    play_close(&p);
}

TEST(hold_lost, of_a_known_outcome_is_undone_until_its_leases_have_run_out)
{
    play p;
    play_open(&p, 1);
    rl_hold *h = play_draft(&p, 0, &play_job, 1000);
    rl_hold_expect(h, p.now_us, 1000);
    undo(&p, h, p.now_us);
    EXPECT_INT(h->gone_us, p.now_us + 1000 * MS);
    play_close(&p);
}

/* It waits for the answer of an extend, and may have been taken twice. */
TEST(hold_lost, is_undone_also_if_its_extend_ends_after_its_owner)
{
    play p;
    play_open(&p, 1);
    rl_hold *h = play_draft(&p, 0, &play_job, RLOCK_WATCHDOG);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_grant_locked(table(&p), h, 1, p.now_us, true, p.now_us);
    h->unknown = true;
    rl_mutex_unlock(&table(&p)->mutex);
    rl_holds_abandon(table(&p), p.owner.serial, p.now_us);
    EXPECT_INT(h->state, RL_UNDOING);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_stop_renewal_locked(table(&p), h);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT(h->work.at);
    play_close(&p);
}

/* --- an owner ends -------------------------------------------------------- */

TEST(hold_lost, the_holds_of_an_owner_that_ended_are_told_and_forgotten)
{
    play p;
    play_open(&p, 1);
    rl_hold *h = play_hold(&p, 0, "a", RLOCK_WATCHDOG);
    play_hold(&p, 0, "b", LEASE_MS);
    h->refs++;
    rl_holds_abandon(table(&p), p.owner.serial, p.now_us);
    EXPECT_INT(h->state, RL_OVER);
    EXPECT_INT(due_us(table(&p), h), 0);
    EXPECT_INT(table(&p)->map.count, 0);
    EXPECT_INT(take_reports(&p, 0), ABANDONED);
    rl_holds_put(table(&p), h);
    EXPECT_INT(table(&p)->records.count, 0);
    play_close(&p);
}

TEST(hold_lost, the_holds_of_other_owners_stay)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_holds_abandon(table(&p), p.rival.serial, p.now_us);
    EXPECT(h->state == RL_HELD && find(&p, p.owner.serial) == h);
    EXPECT_INT(take_reports(&p, 0), 0);
    play_close(&p);
}

TEST(hold_lost, that_was_lost_before_its_owner_ended_is_not_told_again)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    p.now_us = h->expiry.due_us;
    rl_holds_abandon(table(&p), p.owner.serial, p.now_us);
    EXPECT_INT(take_reports(&p, 0), LOST);
    EXPECT_INT(table(&p)->map.count, 0);
    play_close(&p);
}

/* Not at once: the dead owner's lock is to last as long as its lease. */
TEST(hold_lost,
     of_a_dead_owner_is_undone_after_its_lease_if_it_may_still_arrive)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    h->unknown = true;
    int64_t gone_us = h->gone_us;
    rl_holds_abandon(table(&p), p.owner.serial, p.now_us);
    EXPECT_INT(h->state, RL_UNDOING);
    EXPECT_INT(due_us(table(&p), h), gone_us);
    play_close(&p);
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* One hold ends among so many of others; the best of several times. */
static int64_t abandon_ns(int others)
{
    play p;
    int64_t best_ns = INT64_MAX;
    play_open(&p, 1);
    for (int i = 0; i < others; i++) {
        p.owner.serial = 1000 + (uint64_t)i;
        play_hold(&p, 0, "job", LEASE_MS);
    }
    p.owner.serial = 1;
    for (int i = 0; i < 100; i++) {
        play_hold(&p, 0, "job", LEASE_MS);
        int64_t began_ns = now_ns();
        rl_holds_abandon(table(&p), p.owner.serial, p.now_us);
        best_ns = rl_min(best_ns, now_ns() - began_ns);
        EXPECT_INT(take_reports(&p, 0), ABANDONED);
        EXPECT_INT(table(&p)->map.count, others);
    }
    play_close(&p);
    return best_ns;
}

/* The table is not scanned for what the owner had. */
TEST(hold_lost, the_end_of_an_owner_takes_no_longer_among_many_others)
{
    int64_t few_ns = abandon_ns(100);
    EXPECT_BETWEEN(abandon_ns(50000), 0, 10 * few_ns);
}

/* So that the mutex is free in between. */
TEST(hold_lost, so_many_expire_at_a_time_as_are_wanted)
{
    play p;
    rl_hold *h[3];
    bool more;
    play_open(&p, 1);
    for (int i = 0; i < 3; i++)
        h[i] = play_hold(&p, 0, (char[2]){(char)('a' + i)}, LEASE_MS + i);
    p.now_us = h[2]->expiry.due_us;
    for (int lost = 0; lost <= 3; lost += lost ? 1 : 2) {
        rl_mutex_lock(&table(&p)->mutex);
        more = rl_holds_expire_locked(table(&p), lost ? 1 : 2, p.now_us);
        rl_mutex_unlock(&table(&p)->mutex);
        EXPECT_INT(more, lost == 0);
        for (int i = 0; i < 3; i++)
            EXPECT_INT(h[i]->state == RL_LOST, i < (lost ? 3 : 2));
    }
    play_close(&p);
}

static void expect_nobody_woken(play *p, void (*stop)(rl_holds *t))
{
    int keeper = p->client[0].wakes[PLAY_KEEPER];
    int notifier = p->client[0].wakes[PLAY_NOTIFIER];
    table(p)->sleeps_us = table(p)->first.sleeps_us = 0;
    stop(table(p));
    EXPECT_INT(p->client[0].wakes[PLAY_KEEPER], keeper);
    EXPECT_INT(p->client[0].wakes[PLAY_NOTIFIER], notifier);
}

TEST(hold_lost, who_is_awake_is_not_woken_to_stop_or_to_tell)
{
    play p;
    play_open(&p, 1);
    expect_nobody_woken(&p, rl_holds_reconnected);
    expect_nobody_woken(&p, rl_holds_stop);
    EXPECT(table(&p)->stopping && table(&p)->reconnected);
    play_close(&p);
}
