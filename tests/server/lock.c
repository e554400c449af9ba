/*
 * One lock, seen from its callers and from the server: who holds it, for how
 * long, and how a hold ends.
 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server.h"

/* A server, a client that records its events, and a handle for "k". */
typedef struct rig {
    server *sv;
    events *ev;
    rlock_client *cl;
    rlock *lk;
} rig;

static rig rig_with(rlock_options opts)
{
    rig r = {.sv = server_start(NULL), .ev = events_new()};
    events_hook(r.ev, &opts);
    r.cl = server_client(r.sv, &opts);
    r.lk = test_lock(r.cl, "k");
    return r;
}

static rig rig_start(void)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    return rig_with(opts);
}

/* Leases of the watchdog take this long; it renews every third of it. */
static rig rig_renewing(int64_t lease_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = lease_ms;
    return rig_with(opts);
}

static void rig_stop(rig *r)
{
    rlock_free(r->lk);
    rlock_client_free(r->cl);
    events_free(r->ev);
    server_stop(r->sv);
}

/* A client and a handle for "k" that stand for another process. */
typedef struct rival {
    rlock_client *cl;
    rlock *lk;
} rival;

static rival rival_new(rig *r)
{
    rlock_client *cl = server_client(r->sv, NULL);
    return (rival){cl, test_lock(cl, "k")};
}

static void rival_free(rival *v)
{
    rlock_free(v->lk);
    rlock_client_free(v->cl);
}

/* Gauges and counters of a client. */
static rlock_stats stats_of(rlock_client *cl)
{
    rlock_stats st;
    EXPECT_STATUS(rlock_client_stats(cl, &st), RLOCK_OK);
    return st;
}

/* The only field of "k" and its value. */
static void read_lock(server *sv, char *field, size_t size, int *count)
{
    redisReply *reply = server_cmd(sv, "HGETALL k");
    EXPECT_INT(reply->type, REDIS_REPLY_ARRAY);
    EXPECT_INT(reply->elements, 2);
    snprintf(field, size, "%s", reply->element[0]->str);
    *count = atoi(reply->element[1]->str);
}

static int count_on_server(server *sv)
{
    char field[512];
    int count;
    read_lock(sv, field, sizeof field, &count);
    return count;
}

static bool key_exists(server *sv, const char *key)
{
    return server_int(sv, "EXISTS %s", key) == 1;
}

static long long pttl(server *sv)
{
    return server_int(sv, "PTTL k");
}

/* Commands that came since the last call of this, which counts as one. */
static long long commands(server *sv)
{
    return server_info(sv, "total_commands_processed");
}

/* What threads do; each returns a status. */

static intptr_t do_trylock(void *lk)
{
    return rlock_trylock(lk);
}

static intptr_t do_unlock(void *lk)
{
    return rlock_unlock(lk);
}

static intptr_t do_extend(void *lk)
{
    return rlock_extend(lk, 5000);
}

static intptr_t do_force(void *lk)
{
    return rlock_force_unlock(lk);
}

static intptr_t do_lock_and_unlock(void *lk)
{
    rlock_status s = rlock_lock(lk);
    return s == RLOCK_OK ? rlock_unlock(lk) : s;
}

static rlock_status on_a_thread(intptr_t (*fn)(void *), rlock *lk)
{
    return (rlock_status)test_join(test_spawn(fn, lk));
}

static void lock_times(rlock *lk, int n)
{
    while (n-- > 0)
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
}

static void unlock_times(rlock *lk, int n, rlock_status wanted)
{
    while (n-- > 0)
        EXPECT_STATUS(rlock_unlock(lk), wanted);
}

/* --- holding, level by level --------------------------------------------- */

