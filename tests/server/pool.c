/*
 * Many threads and few connections: each waits its turn, and none for more
 * than its share.
 */
#include <stdatomic.h>

#include "nodes.h"
#include "scene.h"

enum { THREADS = 200, ROUNDS = 30, POOL = 4 };

typedef struct crowd {
    rlock_client *cl;
    atomic_int done;      /* calls that have returned */
    atomic_int overtaken; /* those during which four rounds of all returned */
} crowd;

typedef struct member {
    crowd *c;
    int number;
} member;

static void counted(crowd *c, rlock_status (*verb)(rlock *lk), rlock *lk)
{
    int before = atomic_load(&c->done);
    EXPECT_STATUS(verb(lk), RLOCK_OK);
    if (atomic_fetch_add(&c->done, 1) - before > 4 * THREADS)
        atomic_fetch_add(&c->overtaken, 1);
}

static intptr_t lock_and_unlock(void *arg)
{
    const member *m = arg;
    char name[20];
    snprintf(name, sizeof name, "job-%d", m->number);
    rlock *lk = test_lock(m->c->cl, name);
    for (int i = 0; i < ROUNDS; i++) {
        counted(m->c, rlock_trylock, lk);
        counted(m->c, rlock_unlock, lk);
    }
    rlock_free(lk);
    return 0;
}

/*
 * Each of the others is served once before it is one's turn; now and then more:
 * when a thread that reads for all loses the processor, half of them wait.
 */
TEST(pool, serves_nobody_again_and_again_while_another_waits)
{
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.pool_size = POOL;
    crowd c = {.cl = server_client(sv, &opts)};
    static member m[THREADS];
    static test_thread *t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        m[i] = (member){&c, i};
        t[i] = test_spawn(lock_and_unlock, &m[i]);
    }
    for (int i = 0; i < THREADS; i++)
        test_join(t[i]);
    EXPECT_BETWEEN(atomic_load(&c.overtaken), 0, 2 * THREADS);
    EXPECT_INT(server_int(sv, "DBSIZE"), THREADS); /* the tokens */
    rlock_client_free(c.cl);
    server_stop(sv);
}

typedef struct redder {
    const party *p;
    int number;
} redder;

static intptr_t lock_red(void *arg)
{
    const redder *r = arg;
    char name[20];
    snprintf(name, sizeof name, "job-%d", r->number);
    rlock *lk = party_lock(r->p, name, NULL);
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    rlock_free(lk);
    return 0;
}

static party join_with_pool(const nodes *ns, unsigned pool_size)
{
    party p = {.n = ns->n};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.pool_size = pool_size;
    for (size_t i = 0; i < p.n; i++)
        p.cl[i] = server_client(ns->sv[i], &opts);
    return p;
}

/* A node that was not asked has not failed. */
TEST(pool, that_is_full_is_no_failure_of_a_node)
{
    enum { CROWD = 96 };
    nodes ns = nodes_start(3);
    party p = join_with_pool(&ns, 4);
    redder r[CROWD];
    test_thread *t[CROWD];
    for (int i = 0; i < CROWD; i++) {
        r[i] = (redder){&p, i};
        t[i] = test_spawn(lock_red, &r[i]);
    }
    for (int i = 0; i < CROWD; i++)
        test_join(t[i]);
    party_end(&p, &ns);
}

/* --- what a thread keeps at hand ------------------------------------------ */

static long long connections(server *sv)
{
    return server_info(sv, "total_connections_received");
}

static void lock_and_unlock_once(rlock *lk)
{
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
}

/* A guarded call, for one, has a connection for itself. */
static void expect_no_more_connections(unsigned pool_size)
{
    scene s = scene_start(0, 0);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.pool_size = pool_size;
    rlock_client *cl = server_client(s.sv, &opts);
    rlock *lk = test_lock(cl, "job"), *other = test_lock(cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    lock_and_unlock_once(lk);
    long long then = connections(s.sv);
    for (int i = 0; i < 5; i++) {
        redisReply *r;
        EXPECT_STATUS(rlock_command(other, &r, "SET %s x", "a"), RLOCK_OK);
        freeReplyObject(r);
        lock_and_unlock_once(lk);
    }
    EXPECT_INT(connections(s.sv), then);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    rlock_free(lk);
    rlock_client_free(cl);
    scene_stop(&s);
}

TEST_CASE(pool, what_a_thread_keeps_at_hand_is_had_by_who_wants_one,
          expect_no_more_connections(8))
TEST_CASE(pool, what_a_thread_keeps_at_hand_keeps_nobody_waiting,
          expect_no_more_connections(1))
