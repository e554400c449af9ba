/* redis-cluster://: guarded calls, about data in the lock's slot, which may
   move. All of it is real. */
#include <hiredis/hiredis.h>
#include <stdatomic.h>

#include "land.h"

/* A tag of the first master's, and a lock and keys that share its slot. */
typedef struct field {
    land l;
    unsigned slot;
    char lock[80], n[80], m[80];
    rlock *lk;
} field;

static void field_open(field *f)
{
    land_settle(&f->l, 0);
    const char *tag = cluster_name_on(f->l.c, 0, "item");
    snprintf(f->lock, sizeof f->lock, "{%s}", tag);
    snprintf(f->n, sizeof f->n, "{%s}:n", tag);
    snprintf(f->m, sizeof f->m, "{%s}:m", tag);
    f->slot = cluster_slot(tag);
    f->lk = land_lock(&f->l, f->lock);
    EXPECT_STATUS(rlock_lock(f->lk), RLOCK_OK);
}

static void field_close(field *f)
{
    EXPECT_STATUS(rlock_unlock(f->lk), RLOCK_OK);
    rlock_free(f->lk);
    land_leave(&f->l);
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
