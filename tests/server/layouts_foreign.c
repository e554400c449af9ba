/*
 * Locks that are a string or a timestamp, shared with programs that keep theirs
 * like that without this library.
 */
#include <pthread.h>

#include "layouts.h"

/* --- shared with other programs ------------------------------------------ */

BOTH(layouts_foreign, a_program_without_this_library_finds_it_busy)
{
    scene s = scene_of_held(layout, 0);
    text theirs = others_value(s.sv, layout, 60000);
    EXPECT(!others_try(s.sv, layout, theirs.is, 60000));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(others_try(s.sv, layout, theirs.is, 60000));
    scene_stop(&s);
}

BOTH(layouts_foreign, a_foreign_lock_is_busy_and_not_touched)
{
    scene s = scene_of(layout, 0);
    text value = others_take(s.sv, layout, 60000);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s.lk, 300, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_NOT_HELD);
    expect_value(s.sv, value.is);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 30000, 120000);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    scene_stop(&s);
}

BOTH(layouts_foreign, a_foreign_lock_that_runs_out_lets_a_waiter_in)
{
    scene s = scene_of(layout, 0);
    int64_t taken_ms = server_ms(s.sv);
    text theirs = others_take(s.sv, layout, 700);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, 60000), RLOCK_OK);
    EXPECT_BETWEEN(server_ms(s.sv) - taken_ms, 700 - CLOCK_AGE_MS, 3000);
    EXPECT(strcmp(value_of(s.sv).is, theirs.is) != 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts_foreign, a_foreign_release_is_noticed_soon)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    others_take(s.sv, layout, 60000);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    others_release(s.sv);
    expect_woken(&b);
    EXPECT_INT(stats_of(b.cl).wakeups, 0);
    waiter_end(b.w);
    other_client_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* How often the scene's waiter looks in so long, or in a little more, which
 *took_ms tells. */
static int looks_in(scene *s, rlock_layout layout, int ms, int64_t *took_ms)
{
    const char *sha = script_of(layout, "acquire");
    int64_t began_ms = test_now_ms();
    int before = proxy_count(s->px, sha);
    EVENTUALLY(SOON, test_now_ms() - began_ms >= ms);
    int looks = proxy_count(s->px, sha) - before;
    *took_ms = test_now_ms() - began_ms;
    return looks;
}

/* One look more may come from the doorbell, and one that was near. */
BOTH(layouts_foreign, a_foreign_lock_is_looked_at_four_times_a_second)
{
    scene s = scene_of_proxied(layout, 0, 0);
    int64_t took_ms;
    others_take(s.sv, layout, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int looks = looks_in(&s, layout, 1300, &took_ms);
    EXPECT_BETWEEN(looks, 3, 2 + took_ms / 187);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}

/* Once in three seconds, whatever the holder, a thread or an owner, is called.
 */
static void expect_left_alone(rlock_layout layout, rlock_owner *owner)
{
    scene s = scene_of_proxied(layout, 0, 0);
    other_client a = other_client_of(&s, layout);
    int64_t took_ms;
    rlock_owner_set(owner);
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int looks = looks_in(&s, layout, 1300, &took_ms);
    EXPECT_BETWEEN(looks, 0, 1 + took_ms / 1500);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    rlock_owner_set(NULL);
    other_client_leave(&a);
    scene_stop(&s);
}

BOTH(layouts_foreign, a_lock_of_our_own_is_left_alone_by_its_waiters)
{
    expect_left_alone(layout, NULL);
}

BOTH(layouts_foreign, a_lock_of_an_owner_is_left_alone_by_its_waiters)
{
    rlock_owner *owner;
    EXPECT_STATUS(rlock_owner_new("job: one / two", &owner), RLOCK_OK);
    expect_left_alone(layout, owner);
    rlock_owner_free(owner);
}

BOTH(layouts_foreign, force_unlock_frees_a_foreign_lock)
{
    scene s = scene_of(layout, 0);
    others_take(s.sv, layout, 60000);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(layouts_foreign, string_a_foreign_lock_without_expiry_stays_as_it_is)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    rlock_holder h;
    EXPECT_INT(server_int(s.sv, "SETNX " SCENE_LOCK " x"), 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s.lk, 300, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_INT(ttl_of(s.lk), -1);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(h.ttl_ms, -1);
    EXPECT_INT(key_ttl(s.sv, SCENE_LOCK), -1);
    expect_value(s.sv, "x");
    scene_stop(&s);
}

TEST(layouts_foreign, string_an_empty_value_is_a_holder)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    rlock_holder h;
    server_cmd(s.sv, "SET " SCENE_LOCK " %b PX 60000", "", (size_t)0);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT(is_locked(s.lk));
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_STR(h.raw, "");
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- an old program's timestamp ------------------------------------------ */

static void expect_taken_over(scene *s, const char *old)
{
    leave_stamp(s->sv, old);
    EXPECT(!is_locked(s->lk));
    EXPECT_STATUS(rlock_trylock(s->lk), RLOCK_OK);
    EXPECT(seconds_of(value_of(s->sv).is) * 1000 > server_ms(s->sv));
    EXPECT_BETWEEN(key_ttl(s->sv, SCENE_LOCK), 60000, 92000);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT(!held_on_server(s->sv));
}

TEST(layouts_foreign, timestamp_a_time_that_has_passed_is_taken_over)
{
    static const char *const old[] = {
        "0",          "1",        "1300000000",  "1300000000.5",
        "1300000000", "00000001", "1300000000.", "1300000000.123456789012"};
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        expect_taken_over(&s, old[i]);
    expect_taken_over(&s, stamp_at(server_ms(s.sv) - 2).is);
    scene_stop(&s);
}

TEST(layouts_foreign, timestamp_a_time_to_come_in_whole_seconds_is_busy)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    char value[40];
    snprintf(value, sizeof value, "%lld",
             (long long)server_ms(s.sv) / 1000 + 60);
    leave_stamp(s.sv, value);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_BETWEEN(ttl_of(s.lk), 40000, 60000);
    expect_value(s.sv, value);
    scene_stop(&s);
}

TEST(layouts_foreign, timestamp_a_time_in_milliseconds_is_a_time_far_away)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    leave_stamp(s.sv, "9999999999999");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s.lk, 300, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT(is_locked(s.lk));
    EXPECT(ttl_of(s.lk) > 9000000000000000);
    expect_value(s.sv, "9999999999999");
    scene_stop(&s);
}