TEST(lock, holder_field_is_host_pid_tid_uuid)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.host_id = "web-1.example";
    rig r = rig_with(opts);
    char field[512], wanted[128];
    int count;
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    read_lock(r.sv, field, sizeof field, &count);
    int len = snprintf(wanted, sizeof wanted,
                       "web-1.example:%ld:%ld:", (long)getpid(),
                       (long)syscall(SYS_gettid));
    EXPECT(strncmp(field, wanted, (size_t)len) == 0);
    EXPECT_INT(strlen(field + len), 36);
    EXPECT_INT(strspn(field + len, "0123456789abcdef-"), 36);
    EXPECT_INT(count, 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, server_counts_every_level_in_one_field)
{
    rig r = rig_start();
    char first[512], now[512];
    int count;
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    read_lock(r.sv, first, sizeof first, &count);
    for (int level = 2; level <= 4; level++) {
        EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
        read_lock(r.sv, now, sizeof now, &count);
        EXPECT_STR(now, first);
        EXPECT_INT(count, level);
        EXPECT_INT(rlock_hold_count(r.lk), level);
    }
    for (int level = 3; level >= 1; level--) {
        EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
        read_lock(r.sv, now, sizeof now, &count);
        EXPECT_STR(now, first);
        EXPECT_INT(count, level);
    }
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT(!key_exists(r.sv, "k"));
    rig_stop(&r);
}

TEST(lock, each_outermost_acquire_has_a_uuid_of_its_own)
{
    rig r = rig_start();
    char first[512], second[512];
    int count;
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    read_lock(r.sv, first, sizeof first, &count);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    read_lock(r.sv, second, sizeof second, &count);
    EXPECT(strcmp(first, second) != 0);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, reentry_keeps_the_token)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    uint64_t token = rlock_token(r.lk);
    EXPECT(token > 0);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 60000), RLOCK_OK);
    EXPECT(rlock_token(r.lk) == token);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT(rlock_token(r.lk) == token);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT(rlock_token(r.lk) == 0);
    rig_stop(&r);
}

TEST(lock, handles_of_one_name_are_one_lock)
{
    rig r = rig_start();
    rlock *other = test_lock(r.cl, "k");
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_OK);
    EXPECT_INT(count_on_server(r.sv), 2);
    EXPECT(rlock_token(other) == rlock_token(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(r.lk), 1);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    EXPECT(!key_exists(r.sv, "k"));
    rlock_free(other);
    rig_stop(&r);
}

TEST(lock, a_freed_handle_leaves_its_hold)
{
    rig r = rig_start();
    rlock *other = test_lock(r.cl, "k");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    rlock_free(other);
    EXPECT_INT(rlock_hold_count(r.lk), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT(!key_exists(r.sv, "k"));
    rig_stop(&r);
}

TEST(lock, names_that_share_a_prefix_are_different_locks)
{
    rig r = rig_start();
    rlock *other = test_lock(r.cl, "k2");
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(on_a_thread(do_lock_and_unlock, other), RLOCK_OK);
    EXPECT(!rlock_is_held(other));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rlock_free(other);
    rig_stop(&r);
}

TEST(lock, another_thread_is_excluded)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(on_a_thread(do_trylock, r.lk), RLOCK_BUSY);
    EXPECT_INT(count_on_server(r.sv), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(on_a_thread(do_lock_and_unlock, r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, another_client_is_excluded_on_the_same_thread)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(v.lk), RLOCK_BUSY);
    EXPECT(!rlock_is_held(v.lk));
    EXPECT_INT(count_on_server(r.sv), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, a_wait_runs_out_no_earlier_than_told)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(r.lk, 150, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(test_now_ms() - began, 149, 3150);
    EXPECT_INT(server_int(r.sv, "EXISTS rlock_queue:{k}"), 0);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, events_tell_levels_and_tokens)
{
    rig r = rig_start();
    rlock_event ev;
    lock_times(r.lk, 2);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_ACQUIRED), 2);
    EXPECT(events_last(r.ev, RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_STR(ev.name, "k");
    EXPECT_INT(ev.name_len, 1);
    EXPECT_INT(ev.count, 2);
    EXPECT(ev.token == rlock_token(r.lk));
    EXPECT_STATUS(ev.status, RLOCK_OK);
    unlock_times(r.lk, 2, RLOCK_OK);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_RELEASED), 2);
    EXPECT(events_last(r.ev, RLOCK_EVENT_RELEASED, &ev));
    EXPECT_INT(ev.count, 0);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_CONTENDED), 0);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_LOST), 0);
    rig_stop(&r);
}

