/*
 * Locks that are a string or a timestamp: what stands in Redis, what of it the
 * questions find out, and which keys are taken for no lock.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "layouts.h"

/* --- the value ----------------------------------------------------------- */

TEST(layouts_value, string_the_value_is_the_holder_and_the_ttl_is_the_lease)
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

TEST(layouts_value, string_each_hold_has_a_value_of_its_own)
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

TEST(layouts_value,
     timestamp_the_value_is_the_end_of_the_lease_in_whole_seconds)
{
    static const int64_t leases[] = {5000,  5001,  5500, 5999,
                                     10000, 30000, 1234, 86400000};
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    for (size_t i = 0; i < sizeof leases / sizeof *leases; i++)
        expect_stamp(&s, leases[i]);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(layouts_value, timestamp_each_hold_has_digits_of_its_own)
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
TEST(layouts_value,
     timestamp_an_old_program_reads_a_time_not_before_the_lease_ends)
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

/* --- questions ----------------------------------------------------------- */

BOTH(layouts_value, a_free_lock_has_no_holder)
{
    scene s = scene_of(layout, 0);
    rlock_holder h, zero = {.host = ""};
    memset(&zero, 0, sizeof zero);
    EXPECT(!is_locked(s.lk));
    EXPECT_INT(ttl_of(s.lk), -2);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_NOT_HELD);
    EXPECT_INT(memcmp(&h, &zero, sizeof h), 0);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_NOT_HELD);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 0);
    scene_stop(&s);
}

BOTH(layouts_value, everybody_sees_that_it_is_held)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT(is_locked(s.lk));
    EXPECT(is_locked(b.lk));
    EXPECT_BETWEEN(ttl_of(b.lk), 40000, longest(layout, 60000));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!is_locked(b.lk));
    other_client_leave(&b);
    scene_stop(&s);
}

static void expect_only_raw(rlock *lk, const char *raw)
{
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
    EXPECT_STR(h.raw, raw);
    EXPECT_INT(h.count, 1);
    EXPECT_BETWEEN(h.ttl_ms, 40000, 61100);
    EXPECT_STR(h.host, "");
    EXPECT_STR(h.hold_id, "");
    EXPECT_INT(h.pid, 0);
    EXPECT_INT(h.tid, 0);
}

BOTH(layouts_value, of_a_foreign_holder_the_value_is_known)
{
    scene s = scene_of(layout, 0);
    text value = others_take(s.sv, layout, 60000);
    expect_only_raw(s.lk, value.is);
    scene_stop(&s);
}

TEST(layouts_value, timestamp_of_a_holder_of_ours_the_value_is_known)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    expect_only_raw(s.lk, value_of(s.sv).is);
    scene_stop(&s);
}

TEST(layouts_value,
     string_of_a_holder_of_ours_everything_but_its_count_is_known)
{
    scene s = scene_server(NULL);
    rlock_holder h;
    s.opts.host_id = "a.test";
    scene_client(&s, 0, 0);
    use_layout(&s, RLOCK_LAYOUT_STRING);
    other_client b = other_client_of(&s, RLOCK_LAYOUT_STRING);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(b.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_STR(h.host, "a.test");
    EXPECT_INT(h.pid, getpid());
    EXPECT_INT(h.tid, syscall(SYS_gettid));
    EXPECT_INT(strlen(h.hold_id), 36);
    EXPECT_INT(h.count, 1);
    EXPECT_BETWEEN(h.ttl_ms, 40000, 60000);
    EXPECT_STR(h.raw, value_of(s.sv).is);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(layouts_value, string_a_long_foreign_value_is_cut)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    rlock_holder h;
    char value[4000];
    memset(value, 'v', sizeof value);
    server_cmd(s.sv, "SET " SCENE_LOCK " %b PX 60000", value, sizeof value);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(strlen(h.raw), sizeof h.raw - 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_INT(server_int(s.sv, "STRLEN " SCENE_LOCK), sizeof value);
    scene_stop(&s);
}

TEST(layouts_value, timestamp_a_long_foreign_value_is_cut)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    rlock_holder h;
    char value[4000];
    memset(value, '9', sizeof value);
    value[10] = '.';
    server_cmd(s.sv, "SET " SCENE_LOCK " %b PX 60000", value, sizeof value);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT(is_locked(s.lk));
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
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
    EXPECT_STATUS(rlock_holder_info(s->lk, &h, sizeof h), RLOCK_EWRONGTYPE);
    EXPECT_CONTAINS(rlock_last_error()->message, "'" SCENE_LOCK "'");
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_NOT_HELD);
    EXPECT(test_now_ms() - began_ms < SOON);
    EXPECT_INT(server_int(s->sv, "DBSIZE"), 1);
    EXPECT_INT(key_ttl(s->sv, SCENE_LOCK), -1);
}

BOTH(layouts_value, a_hash_is_no_lock_and_stays)
{
    scene s = scene_of(layout, 0);
    server_cmd(s.sv, "HSET " SCENE_LOCK " holder 1");
    expect_wrong_type(&s);
    EXPECT_STR(server_str(s.sv, "HGET " SCENE_LOCK " holder"), "1");
    scene_stop(&s);
}

BOTH(layouts_value, a_list_is_no_lock_and_stays)
{
    scene s = scene_of(layout, 0);
    server_cmd(s.sv, "RPUSH " SCENE_LOCK " a b");
    expect_wrong_type(&s);
    EXPECT_INT(server_int(s.sv, "LLEN " SCENE_LOCK), 2);
    scene_stop(&s);
}

TEST(layouts_value, timestamp_what_is_no_number_is_no_lock_and_stays)
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

TEST(layouts_value, hash_a_lock_of_the_other_layouts_is_no_lock_and_stays)
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

BOTH(layouts_value, a_hold_whose_key_became_a_hash_is_lost_at_unlock)
{
    scene s = scene_of_held(layout, 0);
    become_a_hash(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EWRONGTYPE);
    expect_lost_once(&s);
    expect_still_a_hash(s.sv);
    scene_stop(&s);
}

BOTH(layouts_value, a_hold_whose_key_became_a_hash_is_lost_at_the_next_call)
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

BOTH(layouts_value, the_watchdog_notices_a_key_that_became_a_hash)
{
    scene s = scene_of_held(layout, 900);
    become_a_hash(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_lost(&s);
    expect_still_a_hash(s.sv);
    scene_stop(&s);
}

TEST(layouts_value, timestamp_the_watchdog_notices_a_value_that_is_no_number)
{
    scene s = scene_of_held(RLOCK_LAYOUT_TIMESTAMP, 900);
    server_cmd(s.sv, "SET " SCENE_LOCK " abc");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_lost(&s);
    expect_value(s.sv, "abc");
    scene_stop(&s);
}
