/* redis-cluster://: guarded calls, about data in the lock's slot, which may
   move. All of it is real. */
#include <stdatomic.h>

#include "cluster_scene.h"
#include "guarded.h"
#include "loop.h"

/* A tag of the first master's, and a lock and keys that share its slot. */
typedef struct field {
    cluster_scene l;
    unsigned slot;
    char lock[80], n[80], m[80];
    rlock *lk;
} field;

static void field_open(field *f)
{
    cluster_scene_start(&f->l, 0);
    const char *tag = cluster_name_on(f->l.c, 0, "item");
    snprintf(f->lock, sizeof f->lock, "{%s}", tag);
    snprintf(f->n, sizeof f->n, "{%s}:n", tag);
    snprintf(f->m, sizeof f->m, "{%s}:m", tag);
    f->slot = cluster_slot(tag);
    f->lk = cluster_scene_lock(&f->l, f->lock);
    EXPECT_STATUS(rlock_lock(f->lk), RLOCK_OK);
}

static void field_close(field *f)
{
    EXPECT_STATUS(rlock_unlock(f->lk), RLOCK_OK);
    rlock_free(f->lk);
    cluster_scene_stop(&f->l);
}

static void expect_sum(field *f, const char *script, int keys, long long wanted)
{
    redisReply *r;
    const char *argv[] = {f->n, f->m};
    EXPECT_STATUS(rlock_eval(f->lk, script, keys, 2 - keys, argv, NULL, &r),
                  RLOCK_OK);
    EXPECT_INT(r->integer, wanted);
    freeReplyObject(r);
}

#define INCR_BOTH                                                              \
    "return redis.call('INCR', KEYS[1]) + redis.call('INCR', KEYS[2])"
#define INCR_UNDECLARED                                                        \
    "return redis.call('INCR', ARGV[1]) + redis.call('INCR', ARGV[2])"

TEST(cluster_guarded, data_in_the_locks_slot_is_written)
{
    field f;
    field_open(&f);
    expect_sum(&f, INCR_BOTH, 2, 2);
    expect_sum(&f, INCR_UNDECLARED, 0, 4);
    EXPECT_STATUS(rlock_command(f.lk, NULL, "INCRBY %s 10", f.n), RLOCK_OK);
    EXPECT_INT(cluster_int(f.l.c, 0, "INCR %s", f.n), 13);
    field_close(&f);
}

TEST(cluster_guarded, data_in_another_slot_is_refused)
{
    field f;
    field_open(&f);
    const char *far = cluster_name_on(f.l.c, 1, "far");
    EXPECT_STATUS(rlock_eval(f.lk, "return 1", 1, 0, &far, NULL, NULL),
                  RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "CROSSSLOT");
    EXPECT(rlock_is_held(f.lk));
    EXPECT(!cluster_has_key(f.l.c, far));
    field_close(&f);
}

/* With a command the keys are not known: in time it is given up. */
TEST(cluster_guarded, a_command_about_another_masters_data_fails_in_time)
{
    field f;
    field_open(&f);
    const char *far = cluster_name_on(f.l.c, 1, "far");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_command(f.lk, NULL, "SET %s 1", far), RLOCK_ESERVER);
    EXPECT(test_since_ms(began_ms) < 3000 + SLACK_MS);
    EXPECT_CONTAINS(rlock_last_error()->message, "non local key");
    EXPECT(!cluster_has_key(f.l.c, far));
    field_close(&f);
}

/* --- other slots of the lock's own server ----------------------------------
 */

#define NAMES 200

/* The next name after the n-th whose slot is there. */
static int another_slot(const field *f, int n, char *name, size_t size)
{
    do {
        snprintf(name, size, "other:%d", n++);
    } while (cluster_slot(name) > 5460 || cluster_slot(name) == f->slot);
    return n;
}

TEST(cluster_guarded,
     a_command_about_another_slot_of_the_same_master_is_refused)
{
    field f;
    char name[80];
    need_sharded_channels();
    field_open(&f);
    int64_t began_ms = test_now_ms();
    for (int i = 0, n = 0; i < NAMES; i++) {
        n = another_slot(&f, n, name, sizeof name);
        EXPECT_STATUS(rlock_command(f.lk, NULL, "SET %s 1", name),
                      RLOCK_ESERVER);
        EXPECT_CONTAINS(rlock_last_error()->message, "same slot");
        EXPECT(!cluster_has_key(f.l.c, name));
    }
    EXPECT(test_since_ms(began_ms) < SOON); /* each at once */
    EXPECT_STATUS(rlock_command(f.lk, NULL, "SET %s 1", f.n), RLOCK_OK);
    field_close(&f);
}

typedef struct told {
    int calls;
    rlock_status status;
    char message[300];
} told;

static void replied(rlock *lk, rlock_status s, redisReply *r, void *arg)
{
    told *t = arg;
    (void)lk;
    (void)r;
    t->calls++;
    t->status = s;
    snprintf(t->message, sizeof t->message, "%s",
             s == RLOCK_OK ? "" : rlock_last_error()->message);
}

