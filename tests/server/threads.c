/*
 * Threads at the same locks. The counters that they protect are
 * read and written in two steps, so that two owners at a time lose an update.
 */
#include <sched.h>
#include <stdatomic.h>

#include "scene.h"

enum { THREADS = 16, NAMES = 3, TURNS = SANITIZED ? 20 : 60, LONG_MS = 20000 };

/* Relaxed, and no fetch_add: nothing but the lock orders the threads. */
static void add_slowly(atomic_int *counter)
{
    int n = atomic_load_explicit(counter, memory_order_relaxed);
    sched_yield();
    atomic_store_explicit(counter, n + 1, memory_order_relaxed);
}

static unsigned draw(unsigned *rng, unsigned below)
{
    *rng = *rng * 1664525u + 1013904223u;
    return (*rng >> 8) % below;
}

/* --- nested locks --------------------------------------------------------- */

typedef struct table {
    rlock_client *cl[2];
    atomic_int counter[NAMES];
} table;

typedef struct seat {
    table *t;
    int index;
} seat;

static const char *name_of(int i)
{
    static const char *const names[NAMES] = {"a", "b", "c"};
    return names[i % NAMES];
}

/* Holds it `levels` times over, each through a handle of its own. */
static void nest(rlock_client *cl, const char *name, int levels,
                 atomic_int *counter)
{
    rlock *lk = test_lock(cl, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    if (levels > 1)
        nest(cl, name, levels - 1, counter);
    else
        add_slowly(counter);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
}

static intptr_t sit(void *arg)
{
    seat *s = arg;
    rlock_client *cl = s->t->cl[s->index % 2];
    for (int i = 0; i < TURNS; i++) {
        int which = (s->index + i) % NAMES;
        nest(cl, name_of(which), 1 + i % 3, &s->t->counter[which]);
    }
    return 0;
}

static void run_table(table *t)
{
    seat seats[THREADS];
    test_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        seats[i] = (seat){t, i};
        threads[i] = test_spawn(sit, &seats[i]);
    }
    for (int i = 0; i < THREADS; i++)
        test_join(threads[i]);
    int sum = 0;
    for (int i = 0; i < NAMES; i++)
        sum += atomic_load(&t->counter[i]);
    EXPECT_INT(sum, THREADS * TURNS);
}

/* Nothing but tokens is left. */
static void expect_clean(server *sv)
{
    EXPECT_INT(server_int(sv, "EVAL %s 0",
                          "return #redis.call('keys', '*') "
                          "- #redis.call('keys', 'rlock_token:*')"),
               0);
}

TEST(threads, nested_locks_lose_no_update)
{
    server *sv = server_start(NULL);
    rlock_client *cl = server_client(sv, NULL);
    table t = {.cl = {cl, cl}};
    run_table(&t);
    rlock_stats s = stats_of(cl);
    EXPECT_INT(s.acquires, s.releases);
    EXPECT_INT(s.acquires_failed, 0);
    EXPECT_INT(s.held_now, 0);
    EXPECT_INT(s.waiting_now, 0);
    rlock_client_free(cl);
    expect_clean(sv);
    server_stop(sv);
}

TEST(threads, two_clients_of_a_process_exclude_each_other)
{
    server *sv = server_start(NULL);
    table t = {.cl = {server_client(sv, NULL), server_client(sv, NULL)}};
    run_table(&t);
    rlock *first = test_lock(t.cl[0], "x"), *second = test_lock(t.cl[1], "x");
    EXPECT_STATUS(rlock_lock(first), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(second), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(second), RLOCK_NOT_HELD);
    EXPECT(rlock_is_held(first) && !rlock_is_held(second));
    EXPECT_STATUS(rlock_unlock(first), RLOCK_OK);
    rlock_free(first);
    rlock_free(second);
    rlock_client_free(t.cl[0]);
    rlock_client_free(t.cl[1]);
    expect_clean(sv);
    server_stop(sv);
}

TEST(threads, all_progress_with_a_single_connection)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.pool_size = 1;
    opts.command_timeout_ms = LONG_MS;
    rlock_client *cl = server_client(sv, &opts);
    table t = {.cl = {cl, cl}};
    run_table(&t);
    rlock_client_free(cl);
    server_stop(sv);
}

