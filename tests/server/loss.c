/*
 * How a hold ends: by unlock, because it was lost or forced; and keys that are
 * no locks.
 */
#include "other_client.h"

static rlock_status do_extend(rlock *lk)
{
    return rlock_extend(lk, 5000);
}

/* --- unlock and loss ------------------------------------------------------ */

TEST(loss, unlock_without_a_hold_asks_nobody)
{
    scene s = scene_start(0, 0);
    long long before = commands(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_INT(commands(s.sv) - before, 1);
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_NOT_HELD);
    EXPECT_CONTAINS(rlock_last_error()->message, SCENE_LOCK);
    scene_stop(&s);
}

TEST(loss, fault_095_one_unlock_too_many_is_not_held)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK); /* the control */
    long long before = commands(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_INT(commands(s.sv) - before, 1);
    scene_stop(&s);
}

TEST(loss, fault_095_another_thread_cannot_unlock)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(on_another_thread(rlock_unlock, s.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(on_another_thread(do_extend, s.lk), RLOCK_NOT_HELD);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 15000, 30000);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

TEST(loss, unlocks_pair_after_a_loss)
{
    scene s = scene_start(0, 0);
    lock_times(s.lk, 3);
    server_cmd(s.sv, "DEL job");
    unlock_times(s.lk, 3, RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(loss, a_loss_is_reported_once)
{
    scene s = scene_start(0, 0);
    lock_times(s.lk, 3);
    server_cmd(s.sv, "DEL job");
    unlock_times(s.lk, 3, RLOCK_LOST);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 100), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 2, SOON); /* of the next hold */
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 2);
    EXPECT_INT(stats_of(s.cl).lost, 2);
    unlock_times(s.lk, 1, RLOCK_LOST);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RELEASED), 0);
    scene_stop(&s);
}

TEST(loss, the_watchdog_notices_a_deleted_key)
{
    scene s = scene_start(BRISK_MS, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL job");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT(!rlock_is_held(s.lk));
    EXPECT(!key_exists(s.sv, SCENE_LOCK)); /* it is not taken again */
    unlock_times(s.lk, 1, RLOCK_LOST);
    scene_stop(&s);
}

TEST(loss, after_a_loss_the_next_hold_is_renewed)
{
    scene s = scene_start(900, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL job");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, test_now_ms() - began > 1000);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(loss, reentry_on_a_lost_hold_takes_nothing)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL job");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_LOST);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    scene_stop(&s);
}

TEST(loss, reentry_on_a_stolen_lock_is_lost_and_not_busy)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL job");
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(loss, a_loss_noticed_by_the_last_unlock_is_reported)
{
    scene s = scene_start(0, 0);
    rlock_event ev;
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    server_cmd(s.sv, "DEL job");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_last(s.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT(ev.token == token);
    EXPECT_INT(ev.count, 0);
    EXPECT_INT(stats_of(s.cl).lost, 1);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RELEASED), 0);
    scene_stop(&s);
}

TEST(loss, reentry_after_the_deadline_asks_nobody)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 100), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EVENTUALLY(SOON, !key_exists(s.sv, SCENE_LOCK));
    long long before = commands(s.sv);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_LOST);
    EXPECT_INT(commands(s.sv) - before, 1);
    unlock_times(s.lk, 1, RLOCK_LOST);
    scene_stop(&s);
}

TEST(loss, a_late_unlock_leaves_the_next_holder_alone)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    lock_times(s.lk, 2);
    server_cmd(s.sv, "DEL job");
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    unlock_times(s.lk, 2, RLOCK_LOST);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(loss, a_hold_that_was_lost_can_be_taken_by_another_thread)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL job");
    test_join(test_spawn(lock_once, s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* --- force_unlock --------------------------------------------------------- */

TEST(loss, force_unlock_frees_what_another_client_holds)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    lock_times(s.lk, 2);
    EXPECT_STATUS(rlock_force_unlock(v.lk), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    EXPECT_STATUS(rlock_force_unlock(v.lk), RLOCK_NOT_HELD);
    unlock_times(s.lk, 2, RLOCK_LOST);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(loss, force_unlock_of_a_free_lock_is_not_held)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 0);
    scene_stop(&s);
}

static intptr_t wait_then_report_time(void *lk)
{
    rlock_status s = rlock_acquire(lk, SOON, RLOCK_WATCHDOG);
    int64_t at = test_now_ms();
    if (s == RLOCK_OK)
        s = rlock_unlock(lk);
    return s == RLOCK_OK ? (intptr_t)at : -1;
}

#define UUID "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52"

static rlock_status force_over(scene *s, const char *fields)
{
    char cmd[300];
    server_cmd(s->sv, "DEL " SCENE_LOCK);
    snprintf(cmd, sizeof cmd, "HSET " SCENE_LOCK " %s", fields);
    EXPECT(server_int(s->sv, cmd) >= 1);
    return rlock_force_unlock(s->lk);
}

TEST(loss, force_unlock_leaves_a_hash_alone_that_is_no_lock)
{
    static const char *const foreign[] = {
        "name Ada",                     /* somebody's data */
        "name Ada born 1815",           /* the same */
        "web3:1:2:" UUID " 1 name Ada", /* more than a holder */
        "web3:1:2:" UUID " Ada",
        "web3:1:2:" UUID " -1", /* no count */
        UUID " 1",
        UUID ": 1", /* nearly Redisson's */
        "web3:x:2:" UUID " 1",
        "web3:1:2: 1", /* nearly ours */
    };
    scene s = scene_start(0, 0);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        EXPECT_STATUS(force_over(&s, foreign[i]), RLOCK_EWRONGTYPE);
        EXPECT_CONTAINS(rlock_last_error()->message, "'" SCENE_LOCK "'");
        EXPECT(key_exists(s.sv, SCENE_LOCK));
    }
    scene_stop(&s);
}

