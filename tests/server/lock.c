/*
 * One lock, seen from its callers and from the server: who holds it, level by
 * level, with which token, and what it leaves behind.
 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "other_client.h"

/* --- holding, level by level --------------------------------------------- */

TEST(lock, holder_field_is_host_pid_tid_uuid)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.host_id = "web-1.example";
    scene s = scene_with(server_start(NULL), &opts);
    char field[512], wanted[128];
    int count;
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    read_lock(s.sv, field, sizeof field, &count);
    int len = snprintf(wanted, sizeof wanted,
                       "web-1.example:%ld:%ld:", (long)getpid(),
                       (long)syscall(SYS_gettid));
    EXPECT(strncmp(field, wanted, (size_t)len) == 0);
    EXPECT_INT(strlen(field + len), 36);
    EXPECT_INT(strspn(field + len, "0123456789abcdef-"), 36);
    EXPECT_INT(count, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lock, server_counts_every_level_in_one_field)
{
    scene s = scene_start(0, 0);
    char first[512], now[512];
    int count;
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    read_lock(s.sv, first, sizeof first, &count);
    for (int level = 2; level <= 4; level++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        read_lock(s.sv, now, sizeof now, &count);
        EXPECT_STR(now, first);
        EXPECT_INT(count, level);
        EXPECT_INT(rlock_hold_count(s.lk), level);
    }
    for (int level = 3; level >= 1; level--) {
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
        read_lock(s.sv, now, sizeof now, &count);
        EXPECT_STR(now, first);
        EXPECT_INT(count, level);
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

TEST(lock, each_outermost_acquire_has_a_uuid_of_its_own)
{
    scene s = scene_start(0, 0);
    char first[512], second[512];
    int count;
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    read_lock(s.sv, first, sizeof first, &count);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    read_lock(s.sv, second, sizeof second, &count);
    EXPECT(strcmp(first, second) != 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lock, reentry_keeps_the_token)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    EXPECT(token > 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) == 0);
    scene_stop(&s);
}

TEST(lock, handles_of_one_name_are_one_lock)
{
    scene s = scene_start(0, 0);
    rlock *other = test_lock(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT(rlock_token(other) == rlock_token(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    rlock_free(other);
    scene_stop(&s);
}

TEST(lock, a_freed_handle_leaves_its_hold)
{
    scene s = scene_start(0, 0);
    rlock *other = test_lock(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    rlock_free(other);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

TEST(lock, names_that_share_a_prefix_are_different_locks)
{
    scene s = scene_start(0, 0);
    rlock *other = test_lock(s.cl, "k2");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_join(test_spawn(lock_once, other));
    EXPECT(!rlock_is_held(other));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

TEST(lock, another_thread_is_excluded)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(on_another_thread(rlock_trylock, s.lk), RLOCK_BUSY);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    test_join(test_spawn(lock_once, s.lk));
    scene_stop(&s);
}

TEST(lock, another_client_is_excluded_on_the_same_thread)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(v.lk), RLOCK_BUSY);
    EXPECT(!rlock_is_held(v.lk));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(lock, a_wait_runs_out_no_earlier_than_told)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 150, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(test_now_ms() - began, 149, 3150);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_queue:{job}"), 0);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(lock, events_tell_levels_and_tokens)
{
    scene s = scene_start(0, 0);
    rlock_event ev;
    lock_times(s.lk, 2);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ACQUIRED), 2);
    EXPECT(events_last(s.ev, RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT_INT(ev.name_len, strlen(SCENE_LOCK));
    EXPECT_INT(ev.count, 2);
    EXPECT(ev.token == rlock_token(s.lk));
    EXPECT_STATUS(ev.status, RLOCK_OK);
    unlock_times(s.lk, 2, RLOCK_OK);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RELEASED), 2);
    EXPECT(events_last(s.ev, RLOCK_EVENT_RELEASED, &ev));
    EXPECT_INT(ev.count, 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_CONTENDED), 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
}

TEST(lock, contention_is_told_once_for_a_call)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_CONTENDED), 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_CONTENDED), 1);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

/* --- RLOCK_SCOPED --------------------------------------------------------- */

static void hold_in_a_scope(server *sv, rlock *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    RLOCK_SCOPED(lk);
    EXPECT(key_exists(sv, SCENE_LOCK));
}

static int leave_in_the_middle(rlock *lk)
{
    for (;;) {
        if (rlock_lock(lk) != RLOCK_OK)
            return -1;
        RLOCK_SCOPED(lk);
        return rlock_hold_count(lk);
    }
}

TEST(lock, the_end_of_a_scope_unlocks_once)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    hold_in_a_scope(s.sv, s.lk);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_INT(leave_in_the_middle(s.lk), 2);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

TEST(lock, a_scope_of_nothing_unlocks_nothing)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    {
        RLOCK_SCOPED(NULL);
        RLOCK_SCOPED((rlock *)0);
    }
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

