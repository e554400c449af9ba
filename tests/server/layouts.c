/*
 * Locks that are a string or a timestamp: what is in Redis, what is shared with
 * the programs that keep their locks like that, and that all verbs work on them
 * as they do on a hash.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "layouts.h"

/* The server's clock. */
static int64_t server_ms(server *sv)
{
    redisReply *r = server_cmd(sv, "TIME");
    EXPECT_INT(r->elements, 2);
    return atoll(r->element[0]->str) * 1000 + atoll(r->element[1]->str) / 1000;
}

/* What an old program writes that wants to hold until then. */
static text stamp_at(int64_t free_at_ms)
{
    text t;
    snprintf(t.is, sizeof t.is, "%lld.%03lld", (long long)free_at_ms / 1000,
             (long long)free_at_ms % 1000);
    return t;
}

/* Another program takes the lock for so long, or tries to; its value. */
static text others_value(server *sv, rlock_layout layout, int64_t lease_ms)
{
    if (layout == RLOCK_LAYOUT_TIMESTAMP)
        return stamp_at(server_ms(sv) + lease_ms);
    return (text){"6f1c0b9e-of-a-program-in-python"};
}

static bool others_try(server *sv, rlock_layout layout, const char *value,
                       int64_t lease_ms)
{
    if (layout == RLOCK_LAYOUT_TIMESTAMP)
        return server_int(sv, "SETNX " SCENE_LOCK " %s", value) == 1;
    return strcmp(server_str(sv, "SET " SCENE_LOCK " %s NX PX %lld", value,
                             (long long)lease_ms),
                  "OK") == 0;
}

static text others_take(server *sv, rlock_layout layout, int64_t lease_ms)
{
    text value = others_value(sv, layout, lease_ms);
    EXPECT(others_try(sv, layout, value.is, lease_ms));
    return value;
}

/* Another program takes it although it is held. */
static text others_overwrite(server *sv, rlock_layout layout)
{
    text value = others_value(sv, layout, 60000);
    if (layout == RLOCK_LAYOUT_TIMESTAMP)
        EXPECT(*server_str(sv, "GETSET " SCENE_LOCK " %s", value.is));
    else
        EXPECT_STR(server_str(sv, "SET " SCENE_LOCK " %s PX 60000", value.is),
                   "OK");
    return value;
}

static void others_release(server *sv)
{
    EXPECT_INT(server_int(sv, "DEL " SCENE_LOCK), 1);
}

/* How long the lock will be held, as the server has it. */
static int64_t ttl_of(rlock *lk)
{
    int64_t ms = 0;
    EXPECT_STATUS(rlock_ttl(lk, &ms), RLOCK_OK);
    return ms;
}

static bool is_locked(rlock *lk)
{
    bool locked = false;
    EXPECT_STATUS(rlock_is_locked(lk, &locked), RLOCK_OK);
    return locked;
}

/* A timestamp of ours promises up to a second more, and up to 0.1 s by its
   digits. */
static int64_t longest(rlock_layout layout, int64_t lease_ms)
{
    return layout == RLOCK_LAYOUT_TIMESTAMP ? lease_ms + 1100 : lease_ms;
}

/* The loss was told once, whatever has been asked since. */
static void expect_lost_once(scene *s)
{
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!rlock_is_held(s->lk));
    EXPECT_INT(rlock_token(s->lk), 0);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_NOT_HELD);
    EXPECT_INT(stats_of(s->cl).lost, 1);
    EXPECT_INT(events_count(s->ev, RLOCK_EVENT_LOST), 1);
}

/* The unlock tells of the loss as well. */
static void unlock_lost(scene *s)
{
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_LOST);
    expect_lost_once(s);
}

/* --- lock and unlock ----------------------------------------------------- */

