/* Locks of several layouts: of one name, and within a Multi lock. */
#include "layouts.h"

static const rlock_layout all[] = {RLOCK_LAYOUT_HASH, RLOCK_LAYOUT_STRING,
                                   RLOCK_LAYOUT_TIMESTAMP};

TEST(layouts_mixed, tokens_grow_from_layout_to_layout)
{
    scene s = scene_start(0, 0);
    rlock *lk[3];
    uint64_t last = 0;
    for (int i = 0; i < 3; i++)
        lk[i] = lock_of(s.cl, all[i], SCENE_LOCK);
    for (int i = 0; i < 30; i++) {
        uint64_t token = token_of_a_hold(lk[i % 3]);
        EXPECT(token > last);
        last = token;
    }
    for (int i = 0; i < 3; i++)
        rlock_free(lk[i]);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* The same thread of the same client tries another layout. */
static void expect_excluded(rlock_layout held, rlock_layout tried,
                            rlock_status status)
{
    scene s = scene_of(held, 0);
    rlock *other = lock_of(s.cl, tried, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(other), status);
    EXPECT(!rlock_is_held(other));
    EXPECT_INT(rlock_hold_count(other), 0);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_extend(other, 1000), RLOCK_NOT_HELD);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

TEST_CASE(layouts_mixed, a_hash_excludes_a_string,
          expect_excluded(RLOCK_LAYOUT_HASH, RLOCK_LAYOUT_STRING,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts_mixed, a_hash_excludes_a_timestamp,
          expect_excluded(RLOCK_LAYOUT_HASH, RLOCK_LAYOUT_TIMESTAMP,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts_mixed, a_string_excludes_a_hash,
          expect_excluded(RLOCK_LAYOUT_STRING, RLOCK_LAYOUT_HASH,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts_mixed, a_string_excludes_a_timestamp,
          expect_excluded(RLOCK_LAYOUT_STRING, RLOCK_LAYOUT_TIMESTAMP,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts_mixed, a_timestamp_excludes_a_hash,
          expect_excluded(RLOCK_LAYOUT_TIMESTAMP, RLOCK_LAYOUT_HASH,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts_mixed, a_timestamp_excludes_a_string,
          expect_excluded(RLOCK_LAYOUT_TIMESTAMP, RLOCK_LAYOUT_STRING,
                          RLOCK_BUSY))

/* A waiter of the same client that takes the lock for a string came first. */
TEST(layouts_mixed, a_waiter_of_another_layout_is_told_of_it)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    rlock *other = lock_of(s.cl, RLOCK_LAYOUT_HASH, SCENE_LOCK);
    others_take(s.sv, RLOCK_LAYOUT_STRING, 60000);
    waiter *first = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    waiter *second = waiter_start(other, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, waiter_returned(second));
    EXPECT_STATUS(waiter_end(second), RLOCK_EWRONGTYPE);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(first), RLOCK_CANCELED);
    rlock_free(other);
    scene_stop(&s);
}

/* By its time it is free, which who waits for a string does not see. */
TEST(layouts_mixed, a_waiter_of_another_layout_keeps_nobody_from_a_free_lock)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    rlock *other = lock_of(s.cl, RLOCK_LAYOUT_TIMESTAMP, SCENE_LOCK);
    leave_stamp(s.sv, "1300000000");
    waiter *first = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    waiter *second = waiter_start(other, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, waiter_returned(second));
    EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

TEST(layouts_mixed, several_locks_as_one_may_have_several_layouts)
{
    scene s = scene_start(0, 0);
    rlock *member[3], *multi = NULL;
    static const char *const name[] = {"h", "s", "t"};
    for (int i = 0; i < 3; i++)
        member[i] = lock_of(s.cl, all[i], name[i]);
    EXPECT_STATUS(rlock_multi_new(member, 3, &multi), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(multi), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(multi), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "TYPE h"), "hash");
    EXPECT_STR(server_str(s.sv, "TYPE s"), "string");
    EXPECT_BETWEEN(server_int(s.sv, "PTTL t"), 60000, 92000);
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS(on_another_thread(rlock_trylock, member[i]), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(multi), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(multi), RLOCK_OK);
    expect_nothing_left(s.sv);
    rlock_free(multi);
    for (int i = 0; i < 3; i++)
        rlock_free(member[i]);
    scene_stop(&s);
}

BOTH(layouts_mixed, several_locks_as_one_notice_a_foreign_release_soon)
{
    scene s = scene_of(layout, 0);
    rlock *member[] = {test_lock(s.cl, "other"), s.lk}, *multi = NULL;
    EXPECT_STATUS(rlock_multi_new(member, 2, &multi), RLOCK_OK);
    others_take(s.sv, layout, 60000);
    other_client b = {.cl = s.cl, .lk = multi};
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    others_release(s.sv);
    expect_woken(&b);
    waiter_end(b.w);
    rlock_free(multi);
    rlock_free(member[0]);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}
