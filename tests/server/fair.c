/*
 * Fair locks: whoever waits gets the lock in the order of the first tries, by
 * whatever client, thread or process; and what that costs when one of them is
 * gone, deaf or slow.
 */
#include <stdatomic.h>

#include <rlock/async.h>
#include <rlock/multi.h>
#include <rlock/owner.h>

#include "direct.h"
#include "other_client.h"

#define LINE  "rlock_line:{" SCENE_LOCK "}"
#define WANTS "rlock_wants:{" SCENE_LOCK "}"

static rlock *fair_lock(rlock_client *cl, int min_replicas)
{
    rlock *lk;
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.fair = true;
    o.min_replicas = min_replicas;
    EXPECT_STATUS(rlock_new_ex(cl, SCENE_LOCK, strlen(SCENE_LOCK), &o, &lk),
                  RLOCK_OK);
    return lk;
}

static long long in_line(server *sv)
{
    return server_int(sv, "ZCARD " LINE);
}

/* What those who waited may still have there goes with its time. */
static void expect_line_gone(server *sv)
{
    EVENTUALLY(SOON, !key_exists(sv, LINE) && !key_exists(sv, WANTS));
}

/* Two clients of one server, each with a fair handle. */
typedef struct pair {
    scene s;
    other_client o;
    rlock *mine, *theirs;
} pair;

static pair pair_start(void)
{
    pair p = {.s = scene_start(0, 0)};
    p.o = other_client_join(&p.s, NULL);
    p.mine = fair_lock(p.s.cl, 0);
    p.theirs = fair_lock(p.o.cl, 0);
    return p;
}

static void pair_stop(pair *p)
{
    rlock_free(p->mine);
    rlock_free(p->theirs);
    other_client_leave(&p->o);
    expect_line_gone(p->s.sv);
    expect_nothing_left(p->s.sv);
    scene_stop(&p->s);
}

/* As the n-th in line. */
static waiter *stand(pair *p, rlock *lk, int64_t wait_ms, int64_t lease_ms,
                     int n)
{
    waiter *w = waiter_start(lk, wait_ms, lease_ms);
    EVENTUALLY(SOON, in_line(p->s.sv) == n);
    return w;
}

/* --- order ---------------------------------------------------------------- */

TEST(fair, who_asks_first_is_served_first_whatever_client_it_is)
{
    enum { N = 8 };
    pair p = pair_start();
    waiter *w[N];
    int64_t at_ms, before_ms = 0;
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    for (int i = 0; i < N; i++)
        w[i] =
            stand(&p, i % 3 ? p.theirs : p.mine, 30000, RLOCK_WATCHDOG, i + 1);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(waiter_status(w[i], &at_ms), RLOCK_OK);
        EXPECT(at_ms >= before_ms);
        for (int later = i + 1; later < N; later++)
            EXPECT(!waiter_returned(w[later]));
        before_ms = at_ms;
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
    }
    pair_stop(&p);
}

TEST(fair, a_release_is_all_that_a_grant_costs)
{
    pair p = pair_start();
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    waiter *w = stand(&p, p.theirs, 30000, RLOCK_WATCHDOG, 1);
    /* It has read the last answer: granted before, it would ask once more. */
    EVENTUALLY(SOON, server_int(p.s.sv, "PUBSUB NUMPAT") == 0 &&
                         queued(p.s.sv, SCENE_LOCK) == 1 &&
                         stats_of(p.o.cl).waiting_now == 1);
    long long before = script_calls(p.s.sv);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_INT(script_calls(p.s.sv) - before, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    pair_stop(&p);
}

TEST(fair, who_does_not_wait_is_told_who_has_it)
{
    pair p = pair_start();
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(p.theirs), RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, "held by ");
    EXPECT_INT(in_line(p.s.sv), 0);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(p.theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.theirs), RLOCK_OK);
    pair_stop(&p);
}

/* --- what is granted ------------------------------------------------------ */

