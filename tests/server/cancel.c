/* rlock_client_cancel(): how a program that stops gets its threads back. */
#include <stdatomic.h>

#include "loop.h"
#include "multi_scene.h"
#include "nodes.h"
#include "other_client.h"

/* A thread as programs have them: it looks at its flag, and then waits. */
typedef struct worker {
    rlock *lk;
    atomic_bool stops, runs;
} worker;

static intptr_t work(void *arg)
{
    worker *w = arg;
    atomic_store(&w->runs, true);
    while (!atomic_load(&w->stops))
        EXPECT_STATUS(rlock_lock(w->lk), RLOCK_CANCELED);
    return 0;
}

/* Now the cancel comes before the wait, now into it. */
static void expect_stops(rlock_client *cl, rlock *lk)
{
    for (int i = 0; i < 60; i++) {
        worker w = {.lk = lk};
        test_thread *t = test_spawn(work, &w);
        if (i % 3)
            EVENTUALLY(SOON, atomic_load(&w.runs));
        if (i % 3 == 2)
            test_pause_ms(i % 4);
        atomic_store(&w.stops, true);
        EXPECT_STATUS(rlock_client_cancel(cl, true), RLOCK_OK);
        test_join(t);
        EXPECT_STATUS(rlock_client_cancel(cl, false), RLOCK_OK);
    }
}

TEST(cancel, a_thread_that_was_told_to_stop_always_can_be_joined)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    expect_stops(s.cl, s.lk);
    EXPECT_INT(stats_of(s.cl).waiting_now, 0);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

TEST(cancel, a_red_lock_follows_its_first_client)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 0, 3);
    expect_stops(p.cl[0], p.lk);
    EXPECT_STATUS(rlock_client_cancel(p.cl[1], true), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(p.lk, 50, 0), RLOCK_TIMEOUT);
    party_end(&p, &ns);
}

/* The client of the member that it waits for is canceled, or that of the other. */
static void expect_follows(bool where_it_waits)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    take_by_hand(t.sv, "b", 60000);
    expect_stops(where_it_waits ? t.cl : s.cl, m.all);
    take_by_hand(s.sv, "a", 60000);
    if (!where_it_waits)
        EXPECT_STATUS(rlock_force_unlock(m.lk[1]), RLOCK_OK);
    expect_stops(where_it_waits ? s.cl : t.cl, m.all);
    multi_scene_end_across(&m, &s, &t);
}

TEST_CASE(cancel, a_multi_lock_follows_each_of_its_clients,
          expect_follows(true))
TEST_CASE(cancel, a_multi_lock_follows_the_client_of_a_member_that_it_has,
          expect_follows(false))

TEST(cancel, a_multi_lock_does_not_begin_to_wait_while_it_is_on_for_a_member)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    take_by_hand(t.sv, "b", 60000);
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(m.all, 20000, 0), RLOCK_CANCELED);
    EXPECT_CONTAINS(rlock_last_error()->message, "member 2: ");
    EXPECT_STATUS(rlock_client_cancel(s.cl, false), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(m.all, 50, 0), RLOCK_TIMEOUT);
    multi_scene_end_across(&m, &s, &t);
}

TEST(cancel, a_started_wait_of_a_multi_lock_follows_each_of_its_clients)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    request r = request_new(m.all);
    take_by_hand(t.sv, "b", 60000);
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, 0), RLOCK_OK);
    EVENTUALLY(SOON, rlock_client_dispatch(s.cl) == RLOCK_OK &&
                         levels(s.sv, "a") == 1);
    EXPECT_INT(r.told, 0);
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    EVENTUALLY(SOON, levels(s.sv, "a") == 0);
    request_free(&r);
    multi_scene_end_across(&m, &s, &t);
}

TEST(cancel, a_multi_lock_that_is_freed_follows_nobody)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    multi_scene_free(&m);
    m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    EXPECT_STATUS(rlock_client_cancel(t.cl, true), RLOCK_OK);
    EXPECT_STATUS(rlock_client_cancel(s.cl, false), RLOCK_OK);
    EXPECT_STATUS(rlock_client_cancel(t.cl, false), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(m.all, 1000, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end_across(&m, &s, &t);
}

static intptr_t make_and_free(void *arg)
{
    rlock *const *lk = arg;
    for (int i = 0; i < 500; i++) {
        rlock *all;
        EXPECT_STATUS(rlock_multi_new(lk, 2, &all), RLOCK_OK);
        rlock_free(all);
    }
    return 0;
}

/* While others cancel. */
TEST(cancel, multi_locks_may_be_made_and_freed_meanwhile)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    test_thread *one = test_spawn(make_and_free, m.lk);
    test_thread *two = test_spawn(make_and_free, m.lk);
    for (int i = 0; i < 500; i++) {
        rlock_client *cl = i % 2 ? s.cl : t.cl;
        EXPECT_STATUS(rlock_client_cancel(cl, true), RLOCK_OK);
        EXPECT_STATUS(rlock_client_cancel(cl, false), RLOCK_OK);
    }
    test_join(one);
    test_join(two);
    multi_scene_end_across(&m, &s, &t);
}

TEST(cancel, waits_that_begin_while_it_is_on_end_at_once)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_CANCELED);
        EXPECT_STATUS(rlock_acquire(s.lk, 20000, 1000), RLOCK_CANCELED);
    }
    EXPECT_STATUS(rlock_client_cancel(s.cl, false), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    scene_stop(&s);
}

TEST(cancel, all_waits_of_the_client_end_and_no_others)
{
    scene s = scene_start(0, 0);
    other_client b = other_client_join(&s, NULL);
    rlock *other = test_lock(s.cl, "other");
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    take_by_hand(s.sv, "other", 60000);
    waiter *w[] = {
        waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG),
        waiter_start(s.lk, 20000, RLOCK_WATCHDOG),
        waiter_start(other, RLOCK_FOREVER, RLOCK_WATCHDOG),
    };
    waiters_settle(s.sv, 1, s.cl, 3);
    other_client_wait(&s, &b, 2, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_CANCELED);
    EXPECT(!waiter_returned(b.w));
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    waiter_end(b.w);
    rlock_free(other);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(cancel, what_need_not_wait_is_not_affected)
{
    scene s = scene_held(0, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 5000), RLOCK_OK);
    unlock_times(s.lk, 2, RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_OK);
    EXPECT_STATUS(on_another_thread(rlock_trylock, other), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

TEST(cancel, needs_a_client)
{
    EXPECT_STATUS(rlock_client_cancel(NULL, true), RLOCK_EINVAL);
}