/* --- everything at once --------------------------------------------------- */

typedef struct mix {
    rlock_client *cl;
    rlock *shared[NAMES];
    atomic_uint_fast64_t newest[NAMES]; /* largest token seen */
} mix;

typedef struct mixer {
    mix *m;
    unsigned rng;
} mixer;

/* The lease it asked for, or -1: it does not have the lock. */
static int64_t take(mixer *x, rlock *lk)
{
    static const struct {
        int64_t wait_ms, lease_ms;
        rlock_status other; /* than OK and CANCELED */
    } ways[] = {{0, RLOCK_WATCHDOG, RLOCK_BUSY},
                {0, 40, RLOCK_BUSY},
                {15, 60, RLOCK_TIMEOUT},
                {40, RLOCK_WATCHDOG, RLOCK_TIMEOUT},
                {RLOCK_FOREVER, RLOCK_WATCHDOG, RLOCK_CANCELED},
                {RLOCK_FOREVER, 80, RLOCK_CANCELED}};
    unsigned w = draw(&x->rng, sizeof ways / sizeof *ways);
    rlock_status s = rlock_acquire(lk, ways[w].wait_ms, ways[w].lease_ms);
    if (s == RLOCK_OK)
        return ways[w].lease_ms;
    /* EIO: on a busy machine a grant may come later than such a lease. */
    if (s != RLOCK_CANCELED && s != ways[w].other &&
        !(s == RLOCK_EIO && ways[w].lease_ms))
        FAIL("acquire(%d, %d): %s", (int)ways[w].wait_ms, (int)ways[w].lease_ms,
             rlock_last_error()->message);
    return -1;
}

static void note_token(atomic_uint_fast64_t *newest, uint64_t token)
{
    uint_fast64_t seen = atomic_load(newest);
    while (seen < token && !atomic_compare_exchange_weak(newest, &seen, token))
        ;
}

static void expect_ok_or_lost(rlock_status s, bool may_time_out)
{
    if (s != RLOCK_OK && s != RLOCK_LOST && !(may_time_out && s == RLOCK_EIO))
        FAIL("%s", rlock_last_error()->message);
}

/* While this one is held nobody else was granted it. */
static void expect_newest(mix *m, int which, rlock *lk, uint64_t token)
{
    uint64_t newest = atomic_load(&m->newest[which]);
    if (rlock_is_held(lk) && newest > token)
        FAIL("granted to somebody else meanwhile");
}

static void work(mixer *x, int which, rlock *lk, bool leased)
{
    int levels = 1;
    uint64_t token = rlock_token(lk); /* 0 when it is over already */
    note_token(&x->m->newest[which], token);
    if (draw(&x->rng, 3) == 0) {
        rlock_status s = rlock_acquire(lk, 0, 30 * draw(&x->rng, 3));
        expect_ok_or_lost(s, leased);
        levels += s == RLOCK_OK;
    }
    if (draw(&x->rng, 4) == 0)
        expect_ok_or_lost(rlock_extend(lk, 30 + draw(&x->rng, 100)), true);
    test_pause_ms((int)draw(&x->rng, 3));
    if (token)
        expect_newest(x->m, which, lk, token);
    for (; levels > 0; levels--)
        expect_ok_or_lost(rlock_unlock(lk), false);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
}

static intptr_t mix_calls(void *arg)
{
    mixer *x = arg;
    for (int i = 0; i < TURNS; i++) {
        int which = (int)draw(&x->rng, NAMES);
        rlock *own = test_lock(x->m->cl, name_of(which));
        rlock *lk = draw(&x->rng, 2) ? own : x->m->shared[which];
        int64_t lease = take(x, lk);
        if (lease >= 0)
            work(x, which, lk, lease > 0);
        if (draw(&x->rng, 8) == 0)
            rlock_cancel(x->m->shared[draw(&x->rng, NAMES)]);
        rlock_free(own);
    }
    return 0;
}