BOTH(unlock_leaves_nothing_but_a_token)
{
    scene s = scene_of_held(layout, 0);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STR(server_str(s.sv, "TYPE " SCENE_LOCK), "string");
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_token:{" SCENE_LOCK "}"), 1);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(a_server_that_lacks_the_scripts_gets_them)
{
    scene s = scene_of(layout, 0);
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    EXPECT(is_locked(s.lk));
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(a_nested_acquire_counts_here_and_keeps_the_token)
{
    scene s = scene_of_held(layout, 0);
    uint64_t token = rlock_token(s.lk);
    EXPECT(token > 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 3);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT(held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    scene_stop(&s);
}

BOTH(a_second_handle_of_the_client_is_the_same_lock)
{
    scene s = scene_of(layout, 0);
    rlock *again = lock_of(s.cl, layout, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(again), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT(rlock_token(again) == rlock_token(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(again), RLOCK_OK);
    expect_nothing_left(s.sv);
    rlock_free(again);
    scene_stop(&s);
}

BOTH(another_client_finds_it_busy)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    text value = value_of(s.sv);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(b.lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_extend(b.lk, 1000), RLOCK_NOT_HELD);
    expect_value(s.sv, value.is);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    rival_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(another_thread_finds_it_busy)
{
    scene s = scene_of_held(layout, 0);
    EXPECT_STATUS(on_another_thread(rlock_trylock, s.lk), RLOCK_BUSY);
    EXPECT_STATUS(on_another_thread(rlock_unlock, s.lk), RLOCK_NOT_HELD);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

typedef struct share {
    rlock *lk;
    atomic_int *counter; /* read, then written: the lock makes that one step */
} share;

static intptr_t count_under_the_lock(void *arg)
{
    share *sh = arg;
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(rlock_lock(sh->lk), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(sh->lk), RLOCK_OK);
        atomic_store(sh->counter, atomic_load(sh->counter) + 1);
        EXPECT_STATUS(rlock_unlock(sh->lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(sh->lk), RLOCK_OK);
    }
    return 0;
}

BOTH(threads_of_one_client_and_of_two_take_turns)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    atomic_int counter = 0;
    share mine = {s.lk, &counter}, theirs = {b.lk, &counter};
    test_thread *t[6];
    for (int i = 0; i < 6; i++)
        t[i] = test_spawn(count_under_the_lock, i % 2 ? &mine : &theirs);
    for (int i = 0; i < 6; i++)
        test_join(t[i]);
    EXPECT_INT(counter, 120);
    rival_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

static uint64_t token_of_a_hold(rlock *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    uint64_t token = rlock_token(lk);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    return token;
}

BOTH(tokens_grow_from_hold_to_hold)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    uint64_t last = 0;
    for (int i = 0; i < 50; i++) {
        uint64_t token = token_of_a_hold(i % 2 ? s.lk : b.lk);
        EXPECT(token > last);
        last = token;
    }
    rival_leave(&b);
    scene_stop(&s);
}

BOTH(tokens_grow_past_the_last_one_of_a_clock_that_was_ahead)
{
    scene s = scene_of(layout, 0);
    server_cmd(s.sv, "SET rlock_token:{" SCENE_LOCK "} 4000000000000000");
    EXPECT(token_of_a_hold(s.lk) == 4000000000000001);
    EXPECT(token_of_a_hold(s.lk) == 4000000000000002);
    scene_stop(&s);
}

/* --- the value ----------------------------------------------------------- */

TEST(layouts, string_the_value_is_the_holder_and_the_ttl_is_the_lease)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    char host[300], uuid[40], rest[40];
    long long pid, tid;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    text value = value_of(s.sv);
    EXPECT_INT(sscanf(value.is, "%255[^:]:%lld:%lld:%39[0-9a-f-]%39s", host,
                      &pid, &tid, uuid, rest),
               4);
    EXPECT_INT(pid, getpid());
    EXPECT_INT(tid, syscall(SYS_gettid));
    EXPECT_INT(strlen(uuid), 36);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 40000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(layouts, string_each_hold_has_a_value_of_its_own)
{
    scene s = scene_of_held(RLOCK_LAYOUT_STRING, 0);
    text first = value_of(s.sv);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_value(s.sv, first.is);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(strcmp(value_of(s.sv).is, first.is) != 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* The seconds of a value of ours. */
static long long seconds_of(const char *value)
{
    char *rest;
    long long seconds = strtoll(value, &rest, 10);
    if (strlen(rest) != 17 || strncmp(rest, ".0", 2) != 0 ||
        strspn(rest + 1, "0123456789") != 16)
        FAIL("\"%s\" is no value of ours", value);
    return seconds;
}

static long long rounded_up(int64_t ms)
{
    return (ms + 999) / 1000;
}

/* Acquires, and looks at what is there then. */
static void expect_stamp(scene *s, int64_t lease_ms)
{
    int64_t before_ms = server_ms(s->sv);
    EXPECT_STATUS(rlock_acquire(s->lk, 0, lease_ms), RLOCK_OK);
    int64_t after_ms = server_ms(s->sv);
    long long seconds = seconds_of(value_of(s->sv).is);
    EXPECT_BETWEEN(seconds, rounded_up(before_ms + lease_ms),
                   rounded_up(after_ms + lease_ms));
    after_ms = server_ms(s->sv);
    int64_t ttl_ms = key_ttl(s->sv, SCENE_LOCK), end_ms = after_ms + ttl_ms;
    EXPECT_BETWEEN(end_ms - seconds * 1000, 59000, 60100);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
}

TEST(layouts, timestamp_the_value_is_the_end_of_the_lease_in_whole_seconds)
{
    static const int64_t leases[] = {5000,  5001,  5500, 5999,
                                     10000, 30000, 1234, 86400000};
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    for (size_t i = 0; i < sizeof leases / sizeof *leases; i++)
        expect_stamp(&s, leases[i]);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(layouts, timestamp_each_hold_has_digits_of_its_own)
{
    scene s = scene_of_held(RLOCK_LAYOUT_TIMESTAMP, 0);
    text first = value_of(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    text second = value_of(s.sv);
    EXPECT(strcmp(strchr(first.is, '.'), strchr(second.is, '.')) != 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* What they read with whatever they have gives at least the lease. */
TEST(layouts, timestamp_an_old_program_reads_a_time_not_before_the_lease_ends)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 7300), RLOCK_OK);
    int64_t until_ms = server_ms(s.sv) + rlock_valid_ms(s.lk);
    text value = value_of(s.sv);
    EXPECT(atoll(value.is) * 1000 >= until_ms);
    EXPECT(strtod(value.is, NULL) * 1000 >= (double)until_ms);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- shared with other programs ------------------------------------------ */

BOTH(a_program_without_this_library_finds_it_busy)
{
    scene s = scene_of_held(layout, 0);
    text theirs = others_value(s.sv, layout, 60000);
    EXPECT(!others_try(s.sv, layout, theirs.is, 60000));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(others_try(s.sv, layout, theirs.is, 60000));
    scene_stop(&s);
}

BOTH(a_foreign_lock_is_busy_and_not_touched)
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

BOTH(a_foreign_lock_that_runs_out_lets_a_waiter_in)
{
    scene s = scene_of(layout, 0);
    int64_t taken_ms = server_ms(s.sv);
    text theirs = others_take(s.sv, layout, 700);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, 60000), RLOCK_OK);
    EXPECT_BETWEEN(server_ms(s.sv) - taken_ms, 699, 3000);
    EXPECT(strcmp(value_of(s.sv).is, theirs.is) != 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(a_foreign_release_is_noticed_soon)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    others_take(s.sv, layout, 60000);
    rival_wait(&s, &b, 1, RLOCK_FOREVER);
    others_release(s.sv);
    expect_woken(&b);
    EXPECT_INT(stats_of(b.cl).wakeups, 0);
    waiter_end(b.w);
    rival_leave(&b);
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
BOTH(a_foreign_lock_is_looked_at_four_times_a_second)
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

BOTH(a_lock_of_our_own_is_left_alone_by_its_waiters)
{
    scene s = scene_of_proxied(layout, 0, 0);
    rival a = rival_of(&s, layout);
    int64_t took_ms;
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int looks = looks_in(&s, layout, 1300, &took_ms);
    EXPECT_BETWEEN(looks, 0, 1 + took_ms / 1500);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    rival_leave(&a);
    scene_stop(&s);
}

BOTH(force_unlock_frees_a_foreign_lock)
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

TEST(layouts, string_a_foreign_lock_without_expiry_stays_as_it_is)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    rlock_holder h;
    EXPECT_INT(server_int(s.sv, "SETNX " SCENE_LOCK " x"), 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s.lk, 300, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_INT(ttl_of(s.lk), -1);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h), RLOCK_OK);
    EXPECT_INT(h.ttl_ms, -1);
    EXPECT_INT(key_ttl(s.sv, SCENE_LOCK), -1);
    expect_value(s.sv, "x");
    scene_stop(&s);
}

TEST(layouts, string_an_empty_value_is_a_holder)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    rlock_holder h;
    server_cmd(s.sv, "SET " SCENE_LOCK " %b PX 60000", "", (size_t)0);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT(is_locked(s.lk));
    EXPECT_STATUS(rlock_holder_info(s.lk, &h), RLOCK_OK);
    EXPECT_STR(h.raw, "");
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- an old program's timestamp ------------------------------------------ */

/* An old program that died leaves this. */
static void leave_stamp(server *sv, const char *value)
{
    EXPECT_INT(server_int(sv, "SETNX " SCENE_LOCK " %s", value), 1);
}

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

TEST(layouts, timestamp_a_time_that_has_passed_is_taken_over)
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

TEST(layouts, timestamp_a_time_to_come_in_whole_seconds_is_busy)
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

TEST(layouts, timestamp_a_time_in_milliseconds_is_a_time_far_away)
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

TEST(layouts, timestamp_a_key_for_ever_gets_an_end_when_somebody_waits)
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

TEST(layouts, timestamp_a_key_that_has_an_end_keeps_it)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    server_cmd(s.sv, "SET " SCENE_LOCK " %s PX 900000",
               stamp_at(server_ms(s.sv) + 30000).is);
    EXPECT_STATUS(rlock_acquire(s.lk, 300, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 800000, 900000);
    scene_stop(&s);
}

TEST(layouts, timestamp_questions_do_not_touch_a_key_for_ever)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    leave_stamp(s.sv, stamp_at(server_ms(s.sv) + 30000).is);
    EXPECT(is_locked(s.lk));
    EXPECT_BETWEEN(ttl_of(s.lk), 10000, 30000);
    EXPECT_INT(key_ttl(s.sv, SCENE_LOCK), -1);
    scene_stop(&s);
}

TEST(layouts, timestamp_nobody_holds_a_lock_whose_time_has_passed)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    rlock_holder h;
    leave_stamp(s.sv, "1300000000");
    EXPECT(!is_locked(s.lk));
    EXPECT_INT(ttl_of(s.lk), -2);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h), RLOCK_NOT_HELD);
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

TEST(layouts, timestamp_only_one_takes_over)
{
    enum { RUNNERS = 4 };
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    rival p[RUNNERS];
    runner r[RUNNERS];
    test_thread *t[RUNNERS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, RUNNERS);
    for (int i = 0; i < RUNNERS; i++) {
        p[i] = rival_of(&s, RLOCK_LAYOUT_TIMESTAMP);
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
        rival_leave(&p[i]);
    pthread_barrier_destroy(&start);
    scene_stop(&s);
}

/* Ours died; the old program sees its time pass, and wins by GETSET. */
TEST(layouts, timestamp_an_old_program_takes_over_from_a_dead_one_of_ours)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    rival dead = rival_of(&s, RLOCK_LAYOUT_TIMESTAMP);
    EXPECT_STATUS(rlock_acquire(dead.lk, 0, 100), RLOCK_OK);
    rival_leave(&dead);
    text old = value_of(s.sv);
    EVENTUALLY(SOON, server_ms(s.sv) > (seconds_of(old.is) + 1) * 1000);
    text theirs = stamp_at(server_ms(s.sv) + 60000);
    EXPECT_STR(server_str(s.sv, "GETSET " SCENE_LOCK " %s", theirs.is), old.is);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    expect_value(s.sv, theirs.is);
    scene_stop(&s);
}

/* It is still there, but by its time it is free. */
TEST(layouts, timestamp_a_lease_that_ran_out_is_free_though_the_key_stays)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    rival b = rival_of(&s, RLOCK_LAYOUT_TIMESTAMP);
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
    rival_leave(&b);
    scene_stop(&s);
}

/* --- waiting ------------------------------------------------------------- */

/* A waiter gets it at once, whoever gives it. */
static void expect_handed_over(rlock_layout from, rlock_layout to)
{
    scene s = scene_of_held(from, 0);
    rival b = rival_of(&s, to);
    rival_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    EXPECT_INT(stats_of(b.cl).wakeups, 1);
    EXPECT_INT(stats_of(b.cl).wakeups_futile, 0);
    waiter_end(b.w);
    rival_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(a_release_wakes_a_waiter_at_once)
{
    expect_handed_over(layout, layout);
}

BOTH(a_force_unlock_wakes_a_waiter_at_once)
{
    scene s = scene_of(layout, 0);
    rival a = rival_of(&s, layout), b = rival_of(&s, layout);
    EXPECT_STATUS(rlock_acquire(a.lk, 0, 60000), RLOCK_OK);
    rival_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    EXPECT_INT(stats_of(b.cl).wakeups, 1);
    waiter_end(b.w);
    rival_leave(&a);
    rival_leave(&b);
    scene_stop(&s);
}

BOTH(a_thread_of_the_same_client_is_woken_at_once)
{
    scene s = scene_of(layout, 0);
    rival b = {.cl = s.cl, .lk = s.lk};
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    rival_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    waiter_end(b.w);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(an_inner_unlock_wakes_nobody)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    rival_wait(&s, &b, 1, RLOCK_FOREVER);
    long long before = server_calls(s.sv, "publish");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(server_calls(s.sv, "publish"), before);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(b.w), RLOCK_OK);
    rival_leave(&b);
    scene_stop(&s);
}

BOTH(waiting_clients_get_it_in_the_order_they_came)
{
    scene s = scene_of(layout, 0);
    rival p[4];
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    for (int i = 0; i < 4; i++) {
        p[i] = rival_of(&s, layout);
        rival_wait(&s, &p[i], i + 1, RLOCK_FOREVER);
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < 4; i++) {
        EXPECT_STATUS(waiter_status(p[i].w, NULL), RLOCK_OK);
        for (int k = i + 1; k < 4; k++)
            EXPECT(!waiter_returned(p[k].w));
        waiter_end(p[i].w);
    }
    for (int i = 0; i < 4; i++)
        rival_leave(&p[i]);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(a_waiter_that_gives_up_leaves_the_queue)
{
    scene s = scene_of(layout, 0);
    others_take(s.sv, layout, 60000);
    waiter *w = waiter_start(s.lk, 200, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_TIMEOUT);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    scene_stop(&s);
}

BOTH(a_lease_of_ours_that_runs_out_lets_a_waiter_in)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(b.lk, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 299, longest(layout, 1900));
    EXPECT(!rlock_is_held(b.lk));
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_LOST);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rival_leave(&b);
    scene_stop(&s);
}

/* --- leases -------------------------------------------------------------- */

BOTH(the_watchdog_lease_is_30_s)
{
    scene s = scene_of_held(layout, 0);
    EXPECT_BETWEEN(ttl_of(s.lk), 15000, longest(layout, 30000));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 15000, 30000 - 302);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* Twice as long as its lease, rounded up. */
BOTH(the_watchdog_renews)
{
    scene s = scene_of(layout, 900);
    rival b = rival_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    int64_t began_ms = test_now_ms();
    EVENTUALLY(SOON, test_now_ms() - began_ms > 2100);
    EXPECT(rlock_is_held(s.lk));
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    rival_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(layouts, string_renewal_keeps_the_value)
{
    scene s = scene_of_held(RLOCK_LAYOUT_STRING, 900);
    text value = value_of(s.sv);
    EXPECT_INT(server_int(s.sv, "PERSIST " SCENE_LOCK), 1);
    expect_renewals(&s, 2);
    expect_value(s.sv, value.is);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 1, 900);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(layouts, timestamp_renewal_moves_the_value_on)
{
    scene s = scene_of_held(RLOCK_LAYOUT_TIMESTAMP, 900);
    text first = value_of(s.sv);
    EVENTUALLY(SOON, seconds_of(value_of(s.sv).is) >= seconds_of(first.is) + 2);
    text later = value_of(s.sv);
    EXPECT_STR(strchr(later.is, '.'), strchr(first.is, '.'));
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 59000, 62000);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    scene_stop(&s);
}

BOTH(renewal_never_shortens)
{
    scene s = scene_of(layout, 600);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK); /* turns it on */
    expect_renewals(&s, 2);
    EXPECT_BETWEEN(ttl_of(s.lk), 30000, longest(layout, 60000));
    EXPECT(rlock_valid_ms(s.lk) > 30000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(a_nested_lease_never_shortens)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    text value = value_of(s.sv);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    expect_value(s.sv, value.is);
    EXPECT_BETWEEN(ttl_of(s.lk), 60000, longest(layout, 90000));
    EXPECT(rlock_valid_ms(s.lk) > 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(a_nested_lease_lengthens_and_stays_after_its_unlock)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(ttl_of(s.lk), 60000, longest(layout, 90000));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 60000, 90000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(extend_shortens_and_lengthens)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 20000), RLOCK_OK);
    EXPECT_BETWEEN(ttl_of(s.lk), 10000, longest(layout, 20000));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 10000, 20000);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    EXPECT_BETWEEN(ttl_of(s.lk), 40000, longest(layout, 60000));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 40000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(extend_by_a_lease_stops_renewal)
{
    scene s = scene_of_held(layout, 300);
    EXPECT_STATUS(rlock_extend(s.lk, 400), RLOCK_OK);
    uint64_t before = stats_of(s.cl).renewals;
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).renewals, before);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