TEST(lock, contention_is_told_once_for_a_call)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.lk, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_CONTENDED), 1);
    EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_BUSY);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_CONTENDED), 1);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

/* --- leases --------------------------------------------------------------- */

TEST(lock, watchdog_lease_is_30_s)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_BETWEEN(pttl(r.sv), 15000, 30000);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 15000, 30000 - 302);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, an_explicit_lease_is_the_ttl)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 90000), RLOCK_OK);
    EXPECT_BETWEEN(pttl(r.sv), 60000, 90000);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 60000, 90000 - 902);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, a_nested_lease_never_shortens)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 1000), RLOCK_OK);
    EXPECT_BETWEEN(pttl(r.sv), 60000, 90000);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 60000, 90000);
    unlock_times(r.lk, 2, RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, a_nested_lease_lengthens_and_stays_after_its_unlock)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_BETWEEN(pttl(r.sv), 60000, 90000);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 60000, 90000);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, the_watchdog_renews)
{
    rig r = rig_renewing(1200);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EVENTUALLY(SOON, test_now_ms() - began > 1300);
    EXPECT(rlock_is_held(r.lk));
    EXPECT_INT(count_on_server(r.sv), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, a_nested_watchdog_lease_turns_renewal_on)
{
    rig r = rig_renewing(1200);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 1200), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK); /* on until the hold ends */
    EVENTUALLY(SOON, test_now_ms() - began > 1300);
    EXPECT(rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, a_nested_explicit_lease_leaves_renewal_on)
{
    rig r = rig_renewing(1200);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EVENTUALLY(SOON, test_now_ms() - began > 1300);
    EXPECT(rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, an_explicit_lease_is_never_renewed)
{
    rig r = rig_renewing(150);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 400), RLOCK_OK);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(r.cl).renewals, 0);
    unlock_times(r.lk, 1, RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, a_lease_does_not_leak_into_the_next_hold)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_BETWEEN(pttl(r.sv), 15000, 30000);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, renewal_does_not_leak_into_the_next_hold)
{
    rig r = rig_renewing(150);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 400), RLOCK_OK);
    uint64_t before = stats_of(r.cl).renewals;
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(r.cl).renewals, before);
    unlock_times(r.lk, 1, RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, renewal_gives_a_persisted_key_its_ttl_back)
{
    rig r = rig_renewing(900);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_INT(server_int(r.sv, "PERSIST k"), 1);
    EVENTUALLY(SOON, pttl(r.sv) > 0);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, a_lease_that_ran_out_is_lost_by_its_deadline)
{
    rig r = rig_start();
    rlock_event ev;
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 300), RLOCK_OK);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    /* 300 ms less one hundredth and 2 ms. */
    EXPECT_BETWEEN(events_time(r.ev, RLOCK_EVENT_LOST) - began, 294, 3000);
    EXPECT(!rlock_is_held(r.lk));
    EXPECT(events_last(r.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_STATUS(ev.status, RLOCK_LOST);
    EXPECT_CONTAINS(ev.message, "lease ran out");
    EVENTUALLY(SOON, !key_exists(r.sv, "k"));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_LOST), 1);
    rig_stop(&r);
}

TEST(lock, a_lease_that_ran_out_lets_a_waiter_in)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(v.lk, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(test_now_ms() - began, 299, 1900); /* before the poll */
    EXPECT(!rlock_is_held(v.lk));
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_LOST);
    EXPECT_INT(count_on_server(r.sv), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, a_lease_too_short_to_use_is_not_owned)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 1), RLOCK_EIO);
    EXPECT(!rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_NOT_HELD);
    EVENTUALLY(SOON, !key_exists(r.sv, "k"));
    rig_stop(&r);
}

