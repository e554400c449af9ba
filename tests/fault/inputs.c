/*
 * Section F of the catalogue: inputs, limits and configuration. More of it is
 * in server/names.c, server/limits.c, server/client.c and
 * server/client_address.c.
 */
#include <limits.h>

#include "lock/lock.h"
#include "run/owner.h"
#include "scene.h"

/* --- 101: leases, as the scripts see them -------------------------------- */

static redisReply *run(server *sv, rl_script_id id, const char *lease)
{
    return server_cmd(sv, "EVALSHA %s 4 %s token tombstone queue %s %s 1 %s 0",
                      rl_scripts[id].sha1, SCENE_LOCK, "h:1:1:u", lease, "");
}

/* Acquire, renew and extend have their lease in the same place. Told 0, the
   first one here, renew only looks. */
static void expect_leases_checked(server *sv, rl_script_id id, bool looks)
{
    static const char *const bad[] = {
        "0",  "-1",  "",   "x",   "1x",  "0x10", "1e3",
        "1.", " 10", "00", "nan", "inf", "+5",   "99999999999999999"};
    for (size_t i = looks; i < sizeof bad / sizeof *bad; i++) {
        redisReply *r = run(sv, id, bad[i]);
        if (r->type != REDIS_REPLY_ERROR || !strstr(r->str, "bad lease"))
            FAIL("%s took the lease \"%s\"", rl_scripts[id].name, bad[i]);
        EXPECT_INT(server_int(sv, "DBSIZE"), 0);
    }
}

TEST(inputs, fault_101_a_lease_that_is_no_number_changes_nothing)
{
    scene s = scene_server(NULL);
    for (int i = 0; i <= RLOCK_LAYOUT_TIMESTAMP; i++) {
        const rl_layout *l = &rl_layouts[i];
        expect_leases_checked(s.sv, l->acquire, false);
        expect_leases_checked(s.sv, l->renew, true);
        expect_leases_checked(s.sv, l->extend, false);
        redisReply *r = run(s.sv, l->acquire, "60000"); /* the control */
        EXPECT_INT(r->type, REDIS_REPLY_STRING);
        EXPECT_STR(server_str(s.sv, "FLUSHALL"), "OK");
    }
    server_stop(s.sv);
}

TEST(inputs, fault_101_a_lock_that_can_get_no_expiry_does_not_stay)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default -pexpire"), "OK");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_INT(server_int(s.sv, "EXISTS %s", SCENE_LOCK), 0);
    EXPECT(!rlock_is_held(s.lk));
    scene_stop(&s);
}

/* --- 105: the hold count ------------------------------------------------- */

/* As after so many nested acquires. */
static void set_count(rlock *lk, int count)
{
    rl_holds *t = &rl_lock_core(lk)->holds;
    uint64_t owner = rl_owner_self()->serial;
    rl_mutex_lock(&t->mutex);
    rl_holds_find_locked(t, &lk->target, owner)->count = count;
    rl_mutex_unlock(&t->mutex);
}

TEST(inputs, fault_105_the_hold_count_does_not_overflow)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    set_count(s.lk, INT_MAX - 1);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK); /* the control */
    EXPECT_INT(rlock_hold_count(s.lk), INT_MAX);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), INT_MAX);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "hold count");
    EXPECT_INT(rlock_hold_count(s.lk), INT_MAX);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), INT_MAX);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), INT_MAX - 1);
    set_count(s.lk, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- 102 to 106 ----------------------------------------------------------- */

/* The answer comes when the lease is over. */
TEST(inputs, fault_102_a_grant_that_comes_after_its_lease_is_none)
{
    scene s = scene_proxied(0, 20000);
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    waiter *w = waiter_start(s.lk, 0, 100);
    EVENTUALLY(5000, proxy_fired(s.px));
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    proxy_let_go(s.px);
    EXPECT_STATUS(waiter_end(w), RLOCK_EIO);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    scene_stop(&s);
}

TEST(inputs, fault_104_a_nested_acquire_never_shortens_the_lease)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK); /* the control */
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 200), RLOCK_OK);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(inputs, fault_106_a_wrong_password_is_refused_at_once_and_never_shown)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    char uri[300];
    server_cmd(sv, "ACL SETUSER bob on >right ~* &* +@all");
    snprintf(uri, sizeof uri, "unix://bob:right@%s", server_path(sv));
    opts.uri = uri;
    rlock_client_free(server_client(sv, &opts)); /* the control */
    long long before = server_calls(sv, "auth");
    snprintf(uri, sizeof uri, "unix://bob:s3cret@%s", server_path(sv));
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_ESERVER);
    EXPECT(!strstr(rlock_last_error()->message, "s3cret"));
    EXPECT_CONTAINS(rlock_last_error()->message, "WRONGPASS");
    EXPECT_INT(server_calls(sv, "auth") - before, 1);
    server_stop(sv);
}

TEST(inputs, fault_106_a_key_that_is_not_allowed_is_asked_for_once)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "ACL SETUSER default resetkeys ~rlock_* ~mine*");
    rlock *mine = test_lock(s.cl, "mine");
    EXPECT_STATUS(rlock_trylock(mine), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    uint64_t failed = stats_of(s.cl).acquires_failed;
    long long before = server_calls(s.sv, "evalsha");
    EXPECT_STATUS(rlock_acquire(s.lk, 2000, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_BETWEEN(server_calls(s.sv, "evalsha") - before, 0, 1);
    EXPECT_INT(stats_of(s.cl).acquires_failed, failed + 1);
    rlock_free(mine);
    scene_stop(&s);
}
