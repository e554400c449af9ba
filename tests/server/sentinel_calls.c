/*
 * Calls that are made while the master is gone and Sentinels have not replaced
 * it yet: as in a cluster, they are asked again until their time is over.
 */
#include <stdatomic.h>

#include "loop.h"
#include "sentinels.h"

typedef struct fleet {
    server *master, *replica;
    sentinels *s;
    rlock_options opts;
} fleet;

static fleet fleet_start(int n)
{
    fleet f = {.master = server_start_tcp(NULL), .opts = RLOCK_OPTIONS_INIT};
    f.replica = replica_start(f.master);
    f.s = sentinels_start(f.master, n);
    f.opts.uri = sentinels_uri(f.s);
    return f;
}

static void fleet_stop(fleet *f)
{
    sentinels_stop(f->s);
    server_stop(f->replica);
    server_stop(f->master);
}

/* --- one owner each ------------------------------------------------------- */

typedef struct deed {
    const char *name;
    rlock_status (*call)(rlock *lk);
    bool holds; /* its lock, before */
} deed;

static rlock_status extend(rlock *lk)
{
    return rlock_extend(lk, 40000);
}

static rlock_status is_locked(rlock *lk)
{
    bool locked;
    return rlock_is_locked(lk, &locked);
}

static const deed deeds[] = {
    {"trylock", rlock_trylock, false}, {"nested", rlock_lock, true},
    {"unlock", rlock_unlock, true},    {"extend", extend, true},
    {"asked", is_locked, false},
};

#define DEEDS (sizeof deeds / sizeof *deeds)

static atomic_int ready;
static atomic_bool gone;

typedef struct doer {
    const deed *what;
    rlock_client *cl;
    rlock_status status;
    char why[300];
    int64_t took_ms;
} doer;

static intptr_t act(void *arg)
{
    doer *d = arg;
    rlock *lk = test_lock(d->cl, d->what->name);
    if (d->what->holds)
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    atomic_fetch_add(&ready, 1);
    EVENTUALLY(SOON, atomic_load(&gone));
    int64_t began_ms = test_now_ms();
    d->status = d->what->call(lk);
    d->took_ms = test_since_ms(began_ms);
    if (d->status != RLOCK_OK)
        snprintf(d->why, sizeof d->why, "%s: %s", d->what->name,
                 rlock_last_error()->message);
    rlock_free(lk);
    return 0;
}

static void start_all(doer *d, test_thread **t, rlock_client *cl)
{
    atomic_store(&ready, 0);
    atomic_store(&gone, false);
    for (size_t i = 0; i < DEEDS; i++) {
        d[i] = (doer){.what = &deeds[i], .cl = cl};
        t[i] = test_spawn(act, &d[i]);
    }
    EVENTUALLY(SOON, atomic_load(&ready) == (int)DEEDS);
}

static void join_all(test_thread **t)
{
    for (size_t i = 0; i < DEEDS; i++)
        test_join(t[i]);
}

TEST(sentinel_calls, each_waits_for_the_next_master)
{
    fleet f = fleet_start(3);
    doer d[DEEDS];
    test_thread *t[DEEDS];
    f.opts.command_timeout_ms = SOON;
    scene one = scene_with(f.master, &f.opts);
    start_all(d, t, one.cl);
    EVENTUALLY(SOON, replica_follows(f.master));
    server_kill(f.master);
    atomic_store(&gone, true);
    join_all(t);
    for (size_t i = 0; i < DEEDS; i++)
        EXPECT_STR(d[i].why, "");
    EXPECT_INT(stats_of(one.cl).failovers, 1);
    scene_leave(&one);
    fleet_stop(&f);
}

/* No replica is there to be promoted. */
TEST(sentinel_calls, each_is_given_up_when_its_time_is_over)
{
    fleet f = fleet_start(1);
    doer d[DEEDS];
    test_thread *t[DEEDS];
    f.opts.command_timeout_ms = 700;
    scene one = scene_with(f.master, &f.opts);
    start_all(d, t, one.cl);
    server_kill(f.replica);
    server_kill(f.master);
    atomic_store(&gone, true);
    join_all(t);
    for (size_t i = 0; i < DEEDS; i++) {
        EXPECT_STATUS(d[i].status, RLOCK_EIO);
        EXPECT_BETWEEN(d[i].took_ms, 600, 700 + SLACK_MS);
    }
    scene_leave(&one);
    fleet_stop(&f);
}

TEST(sentinel_calls, what_has_been_started_waits_for_the_next_master)
{
    fleet f = fleet_start(3);
    f.opts.command_timeout_ms = SOON;
    scene one = scene_with(f.master, &f.opts);
    rlock *other = test_lock(one.cl, "other");
    request held = request_new(one.lk), wanted = request_new(other);
    EXPECT_STATUS(loop_acquire(one.cl, &held, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, replica_follows(f.master));
    server_kill(f.master);
    EXPECT_STATUS(request_unlock(&held), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&wanted, 0, RLOCK_WATCHDOG), RLOCK_OK);
    LOOP_UNTIL(one.cl, held.told == 2 && wanted.told == 1);
    EXPECT_STATUS(held.status, RLOCK_OK);
    EXPECT_STATUS(wanted.status, RLOCK_OK);
    EXPECT(!key_exists(f.replica, SCENE_LOCK));
    EXPECT_STATUS(loop_unlock(one.cl, &wanted), RLOCK_OK);
    request_free(&held);
    request_free(&wanted);
    rlock_free(other);
    scene_leave(&one);
    fleet_stop(&f);
}

TEST(sentinel_calls, a_lock_of_several_clients_waits_for_the_next_master)
{
    fleet f = fleet_start(3);
    f.opts.command_timeout_ms = SOON;
    scene one = scene_with(f.master, &f.opts), two;
    two = scene_with(f.master, &f.opts);
    rlock *other = test_lock(two.cl, "other"), *both;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){one.lk, other}, 2, &both),
                  RLOCK_OK);
    EXPECT_STATUS(rlock_lock(both), RLOCK_OK);
    EVENTUALLY(SOON, replica_follows(f.master));
    server_kill(f.master);
    EXPECT_STATUS(rlock_unlock(both), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(both), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(both), RLOCK_OK);
    rlock_free(both);
    rlock_free(other);
    scene_leave(&two);
    scene_leave(&one);
    fleet_stop(&f);
}