static rlock_status started(field *f, const request *r, told *t,
                            const char *name)
{
    *t = (told){0};
    rlock_owner *former = rlock_owner_set(r->owner);
    EXPECT_STATUS(rlock_command_start(f->lk, replied, t, "INCR %s", name),
                  RLOCK_OK);
    rlock_owner_set(former);
    LOOP_UNTIL(f->l.cl, t->calls > 0);
    EXPECT_INT(t->calls, 1);
    return t->status;
}

/* Another owner than the test's thread has it from now on. */
static request hand_to_request(field *f)
{
    EXPECT_STATUS(rlock_unlock(f->lk), RLOCK_OK);
    request r = request_new(f->lk);
    EXPECT_STATUS(loop_acquire(f->l.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    return r;
}

static void take_from_request(field *f, request *r)
{
    EXPECT_STATUS(loop_unlock(f->l.cl, r), RLOCK_OK);
    request_free(r);
    EXPECT_STATUS(rlock_lock(f->lk), RLOCK_OK);
}

TEST(cluster_guarded, a_started_command_about_another_slot_is_refused)
{
    field f;
    char name[80];
    told t;
    need_sharded_channels();
    field_open(&f);
    request r = hand_to_request(&f);
    for (int i = 0, n = 0; i < NAMES; i++) {
        n = another_slot(&f, n, name, sizeof name);
        EXPECT_STATUS(started(&f, &r, &t, name), RLOCK_ESERVER);
        EXPECT_CONTAINS(t.message, "same slot");
        EXPECT(!cluster_has_key(f.l.c, name));
    }
    EXPECT_STATUS(started(&f, &r, &t, f.n), RLOCK_OK);
    take_from_request(&f, &r);
    field_close(&f);
}

/* guard.h: what a script says in KEYS is checked, and nothing else. */
TEST(cluster_guarded, only_the_declared_keys_of_a_script_are_checked)
{
    field f;
    char name[80];
    const char *argv[] = {name};
    const char *script = "return redis.call('INCR', KEYS[1] or ARGV[1])";
    field_open(&f);
    another_slot(&f, 0, name, sizeof name);
    EXPECT_STATUS(rlock_eval(f.lk, script, 1, 0, argv, NULL, NULL),
                  RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "CROSSSLOT");
    EXPECT(!cluster_has_key(f.l.c, name));
    EXPECT_STATUS(rlock_eval(f.lk, script, 0, 1, argv, NULL, NULL), RLOCK_OK);
    EXPECT_INT(cluster_int(f.l.c, 0, "INCR %s", name), 2);
    field_close(&f);
}

/* A command that takes no memory goes on, one that does is told of it. */
TEST(cluster_guarded, a_server_without_memory_executes_what_needs_none)
{
    field f;
    field_open(&f);
    EXPECT_STATUS(rlock_command(f.lk, NULL, "SET %s 1", f.n), RLOCK_OK);
    cluster_cmd(f.l.c, 0, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_command(f.lk, NULL, "SET %s 2", f.m), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "OOM");
    EXPECT_STATUS(rlock_command(f.lk, NULL, "DEL %s", f.n), RLOCK_OK);
    cluster_cmd(f.l.c, 0, "CONFIG SET maxmemory 0");
    EXPECT(!cluster_has_key(f.l.c, f.n) && !cluster_has_key(f.l.c, f.m));
    field_close(&f);
}

/* --- a slot that moves -----------------------------------------------------
 */

TEST(cluster_guarded, a_started_call_follows_its_slot)
{
    field f;
    told t;
    field_open(&f);
    request r = hand_to_request(&f);
    EXPECT_STATUS(started(&f, &r, &t, f.n), RLOCK_OK);
    cluster_move_slot(f.l.c, f.slot, 1);
    EXPECT_STATUS(started(&f, &r, &t, f.n), RLOCK_OK);
    EXPECT_INT(cluster_int(f.l.c, 1, "INCR %s", f.n), 3);
    EXPECT(stats_of(f.l.cl).redirects >= 1);
    take_from_request(&f, &r);
    field_close(&f);
}

/* Begun while its data is elsewhere already; then its lock follows. */
TEST(cluster_guarded, moved_is_followed_while_a_started_call_is_under_way)
{
    field f;
    told t = {0};
    field_open(&f);
    request r = hand_to_request(&f);
    EXPECT_STATUS(started(&f, &r, &t, f.n), RLOCK_OK);
    cluster_slot_begin(f.l.c, f.slot, 1);
    cluster_slot_move_key(f.l.c, f.n, 1);
    t = (told){0};
    rlock_owner_set(r.owner);
    EXPECT_STATUS(rlock_command_start(f.lk, replied, &t, "INCR %s", f.n),
                  RLOCK_OK);
    rlock_owner_set(NULL);
    test_pause_ms(100); /* it is put off */
    EXPECT_STATUS(rlock_client_dispatch(f.l.cl), RLOCK_OK);
    EXPECT_INT(t.calls, 0);
    cluster_slot_move_keys(f.l.c, f.slot, 1);
    cluster_slot_end(f.l.c, f.slot, 1);
    LOOP_UNTIL(f.l.cl, t.calls > 0);
    EXPECT_STATUS(t.status, RLOCK_OK);
    EXPECT_INT(cluster_int(f.l.c, 1, "INCR %s", f.n), 3);
    take_from_request(&f, &r);
    field_close(&f);
}

TEST(cluster_guarded, a_slot_that_has_moved_is_followed)
{
    field f;
    field_open(&f);
    expect_sum(&f, INCR_BOTH, 2, 2);
    cluster_move_slot(f.l.c, f.slot, 1);
    expect_sum(&f, INCR_BOTH, 2, 4);
    EXPECT_STATUS(rlock_command(f.lk, NULL, "INCR %s", f.n), RLOCK_OK);
    EXPECT_INT(cluster_int(f.l.c, 1, "INCR %s", f.n), 4);
    EXPECT(stats_of(f.l.cl).redirects >= 1);
    field_close(&f);
}

/* What a server refuses, as keys are elsewhere, it has not begun. */
TEST(cluster_guarded, while_its_slot_moves_a_call_waits_and_runs_once)
{
    field f;
    redisReply *r;
    const char *argv[] = {f.n, f.m};
    field_open(&f);
    expect_sum(&f, INCR_BOTH, 2, 2);
    cluster_slot_begin(f.l.c, f.slot, 1);
    expect_sum(&f, INCR_BOTH, 2, 4); /* all is still here */
    cluster_slot_move_key(f.l.c, f.n, 1);
    EXPECT_STATUS(rlock_eval(f.lk, INCR_BOTH, 2, 0, argv, NULL, &r),
                  RLOCK_ESERVER);
    EXPECT_CONTAINS(r->str, "TRYAGAIN");
    freeReplyObject(r);
    EXPECT_STATUS(rlock_command(f.lk, NULL, "INCR %s", f.n), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "non local key");
    EXPECT_STATUS(rlock_command(f.lk, NULL, "INCR %s", f.m), RLOCK_OK);
    cluster_slot_move_keys(f.l.c, f.slot, 1);
    expect_sum(&f, INCR_BOTH, 2, 7); /* by ASK */
    EXPECT_STATUS(rlock_command(f.lk, NULL, "INCR %s", f.n), RLOCK_OK);
    cluster_slot_end(f.l.c, f.slot, 1);
    expect_sum(&f, INCR_BOTH, 2, 10);
    field_close(&f);
}

typedef struct writer {
    field *f;
    atomic_bool holds, go;
} writer;

static intptr_t write_when_told(void *arg)
{
    writer *w = arg;
    const char *argv[] = {w->f->n, w->f->m};
    EXPECT_STATUS(rlock_lock(w->f->lk), RLOCK_OK);
    atomic_store(&w->holds, true);
    EVENTUALLY(SOON, atomic_load(&w->go));
    EXPECT_STATUS(rlock_eval(w->f->lk, INCR_BOTH, 2, 0, argv, NULL, NULL),
                  RLOCK_OK);
    return rlock_unlock(w->f->lk);
}

/* A server that has not all keys of a script has refused it. */
static bool has_refused(server *sv)
{
    const char *at = server_str(sv, "INFO commandstats");
    while ((at = strstr(at, "cmdstat_eval")) != NULL) {
        const char *n = strstr(at, "rejected_calls=");
        if (n && atoi(n + strlen("rejected_calls=")) > 0)
            return true;
        at++;
    }
    return false;
}

TEST(cluster_guarded, a_call_that_waits_for_its_slot_goes_on_in_time)
{
    field f;
    writer w = {.f = &f};
    field_open(&f);
    expect_sum(&f, INCR_BOTH, 2, 2);
    EXPECT_STATUS(rlock_unlock(f.lk), RLOCK_OK);
    test_thread *t = test_spawn(write_when_told, &w);
    EVENTUALLY(SOON, atomic_load(&w.holds));
    cluster_slot_begin(f.l.c, f.slot, 1);
    cluster_slot_move_key(f.l.c, f.n, 1);
    atomic_store(&w.go, true);
    EVENTUALLY(SOON, has_refused(cluster_server(f.l.c, 0)));
    cluster_slot_move_keys(f.l.c, f.slot, 1);
    cluster_slot_end(f.l.c, f.slot, 1);
    EXPECT_INT(test_join(t), RLOCK_OK);
    EXPECT_INT(cluster_int(f.l.c, 1, "INCR %s", f.n), 3);
    EXPECT_STATUS(rlock_lock(f.lk), RLOCK_OK);
    field_close(&f);
}

TEST(cluster_guarded, another_owners_lock_guards_after_the_move_as_well)
{
    field f;
    field_open(&f);
    expect_sum(&f, INCR_BOTH, 2, 2);
    cluster_move_slot(f.l.c, f.slot, 2);
    cluster_cmd(f.l.c, 2, "DEL %s", f.lock);
    EXPECT_STATUS(rlock_command(f.lk, NULL, "INCR %s", f.n), RLOCK_LOST);
    EXPECT_INT(cluster_int(f.l.c, 2, "INCR %s", f.n), 2);
    EXPECT_STATUS(rlock_unlock(f.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_lock(f.lk), RLOCK_OK);
    field_close(&f);
}
