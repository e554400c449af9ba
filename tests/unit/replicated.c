/*
 * Verbs of a lock whose replicas have to have what they write: WAIT goes
 * behind, its answer decides, and a yes that too few have is no yes.
 */
#include "deed.h"

#define WAIT_MS 400

static const char *wait_word(deed *d, int n)
{
    return play_word(&d->p, 0, n);
}

/* The latest command is WAIT; else it was not sent. */
static bool waits(deed *d)
{
    return strcmp(wait_word(d, 0), "WAIT") == 0;
}

static void expect_wait(deed *d, const char *replicas, const char *ms)
{
    EXPECT(waits(d));
    EXPECT_STR(wait_word(d, 1), replicas);
    EXPECT_STR(wait_word(d, 2), ms);
}

/* In doubt: another try of the draft may have been granted before. */
static void begin_try(deed *d, const rl_target *what, int64_t lease_ms,
                      bool doubt)
{
    open_deed(d);
    core(d)->set.replica_wait_ms = WAIT_MS;
    d->h = play_draft(&d->p, 0, what, lease_ms);
    d->h->replicas = 2;
    d->h->unknown = doubt;
    rl_part_acquire(d->x, core(d), d->h, lease_ms, d->p.now_us);
    EXPECT_INT(go(d), RL_ASK);
}

static void begin_take(deed *d, const rl_target *what, int64_t lease_ms)
{
    begin_try(d, what, lease_ms, false);
}

static void end_take(deed *d)
{
    rl_give_up(core(d), d->h, d->p.now_us);
    close_deed(d);
}

TEST(replicated, a_grant_is_one_when_they_have_it)
{
    deed d;
    begin_take(&d, &play_job, LEASE_MS);
    expect_wait(&d, "2", "400");
    EXPECT_INT(d.x->until_us - d.p.now_us, (PLAY_TIMEOUT_MS + WAIT_MS) * MS);
    EXPECT_INT(answer(&d, GRANTED(123)), RL_ASK);
    EXPECT_INT(answer(&d, ":2\r\n"), RL_DONE);
    EXPECT(d.x->ok && d.x->verdict == RL_ACQUIRED && !d.h->unknown);
    EXPECT_INT(core(&d)->stats.replica_shortfalls, 0);
    end_take(&d);
}

TEST(replicated, a_grant_that_too_few_have_is_in_doubt)
{
    deed d;
    begin_take(&d, &play_job, LEASE_MS);
    EXPECT_INT(answer(&d, GRANTED(123)), RL_ASK);
    EXPECT_INT(answer(&d, ":1\r\n"), RL_DONE);
    expect_fault(&d, RLOCK_EQUORUM, "1 of 2 replicas");
    EXPECT(d.x->verdict == RL_FAILED && d.h->unknown);
    EXPECT_INT(core(&d)->stats.replica_shortfalls, 1);
    end_take(&d);
}

/* Nothing was written that somebody could have to have. */
TEST(replicated, who_is_told_busy_need_not_know_of_replicas)
{
    deed d;
    begin_take(&d, &play_job, LEASE_MS);
    EXPECT_INT(answer(&d, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&d, ":0\r\n"), RL_DONE);
    EXPECT_INT(d.x->verdict, RL_BUSY);
    EXPECT_INT(core(&d)->stats.replica_shortfalls, 0);
    end_take(&d);
}

TEST(replicated, they_are_waited_for_no_longer_than_the_lease)
{
    deed d;
    begin_take(&d, &play_job, 100);
    expect_wait(&d, "2", "100");
    EXPECT_INT(answer(&d, GRANTED(123)), RL_ASK);
    EXPECT_INT(answer(&d, ":2\r\n"), RL_DONE);
    end_take(&d);
}

/* --- the second try ------------------------------------------------------- */

static void cut_and_count(deed *d, int replies)
{
    EXPECT_INT(play_cut(&d->p, 0), RL_ASK);
    EXPECT_INT(answer(d, GRANTED(123)), RL_ASK);
    for (int i = 2; i < replies; i++)
        EXPECT_INT(answer(d, YES), RL_ASK);
    EXPECT_INT(answer(d, ":2\r\n"), RL_DONE);
    EXPECT(d->x->ok);
}

/* The script for hashes counts in any case, and so writes. */
TEST(replicated, a_hash_that_is_asked_for_again_is_written_by_that)
{
    deed d;
    begin_take(&d, &play_job, LEASE_MS);
    cut_and_count(&d, 2);
    end_take(&d);
}

/* It may find what the first try has left, and write nothing. */
TEST(replicated, a_string_that_is_asked_for_again_is_touched_in_between)
{
    deed d;
    rl_target what = play_job;
    what.scope = RLOCK_LAYOUT_STRING;
    what.layout = RLOCK_LAYOUT_STRING;
    begin_take(&d, &what, LEASE_MS);
    cut_and_count(&d, 3);
    end_take(&d);
}

static void expect_touched(unsigned layout, bool doubt, bool touched)
{
    deed d;
    rl_target what = play_job;
    what.scope = rl_layouts[layout].scope;
    what.layout = (uint8_t)layout;
    begin_try(&d, &what, LEASE_MS, doubt);
    EXPECT_INT(answer(&d, GRANTED(123)), RL_ASK);
    if (touched)
        EXPECT_INT(answer(&d, YES), RL_ASK);
    EXPECT_INT(answer(&d, ":2\r\n"), RL_DONE);
    EXPECT(d.x->ok);
    end_take(&d);
}

#define TOUCHED(name, ...)                                                     \
    TEST_CASE(replicated, name, expect_touched(__VA_ARGS__))

TOUCHED(a_string_that_is_granted_without_doubt_is_written_by_that,
        RLOCK_LAYOUT_STRING, false, false)
