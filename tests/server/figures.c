/* What is counted, and where, in orders that are not of every day. */
#include <rlock/latch.h>
#include <rlock/metrics.h>
#include <rlock/semaphore.h>

#include "nodes.h"

static rlock_client *timed(server *sv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.metrics = true;
    return server_client(sv, &opts);
}

TEST(figures, a_multi_lock_that_waits_in_vain_counts_no_failure)
{
    scene s = scene_held(0, 0);
    rlock_client *cl = timed(s.sv);
    rlock *a = test_lock(cl, "a"), *b = test_lock(cl, SCENE_LOCK), *both;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){a, b}, 2, &both), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(both, 0, 0), RLOCK_BUSY);
    EXPECT_INT(stats_of(cl).acquires_failed, 0);
    EXPECT_STATUS(rlock_acquire(both, 50, 0), RLOCK_TIMEOUT);
    EXPECT_INT(stats_of(cl).acquires_failed, 0);
    rlock_free(both);
    rlock_free(a);
    rlock_free(b);
    rlock_client_free(cl);
    scene_stop(&s);
}

TEST(figures, a_multi_lock_counts_no_failure_of_a_red_member)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party q = party_join(&ns, 0, 0);
    rlock *a = test_lock(q.cl[0], "a"), *both;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){a, q.lk}, 2, &both), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(both, 0, 0), RLOCK_BUSY);
    EXPECT_INT(stats_of(q.cl[0]).acquires_failed, 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    rlock_free(both);
    rlock_free(a);
    party_leave(&q);
    party_end(&p, &ns);
}

TEST(figures, a_red_member_that_was_free_was_not_waited_for)
{
    nodes ns = nodes_start(1);
    rlock_client *cl = timed(ns.sv[0]);
    rlock *a = test_lock(cl, "a"), *red, *both;
    EXPECT_STATUS(rlock_red_new(&cl, 1, "r", &red), RLOCK_OK);
    EXPECT_STATUS(rlock_multi_new((rlock *[]){a, red}, 2, &both), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(both, 0, 0), RLOCK_OK);
    EXPECT_INT(stats_of(cl).acquires, 2);
    EXPECT_INT(figure_of(cl, "rlock_acquire_wait_seconds", ""), 0);
    EXPECT_STATUS(rlock_unlock(both), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(red, 0, 0), RLOCK_OK);
    EXPECT_INT(figure_of(cl, "rlock_acquire_wait_seconds", ""), 1);
    EXPECT_STATUS(rlock_unlock(red), RLOCK_OK);
    rlock_free(both);
    rlock_free(red);
    rlock_free(a);
    rlock_client_free(cl);
    nodes_stop(&ns);
}

TEST(figures, a_loss_with_a_member_s_client_is_told_by_the_home)
{
    scene s = scene_start(0, 0);
    rlock_client *other = timed(s.sv);
    rlock *b = test_lock(other, "b"), *both;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){s.lk, b}, 2, &both), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(both), RLOCK_OK);
    rlock_client_free(other);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(figure_of(s.cl, "rlock_lost", "cause=\"closed\""), 1);
    EXPECT_INT(stats_of(s.cl).lost, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(both);
    rlock_free(b);
    scene_stop(&s);
}

TEST(figures, a_call_that_is_refused_is_counted_of_every_kind)
{
    nodes ns = nodes_start(1);
    rlock_client *cl = timed(ns.sv[0]);
    rlock *a = test_lock(cl, "a"), *red;
    EXPECT_STATUS(rlock_red_new(&cl, 1, "r", &red), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(a, -5, 0), RLOCK_EINVAL);
    EXPECT_INT(stats_of(cl).acquires_failed, 1);
    EXPECT_STATUS(rlock_acquire(red, -5, 0), RLOCK_EINVAL);
    EXPECT_INT(stats_of(cl).acquires_failed, 2);
    EXPECT_STATUS(rlock_acquire(red, 0, 1), RLOCK_EINVAL);
    EXPECT_INT(stats_of(cl).acquires_failed, 3);
    rlock_free(red);
    rlock_free(a);
    rlock_client_free(cl);
    nodes_stop(&ns);
}

static intptr_t hold_and_end(void *lk)
{
    return rlock_acquire(lk, 0, 300);
}

static intptr_t hold_for_ever_and_end(void *lk)
{
    return rlock_acquire(lk, 0, 0);
}

static void abandon(const scene *s, intptr_t (*hold)(void *lk))
{
    test_thread *t = test_spawn(hold, s->lk);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
}

static void expect_nothing_is_held(scene *s)
{
    EVENTUALLY(SOON, figure_of(s->cl, "rlock_held", "") == 0);
    EXPECT(figure_of(s->cl, "rlock_oldest_hold_seconds", "") == 0);
    scene_stop(s);
}

TEST(figures, what_was_abandoned_is_held_no_more_when_it_is_over)
{
    scene s = scene_start(0, 0);
    abandon(&s, hold_and_end);
    expect_nothing_is_held(&s);
}

TEST(figures, what_was_abandoned_under_the_watchdog_is_held_no_more)
{
    scene s = scene_start(300, 0);
    abandon(&s, hold_for_ever_and_end);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    expect_nothing_is_held(&s);
}

static intptr_t wait_latch(void *l)
{
    return rlock_latch_wait(l, RLOCK_FOREVER);
}

TEST(figures, who_waits_for_a_latch_waits_for_no_lock)
{
    scene s = scene_start(0, 0);
    rlock_latch *l;
    EXPECT_STATUS(rlock_latch_new(s.cl, "l", &l), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    test_thread *t = test_spawn(wait_latch, l);
    EVENTUALLY(SOON, queued(s.sv, "l") == 1);
    EXPECT_INT(stats_of(s.cl).waiting_now, 0);
    EXPECT(figure_of(s.cl, "rlock_longest_wait_seconds", "") == 0);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).acquires, 0);
    rlock_latch_free(l);
    scene_stop(&s);
}
