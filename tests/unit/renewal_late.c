/* How late renewals are, and who is told. */
#include "base/histogram.h"

#include "renewals.h"

/* --- how late a renewal is ------------------------------------------------ */

#define PERIOD_US (PLAY_LEASE_MS * MS / 3)

static const rl_histogram *delays(const round *r)
{
    return &r->e.core.stats.times[RL_TIME_RENEWAL];
}

TEST(renewal_late, a_renewal_in_time_is_hardly_late)
{
    round r;
    open_round(&r, 1);
    EXPECT(rl_stats_time(&r.e.core.stats));
    play_pass(&r.p, PERIOD_US);
    EXPECT_INT(asks(&r, SINGLY), 1);
    play_pass(&r.p, 2 * MS);
    answer(&r, YES);
    EXPECT_INT(delays(&r)->sum_us, 2 * MS);
    EXPECT_INT(delays(&r)->n[rl_bucket(2 * MS)], 1);
    close_round(&r);
}

/* What goes with others goes before it is due. */
TEST(renewal_late, a_renewal_before_its_time_is_not_late)
{
    round r;
    open_round(&r, 2);
    EXPECT(rl_stats_time(&r.e.core.stats));
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "$2\r\n11\r\n");
    EXPECT_INT(delays(&r)->sum_us, 0);
    EXPECT_INT(delays(&r)->n[0], 2);
    close_round(&r);
}

TEST(renewal_late, a_renewal_that_failed_at_first_is_late_since_it_was_due)
{
    round r;
    open_round(&r, 1);
    EXPECT(rl_stats_time(&r.e.core.stats));
    play_pass(&r.p, PERIOD_US);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, LOADING);
    EXPECT_INT(failed(&r), 1);
    play_pass(&r.p, 5000 * MS);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, YES);
    EXPECT_INT(delays(&r)->sum_us, 5000 * MS);
    close_round(&r);
}

TEST(renewal_late, a_renewals_call_is_timed)
{
    round r;
    open_round(&r, 2);
    EXPECT(rl_stats_time(&r.e.core.stats));
    EXPECT_INT(asks(&r, MANY), 1);
    play_pass(&r.p, 4 * MS);
    answer(&r, "$2\r\n11\r\n");
    EXPECT_INT(r.e.core.stats.times[RL_TIME_CALL].sum_us, 4 * MS);
    close_round(&r);
}

/* It had a lease of its own, and is renewed since an hour later. */
TEST(renewal_late, a_renewal_is_due_since_it_was_to_be_renewed)
{
    round r;
    open_round(&r, 1);
    EXPECT(rl_stats_time(&r.e.core.stats));
    rl_mutex_lock(&table(&r)->mutex);
    rl_hold_stop_renewal_locked(table(&r), r.h[0]);
    rl_hold_set_lease_locked(table(&r), r.h[0], r.p.now_us, 7200000,
                             r.p.now_us);
    play_pass(&r.p, 3600000 * MS);
    rl_hold_start_renewal_locked(table(&r), r.h[0], r.p.now_us, r.p.now_us);
    rl_mutex_unlock(&table(&r)->mutex);
    play_pass(&r.p, PERIOD_US);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, YES);
    EXPECT_INT(delays(&r)->sum_us, 0);
    close_round(&r);
}

/* --- that a renewal is late ----------------------------------------------- */

static bool is_told_late(round *r)
{
    bool told = r->h[0]->reports & 1u << RLOCK_EVENT_RENEW_LATE;
    r->h[0]->reports = 0;
    return told;
}

/* After so long; the server's answer. */
static void renew_after(round *r, int64_t us, const char *reply)
{
    play_pass(&r->p, us);
    EXPECT_INT(asks(r, SINGLY), 1);
    answer(r, reply);
}

static uint64_t late(const round *r)
{
    return rl_count_of(&r->e.core.stats.warned[RL_WARNED_RENEWAL]);
}

TEST(renewal_late, a_renewal_by_half_of_the_lease_is_not_late)
{
    round r;
    open_round(&r, 1);
    table(&r)->late_due_us = RL_NEVER;
    renew_after(&r, PLAY_LEASE_MS * MS / 2, YES);
    EXPECT(!is_told_late(&r));
    EXPECT_INT(late(&r), 0);
    close_round(&r);
}

TEST(renewal_late, a_renewal_after_half_of_the_lease_is_told)
{
    round r;
    open_round(&r, 1);
    table(&r)->late_due_us = RL_NEVER;
    renew_after(&r, PLAY_LEASE_MS * MS / 2 + 1, YES);
    EXPECT(is_told_late(&r));
    EXPECT_INT(late(&r), 1);
    renew_after(&r, PERIOD_US, YES);
    EXPECT(!is_told_late(&r));
    close_round(&r);
}

TEST(renewal_late, a_renewal_that_fails_on_and_on_is_told_once)
{
    round r;
    open_round(&r, 1);
    table(&r)->late_due_us = RL_NEVER;
    renew_after(&r, PERIOD_US, LOADING);
    EXPECT(!is_told_late(&r));
    renew_after(&r, PERIOD_US / 2 + 1, LOADING);
    EXPECT(is_told_late(&r));
    renew_after(&r, 1000 * MS, LOADING);
    renew_after(&r, 1000 * MS, YES);
    EXPECT(!is_told_late(&r));
    EXPECT_INT(late(&r), 1);
    close_round(&r);
}

TEST(renewal_late, without_the_option_no_renewal_is_late)
{
    round r;
    open_round(&r, 1);
    renew_after(&r, PLAY_LEASE_MS * MS / 2 + 1, YES);
    EXPECT(!is_told_late(&r));
    EXPECT_INT(late(&r), 0);
    close_round(&r);
}
