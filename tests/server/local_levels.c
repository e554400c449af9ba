/*
 * Handles with local_levels: levels above the first are nobody's business but
 * this process's, in every layout, and whatever the server has to know of them
 * it is told all the same.
 */
#include <rlock/multi.h>

#include "other_client.h"

static rlock *local_lock(const scene *s, rlock_layout layout)
{
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    opts.layout = layout;
    opts.local_levels = true;
    EXPECT_STATUS(
        rlock_new_ex(s->cl, SCENE_LOCK, strlen(SCENE_LOCK), &opts, &lk),
        RLOCK_OK);
    return lk;
}

static int count_at_server(const scene *s)
{
    char holder[512];
    int count;
    read_lock(s->sv, holder, sizeof holder, &count);
    return count;
}

static void nest_without_asking(rlock_layout layout)
{
    scene s = scene_start(0, 0);
    rlock *lk = local_lock(&s, layout);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    uint64_t token = rlock_token(lk);
    long long calls = script_calls(s.sv);
    lock_times(lk, 99);
    EXPECT_INT(rlock_hold_count(lk), 100);
    EXPECT(rlock_token(lk) == token);
    unlock_times(lk, 99, RLOCK_OK);
    EXPECT_INT(script_calls(s.sv), calls);
    EXPECT_INT(rlock_hold_count(lk), 1);
    EXPECT(key_exists(s.sv, SCENE_LOCK));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    rlock_free(lk);
    scene_stop(&s);
}

TEST_CASE(local_levels, hash_levels_above_the_first_ask_nothing,
          nest_without_asking(RLOCK_LAYOUT_HASH))
TEST_CASE(local_levels, string_levels_above_the_first_ask_nothing,
          nest_without_asking(RLOCK_LAYOUT_STRING))
TEST_CASE(local_levels, timestamp_levels_above_the_first_ask_nothing,
          nest_without_asking(RLOCK_LAYOUT_TIMESTAMP))

TEST(local_levels, the_server_shows_one_level)
{
    scene s = scene_start(0, 0);
    rlock *lk = local_lock(&s, RLOCK_LAYOUT_HASH);
    rlock_holder h;
    lock_times(lk, 3);
    EXPECT_INT(count_at_server(&s), 1);
    EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(h.count, 1);
    unlock_times(lk, 3, RLOCK_OK);
    rlock_free(lk);
    scene_stop(&s);
}

TEST(local_levels, they_pair_with_those_of_a_handle_that_asks)
{
    scene s = scene_start(0, 0);
    rlock *lk = local_lock(&s, RLOCK_LAYOUT_HASH);
    lock_times(lk, 2);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(count_at_server(&s), 3);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 4);
    unlock_times(lk, 2, RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(count_at_server(&s), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    rlock_free(lk);
    scene_stop(&s);
}

TEST(local_levels, a_nested_lease_that_ends_later_is_asked_for)
{
    scene s = scene_start(0, 0);
    rlock *lk = local_lock(&s, RLOCK_LAYOUT_HASH);
    EXPECT_STATUS(rlock_acquire(lk, 0, 60000), RLOCK_OK);
    long long calls = script_calls(s.sv);
    EXPECT_STATUS(rlock_acquire(lk, 0, 30000), RLOCK_OK);
    EXPECT_INT(script_calls(s.sv), calls);
    EXPECT_STATUS(rlock_acquire(lk, 0, 600000), RLOCK_OK);
    EXPECT_INT(script_calls(s.sv), calls + 1);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 500000, 600000);
    EXPECT_BETWEEN(rlock_valid_ms(lk), 500000, 600000);
    EXPECT_INT(rlock_hold_count(lk), 3);
    unlock_times(lk, 3, RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    rlock_free(lk);
    scene_stop(&s);
}

TEST(local_levels, a_nested_watchdog_turns_renewal_on)
{
    scene s = scene_start(BRISK_MS, 0);
    rlock *lk = local_lock(&s, RLOCK_LAYOUT_HASH);
    EXPECT_STATUS(rlock_acquire(lk, 0, BRISK_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    expect_renewals(&s, 5);
    EXPECT(rlock_is_held(lk));
    unlock_times(lk, 2, RLOCK_OK);
    rlock_free(lk);
    scene_stop(&s);
}

TEST(local_levels, a_lease_that_ran_out_is_noticed_by_the_next_level)
{
    scene s = scene_start(0, 0);
    rlock *lk = local_lock(&s, RLOCK_LAYOUT_HASH);
    EXPECT_STATUS(rlock_acquire(lk, 0, 300), RLOCK_OK);
    EVENTUALLY(5000, !rlock_is_held(lk));
    EXPECT_STATUS(rlock_acquire(lk, 0, 1000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    rlock_free(lk);
    scene_stop(&s);
}

TEST(local_levels, a_level_is_not_told_of_a_loss_but_the_last_unlock_is)
{
    scene s = scene_start(0, 0);
    rlock *lk = local_lock(&s, RLOCK_LAYOUT_HASH);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(on_another_thread(rlock_force_unlock, s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    EXPECT_INT(stats_of(s.cl).lost, 1);
    rlock_free(lk);
    scene_stop(&s);
}

TEST(local_levels, events_tell_of_every_level)
{
    scene s = scene_start(0, 0);
    rlock *lk = local_lock(&s, RLOCK_LAYOUT_HASH);
    lock_times(lk, 3);
    unlock_times(lk, 3, RLOCK_OK);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ACQUIRED), 3);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RELEASED), 3);
    rlock_free(lk);
    scene_stop(&s);
}

TEST(local_levels, a_multi_of_such_handles_asks_the_server)
{
    scene s = scene_start(0, 0);
    rlock *lk = local_lock(&s, RLOCK_LAYOUT_HASH), *multi;
    EXPECT_STATUS(rlock_multi_new(&lk, 1, &multi), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(multi), RLOCK_OK);
    EXPECT_INT(count_at_server(&s), 2);
    EXPECT_STATUS(rlock_unlock(multi), RLOCK_OK);
    EXPECT_INT(count_at_server(&s), 1);
    EXPECT_STR(server_str(s.sv, "REPLICAOF 127.0.0.1 1"), "OK");
    EXPECT_STATUS(rlock_acquire(multi, 1000, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_INT(rlock_hold_count(lk), 1);
    EXPECT_STR(server_str(s.sv, "REPLICAOF NO ONE"), "OK");
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(multi);
    rlock_free(lk);
    scene_stop(&s);
}
