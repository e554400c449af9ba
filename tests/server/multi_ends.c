/* How Multi locks, their handles and the clients of their members end. */
#include "multi_scene.h"

TEST(multi_ends, a_freed_handle_leaves_the_members_held)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    rlock_free(m.all);
    m.all = NULL;
    EVENTUALLY(10000, stats_of(s.cl).renewals >= 6);
    expect_levels(&m, 1);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_STATUS(rlock_unlock(m.lk[i]), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* Its group is still one. */
TEST(multi_ends, a_loss_after_the_handle_was_freed_is_one_event)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    rlock_free(m.all);
    m.all = NULL;
    server_cmd(s.sv, "FLUSHALL");
    EVENTUALLY(10000, stats_of(s.cl).lost == 2);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_STATUS(rlock_unlock(m.lk[i]), RLOCK_LOST);
    multi_scene_end_with_losses(&m, &s, 1);
}

TEST(multi_ends, the_members_handles_are_its_own)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    rlock *fresh;
    EXPECT_STATUS(rlock_multi_new(m.lk, 2, &fresh), RLOCK_OK);
    rlock_free(m.all);
    m.all = fresh;
    EXPECT(rlock_is_held(m.all)); /* the hold is the thread's */
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

TEST(multi_ends, it_may_outlive_its_clients)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    scene_free_client(&s);
    scene_free_client(&t);
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_acquire(m.all, 100, 0), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_extend(m.all, 100), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_force_unlock(m.all), RLOCK_ECLOSED);
    rlock_cancel(m.all);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_ends, a_client_that_is_freed_ends_the_wait)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    take_by_hand(t.sv, "b", 60000);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(t.sv, "b", t.cl);
    scene_free_client(&t);
    EXPECT_STATUS(waiter_end(w), RLOCK_ECLOSED);
    expect_nothing_left(s.sv);
    multi_scene_end_across(&m, &s, &t);
}

static void expect_forked(multi_scene *m)
{
    rlock *other = NULL;
    expect_unheld(m->all);
    EXPECT_STATUS(rlock_multi_new(m->lk, m->n, &other), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_multi_new(&m->all, 1, &other), RLOCK_EFORKED);
    EXPECT(!other);
    EXPECT_STATUS(rlock_lock(m->all), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_trylock(m->all), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_acquire(m->all, 10, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_extend(m->all, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(m->all), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_force_unlock(m->all), RLOCK_EFORKED);
    EXPECT_CONTAINS(rlock_last_error()->message, "fork");
    rlock_cancel(m->all);
}

static void use_inherited(child *c, void *arg)
{
    (void)c;
    expect_forked(arg);
    multi_scene_free(arg);
}

static intptr_t try_all(void *all)
{
    return rlock_trylock(all);
}

static intptr_t resume_when_closed(void *arg)
{
    const multi_scene *m = arg;
    EVENTUALLY(SOON, rlock_extend(m->lk[1], 0) == RLOCK_ECLOSED);
    server_resume(m->sv[0]);
    return 0;
}

/* One of the servers has granted it; the other one is to say that it is busy. */
TEST(multi_ends, a_client_that_is_freed_during_a_try_leaves_nothing)
{
    scene s = scene_start(0, SOON), t = scene_start(0, SOON);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    take_by_hand(s.sv, "a", 0);
    server_pause(s.sv);
    test_thread *trial = test_spawn(try_all, m.all);
    EVENTUALLY(SOON, levels(t.sv, "b") == 1);
    test_thread *other = test_spawn(resume_when_closed, &m);
    EXPECT_STATUS(rlock_client_close(t.cl, 0), RLOCK_OK);
    t.cl = NULL;
    test_join(other);
    EXPECT_STATUS(test_join(trial), RLOCK_BUSY);
    EXPECT_INT(levels(t.sv, "b"), 0);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_ends, a_child_inherits_nothing_and_sends_nothing)
{
    scene s = scene_proxied(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    int sent = requests(s.px);
    child_end(child_start(use_inherited, &m));
    EXPECT_INT(requests(s.px), sent);
    EXPECT(rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* The messages of such calls cannot name a server. */
TEST(multi_ends, what_it_cannot_do_is_said_also_when_the_first_client_is_closed)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    bool locked;
    scene_free_client(&s);
    EXPECT_STATUS(rlock_is_locked(m.all, &locked), RLOCK_ENOTSUP);
    EXPECT_STATUS(rlock_acquire(m.all, -2, 0), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_extend(m.all, -1), RLOCK_EINVAL);
    multi_scene_end_across(&m, &s, &t);
}