BOTH(extend_to_the_watchdog_starts_renewal)
{
    scene s = scene_of(layout, 900);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(ttl_of(s.lk), 0, longest(layout, 900));
    expect_renewals(&s, 4);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(an_explicit_lease_is_never_renewed)
{
    scene s = scene_of(layout, 150);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 400), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    unlock_lost(&s);
    EVENTUALLY(SOON, !is_locked(s.lk));
    scene_stop(&s);
}

BOTH(a_lease_too_short_to_use_is_undone)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1), RLOCK_EIO);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EVENTUALLY(SOON, !held_on_server(s.sv));
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(the_longest_lease_works)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, RLOCK_LEASE_MAX_MS), RLOCK_OK);
    EXPECT(rlock_valid_ms(s.lk) > RLOCK_LEASE_MAX_MS / 2);
    EXPECT(ttl_of(s.lk) > RLOCK_LEASE_MAX_MS / 2);
    EXPECT_STATUS(rlock_acquire(b.lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_LEASE_MAX_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, RLOCK_LEASE_MAX_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(key_ttl(s.sv, SCENE_LOCK) > RLOCK_LEASE_MAX_MS / 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rival_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- taken away ---------------------------------------------------------- */

typedef rlock_status verb(rlock *lk);

static rlock_status acquire_long(rlock *lk)
{
    return rlock_acquire(lk, 0, 900000);
}

static rlock_status extend_long(rlock *lk)
{
    return rlock_extend(lk, 900000);
}

static void expect_told_of_deletion(rlock_layout layout, verb *fn)
{
    scene s = scene_of_held(layout, 0);
    others_release(s.sv);
    EXPECT_STATUS(fn(s.lk), RLOCK_LOST);
    EXPECT(!held_on_server(s.sv));
    unlock_lost(&s);
    scene_stop(&s);
}

static void expect_not_touched(rlock_layout layout, verb *fn)
{
    scene s = scene_of_held(layout, 0);
    text theirs = others_overwrite(s.sv, layout);
    EXPECT_STATUS(fn(s.lk), RLOCK_LOST);
    unlock_lost(&s);
    expect_value(s.sv, theirs.is);
    EXPECT(key_ttl(s.sv, SCENE_LOCK) < 130000);
    scene_stop(&s);
}

BOTH(unlock_tells_that_the_key_was_deleted)
{
    scene s = scene_of_held(layout, 0);
    others_release(s.sv);
    unlock_lost(&s);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(an_inner_unlock_tells_that_the_key_was_deleted)
{
    scene s = scene_of_held(layout, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    others_release(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT(!rlock_is_held(s.lk));
    unlock_lost(&s);
    scene_stop(&s);
}

BOTH(a_nested_acquire_tells_that_the_key_was_deleted)
{
    expect_told_of_deletion(layout, rlock_lock);
}

BOTH(extend_tells_that_the_key_was_deleted)
{
    expect_told_of_deletion(layout, extend_long);
}

BOTH(the_watchdog_tells_that_the_key_was_deleted)
{
    scene s = scene_of_held(layout, 900);
    others_release(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!held_on_server(s.sv));
    unlock_lost(&s);
    scene_stop(&s);
}

BOTH(unlock_does_not_touch_who_has_overwritten_it)
{
    scene s = scene_of_held(layout, 0);
    text theirs = others_overwrite(s.sv, layout);
    unlock_lost(&s);
    expect_value(s.sv, theirs.is);
    scene_stop(&s);
}

BOTH(a_nested_acquire_does_not_touch_who_has_overwritten_it)
{
    expect_not_touched(layout, acquire_long);
}

BOTH(extend_does_not_touch_who_has_overwritten_it)
{
    expect_not_touched(layout, extend_long);
}

BOTH(the_watchdog_does_not_touch_who_has_overwritten_it)
{
    scene s = scene_of_held(layout, 900);
    text theirs = others_overwrite(s.sv, layout);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_lost(&s);
    expect_value(s.sv, theirs.is);
    scene_stop(&s);
}

/* Another of ours has it now. */
BOTH(a_late_unlock_does_not_touch_the_next_hold)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    others_release(s.sv);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    text value = value_of(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_value(s.sv, value.is);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    rival_leave(&b);
    scene_stop(&s);
}

BOTH(force_unlock_tells_the_holder)
{
    scene s = scene_of(layout, 900);
    rival b = rival_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(b.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_force_unlock(b.lk), RLOCK_NOT_HELD);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_lost(&s);
    rival_leave(&b);
    scene_stop(&s);
}

/* --- questions ----------------------------------------------------------- */

BOTH(a_free_lock_has_no_holder)
{
    scene s = scene_of(layout, 0);
    rlock_holder h, zero = {.host = ""};
    memset(&zero, 0, sizeof zero);
    EXPECT(!is_locked(s.lk));
    EXPECT_INT(ttl_of(s.lk), -2);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h), RLOCK_NOT_HELD);
    EXPECT_INT(memcmp(&h, &zero, sizeof h), 0);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 0);
    scene_stop(&s);
}

BOTH(everybody_sees_that_it_is_held)
{
    scene s = scene_of(layout, 0);
    rival b = rival_of(&s, layout);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT(is_locked(s.lk));
    EXPECT(is_locked(b.lk));
    EXPECT_BETWEEN(ttl_of(b.lk), 40000, longest(layout, 60000));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!is_locked(b.lk));
    rival_leave(&b);
    scene_stop(&s);
}

static void expect_only_raw(rlock *lk, const char *raw)
{
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(lk, &h), RLOCK_OK);
    EXPECT_STR(h.raw, raw);
    EXPECT_INT(h.count, 1);
    EXPECT_BETWEEN(h.ttl_ms, 40000, 61100);
    EXPECT_STR(h.host, "");
    EXPECT_STR(h.hold_id, "");
    EXPECT_INT(h.pid, 0);
    EXPECT_INT(h.tid, 0);
}

BOTH(of_a_foreign_holder_the_value_is_known)
{
    scene s = scene_of(layout, 0);
    text value = others_take(s.sv, layout, 60000);
    expect_only_raw(s.lk, value.is);
    scene_stop(&s);
}

TEST(layouts, timestamp_of_a_holder_of_ours_the_value_is_known)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    expect_only_raw(s.lk, value_of(s.sv).is);
    scene_stop(&s);
}