/* --- unlock and loss ------------------------------------------------------ */

TEST(lock, unlock_without_a_hold_asks_nobody)
{
    rig r = rig_start();
    long long before = commands(r.sv);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_NOT_HELD);
    EXPECT_INT(commands(r.sv) - before, 1);
    EXPECT_STATUS(rlock_last_error()->status, RLOCK_NOT_HELD);
    EXPECT_CONTAINS(rlock_last_error()->message, "k");
    rig_stop(&r);
}

TEST(lock, fault_095_one_unlock_too_many_is_not_held)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK); /* the control */
    long long before = commands(r.sv);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_NOT_HELD);
    EXPECT_INT(commands(r.sv) - before, 1);
    rig_stop(&r);
}

TEST(lock, fault_095_another_thread_cannot_unlock)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(on_a_thread(do_unlock, r.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(on_a_thread(do_extend, r.lk), RLOCK_NOT_HELD);
    EXPECT_INT(count_on_server(r.sv), 1);
    EXPECT_BETWEEN(pttl(r.sv), 15000, 30000);
    EXPECT_STATUS(rlock_extend(r.lk, 60000), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT(!key_exists(r.sv, "k"));
    rig_stop(&r);
}

TEST(lock, unlocks_pair_after_a_loss)
{
    rig r = rig_start();
    lock_times(r.lk, 3);
    server_cmd(r.sv, "DEL k");
    unlock_times(r.lk, 3, RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_INT(count_on_server(r.sv), 1);
    EXPECT_INT(rlock_hold_count(r.lk), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, a_loss_is_reported_once)
{
    rig r = rig_start();
    lock_times(r.lk, 3);
    server_cmd(r.sv, "DEL k");
    unlock_times(r.lk, 3, RLOCK_LOST);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 100), RLOCK_OK);
    events_wait(r.ev, RLOCK_EVENT_LOST, 2, SOON); /* of the next hold */
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_LOST), 2);
    EXPECT_INT(stats_of(r.cl).lost, 2);
    unlock_times(r.lk, 1, RLOCK_LOST);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_RELEASED), 0);
    rig_stop(&r);
}

TEST(lock, the_watchdog_notices_a_deleted_key)
{
    rig r = rig_renewing(600);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "DEL k");
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_CONTAINS(events_message(r.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT(!rlock_is_held(r.lk));
    EXPECT(!key_exists(r.sv, "k")); /* it is not taken again */
    unlock_times(r.lk, 1, RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, after_a_loss_the_next_hold_is_renewed)
{
    rig r = rig_renewing(900);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EVENTUALLY(SOON, test_now_ms() - began > 1000);
    EXPECT(rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, reentry_on_a_lost_hold_takes_nothing)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_LOST);
    EXPECT(!key_exists(r.sv, "k"));
    EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_NOT_HELD);
    rig_stop(&r);
}

TEST(lock, reentry_on_a_stolen_lock_is_lost_and_not_busy)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_LOST);
    EXPECT_INT(count_on_server(r.sv), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, a_loss_noticed_by_the_last_unlock_is_reported)
{
    rig r = rig_start();
    rlock_event ev;
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    uint64_t token = rlock_token(r.lk);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_last(r.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_STR(ev.name, "k");
    EXPECT(ev.token == token);
    EXPECT_INT(ev.count, 0);
    EXPECT_INT(stats_of(r.cl).lost, 1);
    EXPECT_INT(stats_of(r.cl).held_now, 0);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_RELEASED), 0);
    rig_stop(&r);
}

