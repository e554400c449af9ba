/* min_replicas: what the master grants counts once replicas have it. */
#include "layouts.h"
#include "replica_scene.h"

/* --- acquire -------------------------------------------------------------- */

TEST(replicas, a_grant_is_on_the_replica_when_it_is_told)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    for (int i = 0; i < 50; i++) {
        EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_OK);
        EXPECT_INT(levels(f.replica[0], SCENE_LOCK), 1);
        EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    }
    EXPECT_INT(stats_of(f.s.cl).replica_shortfalls, 0);
    replica_scene_stop(&f);
}

TEST(replicas, a_grant_that_no_replica_has_is_undone)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_EQUORUM);
    replica_scene_expect_short("0 of 1 replicas within 200 ms");
    EXPECT(!rlock_is_held(f.s.lk));
    EVENTUALLY(SOON, levels(f.s.sv, SCENE_LOCK) == 0);
    EXPECT_INT(stats_of(f.s.cl).replica_shortfalls, 1);
    EXPECT_INT(stats_of(f.s.cl).acquires_failed, 1);
    server_resume(f.replica[0]);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    replica_scene_stop(&f);
}

TEST(replicas, an_acquire_waits_until_the_replica_is_back)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    server_pause(f.replica[0]);
    waiter *w = waiter_start(f.s.lk, SOON, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(f.s.cl).replica_shortfalls >= 2);
    EXPECT(!waiter_returned(w));
    int64_t back_ms = test_now_ms(), at_ms;
    server_resume(f.replica[0]);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - back_ms, 0, 2 * REPLICA_SCENE_WAIT_MS + SLACK_MS);
    EXPECT_INT(levels(f.replica[0], SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EVENTUALLY(SOON, levels(f.replica[0], SCENE_LOCK) == 0);
    replica_scene_stop(&f);
}

TEST(replicas, an_acquire_whose_wait_is_over_tells_of_the_replicas)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    server_pause(f.replica[0]);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(f.s.lk, 1000, RLOCK_WATCHDOG), RLOCK_EQUORUM);
    EXPECT_BETWEEN(test_since_ms(began_ms), 700,
                   1000 + REPLICA_SCENE_WAIT_MS + SLACK_MS);
    replica_scene_expect_short("0 of 1 replicas");
    EVENTUALLY(SOON, levels(f.s.sv, SCENE_LOCK) == 0);
    replica_scene_stop(&f);
}

/* Behind a try that was short the script may find all as it should be. */
BOTH(replicas, an_acquire_that_was_short_is_asked_again)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    use_layout(&f.s, layout);
    server_pause(f.replica[0]);
    waiter *w = waiter_start(f.s.lk, SOON, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(f.s.cl).replica_shortfalls >= 2);
    EXPECT(!waiter_returned(w));
    server_resume(f.replica[0]);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT(held_on_server(f.replica[0]));
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    replica_scene_stop(&f);
}