TEST(layouts, string_of_a_holder_of_ours_everything_but_its_count_is_known)
{
    scene s = scene_server(NULL);
    rlock_holder h;
    s.opts.host_id = "a.test";
    scene_client(&s, 0, 0);
    use_layout(&s, RLOCK_LAYOUT_STRING);
    rival b = rival_of(&s, RLOCK_LAYOUT_STRING);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(b.lk, &h), RLOCK_OK);
    EXPECT_STR(h.host, "a.test");
    EXPECT_INT(h.pid, getpid());
    EXPECT_INT(h.tid, syscall(SYS_gettid));
    EXPECT_INT(strlen(h.hold_id), 36);
    EXPECT_INT(h.count, 1);
    EXPECT_BETWEEN(h.ttl_ms, 40000, 60000);
    EXPECT_STR(h.raw, value_of(s.sv).is);
    rival_leave(&b);
    scene_stop(&s);
}

TEST(layouts, string_a_long_foreign_value_is_cut)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    rlock_holder h;
    char value[4000];
    memset(value, 'v', sizeof value);
    server_cmd(s.sv, "SET " SCENE_LOCK " %b PX 60000", value, sizeof value);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h), RLOCK_OK);
    EXPECT_INT(strlen(h.raw), sizeof h.raw - 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_INT(server_int(s.sv, "STRLEN " SCENE_LOCK), sizeof value);
    scene_stop(&s);
}