TEST(lock, reentry_after_the_deadline_asks_nobody)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 100), RLOCK_OK);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EVENTUALLY(SOON, !key_exists(r.sv, "k"));
    long long before = commands(r.sv);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_extend(r.lk, 1000), RLOCK_LOST);
    EXPECT_INT(commands(r.sv) - before, 1);
    unlock_times(r.lk, 1, RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, a_late_unlock_leaves_the_next_holder_alone)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    lock_times(r.lk, 2);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    unlock_times(r.lk, 2, RLOCK_LOST);
    EXPECT_INT(count_on_server(r.sv), 1);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, a_hold_that_was_lost_can_be_taken_by_another_thread)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS(on_a_thread(do_lock_and_unlock, r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rig_stop(&r);
}

/* --- extend --------------------------------------------------------------- */

TEST(lock, extend_lengthens)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.lk, 90000), RLOCK_OK);
    EXPECT_BETWEEN(pttl(r.sv), 60000, 90000);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 60000, 90000 - 902);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, extend_shortens)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.lk, 20000), RLOCK_OK);
    EXPECT_BETWEEN(pttl(r.sv), 5000, 20000);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 5000, 20000 - 202);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, extend_keeps_level_and_token)
{
    rig r = rig_start();
    lock_times(r.lk, 2);
    uint64_t token = rlock_token(r.lk);
    EXPECT_STATUS(rlock_extend(r.lk, 20000), RLOCK_OK);
    EXPECT_INT(count_on_server(r.sv), 2);
    EXPECT_INT(rlock_hold_count(r.lk), 2);
    EXPECT(rlock_token(r.lk) == token);
    unlock_times(r.lk, 2, RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, extend_by_a_lease_stops_renewal)
{
    rig r = rig_renewing(900);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.lk, 1200), RLOCK_OK);
    uint64_t before = stats_of(r.cl).renewals;
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(r.cl).renewals, before);
    unlock_times(r.lk, 1, RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, extend_by_the_watchdog_turns_renewal_on)
{
    rig r = rig_renewing(1200);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.lk, RLOCK_WATCHDOG), RLOCK_OK);
    int64_t began = test_now_ms();
    EXPECT_BETWEEN(pttl(r.sv), 1, 1200);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 1, 1200);
    EVENTUALLY(SOON, test_now_ms() - began > 1300);
    EXPECT(rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, extend_without_a_hold_asks_nobody)
{
    rig r = rig_start();
    long long before = commands(r.sv);
    EXPECT_STATUS(rlock_extend(r.lk, 1000), RLOCK_NOT_HELD);
    EXPECT_INT(commands(r.sv) - before, 1);
    rig_stop(&r);
}

TEST(lock, extend_of_a_missing_key_is_lost)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS(rlock_extend(r.lk, 1000), RLOCK_LOST);
    EXPECT(!key_exists(r.sv, "k"));
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_times(r.lk, 1, RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, extend_of_a_stolen_key_leaves_the_thief_alone)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.lk, 90000), RLOCK_LOST);
    EXPECT_BETWEEN(pttl(r.sv), 15000, 30000);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

/* --- force_unlock --------------------------------------------------------- */

TEST(lock, force_unlock_frees_what_another_client_holds)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    lock_times(r.lk, 2);
    EXPECT_STATUS(rlock_force_unlock(v.lk), RLOCK_OK);
    EXPECT(!key_exists(r.sv, "k"));
    EXPECT_STATUS(rlock_force_unlock(v.lk), RLOCK_NOT_HELD);
    unlock_times(r.lk, 2, RLOCK_LOST);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, force_unlock_of_a_free_lock_is_not_held)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_NOT_HELD);
    EXPECT_INT(server_int(r.sv, "DBSIZE"), 0);
    rig_stop(&r);
}

static intptr_t wait_then_report_time(void *lk)
{
    rlock_status s = rlock_acquire(lk, SOON, RLOCK_WATCHDOG);
    int64_t at = test_now_ms();
    if (s == RLOCK_OK)
        s = rlock_unlock(lk);
    return s == RLOCK_OK ? (intptr_t)at : -1;
}