TEST(fair, what_was_granted_is_kept_by_renewals)
{
    pair p = pair_start();
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    waiter *w = stand(&p, p.theirs, 30000, RLOCK_WATCHDOG, 1);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EVENTUALLY(SOON, key_ttl(p.s.sv, SCENE_LOCK) > 20000);
    EXPECT(!rlock_is_held(p.mine));
    EXPECT_INT(levels(p.s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    pair_stop(&p);
}

TEST(fair, a_lease_that_was_asked_for_is_had_in_full)
{
    pair p = pair_start();
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    waiter *w = stand(&p, p.theirs, 30000, 60000, 1);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(p.s.sv, SCENE_LOCK), 40000, 60000);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    pair_stop(&p);
}

/* Nobody unlocks. The server rings nobody then, and the client of those who wait
   knows when the leases of its own holders are over. */
TEST(fair, a_lease_that_ran_out_lets_the_next_of_its_client_in)
{
    enum { WAITERS = 5, LEASE = 300 };
    pair p = pair_start();
    waiter *w[WAITERS];
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p.mine, 0, LEASE), RLOCK_OK);
    for (int i = 0; i < WAITERS; i++)
        w[i] = waiter_start(p.mine, 30000, LEASE);
    for (int i = 0; i < WAITERS; i++)
        EXPECT_STATUS(waiter_status(w[i], NULL), RLOCK_OK);
    /* One look by itself comes after 1500 ms or more. */
    EXPECT_BETWEEN(test_now_ms() - began, WAITERS * (LEASE - CLOCK_AGE_MS),
                   WAITERS * LEASE + 1000);
    for (int i = 0; i < WAITERS; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_LOST);
    pair_stop(&p);
}

TEST(fair, tokens_grow_from_grant_to_grant)
{
    enum { N = 50 };
    pair p = pair_start();
    uint64_t last = 0;
    for (int i = 0; i < N; i++) {
        rlock *lk = i % 2 ? p.mine : p.theirs;
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        waiter *w =
            stand(&p, i % 2 ? p.theirs : p.mine, 30000, RLOCK_WATCHDOG, 1);
        EXPECT(rlock_token(lk) > last);
        last = rlock_token(lk);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    }
    pair_stop(&p);
}

/* --- who gives up --------------------------------------------------------- */

/* By whom it is held, and for how long, as on the server. */
static void expect_told_who(pair *p)
{
    rlock_holder h;
    char wanted[600];
    EXPECT_STATUS(rlock_holder_info(p->mine, &h, sizeof h), RLOCK_OK);
    snprintf(wanted, sizeof wanted, ": held by %s:%lld:%lld for ", h.host,
             (long long)h.pid, (long long)h.tid);
    EXPECT_CONTAINS(rlock_last_error()->message, wanted);
}