TEST(layouts_foreign, timestamp_a_key_for_ever_gets_an_end_when_somebody_waits)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    int64_t free_at_ms = server_ms(s.sv) + 30000;
    leave_stamp(s.sv, stamp_at(free_at_ms).is);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, key_ttl(s.sv, SCENE_LOCK) > 0);
    int64_t now_ms = server_ms(s.sv);
    EXPECT_BETWEEN(now_ms + key_ttl(s.sv, SCENE_LOCK) - free_at_ms, 59000,
                   60100);
    expect_value(s.sv, stamp_at(free_at_ms).is);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}

TEST(layouts_foreign, timestamp_a_key_that_has_an_end_keeps_it)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    server_cmd(s.sv, "SET " SCENE_LOCK " %s PX 900000",
               stamp_at(server_ms(s.sv) + 30000).is);
    EXPECT_STATUS(rlock_acquire(s.lk, 300, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 800000, 900000);
    scene_stop(&s);
}

TEST(layouts_foreign, timestamp_questions_do_not_touch_a_key_for_ever)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    leave_stamp(s.sv, stamp_at(server_ms(s.sv) + 30000).is);
    EXPECT(is_locked(s.lk));
    EXPECT_BETWEEN(ttl_of(s.lk), 10000, 30000);
    EXPECT_INT(key_ttl(s.sv, SCENE_LOCK), -1);
    scene_stop(&s);
}

TEST(layouts_foreign, timestamp_nobody_holds_a_lock_whose_time_has_passed)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    rlock_holder h;
    leave_stamp(s.sv, "1300000000");
    EXPECT(!is_locked(s.lk));
    EXPECT_INT(ttl_of(s.lk), -2);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    scene_stop(&s);
}

typedef struct runner {
    rlock *lk;
    pthread_barrier_t *start;
} runner;

static intptr_t run_for_it(void *arg)
{
    runner *r = arg;
    pthread_barrier_wait(r->start);
    return rlock_acquire(r->lk, 0, 60000);
}

TEST(layouts_foreign, timestamp_only_one_takes_over)
{
    enum { RUNNERS = 4 };
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    other_client p[RUNNERS];
    runner r[RUNNERS];
    test_thread *t[RUNNERS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, RUNNERS);
    for (int i = 0; i < RUNNERS; i++) {
        p[i] = other_client_of(&s, RLOCK_LAYOUT_TIMESTAMP);
        r[i] = (runner){p[i].lk, &start};
    }
    for (int round = 0; round < 20; round++) {
        int winners = 0;
        server_cmd(s.sv, "SET " SCENE_LOCK " 1300000000");
        for (int i = 0; i < RUNNERS; i++)
            t[i] = test_spawn(run_for_it, &r[i]);
        for (int i = 0; i < RUNNERS; i++)
            winners += test_join(t[i]) == RLOCK_OK;
        EXPECT_INT(winners, 1);
    }
    for (int i = 0; i < RUNNERS; i++)
        other_client_leave(&p[i]);
    pthread_barrier_destroy(&start);
    scene_stop(&s);
}

/* Ours died; the old program sees its time pass, and wins by GETSET. */
TEST(layouts_foreign,
     timestamp_an_old_program_takes_over_from_a_dead_one_of_ours)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    other_client dead = other_client_of(&s, RLOCK_LAYOUT_TIMESTAMP);
    EXPECT_STATUS(rlock_acquire(dead.lk, 0, 100), RLOCK_OK);
    other_client_leave(&dead);
    text old = value_of(s.sv);
    EVENTUALLY(SOON, server_ms(s.sv) > (seconds_of(old.is) + 1) * 1000);
    text theirs = stamp_at(server_ms(s.sv) + 60000);
    EXPECT_STR(server_str(s.sv, "GETSET " SCENE_LOCK " %s", theirs.is), old.is);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    expect_value(s.sv, theirs.is);
    scene_stop(&s);
}

/* It is still there, but by its time it is free. */
TEST(layouts_foreign,
     timestamp_a_lease_that_ran_out_is_free_though_the_key_stays)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    other_client b = other_client_of(&s, RLOCK_LAYOUT_TIMESTAMP);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 100), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    EVENTUALLY(SOON, !is_locked(s.lk));
    EXPECT(held_on_server(s.sv));
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    EXPECT(rlock_token(b.lk) > token);
    text value = value_of(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_value(s.sv, value.is);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}