TEST(loss, force_unlock_frees_what_looks_like_a_holder)
{
    static const char *const holders[] = {
        "web3:1:2:" UUID " 1", "web3:1:2/job-7:" UUID " 3", /* ours */
        UUID ":117 2",                                      /* Redisson's */
    };
    scene s = scene_start(0, 0);
    for (size_t i = 0; i < sizeof holders / sizeof *holders; i++) {
        EXPECT_STATUS(force_over(&s, holders[i]), RLOCK_OK);
        EXPECT(!key_exists(s.sv, SCENE_LOCK));
    }
    scene_stop(&s);
}

TEST(loss, force_unlock_wakes_a_waiter)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_then_report_time, v.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    int64_t freed = test_now_ms();
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(test_join(t) - freed, 0, 1500); /* not by its poll */
    EXPECT_INT(stats_of(v.cl).wakeups, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(loss, unlock_wakes_a_waiter)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_then_report_time, v.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    int64_t freed = test_now_ms();
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(test_join(t) - freed, 0, 1500);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_queue:{job}"), 0);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(loss, an_inner_unlock_wakes_nobody)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    lock_times(s.lk, 2);
    test_thread *t = test_spawn(wait_then_report_time, v.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    long long before = server_calls(s.sv, "publish");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 1);
    EXPECT_INT(server_calls(s.sv, "publish"), before);
    EXPECT(!test_done(t));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(test_join(t) > 0);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(loss, the_old_holder_learns_of_force_unlock_by_reentry)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(on_another_thread(rlock_force_unlock, s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_LOST);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(loss, the_old_holder_learns_of_force_unlock_by_extend)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_LOST);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(loss, the_old_holder_learns_of_force_unlock_by_renewal)
{
    scene s = scene_start(BRISK_MS, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(v.lk), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(loss, a_forced_out_holder_never_hurts_the_next_one)
{
    scene s = scene_start(BRISK_MS, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(v.lk, 0, 90000), RLOCK_OK);
    char before[512], after[512];
    int count;
    read_lock(s.sv, before, sizeof before, &count);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    read_lock(s.sv, after, sizeof after, &count);
    EXPECT_STR(after, before);
    EXPECT_INT(count, 1);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 60000, 90000);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

/* --- keys that are no locks ----------------------------------------------- */

static void expect_wrong_type(scene *s)
{
    bool locked;
    int64_t ms;
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_trylock(s->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_force_unlock(s->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_is_locked(s->lk, &locked), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_ttl(s->lk, &ms), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_NOT_HELD);
    EXPECT(!rlock_is_held(s->lk));
    EXPECT(test_now_ms() - began < SOON);
    EXPECT_INT(server_int(s->sv, "DBSIZE"), 1);
}

TEST(loss, a_string_is_no_lock_and_stays)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "SET job v PX 600000");
    expect_wrong_type(&s);
    EXPECT_STR(server_str(s.sv, "GET job"), "v");
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 300000, 600000);
    scene_stop(&s);
}

TEST(loss, a_list_is_no_lock_and_stays)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "RPUSH job a b");
    expect_wrong_type(&s);
    EXPECT_INT(server_int(s.sv, "LLEN job"), 2);
    EXPECT_INT(key_ttl(s.sv, SCENE_LOCK), -1);
    scene_stop(&s);
}

TEST(loss, a_set_is_no_lock_and_stays)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "SADD job a b");
    expect_wrong_type(&s);
    EXPECT_INT(server_int(s.sv, "SCARD job"), 2);
    scene_stop(&s);
}

TEST(loss, a_hash_of_another_program_is_busy_and_stays)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "HSET job holder abc");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_INT(server_int(s.sv, "HLEN job"), 1);
    EXPECT_STR(server_str(s.sv, "HGET job holder"), "abc");
    EXPECT_INT(key_ttl(s.sv, SCENE_LOCK), -1);
    scene_stop(&s);
}

/* A lock without an expiry rings nobody when it goes: waiters look again. */
TEST(loss, a_waiter_notices_that_a_foreign_hash_is_gone)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    server_cmd(s.sv, "HSET job holder abc");
    test_thread *t = test_spawn(lock_once, v.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    server_cmd(s.sv, "DEL job");
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(loss, a_hold_whose_key_became_a_string_is_lost_at_unlock)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "SET job v");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EWRONGTYPE);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STR(server_str(s.sv, "GET job"), "v");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    scene_stop(&s);
}

TEST(loss, a_hold_whose_key_became_a_string_is_lost_at_an_inner_unlock)
{
    scene s = scene_start(0, 0);
    lock_times(s.lk, 2);
    server_cmd(s.sv, "SET job v");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EWRONGTYPE);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_STR(server_str(s.sv, "GET job"), "v");
    scene_stop(&s);
}

TEST(loss, reentry_and_extend_of_a_key_that_became_a_string_lose_the_hold)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "SET job v");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_EWRONGTYPE);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STR(server_str(s.sv, "GET job"), "v");
    scene_stop(&s);
}

TEST(loss, the_watchdog_notices_a_key_that_became_a_string)
{
    scene s = scene_start(900, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "SET job v");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STR(server_str(s.sv, "GET job"), "v");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}
