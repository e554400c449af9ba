/*
 * Semaphores on an event loop: acquires and releases that are started, of any
 * number, by no owner.
 */
#include <pthread.h>

#include "loop.h"
#include "permits.h"

/* What has been told of one start. */
typedef struct told {
    rlock_permit *p;
    rlock_status status;
    int times;
} told;

static void note(rlock_permit *p, rlock_status status, void *arg)
{
    told *t = arg;
    EXPECT(status == RLOCK_OK || !p);
    if (status != RLOCK_OK)
        EXPECT_STATUS(rlock_last_error()->status, status);
    t->p = p;
    t->status = status;
    t->times++;
}

static void start(rlock_semaphore *s, int n, int64_t wait_ms, told *t)
{
    *t = (told){.p = NULL};
    EXPECT_STATUS(
        rlock_semaphore_acquire_start(s, n, wait_ms, RLOCK_WATCHDOG, note, t),
        RLOCK_OK);
}

static rlock_permit *take_on_loop(rlock_client *cl, rlock_semaphore *s, int n)
{
    told t;
    start(s, n, SOON, &t);
    LOOP_UNTIL(cl, t.times);
    EXPECT_STATUS(t.status, RLOCK_OK);
    EXPECT(rlock_permit_is_held(t.p));
    return t.p;
}

static rlock_status release_on_loop(rlock_client *cl, rlock_permit *p)
{
    told t = {.p = NULL};
    EXPECT_STATUS(rlock_permit_release_start(p, note, &t), RLOCK_OK);
    LOOP_UNTIL(cl, t.times);
    EXPECT(!t.p);
    return t.status;
}

static scene loop_scene(int64_t lease_ms)
{
    scene s = scene_start(lease_ms, 0);
    EXPECT(rlock_client_fd(s.cl) >= 0);
    return s;
}