TEST(threads, all_kinds_of_calls_at_once_keep_the_locks_exclusive)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 3000;
    opts.command_timeout_ms = LONG_MS;
    mix m = {.cl = server_client(sv, &opts)};
    mixer mixers[THREADS];
    test_thread *threads[THREADS];
    for (int i = 0; i < NAMES; i++)
        m.shared[i] = test_lock(m.cl, name_of(i));
    for (int i = 0; i < THREADS; i++) {
        mixers[i] = (mixer){&m, 77u + (unsigned)i};
        threads[i] = test_spawn(mix_calls, &mixers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        test_join(threads[i]);
    EXPECT_INT(stats_of(m.cl).held_now, 0);
    EXPECT_INT(stats_of(m.cl).waiting_now, 0);
    EVENTUALLY(LONG_MS, server_int(sv, "EXISTS a b c") == 0);
    EVENTUALLY(LONG_MS, server_int(sv, "EVAL %s 0",
                                   "return #redis.call('keys', "
                                   "'rlock_queue:*')") == 0);
    for (int i = 0; i < NAMES; i++)
        rlock_free(m.shared[i]);
    rlock_client_free(m.cl);
    server_stop(sv);
}

/* --- the pool ------------------------------------------------------------- */

static intptr_t ask_ttl(void *arg)
{
    int64_t ttl;
    EXPECT_STATUS(rlock_ttl(arg, &ttl), RLOCK_OK);
    return 0;
}

TEST(threads, the_watchdog_renews_while_the_pool_is_exhausted)
{
    server *sv = server_start(NULL);
    proxy *px = proxy_start(sv);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    server_load_scripts(sv);
    opts.uri = proxy_uri(px);
    opts.pool_size = 1;
    opts.watchdog_lease_ms = BRISK_MS;
    opts.command_timeout_ms = LONG_MS;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, "main");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    proxy_rule(px, proxy_sha("inspect"), 1, PROXY_HOLD_REPLY, NULL);
    test_thread *asking[4];
    for (int i = 0; i < 4; i++)
        asking[i] = test_spawn(ask_ttl, lk);
    EVENTUALLY(LONG_MS, proxy_fired(px));
    uint64_t renewals = stats_of(cl).renewals;
    EVENTUALLY(LONG_MS, stats_of(cl).renewals >= renewals + 5);
    EXPECT(rlock_is_held(lk));
    for (int i = 0; i < 4; i++)
        EXPECT(!test_done(asking[i]));
    proxy_let_go(px);
    for (int i = 0; i < 4; i++)
        test_join(asking[i]);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    proxy_stop(px);
    server_stop(sv);
}

/* --- a callback that locks ------------------------------------------------ */

typedef struct asker {
    rlock *lk;
    atomic_bool told, done;
    int64_t took_ms;
    rlock_status status;
} asker;

/* By the thread that makes a connection, while it makes it. */
static void lock_when_warned(const rlock_event *ev, void *arg)
{
    asker *a = arg;
    if (ev->type != RLOCK_EVENT_WARNING || atomic_exchange(&a->told, true))
        return;
    int64_t began_ms = test_now_ms();
    a->status = rlock_trylock(a->lk);
    a->took_ms = test_now_ms() - began_ms;
    if (a->status == RLOCK_OK)
        EXPECT_STATUS(rlock_unlock(a->lk), RLOCK_OK);
    atomic_store(&a->done, true);
}

TEST(threads, a_callback_that_is_told_of_a_connection_may_lock)
{
    server *sv = server_start("--maxmemory 100mb --maxmemory-policy "
                              "allkeys-lru");
    rlock_options opts = RLOCK_OPTIONS_INIT;
    asker a = {.told = false};
    opts.uri = server_uri(sv);
    opts.lazy = true;
    opts.command_timeout_ms = 3000;
    opts.on_event = lock_when_warned;
    opts.event_arg = &a;
    rlock_client *cl;
    server_kill(sv);
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_OK);
    server_restart(sv);
    a.lk = test_lock(cl, "from the callback");
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EVENTUALLY(10000, atomic_load(&a.done));
    EXPECT_STATUS(a.status, RLOCK_OK);
    EXPECT(a.took_ms < 1000);
    rlock_free(lk);
    rlock_free(a.lk);
    rlock_client_free(cl);
    server_stop(sv);
}