TEST(fair, who_gives_up_leaves_the_line)
{
    pair p = pair_start();
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    waiter *w = stand(&p, p.theirs, 30000, RLOCK_WATCHDOG, 1);
    rlock *other = fair_lock(p.o.cl, 0);
    EXPECT_STATUS(rlock_acquire(other, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    expect_told_who(&p);
    rlock_free(other);
    EXPECT_INT(in_line(p.s.sv), 1);
    rlock_cancel(p.theirs);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    EXPECT_INT(in_line(p.s.sv), 0);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_OK);
    pair_stop(&p);
}

/* --- beside plain handles ------------------------------------------------- */

TEST(fair, a_level_more_goes_by_either_handle)
{
    pair p = pair_start();
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    EXPECT_INT(levels(p.s.sv, SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    EXPECT_INT(levels(p.s.sv, SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.mine), RLOCK_OK);
    pair_stop(&p);
}

static void expect_woken_at_once(pair *p, rlock *holder, rlock *waiting)
{
    EXPECT_STATUS(rlock_lock(holder), RLOCK_OK);
    waiter *w = waiter_start(waiting, 30000, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, queued(p->s.sv, SCENE_LOCK) == 1);
    test_pause_ms(20);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(holder), RLOCK_OK);
    waiter_expect_rung(w, freed_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EVENTUALLY(SOON, queued(p->s.sv, SCENE_LOCK) == 0);
}

TEST(fair, plain_and_fair_handles_wake_each_other)
{
    pair p = pair_start();
    expect_woken_at_once(&p, p.s.lk, p.theirs);
    expect_woken_at_once(&p, p.mine, p.o.lk);
    expect_woken_at_once(&p, p.s.lk, p.mine);
    expect_woken_at_once(&p, p.mine, p.s.lk);
    pair_stop(&p);
}

/* --- several, owners ------------------------------------------------------- */

TEST(fair, a_multi_lock_may_have_fair_members)
{
    pair p = pair_start();
    rlock *plain = test_lock(p.s.cl, "zzz"), *multi;
    rlock *members[] = {plain, p.mine};
    EXPECT_STATUS(rlock_multi_new(members, 2, &multi), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(p.theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(multi), RLOCK_BUSY);
    waiter *w = stand(&p, multi, RLOCK_FOREVER, RLOCK_WATCHDOG, 1);
    EXPECT_STATUS(rlock_unlock(p.theirs), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(levels(p.s.sv, "zzz") + levels(p.s.sv, SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_trylock(p.theirs), RLOCK_BUSY);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(multi);
    rlock_free(plain);
    pair_stop(&p);
}

TEST(fair, a_multi_lock_has_one_handle_of_a_name_be_it_plain_or_fair)
{
    pair p = pair_start();
    rlock *multi, *members[] = {p.mine, p.s.lk};
    EXPECT_STATUS(rlock_multi_new(members, 2, &multi), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "the same lock");
    pair_stop(&p);
}

/* Who holds one and waits for the other is told, by whichever handle. */
TEST(fair, a_circle_is_found_over_both_kinds_of_handles)
{
    pair p = pair_start();
    rlock *b = test_lock(p.s.cl, "b");
    rlock_owner *other;
    EXPECT_STATUS(rlock_owner_new("other", &other), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(b), RLOCK_OK);
    rlock_owner_set(other);
    EXPECT_STATUS(rlock_lock(p.mine), RLOCK_OK);
    EXPECT_STATUS(
        rlock_acquire_start(b, RLOCK_FOREVER, RLOCK_WATCHDOG, NULL, NULL),
        RLOCK_OK);
    rlock_owner_set(NULL);
    EVENTUALLY(SOON, stats_of(p.s.cl).waiting_now == 1);
    EXPECT_STATUS(rlock_acquire(p.mine, 5000, RLOCK_WATCHDOG), RLOCK_EDEADLK);
    EXPECT_INT(in_line(p.s.sv), 0);
    EXPECT_STATUS(rlock_unlock(b), RLOCK_OK);
    rlock_owner_free(other);
    rlock_free(b);
    rlock_free(p.mine);
    rlock_free(p.theirs);
    other_client_leave(&p.o);
    scene_stop(&p.s);
}

/* --- rights --------------------------------------------------------------- */

/* As src/doc/rights.md has them. */
#define RIGHTS                                                                 \
    "ACL SETUSER app on >secret resetkeys resetchannels -@all ~job "           \
    "~rlock_token:* ~rlock_queue:* ~rlock_undone:* ~rlock_line:* "             \
    "~rlock_wants:* &rlock_bell:* &redisson_lock__channel:* +ping +eval "      \
    "+evalsha +subscribe +unsubscribe +publish +time +exists +get +set +del "  \
    "+pexpire +pttl +hset +hexists +hlen +hscan +hdel +zadd +zrem +zpopmin "   \
    "+zrank +zrange +hget +zrevrange +zscore"

/* One has it, and another one waits, as a user with these rights. */
static rlock_status wait_as_user(const char *less)
{
    scene s = scene_server(NULL);
    server_cmd(s.sv, RIGHTS);
    server_cmd(s.sv, less);
    rlock_client *cl = user_client(s.sv);
    rlock_client *rival = user_client(s.sv);
    rlock *mine = fair_lock(cl, 0), *theirs = fair_lock(rival, 0);
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, in_line(s.sv) == 1 || waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    rlock_status got = waiter_end(w);
    rlock_free(mine);
    rlock_free(theirs);
    rlock_client_free(cl);
    rlock_client_free(rival);
    server_stop(s.sv);
    return got;
}

TEST(fair, a_user_with_the_rights_that_are_told_can_use_it)
{
    EXPECT_STATUS(wait_as_user("PING"), RLOCK_OK);
}

TEST(fair, a_right_that_is_missing_is_told_to_who_waits)
{
    EXPECT_STATUS(wait_as_user("ACL SETUSER app -hget"), RLOCK_ESERVER);
}

/* --- by force ------------------------------------------------------------- */

/* It is the hash's, which rings; and who is rung has the first in line granted
   it. */
static void expect_forced(bool of_a_hold)
{
    pair p = pair_start();
    rlock_holder h;
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    waiter *w = stand(&p, p.theirs, RLOCK_FOREVER, RLOCK_WATCHDOG, 1);
    EVENTUALLY(SOON, queued(p.s.sv, SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_holder_info(p.mine, &h, sizeof h), RLOCK_OK);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(of_a_hold ? rlock_force_unlock_hold(p.mine, h.raw)
                            : rlock_force_unlock(p.mine),
                  RLOCK_OK);
    waiter_expect_rung(w, freed_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_LOST);
    pair_stop(&p);
}

TEST_CASE(fair, what_is_freed_by_force_goes_to_the_first_in_line,
          expect_forced(false))
TEST_CASE(fair, so_does_the_hold_that_was_looked_at, expect_forced(true))

/* --- options -------------------------------------------------------------- */

static void expect_refused(rlock_layout layout)
{
    scene s = scene_start(0, 0);
    rlock *lk;
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.layout = layout;
    o.fair = true;
    EXPECT_STATUS(rlock_new_ex(s.cl, "a", 1, &o, &lk), RLOCK_ENOTSUP);
    EXPECT(!lk);
    scene_stop(&s);
}

TEST_CASE(fair, no_string_is_fair, expect_refused(RLOCK_LAYOUT_STRING))
TEST_CASE(fair, no_timestamp_is_fair, expect_refused(RLOCK_LAYOUT_TIMESTAMP))
