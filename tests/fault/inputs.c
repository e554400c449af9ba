/*
 * Section F of the catalogue: inputs and limits that no caller of the library
 * meets by its public functions alone. The others are in server/names.c and
 * server/client.c.
 */
#include <limits.h>

#include "lock/lock.h"
#include "scene.h"
#include "wire/script.h"

/* --- 101: leases, as the scripts see them -------------------------------- */

static redisReply *run(server *sv, rl_script_id id, const char *lease)
{
    return server_cmd(sv, "EVALSHA %s 4 %s token queue tombstone %s %s 1 %s 0",
                      rl_scripts[id].sha1, SCENE_LOCK, "h:1:1:u", lease, "");
}

/* Acquire, renew and extend have their lease in the same place. */
static void expect_leases_checked(server *sv, rl_script_id id)
{
    static const char *const bad[] = {
        "0",  "-1",  "",   "x",   "1x",  "0x10", "1e3",
        "1.", " 10", "00", "nan", "inf", "+5",   "99999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
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
        expect_leases_checked(s.sv, l->acquire);
        expect_leases_checked(s.sv, l->renew);
        expect_leases_checked(s.sv, l->extend);
        redisReply *r = run(s.sv, l->acquire, "60000"); /* the control */
        EXPECT_INT(r->type, REDIS_REPLY_ARRAY);
        EXPECT_INT(r->element[0]->integer, 1);
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
    rl_holds *t = &rl_engine_of(lk)->holds;
    rl_mutex_lock(&t->mutex);
    rl_holds_mine_locked(t, &lk->target)->count = count;
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