TEST(layouts, timestamp_a_long_foreign_value_is_cut)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    rlock_holder h;
    char value[4000];
    memset(value, '9', sizeof value);
    value[10] = '.';
    server_cmd(s.sv, "SET " SCENE_LOCK " %b PX 60000", value, sizeof value);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT(is_locked(s.lk));
    EXPECT_STATUS(rlock_holder_info(s.lk, &h), RLOCK_OK);
    EXPECT_INT(strlen(h.raw), sizeof h.raw - 1);
    EXPECT_INT(server_int(s.sv, "STRLEN " SCENE_LOCK), sizeof value);
    scene_stop(&s);
}

/* --- keys that are no locks ---------------------------------------------- */

static void expect_wrong_type(scene *s)
{
    rlock_holder h;
    bool locked;
    int64_t ms;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(s->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_force_unlock(s->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_is_locked(s->lk, &locked), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_ttl(s->lk, &ms), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_holder_info(s->lk, &h), RLOCK_EWRONGTYPE);
    EXPECT_CONTAINS(rlock_last_error()->message, "'" SCENE_LOCK "'");
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_NOT_HELD);
    EXPECT(test_now_ms() - began_ms < SOON);
    EXPECT_INT(server_int(s->sv, "DBSIZE"), 1);
    EXPECT_INT(key_ttl(s->sv, SCENE_LOCK), -1);
}

