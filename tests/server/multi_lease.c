/*
 * An explicit lease of a Multi lock that had to wait: what it has meanwhile is
 * renewed, and runs out like any other lease once it has all.
 */
#include "nodes.h"

enum { RENEWED_MS = 900, LEASE_MS = 1500, BUSY_MS = 700 };

/* A Red lock and a single one, on the first node. */
typedef struct pair {
    nodes ns;
    party p;
    rlock *one, *all;
} pair;

static pair pair_of(const char *single)
{
    pair x = {.ns = nodes_start(3)};
    x.p = party_join(&x.ns, RENEWED_MS, 0);
    x.one = test_lock(x.p.cl[0], single);
    rlock *both[] = {x.p.lk, x.one};
    EXPECT_STATUS(rlock_multi_new(both, 2, &x.all), RLOCK_OK);
    return x;
}

static bool is_gone(const pair *x, const char *single)
{
    return nodes_having(&x->ns) == 0 && !key_exists(x->ns.sv[0], single);
}

/* Nobody unlocks: only leases that are not renewed end it. */
static void expect_to_run_out(pair *x, const char *single)
{
    EXPECT_STATUS(rlock_acquire(x->all, SOON, LEASE_MS), RLOCK_OK);
    EXPECT(rlock_is_held(x->all));
    EXPECT(nodes_having(&x->ns) >= 2); /* one may have been too late */
    EVENTUALLY(SOON, is_gone(x, single));
    EXPECT_STATUS(rlock_unlock(x->all), RLOCK_LOST);
}

static void pair_end(pair *x)
{
    rlock_free(x->all);
    rlock_free(x->one);
    party_end(&x->p, &x->ns);
}

TEST(multi_lease, a_red_member_that_had_to_wait_for_others_runs_out)
{
    pair x = pair_of("zoo");
    take_by_hand(x.ns.sv[0], "zoo", BUSY_MS);
    expect_to_run_out(&x, "zoo");
    pair_end(&x);
}

TEST(multi_lease, a_red_member_that_was_waited_for_runs_out)
{
    pair x = pair_of("alpha");
    for (size_t i = 0; i < x.ns.n; i++)
        take_by_hand(x.ns.sv[i], SCENE_LOCK, BUSY_MS);
    expect_to_run_out(&x, "alpha");
    pair_end(&x);
}

/* A single lock, which somebody has already, as the Red one, and one that is
   busy. */
typedef struct trio {
    pair x;
    rlock *alpha, *all;
} trio;

/* Both have one level again once all three could not be had. */
static trio trio_failed(int64_t had_ms, int64_t wait_ms, rlock_status status)
{
    trio t = {.x = pair_of("zoo")};
    rlock *red = t.x.p.lk;
    t.alpha = test_lock(t.x.p.cl[0], "alpha");
    EXPECT_STATUS(
        rlock_multi_new((rlock *[]){t.alpha, red, t.x.one}, 3, &t.all),
        RLOCK_OK);
    take_by_hand(t.x.ns.sv[0], "zoo", 60000);
    EXPECT_STATUS(rlock_acquire(t.alpha, 0, had_ms), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(red, 0, had_ms), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(t.all, wait_ms, RLOCK_WATCHDOG), status);
    EXPECT_INT(rlock_hold_count(t.alpha), 1);
    EXPECT_INT(rlock_hold_count(red), 1);
    return t;
}

static void trio_end(trio *t, rlock_status status)
{
    EXPECT_STATUS(rlock_unlock(t->alpha), status);
    EXPECT_STATUS(rlock_unlock(t->x.p.lk), status);
    rlock_free(t->all);
    rlock_free(t->alpha);
    pair_end(&t->x);
}

/* The try, and the wait, had turned renewal on. */
static void expect_failed_to_leave_leases(int64_t wait_ms, rlock_status status)
{
    trio t = trio_failed(LEASE_MS, wait_ms, status);
    EVENTUALLY(2 * LEASE_MS, !key_exists(t.x.ns.sv[0], "alpha") &&
                                 nodes_having(&t.x.ns) == 0);
    trio_end(&t, RLOCK_LOST);
}

TEST_CASE(multi_lease, what_was_held_before_a_failed_try_runs_out,
          expect_failed_to_leave_leases(0, RLOCK_BUSY))
TEST_CASE(multi_lease, what_was_held_before_a_failed_wait_runs_out,
          expect_failed_to_leave_leases(RENEWED_MS, RLOCK_TIMEOUT))

TEST(multi_lease, what_was_renewed_before_a_failed_try_is_still_renewed)
{
    trio t = trio_failed(RLOCK_WATCHDOG, 0, RLOCK_BUSY);
    party_await_renewals(&t.x.p);
    EXPECT(key_exists(t.x.ns.sv[0], "alpha"));
    EXPECT(nodes_having(&t.x.ns) >= 2);
    trio_end(&t, RLOCK_OK);
}

/* It had a lease of the caller's own before, and has the new one now. */
TEST(multi_lease, a_member_that_was_held_before_runs_out)
{
    scene s = scene_start(RENEWED_MS, 0);
    rlock *alpha = test_lock(s.cl, "alpha"), *all;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){s.lk, alpha}, 2, &all), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, LEASE_MS), RLOCK_OK);
    take_by_hand(s.sv, "alpha", BUSY_MS);
    EXPECT_STATUS(rlock_acquire(all, SOON, LEASE_MS), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EVENTUALLY(SOON, levels(s.sv, SCENE_LOCK) == 0);
    EXPECT_STATUS(rlock_unlock(all), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    rlock_free(all);
    rlock_free(alpha);
    scene_stop(&s);
}