TEST(replicas, as_many_as_were_asked_for_are_enough)
{
    replica_scene f = replica_scene_start(2, 2, 0);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    server_pause(f.replica[1]);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_EQUORUM);
    replica_scene_expect_short("1 of 2 replicas within 200 ms");
    o.min_replicas = 1;
    replica_scene_use(&f, &o);
    EXPECT_STATUS(rlock_acquire(f.s.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(levels(f.replica[0], SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    replica_scene_stop(&f);
}

TEST(replicas, a_lock_that_wants_none_is_granted_without)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    server_pause(f.replica[0]);
    o.min_replicas = -1;
    replica_scene_use(&f, &o);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    replica_scene_stop(&f);
}

TEST(replicas, a_lock_may_want_them_where_its_client_does_not)
{
    replica_scene f = replica_scene_start(1, 0, 0);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    o.min_replicas = 1;
    replica_scene_use(&f, &o);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_EQUORUM);
    replica_scene_stop(&f);
}

/* --- what waits, and what does not ---------------------------------------- */

/* How often the server was asked for replicas, by one that has none. */
static long long waits(scene *s)
{
    return server_calls(s->sv, "wait");
}

TEST(replicas, without_the_option_the_server_hears_nothing_of_it)
{
    scene s = scene_proxied(BRISK_MS, 0);
    expect_undisturbed(&s);
    rlock *also = test_lock(s.cl, "also");
    EXPECT_STATUS(rlock_lock(also), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 1000, 5000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 8000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(also), RLOCK_OK);
    rlock_free(also);
    EXPECT_INT(waits(&s), 0);
    EXPECT_INT(proxy_count(s.px, proxy_sha("touch")), 0);
    scene_stop(&s);
}

TEST(replicas, a_release_and_a_level_more_wait_for_none)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    server_pause(f.replica[0]);
    long long before = waits(&f.s);
    int64_t left_ms = rlock_valid_ms(f.s.lk) - 50;
    EVENTUALLY(SOON, rlock_valid_ms(f.s.lk) < left_ms);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(f.s.lk, 0, 100), RLOCK_OK);
    EXPECT(rlock_valid_ms(f.s.lk) < left_ms); /* nothing has moved it */
    EXPECT_INT(rlock_hold_count(f.s.lk), 3);
    unlock_times(f.s.lk, 3, RLOCK_OK);
    EXPECT_INT(waits(&f.s), before);
    EXPECT_INT(levels(f.s.sv, SCENE_LOCK), 0);
    replica_scene_stop(&f);
}

TEST(replicas, a_level_that_wants_a_longer_lease_waits_for_them)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    EXPECT_STATUS(rlock_acquire(f.s.lk, 0, 10000), RLOCK_OK);
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_acquire(f.s.lk, 0, 50000), RLOCK_EQUORUM);
    replica_scene_expect_short("0 of 1 replicas");
    EXPECT_INT(rlock_hold_count(f.s.lk), 1);
    EXPECT(rlock_valid_ms(f.s.lk) < 10000);
    server_resume(f.replica[0]);
    EVENTUALLY(SOON, rlock_acquire(f.s.lk, 0, 50000) == RLOCK_OK);
    EXPECT_INT(rlock_hold_count(f.s.lk), 2);
    EXPECT(rlock_valid_ms(f.s.lk) > 20000);
    unlock_times(f.s.lk, 2, RLOCK_OK);
    EXPECT_INT(levels(f.s.sv, SCENE_LOCK), 0);
    replica_scene_stop(&f);
}

/* The server reads nothing from a connection that waits for replicas. */
TEST(replicas, calls_about_other_locks_do_not_wait_with_it)
{
    replica_scene f = replica_scene_servers(1);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *other;
    f.s.opts.min_replicas = 1;
    f.s.opts.replica_wait_ms = 2000;
    scene_client(&f.s, 0, 0);
    o.min_replicas = -1;
    EXPECT_STATUS(rlock_new_ex(f.s.cl, "other", 5, &o, &other), RLOCK_OK);
    server_pause(f.replica[0]);
    waiter *w = waiter_start(f.s.lk, 0, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, levels(f.s.sv, SCENE_LOCK) == 1);
    lock_times(other, 1);
    unlock_times(other, 1, RLOCK_OK);
    EXPECT(!waiter_returned(w));
    EXPECT_STATUS(waiter_end(w), RLOCK_EQUORUM);
    rlock_free(other);
    replica_scene_stop(&f);
}

static intptr_t lock_and_unlock(void *lk)
{
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    return 0;
}

/* The next owner asks by itself, and waits for the replicas. */
TEST(replicas, nothing_is_handed_over)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    test_thread *t[3];
    long long before = waits(&f.s);
    for (int i = 0; i < 3; i++)
        t[i] = test_spawn(lock_and_unlock, f.s.lk);
    for (int i = 0; i < 3; i++)
        test_join(t[i]);
    EXPECT(waits(&f.s) - before >= 60);
    EXPECT_INT(stats_of(f.s.cl).passes, 0);
    replica_scene_stop(&f);
}