BOTH(a_hash_is_no_lock_and_stays)
{
    scene s = scene_of(layout, 0);
    server_cmd(s.sv, "HSET " SCENE_LOCK " holder 1");
    expect_wrong_type(&s);
    EXPECT_STR(server_str(s.sv, "HGET " SCENE_LOCK " holder"), "1");
    scene_stop(&s);
}

BOTH(a_list_is_no_lock_and_stays)
{
    scene s = scene_of(layout, 0);
    server_cmd(s.sv, "RPUSH " SCENE_LOCK " a b");
    expect_wrong_type(&s);
    EXPECT_INT(server_int(s.sv, "LLEN " SCENE_LOCK), 2);
    scene_stop(&s);
}

TEST(layouts, timestamp_what_is_no_number_is_no_lock_and_stays)
{
    static const char *const values[] = {"abc",          "",
                                         "-1",           "1e9",
                                         "1.2.3",        " 1",
                                         "1 ",           "0x10",
                                         "1300000000,5", "1300000000\n",
                                         "inf",          "nan",
                                         ".5",           "17000000000000",
                                         "+5",           "1\n.5",
                                         "1.5abc",       "host:1:2:x"};
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        server_cmd(s.sv, "SET " SCENE_LOCK " %b", values[i], strlen(values[i]));
        expect_wrong_type(&s);
        expect_value(s.sv, values[i]);
    }
    scene_stop(&s);
}

TEST(layouts, hash_a_lock_of_the_other_layouts_is_no_lock_and_stays)
{
    static const char *const values[] = {"host:1:2:x", "1300000000", ""};
    scene s = scene_of(RLOCK_LAYOUT_HASH, 0);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        server_cmd(s.sv, "SET " SCENE_LOCK " %b", values[i], strlen(values[i]));
        expect_wrong_type(&s);
        expect_value(s.sv, values[i]);
    }
    scene_stop(&s);
}

static void become_a_hash(server *sv)
{
    server_cmd(sv, "DEL " SCENE_LOCK);
    server_cmd(sv, "HSET " SCENE_LOCK " holder 1");
}