static int scoped(rlock_client *cl, server *sv, int deeper)
{
    RLOCK_SCOPED_LOCK(lk, cl, SCENE_LOCK);
    if (!lk)
        return -1;
    EXPECT_INT(levels(sv, SCENE_LOCK), rlock_hold_count(lk));
    return deeper > 1 ? scoped(cl, sv, deeper - 1) : rlock_hold_count(lk);
}

/* Functions that lock, each with a handle of its own, call each other. */
TEST(lock, a_scoped_lock_unlocks_and_frees_its_handle)
{
    scene s = scene_start(0, 0);
    EXPECT_INT(scoped(s.cl, s.sv, 3), 3);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    EXPECT_INT(scoped(s.cl, s.sv, 1), 1);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(lock, a_scoped_lock_that_cannot_be_had_is_null_and_says_why)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    EXPECT_INT(scoped(s.cl, s.sv, 1), -1);
    EXPECT_INT(rlock_last_error()->status, RLOCK_CANCELED);
    {
        RLOCK_SCOPED_LOCK(nameless, s.cl, "");
        EXPECT(!nameless);
    }
    EXPECT_INT(rlock_last_error()->status, RLOCK_EINVAL);
    scene_stop(&s);
}

/* --- tokens --------------------------------------------------------------- */

static uint64_t token_of_a_hold(rlock *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    uint64_t token = rlock_token(lk);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    return token;
}

TEST(lock, tokens_grow_from_hold_to_hold)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    uint64_t last = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t token = token_of_a_hold(i % 2 ? v.lk : s.lk);
        EXPECT(token > last);
        last = token;
    }
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(lock, tokens_grow_past_the_last_one_of_a_clock_that_was_ahead)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "SET rlock_token:{job} 4000000000000000");
    EXPECT(token_of_a_hold(s.lk) == 4000000000000001);
    EXPECT(token_of_a_hold(s.lk) == 4000000000000002);
    scene_stop(&s);
}

TEST(lock, tokens_grow_over_a_flush)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    server_cmd(s.sv, "FLUSHALL");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT(token_of_a_hold(s.lk) > token);
    scene_stop(&s);
}

TEST(lock, tokens_grow_over_a_restart_without_data)
{
    scene s = scene_start(0, 0);
    uint64_t token = token_of_a_hold(s.lk);
    server_restart(s.sv);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 0);
    EXPECT(token_of_a_hold(s.lk) > token);
    scene_stop(&s);
}

/* --- what is left behind -------------------------------------------------- */

static void expect_only_tokens(server *sv)
{
    redisReply *reply = server_cmd(sv, "KEYS *");
    char keys[16][64];
    size_t n = reply->elements;
    EXPECT_BETWEEN(n, 1, 16);
    for (size_t i = 0; i < n; i++)
        snprintf(keys[i], sizeof keys[i], "%s", reply->element[i]->str);
    for (size_t i = 0; i < n; i++) {
        EXPECT(strncmp(keys[i], "rlock_token:", 12) == 0);
        EXPECT_BETWEEN(server_int(sv, "PTTL %s", keys[i]), 1, 3600000);
    }
}

static intptr_t lock_nested_often(void *lk)
{
    for (int i = 0; i < 10; i++) {
        lock_times(lk, 2);
        unlock_times(lk, 2, RLOCK_OK);
    }
    return 0;
}

TEST(lock, only_tokens_stay_behind)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    rlock *tagged = test_lock(s.cl, "a{b}c");
    test_thread *t[] = {test_spawn(lock_nested_often, s.lk),
                        test_spawn(lock_nested_often, v.lk),
                        test_spawn(lock_nested_often, tagged)};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        test_join(t[i]);
    expect_only_tokens(s.sv);
    EXPECT(key_exists(s.sv, "rlock_token:{job}"));
    EXPECT(key_exists(s.sv, "rlock_token:a{b}c"));
    rlock_free(tagged);
    other_client_leave(&v);
    scene_stop(&s);
}

typedef struct share {
    rlock *lk;
    atomic_int *counter; /* read, then written: the lock makes that one step */
} share;

static intptr_t count_under_the_lock(void *arg)
{
    share *s = arg;
    for (int i = 0; i < 25; i++) {
        EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
        atomic_store(s->counter, atomic_load(s->counter) + 1);
        unlock_times(s->lk, 2, RLOCK_OK);
    }
    return 0;
}

TEST(lock, threads_of_one_client_and_of_two_take_turns)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    atomic_int counter = 0;
    share mine = {s.lk, &counter}, theirs = {v.lk, &counter};
    test_thread *t[6];
    for (int i = 0; i < 6; i++)
        t[i] = test_spawn(count_under_the_lock, i % 2 ? &mine : &theirs);
    for (int i = 0; i < 6; i++)
        test_join(t[i]);
    EXPECT_INT(counter, 150);
    EXPECT_INT(stats_of(s.cl).held_now + stats_of(v.cl).held_now, 0);
    other_client_leave(&v);
    scene_stop(&s);
}