/* --- extend --------------------------------------------------------------- */

TEST(replicas, an_extend_that_is_short_moves_no_deadline)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    EXPECT_STATUS(rlock_acquire(f.s.lk, 0, 10000), RLOCK_OK);
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_extend(f.s.lk, 50000), RLOCK_EQUORUM);
    replica_scene_expect_short("0 of 1 replicas within 200 ms");
    EXPECT_BETWEEN(rlock_valid_ms(f.s.lk), 1, 10000);
    server_resume(f.replica[0]);
    EVENTUALLY(SOON, rlock_extend(f.s.lk, 50000) == RLOCK_OK);
    EXPECT(rlock_valid_ms(f.s.lk) > 20000);
    EXPECT(key_ttl(f.replica[0], SCENE_LOCK) > 20000);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    replica_scene_stop(&f);
}

/* The server has shortened it. */
TEST(replicas, an_extend_that_is_short_and_shortens_is_believed)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    EXPECT_STATUS(rlock_acquire(f.s.lk, 0, 50000), RLOCK_OK);
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_extend(f.s.lk, 10000), RLOCK_EQUORUM);
    EXPECT_BETWEEN(rlock_valid_ms(f.s.lk), 1, 10000);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    replica_scene_stop(&f);
}

/* --- renewals ------------------------------------------------------------- */

BOTH(replicas, renewals_go_on)
{
    replica_scene f = replica_scene_start(1, 1, 3000);
    use_layout(&f.s, layout);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    expect_renewals(&f.s, 3);
    EXPECT_STR(events_message(f.s.ev, RLOCK_EVENT_RENEW_FAILED), "");
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(f.s.cl).replica_shortfalls, 0);
    replica_scene_stop(&f);
}

TEST(replicas, a_renewal_that_no_replica_has_moves_no_deadline)
{
    replica_scene f = replica_scene_start(1, 1, 3000);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    expect_renewals(&f.s, 1);
    server_pause(f.replica[0]);
    int64_t end_ms = test_now_ms() + rlock_valid_ms(f.s.lk);
    events_wait(f.s.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    EXPECT_CONTAINS(events_message(f.s.ev, RLOCK_EVENT_RENEW_FAILED),
                    "0 of 1 replicas within");
    EXPECT(rlock_is_held(f.s.lk));
    events_wait(f.s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(f.s.ev, RLOCK_EVENT_LOST), end_ms - SLACK_MS,
                   end_ms + SLACK_MS);
    EXPECT(stats_of(f.s.cl).renew_failures >= 2);
    EXPECT(stats_of(f.s.cl).replica_shortfalls >= 2);
    expect_hold_lost(&f.s);
    replica_scene_stop(&f);
}

TEST(replicas, a_renewal_is_tried_again_until_the_replica_is_back)
{
    replica_scene f = replica_scene_start(1, 1, 6000);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    server_pause(f.replica[0]);
    events_wait(f.s.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    server_resume(f.replica[0]);
    expect_renewals(&f.s, 2);
    EXPECT_INT(events_count(f.s.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    replica_scene_stop(&f);
}

/* Those that are answered together are confirmed together. */
TEST(replicas, many_renewals_need_few_waits)
{
    enum { LOCKS = 300 };
    replica_scene f = replica_scene_start(1, 1, 6000);
    rlock *lk[LOCKS];
    char name[16];
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "lock%d", i);
        lk[i] = test_lock(f.s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    long long before = waits(&f.s);
    uint64_t renewed = stats_of(f.s.cl).renewals;
    EVENTUALLY(SOON, stats_of(f.s.cl).renewals >= renewed + 2 * LOCKS);
    EXPECT_BETWEEN(waits(&f.s) - before, 2, LOCKS / 2);
    for (int i = 0; i < LOCKS; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    EXPECT_INT(stats_of(f.s.cl).lost, 0);
    replica_scene_stop(&f);
}