TEST(lock, force_unlock_wakes_a_waiter)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_then_report_time, v.lk);
    EVENTUALLY(SOON, server_int(r.sv, "ZCARD rlock_queue:{k}") == 1);
    int64_t freed = test_now_ms();
    EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_OK);
    EXPECT_BETWEEN(test_join(t) - freed, 0, 1500); /* not by its poll */
    EXPECT_INT(stats_of(v.cl).wakeups, 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, unlock_wakes_a_waiter)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_then_report_time, v.lk);
    EVENTUALLY(SOON, server_int(r.sv, "ZCARD rlock_queue:{k}") == 1);
    int64_t freed = test_now_ms();
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_BETWEEN(test_join(t) - freed, 0, 1500);
    EXPECT_INT(server_int(r.sv, "EXISTS rlock_queue:{k}"), 0);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, an_inner_unlock_wakes_nobody)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    lock_times(r.lk, 2);
    test_thread *t = test_spawn(wait_then_report_time, v.lk);
    EVENTUALLY(SOON, server_int(r.sv, "ZCARD rlock_queue:{k}") == 1);
    long long before = server_calls(r.sv, "publish");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_INT(server_int(r.sv, "ZCARD rlock_queue:{k}"), 1);
    EXPECT_INT(server_calls(r.sv, "publish"), before);
    EXPECT(!test_done(t));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT(test_join(t) > 0);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, the_old_holder_learns_of_force_unlock_by_reentry)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(on_a_thread(do_force, r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_LOST);
    EXPECT(!rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, the_old_holder_learns_of_force_unlock_by_extend)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.lk, 1000), RLOCK_LOST);
    EXPECT(!rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, the_old_holder_learns_of_force_unlock_by_renewal)
{
    rig r = rig_renewing(600);
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(v.lk), RLOCK_OK);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, a_forced_out_holder_never_hurts_the_next_one)
{
    rig r = rig_renewing(600);
    rival v = rival_new(&r);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(v.lk, 0, 90000), RLOCK_OK);
    char before[512], after[512];
    int count;
    read_lock(r.sv, before, sizeof before, &count);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_BUSY);
    read_lock(r.sv, after, sizeof after, &count);
    EXPECT_STR(after, before);
    EXPECT_INT(count, 1);
    EXPECT_BETWEEN(pttl(r.sv), 60000, 90000);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

/* --- max_hold_ms ---------------------------------------------------------- */

static rig rig_limited(int64_t lease_ms, int64_t max_hold_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = lease_ms;
    opts.max_hold_ms = max_hold_ms;
    return rig_with(opts);
}

TEST(lock, a_hold_ends_at_max_hold_ms)
{
    rig r = rig_limited(300, 700);
    rlock_event ev;
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(r.ev, RLOCK_EVENT_LOST) - began, 699, 4000);
    EXPECT(events_last(r.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_CONTAINS(ev.message, "max_hold_ms");
    EXPECT_BETWEEN(ev.elapsed_ms, 699, 4000);
    EXPECT(!rlock_is_held(r.lk));
    EVENTUALLY(SOON, !key_exists(r.sv, "k")); /* renewed no more */
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_CONTAINS(rlock_last_error()->message, "max_hold_ms");
    rig_stop(&r);
}

TEST(lock, max_hold_ms_cuts_the_first_lease)
{
    rig r = rig_limited(60000, 300);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 0, 300);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EVENTUALLY(SOON, !key_exists(r.sv, "k")); /* long before its lease ends */
    rig_stop(&r);
}

TEST(lock, max_hold_ms_counts_from_the_outermost_acquire)
{
    rig r = rig_limited(60000, 20000);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    int64_t began = test_now_ms();
    EVENTUALLY(SOON, test_now_ms() - began > 100);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(r.lk), 1, 20000 - 100);
    unlock_times(r.lk, 2, RLOCK_OK);
    rig_stop(&r);
}