static void expect_still_a_hash(server *sv)
{
    EXPECT_STR(server_str(sv, "HGET " SCENE_LOCK " holder"), "1");
    EXPECT_INT(key_ttl(sv, SCENE_LOCK), -1);
}

BOTH(a_hold_whose_key_became_a_hash_is_lost_at_unlock)
{
    scene s = scene_of_held(layout, 0);
    become_a_hash(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EWRONGTYPE);
    expect_lost_once(&s);
    expect_still_a_hash(s.sv);
    scene_stop(&s);
}

BOTH(a_hold_whose_key_became_a_hash_is_lost_at_the_next_call)
{
    scene s = scene_of_held(layout, 0);
    become_a_hash(s.sv);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_EWRONGTYPE);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_LOST);
    unlock_lost(&s);
    expect_still_a_hash(s.sv);
    scene_stop(&s);
}

BOTH(the_watchdog_notices_a_key_that_became_a_hash)
{
    scene s = scene_of_held(layout, 900);
    become_a_hash(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_lost(&s);
    expect_still_a_hash(s.sv);
    scene_stop(&s);
}

TEST(layouts, timestamp_the_watchdog_notices_a_value_that_is_no_number)
{
    scene s = scene_of_held(RLOCK_LAYOUT_TIMESTAMP, 900);
    server_cmd(s.sv, "SET " SCENE_LOCK " abc");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_lost(&s);
    expect_value(s.sv, "abc");
    scene_stop(&s);
}

/* --- several layouts of one name ----------------------------------------- */

static const rlock_layout all[] = {RLOCK_LAYOUT_HASH, RLOCK_LAYOUT_STRING,
                                   RLOCK_LAYOUT_TIMESTAMP};

TEST(layouts, tokens_grow_from_layout_to_layout)
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

TEST_CASE(layouts, a_hash_excludes_a_string,
          expect_excluded(RLOCK_LAYOUT_HASH, RLOCK_LAYOUT_STRING,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts, a_hash_excludes_a_timestamp,
          expect_excluded(RLOCK_LAYOUT_HASH, RLOCK_LAYOUT_TIMESTAMP,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts, a_string_excludes_a_hash,
          expect_excluded(RLOCK_LAYOUT_STRING, RLOCK_LAYOUT_HASH,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts, a_string_excludes_a_timestamp,
          expect_excluded(RLOCK_LAYOUT_STRING, RLOCK_LAYOUT_TIMESTAMP,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts, a_timestamp_excludes_a_hash,
          expect_excluded(RLOCK_LAYOUT_TIMESTAMP, RLOCK_LAYOUT_HASH,
                          RLOCK_EWRONGTYPE))
TEST_CASE(layouts, a_timestamp_excludes_a_string,
          expect_excluded(RLOCK_LAYOUT_TIMESTAMP, RLOCK_LAYOUT_STRING,
                          RLOCK_BUSY))

/* A waiter of the same client that takes the lock for a string came first. */
TEST(layouts, a_waiter_of_another_layout_is_told_of_it)
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
TEST(layouts, a_waiter_of_another_layout_keeps_nobody_from_a_free_lock)
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

TEST_CASE(layouts, a_timestamp_is_handed_over_to_a_string,
          expect_handed_over(RLOCK_LAYOUT_TIMESTAMP, RLOCK_LAYOUT_STRING))

TEST(layouts, several_locks_as_one_may_have_several_layouts)
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

BOTH(several_locks_as_one_notice_a_foreign_release_soon)
{
    scene s = scene_of(layout, 0);
    rlock *member[] = {test_lock(s.cl, "other"), s.lk}, *multi = NULL;
    EXPECT_STATUS(rlock_multi_new(member, 2, &multi), RLOCK_OK);
    others_take(s.sv, layout, 60000);
    rival b = {.cl = s.cl, .lk = multi};
    rival_wait(&s, &b, 1, RLOCK_FOREVER);
    others_release(s.sv);
    expect_woken(&b);
    waiter_end(b.w);
    rlock_free(multi);
    rlock_free(member[0]);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- names --------------------------------------------------------------- */

/* A whole life, with a waiter, under this name. */
static void expect_lives(rlock_layout layout, const void *name, size_t len,
                         const char *token)
{
    scene s = scene_start(0, 0);
    rlock *lk = lock_n(s.cl, layout, name, len);
    rlock_client *cl = server_client(s.sv, NULL);
    rlock *theirs = lock_n(cl, layout, name, len);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "TYPE %b", name, len), "string");
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 2);
    if (token)
        EXPECT_INT(server_int(s.sv, "EXISTS %s", token), 1);
    EXPECT_STATUS(rlock_extend(lk, 60000), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON, stats_of(cl).waiting_now == 1);
    EVENTUALLY(SOON, server_int(s.sv, "DBSIZE") == 3); /* the queue */
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS %b", name, len), 0);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    rlock_free(theirs);
    rlock_client_free(cl);
    rlock_free(lk);
    scene_stop(&s);
}

BOTH(a_name_may_have_a_hash_tag)
{
    expect_lives(layout, "a{b}c", 5, "rlock_token:a{b}c");
}

BOTH(a_name_may_have_a_lone_brace)
{
    expect_lives(layout, "a{b", 3, "rlock_token:a{b");
}

BOTH(a_name_may_have_any_bytes)
{
    expect_lives(layout, "a\0b\r\n\xff%s \t", 11, NULL);
}

BOTH(a_name_may_have_512_bytes)
{
    char name[RLOCK_NAME_MAX];
    memset(name, '%', sizeof name);
    expect_lives(layout, name, sizeof name, NULL);
}

/* --- rlock_new_ex -------------------------------------------------------- */

static void expect_refused(rlock_client *cl, const rlock_lock_options *opts,
                           const char *why)
{
    rlock *lk = (rlock *)&lk;
    EXPECT_STATUS(rlock_new_ex(cl, SCENE_LOCK, 3, opts, &lk), RLOCK_EINVAL);
    EXPECT(lk == NULL);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
}

TEST(layouts, an_options_size_out_of_range_is_refused)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    static const size_t sizes[] = {0, 1, sizeof(size_t) - 1,
                                   sizeof(rlock_lock_options) + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        opts.size = sizes[i];
        expect_refused(s.cl, &opts, "size");
    }
    scene_stop(&s);
}

TEST(layouts, a_layout_out_of_range_is_refused)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    static const int layouts[] = {3, -1, 1000, -2147483647 - 1, 2147483647};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        memcpy(&opts.layout, &layouts[i], sizeof opts.layout);
        expect_refused(s.cl, &opts, "layout");
    }
    scene_stop(&s);
}