TEST(semaphore_loop, what_is_started_needs_no_owner_and_keeps_nobody_busy)
{
    scene s = loop_scene(0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    rlock_permit *a = take_on_loop(s.cl, pool, 1),
                 *b = take_on_loop(s.cl, pool, 2);
    EXPECT_INT(free_of(pool), 0);
    EXPECT_STATUS(release_on_loop(s.cl, a), RLOCK_OK);
    EXPECT_STATUS(release_on_loop(s.cl, b), RLOCK_OK);
    expect_pool_left(s.sv, 3);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST(semaphore_loop, blocking_and_started_verbs_may_be_mixed)
{
    scene s = loop_scene(0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    give_back(take_on_loop(s.cl, pool, 2));
    EXPECT_STATUS(release_on_loop(s.cl, take(pool, 2, RLOCK_WATCHDOG)),
                  RLOCK_OK);
    EXPECT_INT(free_of(pool), 3);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST(semaphore_loop, a_hundred_waits_on_one_handle_are_served_in_their_order)
{
    enum { WAITS = 100 };
    static told t[WAITS];
    scene s = loop_scene(0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 2),
                    *theirs = test_semaphore(other, POOL, 2);
    rlock_permit *all = take(theirs, 2, RLOCK_WATCHDOG);
    for (int i = 0; i < WAITS; i++)
        start(pool, 1, RLOCK_FOREVER, &t[i]);
    rlock_semaphore_free(pool); /* it may be freed at once */
    EVENTUALLY(SOON, (rlock_client_dispatch(s.cl), standing_at(s.sv)) == WAITS);
    give_back(all);
    for (int i = 0; i < WAITS; i++) {
        LOOP_UNTIL(s.cl, t[i].times);
        EXPECT_STATUS(t[i].status, RLOCK_OK);
        for (int later = i + 2; later < WAITS; later++)
            EXPECT(!t[later].times);
        EXPECT_STATUS(release_on_loop(s.cl, t[i].p), RLOCK_OK);
    }
    EXPECT_INT(free_of(theirs), 2);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    rlock_semaphore_free(theirs);
    rlock_client_free(other);
    scene_stop(&s);
}

static int told_of(const told *t, int n)
{
    int times = 0;
    for (int i = 0; i < n; i++)
        times += t[i].times;
    return times;
}

/* The loop gives the connection to some of those who await it, and then to others. */
TEST(semaphore_loop, who_starts_later_stands_behind_who_awaits_the_connection)
{
    enum { EARLY = 1000, WAITS = EARLY + 1500 };
    static told t[WAITS];
    scene s = scene_proxied(0, 0);
    EXPECT(rlock_client_fd(s.cl) >= 0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 1),
                    *theirs = test_semaphore(other, POOL, 1);
    rlock_permit *one = take(theirs, 1, RLOCK_WATCHDOG);
    proxy_rule(s.px, "PING", PROXY_EVERY, PROXY_HOLD_REPLY, NULL);
    for (int i = 0; i < EARLY; i++)
        start(pool, 1, RLOCK_FOREVER, &t[i]);
    EVENTUALLY(SOON, proxy_fired(s.px));
    proxy_let_go(s.px);
    for (int i = EARLY; i < WAITS; i++)
        start(pool, 1, RLOCK_FOREVER, &t[i]);
    EVENTUALLY(SOON, (rlock_client_dispatch(s.cl), standing_at(s.sv)) == WAITS);
    give_back(one);
    for (int i = 0; i < WAITS; i++) {
        LOOP_UNTIL(s.cl, told_of(t, WAITS) > i);
        EXPECT_INT(t[i].times, 1);
        EXPECT_STATUS(release_on_loop(s.cl, t[i].p), RLOCK_OK);
    }
    rlock_semaphore_free(pool);
    rlock_semaphore_free(theirs);
    rlock_client_free(other);
    scene_stop(&s);
}

/* The front looks four times a second for all of them. */
TEST(semaphore_loop, a_thousand_who_stand_in_line_ask_as_one)
{
    enum { WAITS = 1000, LOOKS = 8, LEAST_MS = LOOKS * 150 };
    static told t[WAITS];
    scene s = loop_scene(0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 1),
                    *theirs = test_semaphore(other, POOL, 1);
    rlock_permit *all = take(theirs, 1, RLOCK_WATCHDOG);
    start(pool, 1, RLOCK_FOREVER, &t[0]);
    EVENTUALLY(SOON, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    for (int i = 1; i < WAITS; i++)
        start(pool, 1, RLOCK_FOREVER, &t[i]);
    EVENTUALLY(SOON, standing_at(s.sv) == WAITS &&
                         stats_of(s.cl).waiting_now == WAITS);
    long long before = script_calls(s.sv);
    int64_t began_ms = test_now_ms();
    EVENTUALLY(SOON, script_calls(s.sv) - before > LOOKS);
    EXPECT(test_since_ms(began_ms) >= LEAST_MS);
    rlock_semaphore_cancel(pool);
    for (int i = 0; i < WAITS; i++)
        LOOP_UNTIL(s.cl, t[i].times);
    give_back(all);
    expect_pool_left(s.sv, 1);
    rlock_semaphore_free(pool);
    rlock_semaphore_free(theirs);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST(semaphore_loop, a_started_acquire_is_busy_runs_out_or_is_canceled)
{
    scene s = loop_scene(0);
    told t, u;
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 1);
    rlock_permit *one = take(pool, 1, RLOCK_WATCHDOG);
    start(pool, 1, 0, &t);
    LOOP_UNTIL(s.cl, t.times);
    EXPECT_STATUS(t.status, RLOCK_BUSY);
    start(pool, 1, 50, &t);
    LOOP_UNTIL(s.cl, t.times);
    EXPECT_STATUS(t.status, RLOCK_TIMEOUT);
    start(pool, 1, RLOCK_FOREVER, &t);
    start(pool, 2, RLOCK_FOREVER, &u);
    rlock_semaphore_cancel(pool);
    LOOP_UNTIL(s.cl, t.times && u.times);
    EXPECT_STATUS(t.status, RLOCK_CANCELED);
    EXPECT_STATUS(u.status, RLOCK_CANCELED);
    give_back(one);
    expect_pool_left(s.sv, 1);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST(semaphore_loop, freeing_the_client_ends_what_is_started)
{
    scene s = loop_scene(0);
    told t[3];
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 1);
    rlock_permit *one = take(pool, 1, RLOCK_WATCHDOG);
    for (int i = 0; i < 3; i++)
        start(pool, 1, RLOCK_FOREVER, &t[i]);
    scene_free_client(&s);
    for (int i = 0; i < 3; i++) {
        EXPECT_INT(t[i].times, 1);
        EXPECT_STATUS(t[i].status, RLOCK_ECLOSED);
    }
    EXPECT_STATUS(rlock_permit_release_start(one, note, &t[0]), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_permit_release(one), RLOCK_ECLOSED);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST(semaphore_loop, what_was_lost_is_told_by_the_release)
{
    test_lease(TEST_LEASE_MS);
    scene s = loop_scene(0);
    rlock_permit *p;
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 1);
    EXPECT_STATUS(rlock_semaphore_acquire(pool, 1, 0, TEST_LEASE_MS, &p),
                  RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(release_on_loop(s.cl, p), RLOCK_LOST);
    EVENTUALLY(SOON, free_of(pool) == 1); /* by the server's clock */
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST(semaphore_loop, what_is_out_of_range_is_not_started)
{
    scene s = loop_scene(0);
    told t = {.p = NULL};
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 1);
    EXPECT_STATUS(rlock_semaphore_acquire_start(pool, 0, 0, 0, note, &t),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_acquire_start(pool, 1001, 0, 0, note, &t),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_acquire_start(pool, 1, -2, 0, note, &t),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_acquire_start(pool, 1, 0, 1, note, &t),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_acquire_start(pool, 1, 0, 0, NULL, &t),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_acquire_start(NULL, 1, 0, 0, note, &t),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_permit_release_start(NULL, note, &t), RLOCK_EINVAL);
    EXPECT_INT(t.times, 0);
    EXPECT_STATUS(rlock_permit_release_start(take(pool, 1, 0), NULL, NULL),
                  RLOCK_OK);
    EVENTUALLY(SOON, (rlock_client_dispatch(s.cl), free_of(pool)) == 1);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}