TEST(lock, max_hold_ms_does_not_touch_explicit_leases)
{
    rig r = rig_limited(300, 200);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 700), RLOCK_OK);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(r.ev, RLOCK_EVENT_LOST) - began, 690, 4000);
    EXPECT_CONTAINS(events_message(r.ev, RLOCK_EVENT_LOST), "lease ran out");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rig_stop(&r);
}

TEST(lock, a_nested_watchdog_lease_does_not_cut_an_explicit_one_short)
{
    rig r = rig_limited(300, 200);
    EXPECT_STATUS(rlock_acquire(r.lk, 0, 700), RLOCK_OK);
    int64_t began = test_now_ms();
    EVENTUALLY(SOON, test_now_ms() - began > 210);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(r.ev, RLOCK_EVENT_LOST) - began, 680, 4000);
    unlock_times(r.lk, 2, RLOCK_LOST);
    rig_stop(&r);
}

/* --- RLOCK_SCOPED --------------------------------------------------------- */

static void hold_in_a_scope(server *sv, rlock *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    RLOCK_SCOPED(lk);
    EXPECT(key_exists(sv, "k"));
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
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    hold_in_a_scope(r.sv, r.lk);
    EXPECT_INT(rlock_hold_count(r.lk), 1);
    EXPECT_INT(leave_in_the_middle(r.lk), 2);
    EXPECT_INT(rlock_hold_count(r.lk), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT(!key_exists(r.sv, "k"));
    rig_stop(&r);
}

TEST(lock, a_scope_of_nothing_unlocks_nothing)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    {
        RLOCK_SCOPED(NULL);
        RLOCK_SCOPED((rlock *)0);
    }
    EXPECT_INT(rlock_hold_count(r.lk), 1);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
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
    rig r = rig_start();
    rival v = rival_new(&r);
    uint64_t last = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t token = token_of_a_hold(i % 2 ? v.lk : r.lk);
        EXPECT(token > last);
        last = token;
    }
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, tokens_grow_past_the_last_one_of_a_clock_that_was_ahead)
{
    rig r = rig_start();
    server_cmd(r.sv, "SET rlock_token:{k} 4000000000000000");
    EXPECT(token_of_a_hold(r.lk) == 4000000000000001);
    EXPECT(token_of_a_hold(r.lk) == 4000000000000002);
    rig_stop(&r);
}

TEST(lock, tokens_grow_over_a_flush)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    uint64_t token = rlock_token(r.lk);
    server_cmd(r.sv, "FLUSHALL");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT(token_of_a_hold(r.lk) > token);
    rig_stop(&r);
}

TEST(lock, tokens_grow_over_a_restart_without_data)
{
    rig r = rig_start();
    uint64_t token = token_of_a_hold(r.lk);
    server_restart(r.sv);
    EXPECT_INT(server_int(r.sv, "DBSIZE"), 0);
    EXPECT(token_of_a_hold(r.lk) > token);
    rig_stop(&r);
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
    rig r = rig_start();
    rival v = rival_new(&r);
    rlock *tagged = test_lock(r.cl, "a{b}c");
    test_thread *t[] = {test_spawn(lock_nested_often, r.lk),
                        test_spawn(lock_nested_often, v.lk),
                        test_spawn(lock_nested_often, tagged)};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        test_join(t[i]);
    expect_only_tokens(r.sv);
    EXPECT(key_exists(r.sv, "rlock_token:{k}"));
    EXPECT(key_exists(r.sv, "rlock_token:a{b}c"));
    rlock_free(tagged);
    rival_free(&v);
    rig_stop(&r);
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
    rig r = rig_start();
    rival v = rival_new(&r);
    atomic_int counter = 0;
    share mine = {r.lk, &counter}, theirs = {v.lk, &counter};
    test_thread *t[6];
    for (int i = 0; i < 6; i++)
        t[i] = test_spawn(count_under_the_lock, i % 2 ? &mine : &theirs);
    for (int i = 0; i < 6; i++)
        test_join(t[i]);
    EXPECT_INT(counter, 150);
    EXPECT_INT(stats_of(r.cl).held_now + stats_of(v.cl).held_now, 0);
    rival_free(&v);
    rig_stop(&r);
}