TOUCHED(a_string_of_a_draft_in_doubt_is_touched, RLOCK_LAYOUT_STRING, true,
        true)
TOUCHED(a_side_that_is_granted_without_doubt_is_written_by_that,
        RL_LAYOUT_WRITE, false, false)
TOUCHED(a_side_of_a_draft_in_doubt_is_touched, RL_LAYOUT_WRITE, true, true)
TOUCHED(a_hash_of_a_draft_in_doubt_is_written_by_its_try, RLOCK_LAYOUT_HASH,
        true, false)
TOUCHED(a_fair_lock_of_a_draft_in_doubt_is_written_by_its_try, RL_LAYOUT_FAIR,
        true, false)

/* --- extend, and one level more ------------------------------------------- */

static void open_replicated(deed *d, int64_t lease_ms)
{
    open_with_hold(d, lease_ms);
    core(d)->set.replica_wait_ms = WAIT_MS;
    d->h->replicas = 2;
    play_pass(&d->p, 1000 * MS);
}

static void begin_new_lease(deed *d, int64_t lease_ms)
{
    open_replicated(d, LEASE_MS);
    rl_part_extend(d->x, core(d), d->h, lease_ms, RL_NEVER, d->p.now_us);
    EXPECT_INT(go(d), RL_ASK);
    expect_wait(d, "2", "400");
    EXPECT_INT(answer(d, YES), RL_ASK);
}

TEST(replicated, an_extend_counts_when_they_have_it)
{
    deed d;
    begin_new_lease(&d, 2 * LEASE_MS);
    EXPECT_INT(answer(&d, ":2\r\n"), RL_DONE);
    EXPECT(d.x->ok);
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(2 * LEASE_MS));
    close_with_hold(&d);
}

TEST(replicated, an_extend_that_too_few_have_prolongs_nothing)
{
    deed d;
    begin_new_lease(&d, 2 * LEASE_MS);
    EXPECT_INT(answer(&d, ":1\r\n"), RL_DONE);
    expect_fault(&d, RLOCK_EQUORUM, "1 of 2 replicas");
    EXPECT(d.h->expiry.due_us <= PLAY_BEGAN_US + GOOD_US(LEASE_MS));
    EXPECT_INT(d.h->state, RL_HELD);
    close_with_hold(&d);
}

static void begin_level(deed *d, int64_t lease_ms, int64_t more_ms)
{
    open_replicated(d, lease_ms);
    EXPECT(rl_part_reenter(d->x, core(d), d->h, more_ms, d->p.now_us));
    EXPECT_INT(go(d), RL_ASK);
}

/* They are asked for what the hold does not have, or get, anyway. */
TEST(replicated, a_level_waits_for_them_only_when_it_prolongs)
{
    deed d;
    begin_level(&d, LEASE_MS, LEASE_MS / 2);
    EXPECT(!waits(&d) && !d.x->moves);
    close_with_hold(&d);
    begin_level(&d, RLOCK_WATCHDOG, RLOCK_WATCHDOG);
    EXPECT(!waits(&d) && !d.x->moves); /* its renewal will do that */
    close_with_hold(&d);
    begin_level(&d, LEASE_MS, RLOCK_WATCHDOG);
    EXPECT(waits(&d) && d.x->moves);
    close_with_hold(&d);
    begin_level(&d, LEASE_MS, 2 * LEASE_MS);
    EXPECT(waits(&d) && d.x->moves);
    EXPECT_INT(answer(&d, GRANTED(100)), RL_ASK);
    EXPECT_INT(answer(&d, ":2\r\n"), RL_DONE);
    EXPECT(d.x->ok && d.h->count == 2);
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(2 * LEASE_MS));
    close_with_hold(&d);
}

/* Its lease is that of the renewals, which they have. */
TEST(replicated, a_level_that_does_not_wait_for_them_prolongs_nothing)
{
    deed d;
    begin_level(&d, RLOCK_WATCHDOG, RLOCK_WATCHDOG);
    int64_t before_us = d.h->expiry.due_us;
    EXPECT_INT(answer(&d, GRANTED(100)), RL_DONE);
    EXPECT(d.x->ok && d.h->count == 2);
    EXPECT_INT(d.h->expiry.due_us, before_us);
    close_with_hold(&d);
}

TEST(replicated, a_level_that_too_few_have_is_none)
{
    deed d;
    begin_level(&d, LEASE_MS, 2 * LEASE_MS);
    EXPECT_INT(answer(&d, GRANTED(100)), RL_ASK);
    EXPECT_INT(answer(&d, ":0\r\n"), RL_DONE);
    expect_fault(&d, RLOCK_EQUORUM, "0 of 2 replicas");
    EXPECT_INT(d.h->count, 1);
    EXPECT(d.h->deep); /* the server may have counted it */
    close_with_hold(&d);
}

/* Among several, nobody is slow for as long as its replicas are waited for. */
TEST(replicated, a_nodes_patience_is_longer_by_theirs)
{
    deed d;
    begin_take(&d, &play_job, LEASE_MS);
    rl_part plain = *d.x;
    plain.ask.confirm.replicas = 0;
    rl_part_limit(&plain, LEASE_MS, RL_NEVER);
    rl_part_limit(d.x, LEASE_MS, RL_NEVER);
    EXPECT_INT(d.x->limit_us - plain.limit_us, WAIT_MS * MS);
    EXPECT_INT(d.x->patience_us - plain.patience_us, WAIT_MS * MS);
    EXPECT_INT(answer(&d, GRANTED(123)), RL_ASK);
    EXPECT_INT(answer(&d, ":2\r\n"), RL_DONE);
    end_take(&d);
}
