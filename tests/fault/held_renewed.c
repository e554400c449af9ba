/*
 * What other lock libraries got wrong about what a holder has: its lease, the
 * renewal of it, and its token. Each is a test that fails on that defect.
 */
#include "scene.h"

/* --- renewal ------------------------------------------------------------- */

static void lock_and_unlock(scene *s, int times)
{
    for (int i = 0; i < times; i++) {
        EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    }
}

/* One timer, however many acquires there were: 4 periods, 4 renewals. */
TEST(held_renewed, the_renewal_timer_does_not_multiply)
{
    scene s = scene_start(900, 0);
    lock_and_unlock(&s, 400);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    uint64_t before = stats_of(s.cl).renewals;
    EVENTUALLY(20000, stats_of(s.cl).renewals >= before + 4);
    int64_t periods = (test_now_ms() - began_ms) / 300;
    EXPECT(periods >= 3);
    EXPECT_BETWEEN(stats_of(s.cl).renewals - before, 4, periods + 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(held_renewed, nothing_is_renewed_after_the_last_unlock)
{
    scene s = scene_proxied(BRISK_MS, 0);
    rlock *other = test_lock(s.cl, "other");
    lock_and_unlock(&s, 100);
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    EVENTUALLY(10000, proxy_count(s.px, proxy_sha("renew")) >= 5);
    rlock_stats st = stats_of(s.cl);
    EXPECT_BETWEEN(proxy_count(s.px, proxy_sha("renew")) - (int)st.renewals, 0,
                   1);
    EXPECT_INT(st.renew_failures, 0);
    EXPECT_INT(st.held_now, 1);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

/* Ten locks; one of them turns into something that cannot be renewed. */
static void expect_others_renewed(const char *spoil, rlock_event_type told)
{
    scene s = scene_start(BRISK_MS, 0);
    rlock *lk[10];
    char name[8];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "l%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, spoil);
    events_wait(s.ev, told, 1, 10000);
    uint64_t before = stats_of(s.cl).renewals;
    EVENTUALLY(10000, stats_of(s.cl).renewals >= before + 30);
    for (int i = 0; i < 10; i++) {
        EXPECT(rlock_is_held(lk[i]));
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    EXPECT(!rlock_is_held(s.lk));
    scene_stop(&s);
}

TEST(held_renewed, a_key_of_another_type_stops_no_other_renewal)
{
    expect_others_renewed("SET " SCENE_LOCK " x", RLOCK_EVENT_LOST);
}

TEST(held_renewed, a_lock_that_is_gone_stops_no_other_renewal)
{
    expect_others_renewed("DEL " SCENE_LOCK, RLOCK_EVENT_LOST);
}

TEST(held_renewed, a_lock_that_may_not_be_touched_stops_no_other_renewal)
{
    expect_others_renewed("ACL SETUSER default resetkeys ~l* ~rlock_*",
                          RLOCK_EVENT_RENEW_FAILED);
}

/* A server that hangs concerns only its own client. */
TEST(held_renewed, a_dead_server_stops_no_renewal_of_another_client)
{
    scene s = scene_start(BRISK_MS, 0), dead = scene_start(BRISK_MS, 0);
    EXPECT_STATUS(rlock_lock(dead.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_pause(dead.sv);
    events_wait(dead.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_resume(dead.sv);
    scene_stop(&dead);
    scene_stop(&s);
}

static void expect_renewed(scene *s)
{
    uint64_t before = stats_of(s->cl).renewals;
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    EVENTUALLY(10000, stats_of(s->cl).renewals >= before + 4);
    EXPECT(rlock_is_held(s->lk));
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
}

TEST(held_renewed, a_lock_that_was_lost_once_is_renewed_the_next_time)
{
    scene s = scene_start(BRISK_MS, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_renewed(&s);
    scene_stop(&s);
}

TEST(held_renewed, renewal_goes_on_after_a_reconnect)
{
    scene s = scene_start(BRISK_MS, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_RENEWED, 1, 5000);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    uint64_t before = stats_of(s.cl).renewals;
    EVENTUALLY(10000, stats_of(s.cl).renewals >= before + 4);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* Lost at level 3 and never unlocked: the next owner is a new thread. */
static intptr_t leave_it_lost(void *arg)
{
    scene *s = arg;
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    server_cmd(s->sv, "DEL %s", SCENE_LOCK);
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, 10000);
    return 0;
}

TEST(held_renewed, a_stale_record_delays_no_renewal_of_the_next_owner)
{
    scene s = scene_start(BRISK_MS, 0);
    test_join(test_spawn(leave_it_lost, &s));
    for (int i = 0; i < 3; i++) {
        int64_t ttl_ms = INT64_MAX;
        uint64_t before = stats_of(s.cl).renewals;
        EXPECT_STATUS(rlock_acquire(s.lk, 1000, RLOCK_WATCHDOG), RLOCK_OK);
        while (stats_of(s.cl).renewals < before + 2) {
            if (key_ttl(s.sv, SCENE_LOCK) < ttl_ms)
                ttl_ms = key_ttl(s.sv, SCENE_LOCK);
            test_pause_ms(2);
        }
        EXPECT(ttl_ms > 0);
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    scene_stop(&s);
}

/* --- leases -------------------------------------------------------------- */

TEST(held_renewed, a_nested_lease_leaves_the_renewal_of_the_outer_hold_on)
{
    scene s = scene_start(BRISK_MS, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 150), RLOCK_OK);
    EXPECT(key_ttl(s.sv, SCENE_LOCK) > 150);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    uint64_t before = stats_of(s.cl).renewals;
    EVENTUALLY(10000, stats_of(s.cl).renewals >= before + 5);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

TEST(held_renewed, a_nested_watchdog_turns_renewal_on_until_the_hold_ends)
{
    scene s = scene_start(BRISK_MS, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    EVENTUALLY(10000, test_now_ms() - began_ms > 2 * BRISK_MS &&
                          key_ttl(s.sv, SCENE_LOCK) > 0);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(held_renewed, a_lease_does_not_leak_into_the_next_acquire)
{
    scene s = scene_start(BRISK_MS, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 1, BRISK_MS);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_renewed(&s);
    uint64_t before = stats_of(s.cl).renewals;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 300), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_INT(stats_of(s.cl).renewals, before);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* --- fencing tokens ------------------------------------------------------ */

TEST(held_renewed, tokens_grow_also_after_the_lock_was_deleted)
{
    scene s = scene_start(0, 0);
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        EXPECT(rlock_token(s.lk) > last);
        last = rlock_token(s.lk);
        if (i % 2)
            server_cmd(s.sv, "DEL %s", SCENE_LOCK);
        else
            server_cmd(s.sv, "FLUSHALL");
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    }
    scene_stop(&s);
}

TEST(held_renewed, a_reentry_keeps_the_token)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    EXPECT(token > 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_token(s.lk), 0);
    scene_stop(&s);
}

TEST(held_renewed, tokens_do_not_live_for_ever)
{
    scene s = scene_start(0, 0);
    lock_and_unlock(&s, 3);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_token:{%s}", SCENE_LOCK), 1);
    expect_nothing_left(s.sv); /* that is, nothing without a TTL */
    scene_stop(&s);
}