/* --- keys that are no locks ----------------------------------------------- */

static void expect_wrong_type(rig *r)
{
    bool locked;
    int64_t ms;
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_trylock(r->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_lock(r->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_force_unlock(r->lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_is_locked(r->lk, &locked), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_ttl(r->lk, &ms), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_unlock(r->lk), RLOCK_NOT_HELD);
    EXPECT(!rlock_is_held(r->lk));
    EXPECT(test_now_ms() - began < SOON);
    EXPECT_INT(server_int(r->sv, "DBSIZE"), 1);
}

TEST(lock, a_string_is_no_lock_and_stays)
{
    rig r = rig_start();
    server_cmd(r.sv, "SET k v PX 600000");
    expect_wrong_type(&r);
    EXPECT_STR(server_str(r.sv, "GET k"), "v");
    EXPECT_BETWEEN(pttl(r.sv), 300000, 600000);
    rig_stop(&r);
}

TEST(lock, a_list_is_no_lock_and_stays)
{
    rig r = rig_start();
    server_cmd(r.sv, "RPUSH k a b");
    expect_wrong_type(&r);
    EXPECT_INT(server_int(r.sv, "LLEN k"), 2);
    EXPECT_INT(pttl(r.sv), -1);
    rig_stop(&r);
}

TEST(lock, a_set_is_no_lock_and_stays)
{
    rig r = rig_start();
    server_cmd(r.sv, "SADD k a b");
    expect_wrong_type(&r);
    EXPECT_INT(server_int(r.sv, "SCARD k"), 2);
    rig_stop(&r);
}

TEST(lock, a_hash_of_another_program_is_busy_and_stays)
{
    rig r = rig_start();
    server_cmd(r.sv, "HSET k holder abc");
    EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(r.lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_INT(server_int(r.sv, "HLEN k"), 1);
    EXPECT_STR(server_str(r.sv, "HGET k holder"), "abc");
    EXPECT_INT(pttl(r.sv), -1);
    rig_stop(&r);
}

/* A lock without an expiry rings nobody when it goes: waiters look again. */
TEST(lock, a_waiter_notices_that_a_foreign_hash_is_gone)
{
    rig r = rig_start();
    rival v = rival_new(&r);
    server_cmd(r.sv, "HSET k holder abc");
    test_thread *t = test_spawn(do_lock_and_unlock, v.lk);
    EVENTUALLY(SOON, server_int(r.sv, "ZCARD rlock_queue:{k}") == 1);
    server_cmd(r.sv, "DEL k");
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    rival_free(&v);
    rig_stop(&r);
}

TEST(lock, a_hold_whose_key_became_a_string_is_lost_at_unlock)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "SET k v");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_EWRONGTYPE);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STR(server_str(r.sv, "GET k"), "v");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_NOT_HELD);
    rig_stop(&r);
}

TEST(lock, a_hold_whose_key_became_a_string_is_lost_at_an_inner_unlock)
{
    rig r = rig_start();
    lock_times(r.lk, 2);
    server_cmd(r.sv, "SET k v");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_EWRONGTYPE);
    EXPECT(!rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_NOT_HELD);
    EXPECT_STR(server_str(r.sv, "GET k"), "v");
    rig_stop(&r);
}

TEST(lock, reentry_and_extend_of_a_key_that_became_a_string_lose_the_hold)
{
    rig r = rig_start();
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "SET k v");
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_EWRONGTYPE);
    EXPECT(!rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_extend(r.lk, 1000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_STR(server_str(r.sv, "GET k"), "v");
    rig_stop(&r);
}

TEST(lock, the_watchdog_notices_a_key_that_became_a_string)
{
    rig r = rig_renewing(900);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    server_cmd(r.sv, "SET k v");
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!rlock_is_held(r.lk));
    EXPECT_STR(server_str(r.sv, "GET k"), "v");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rig_stop(&r);
}