/* What was made is the default. */
static void expect_hash(scene *s, const rlock_lock_options *opts)
{
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_new_ex(s->cl, "x", 1, opts, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STR(server_str(s->sv, "TYPE x"), "hash");
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
}

TEST(layouts, the_default_is_a_hash)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    expect_hash(&s, NULL);
    expect_hash(&s, &opts);
    scene_stop(&s);
}

TEST(layouts, options_of_an_older_version_mean_a_hash)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = {sizeof(size_t), RLOCK_LAYOUT_STRING};
    expect_hash(&s, &opts);
    scene_stop(&s);
}

TEST(layouts, arguments_of_rlock_new_ex_are_checked)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    char name[RLOCK_NAME_MAX + 1] = "x";
    rlock *lk = (rlock *)name;
    EXPECT_STATUS(rlock_new_ex(s.cl, "x", 1, &opts, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_new_ex(NULL, "x", 1, &opts, &lk), RLOCK_EINVAL);
    EXPECT(lk == NULL);
    EXPECT_STATUS(rlock_new_ex(s.cl, NULL, 1, &opts, &lk), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_new_ex(s.cl, "x", 0, &opts, &lk), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_new_ex(s.cl, name, sizeof name, &opts, &lk),
                  RLOCK_EINVAL);
    EXPECT(lk == NULL);
    scene_stop(&s);
}

/* --- rights -------------------------------------------------------------- */

/* The command as it stands in the documents, on one line. */
static void make_documented_user(server *sv)
{
    char page[100000], *begin, *end;
    FILE *f = fopen(RLOCK_SOURCE_DIR "/src/doc/rights.md", "r");
    EXPECT(f != NULL);
    page[fread(page, 1, sizeof page - 1, f)] = '\0';
    fclose(f);
    begin = strstr(page, "ACL SETUSER app ");
    EXPECT(begin != NULL);
    end = strstr(begin, "\n```");
    EXPECT(end != NULL);
    *end = '\0';
    for (char *p = begin; *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    EXPECT_STR(server_str(sv, begin), "OK");
}

/* But INFO, which is only asked for a warning. */
static void expect_nothing_denied(server *sv)
{
    redisReply *log = server_cmd(sv, "ACL LOG");
    EXPECT_INT(log->type, REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < log->elements; i++)
        EXPECT_STR(log->element[i]->element[7]->str, "info");
}

/* A user that may do no more than the documents say. */
static scene scene_of_app(rlock_layout layout, char *uri, size_t size)
{
    scene s = scene_server(NULL);
    make_documented_user(s.sv);
    snprintf(uri, size, "unix://app:PASSWORD@%s", server_path(s.sv));
    s.opts.uri = uri;
    scene_client(&s, 900, 0);
    rlock_free(s.lk);
    s.lk = lock_of(s.cl, layout, "orders:1");
    return s;
}

BOTH(the_documented_rights_suffice)
{
    char uri[300];
    rlock_holder h;
    scene s = scene_of_app(layout, uri, sizeof uri);
    rlock_client *cl = server_client(s.sv, &s.opts);
    rlock *other = lock_of(cl, layout, "orders:1");
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(other, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_holder_info(other, &h), RLOCK_OK);
    expect_renewals(&s, 4);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    waiter *w = waiter_start(other, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON,
               queued(s.sv, "orders:1") == 1 && stats_of(cl).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(cl).wakeups, 1);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(other), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_nothing_denied(s.sv);
    rlock_free(other);
    rlock_client_free(cl);
    scene_stop(&s);
}

BOTH(the_documented_rights_suffice_to_undo)
{
    char uri[300];
    scene s = scene_of_app(layout, uri, sizeof uri);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1), RLOCK_EIO);
    EVENTUALLY(SOON, server_cmd(s.sv, "KEYS rlock_undone:*")->elements == 1);
    EVENTUALLY(SOON, server_int(s.sv, "EXISTS orders:1") == 0);
    expect_nothing_denied(s.sv);
    scene_stop(&s);
}

TEST(layouts, timestamp_the_documented_rights_suffice_for_old_keys)
{
    char uri[300];
    scene s = scene_of_app(RLOCK_LAYOUT_TIMESTAMP, uri, sizeof uri);
    server_cmd(s.sv, "SET orders:1 %s", stamp_at(server_ms(s.sv) + 300).is);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_denied(s.sv);
    scene_stop(&s);
}
