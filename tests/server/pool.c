/*
 * Many threads and few connections: each waits its turn, and none for more
 * than its share.
 */
#include <stdatomic.h>

#include "nodes.h"

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
