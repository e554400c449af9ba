/*
 * Red locks whose nodes are far away and well. Whoever asks them first waits
 * for connections, which take their time, and is not told that there is no
 * quorum.
 */
#include "lag.h"
#include "loop.h"
#include "nodes.h"

enum { NODES = 5, THREADS = 16, ONE_WAY_MS = 50, LEASE_MS = 6000 };

typedef struct far_away {
    nodes ns;
    lag *way[NODES];
    events *ev[NODES];
    party p;
    rlock *lk[THREADS];
} far_away;

static void join(far_away *f)
{
    f->p = (party){.n = NODES};
    for (size_t i = 0; i < NODES; i++) {
        rlock_options o = RLOCK_OPTIONS_INIT;
        o.uri = lag_uri(f->way[i]);
        f->p.ev[i] = events_new();
        events_hook(f->p.ev[i], &o);
        f->p.cl[i] = server_client(f->ns.sv[i], &o);
    }
    for (int i = 0; i < THREADS; i++) {
        char name[20];
        snprintf(name, sizeof name, "n%d", i);
        f->lk[i] = party_lock(&f->p, name, NULL);
    }
}

static void leave(far_away *f)
{
    for (int i = 0; i < THREADS; i++)
        rlock_free(f->lk[i]);
    party_leave(&f->p);
}

static intptr_t try_once(void *lk)
{
    rlock_status s = rlock_acquire(lk, 0, LEASE_MS);
    if (s == RLOCK_OK)
        rlock_unlock(lk);
    return (intptr_t)s;
}

/* How many of the first tries of so many threads fail. */
static int blocking(far_away *f)
{
    test_thread *t[THREADS];
    int failed = 0;
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(try_once, f->lk[i]);
    for (int i = 0; i < THREADS; i++)
        failed += test_join(t[i]) != RLOCK_OK;
    return failed;
}

static int started(far_away *f)
{
    request r[THREADS];
    int failed = 0;
    for (int i = 0; i < THREADS; i++) {
        r[i] = request_new(f->lk[i]);
        EXPECT_STATUS(request_acquire(&r[i], 0, LEASE_MS), RLOCK_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        LOOP_UNTIL(f->p.cl[0], r[i].told == 1);
        failed += r[i].status != RLOCK_OK;
        if (r[i].status == RLOCK_OK)
            EXPECT_STATUS(loop_unlock(f->p.cl[0], &r[i]), RLOCK_OK);
        request_free(&r[i]);
    }
    return failed;
}

static void ask_first(int (*ask)(far_away *f))
{
    far_away f = {.ns = nodes_start(NODES)};
    for (size_t i = 0; i < NODES; i++)
        f.way[i] = lag_start(f.ns.sv[i]);
    join(&f);
    EXPECT_INT(ask(&f), 0); /* the control */
    leave(&f);
    for (size_t i = 0; i < NODES; i++)
        lag_set(f.way[i], ONE_WAY_MS);
    join(&f);
    EXPECT_INT(ask(&f), 0);
    leave(&f);
    for (size_t i = 0; i < NODES; i++)
        lag_stop(f.way[i]);
    nodes_stop(&f.ns);
}

TEST_CASE(red_far, the_first_tries_of_many_threads_find_a_quorum,
          ask_first(blocking))
TEST_CASE(red_far, the_first_tries_of_many_that_are_started_find_a_quorum,
          ask_first(started))

/* --- one after another ---------------------------------------------------- */

/*
 * A job's own connections are read by the loop alone. While the loop
 * dispatches, that thread sleeps for 20 ms at a time, and has to be told of
 * them: the program's descriptor says nothing.
 */
TEST(red_far, what_is_started_is_over_after_a_round_trip)
{
    enum { TIMES = 31, NEAR_MS = 2 };
    int64_t took_us[TIMES];
    far_away f = {.ns = nodes_start(NODES)};
    for (size_t i = 0; i < NODES; i++)
        f.way[i] = lag_start(f.ns.sv[i]);
    for (size_t i = 0; i < NODES; i++)
        lag_set(f.way[i], NEAR_MS);
    join(&f);
    request r = request_new(f.lk[0]);
    for (int i = 0; i < TIMES; i++) {
        EXPECT_STATUS(loop_acquire(f.p.cl[0], &r, 0, LEASE_MS), RLOCK_OK);
        test_pause_ms(2);
        int64_t began_us = test_now_us();
        EXPECT_STATUS(loop_unlock(f.p.cl[0], &r), RLOCK_OK);
        took_us[i] = test_now_us() - began_us;
        test_pause_ms(2);
    }
    EXPECT_BETWEEN(test_median(took_us, TIMES), 0, 12000);
    request_free(&r);
    leave(&f);
    for (size_t i = 0; i < NODES; i++)
        lag_stop(f.way[i]);
    nodes_stop(&f.ns);
}
