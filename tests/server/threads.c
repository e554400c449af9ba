/*
 * Threads and processes at the same locks. The counters that they protect are
 * read and written in two steps, so that two owners at a time lose an update.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

enum { THREADS = 16, NAMES = 3, LONG_MS = 20000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TURNS = 20, CLOSINGS = 4 };
#else
enum { TURNS = 60, CLOSINGS = 10 };
#endif

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

/* --- a thread that ends --------------------------------------------------- */

typedef struct ending {
    server *sv;
    events *ev;
    rlock_client *cl;
    rlock *lk;
} ending;

static ending ending_start(int64_t lease_ms)
{
    ending e = {.sv = server_start(NULL), .ev = events_new()};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = lease_ms;
    events_hook(e.ev, &opts);
    e.cl = server_client(e.sv, &opts);
    e.lk = test_lock(e.cl, "main");
    return e;
}

static void ending_stop(ending *e)
{
    rlock_free(e->lk);
    rlock_client_free(e->cl);
    server_stop(e->sv);
    events_free(e->ev);
}

static intptr_t lock_twice(void *arg)
{
    rlock *lk = arg;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    return 0;
}

TEST(threads, the_hold_of_a_thread_that_ended_is_abandoned_once)
{
    ending e = ending_start(600);
    rlock_event ev;
    test_join(test_spawn(lock_twice, e.lk));
    events_wait(e.ev, RLOCK_EVENT_ABANDONED, 1, LONG_MS);
    EXPECT(events_last(e.ev, RLOCK_EVENT_ABANDONED, &ev));
    EXPECT_STR(ev.name, "main");
    EXPECT(ev.token != 0);
    EXPECT_INT(stats_of(e.cl).held_now, 0);
    EVENTUALLY(LONG_MS, server_int(e.sv, "EXISTS main") == 0);
    EXPECT_INT(events_count(e.ev, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(events_count(e.ev, RLOCK_EVENT_LOST), 0);
    ending_stop(&e);
}

TEST(threads, the_lock_of_a_thread_that_ended_is_free_after_its_lease)
{
    ending e = ending_start(600);
    test_join(test_spawn(lock_twice, e.lk));
    int64_t ended = test_now_ms();
    EXPECT_STATUS(rlock_trylock(e.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(e.lk, LONG_MS, RLOCK_WATCHDOG), RLOCK_OK);
    /* The fallback poll would come after 1.5 s. */
    EXPECT_BETWEEN(test_now_ms() - ended, 300, 600 + 800);
    EXPECT_INT(stats_of(e.cl).renewals, 0);
    ending_stop(&e);
}

TEST(threads, a_thread_that_ended_without_a_hold_is_not_reported)
{
    ending e = ending_start(600);
    for (int i = 0; i < 20; i++)
        test_join(test_spawn(lock_once, e.lk));
    test_join(test_spawn(lock_twice, e.lk));
    events_wait(e.ev, RLOCK_EVENT_ABANDONED, 1, LONG_MS);
    EXPECT_INT(events_count(e.ev, RLOCK_EVENT_ABANDONED), 1);
    ending_stop(&e);
}

/* A thread's own clean-up, that of a key which is younger than the client. */
static void unlock_at_the_end(void *arg)
{
    EXPECT(rlock_is_held(arg));
    EXPECT_STATUS(rlock_unlock(arg), RLOCK_OK);
}

typedef struct cleanup {
    rlock *lk;
    pthread_key_t key;
} cleanup;

static intptr_t lock_until_the_end(void *arg)
{
    cleanup *c = arg;
    EXPECT_STATUS(rlock_lock(c->lk), RLOCK_OK);
    EXPECT_INT(pthread_setspecific(c->key, c->lk), 0);
    return 0;
}

TEST(threads, a_threads_own_cleanup_may_unlock)
{
    ending e = ending_start(0);
    cleanup c = {.lk = e.lk};
    EXPECT_INT(pthread_key_create(&c.key, unlock_at_the_end), 0);
    test_join(test_spawn(lock_until_the_end, &c));
    EXPECT_STATUS(rlock_trylock(e.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(e.lk), RLOCK_OK);
    EXPECT_INT(events_count(e.ev, RLOCK_EVENT_ABANDONED), 0);
    pthread_key_delete(c.key);
    ending_stop(&e);
}

/* It may lock, too. */
static void lock_at_the_end(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
}

typedef struct late {
    rlock *first, *last;
    pthread_key_t key;
} late;

static intptr_t lock_now_and_at_the_end(void *arg)
{
    late *l = arg;
    EXPECT_STATUS(rlock_lock(l->first), RLOCK_OK);
    EXPECT_INT(pthread_setspecific(l->key, l->last), 0);
    return 0;
}

TEST(threads, a_lock_taken_in_a_threads_own_cleanup_is_abandoned_too)
{
    ending e = ending_start(600);
    late l = {.first = e.lk, .last = test_lock(e.cl, "late")};
    /* After the library's key, so its destructor runs after the library's. */
    EXPECT_INT(pthread_key_create(&l.key, lock_at_the_end), 0);
    test_join(test_spawn(lock_now_and_at_the_end, &l));
    events_wait(e.ev, RLOCK_EVENT_ABANDONED, 2, 5000);
    EVENTUALLY(LONG_MS, server_int(e.sv, "EXISTS main late") == 0);
    pthread_key_delete(l.key);
    rlock_free(l.last);
    ending_stop(&e);
}

static void *lock_and_tell_thread(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(arg), 2); /* the control: it is its own */
    return NULL;
}

static void *expect_nothing_inherited(void *arg)
{
    rlock *lk = arg;
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT(rlock_token(lk) == 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    return NULL;
}

/* glibc gives the memory of a thread that was joined to the next one. */
TEST(threads, fault_087_a_thread_with_a_dead_ones_id_does_not_inherit)
{
    ending e = ending_start(60000);
    pthread_t first, next;
    bool same = false;
    EXPECT_INT(pthread_create(&first, NULL, lock_and_tell_thread, e.lk), 0);
    pthread_join(first, NULL);
    for (int i = 0; i < 50 && !same; i++) {
        EXPECT_INT(pthread_create(&next, NULL, expect_nothing_inherited, e.lk),
                   0);
        same = pthread_equal(first, next);
        pthread_join(next, NULL);
    }
    ending_stop(&e);
    if (!same)
        SKIP("no thread got the id of the first one");
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
    opts.watchdog_lease_ms = 600;
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

/* --- closing while threads are inside ------------------------------------- */

enum { KINDS = 9 };

typedef struct user {
    rlock_client *cl;
    rlock *contended, *free_one, *canceled;
    int kind;
    atomic_int *inside; /* threads that have made their first call */
    bool counted;
} user;

static rlock_status call_once(user *u)
{
    rlock_holder holder;
    rlock_status s;
    switch (u->kind) {
    case 0:
        return rlock_lock(u->contended);
    case 1:
        return rlock_acquire(u->contended, 5, 3000);
    case 2:
        return rlock_trylock(u->contended);
    case 3:
        s = rlock_acquire(u->free_one, RLOCK_FOREVER, 3000);
        if (s != RLOCK_OK)
            return s;
        rlock_unlock(u->free_one);
        return rlock_unlock(u->free_one); /* not held, or closed */
    case 4:
        s = rlock_lock(u->free_one);
        if (s == RLOCK_OK)
            s = rlock_extend(u->free_one, 4000);
        while (rlock_unlock(u->free_one) == RLOCK_OK)
            ;
        return s;
    case 5:
        return rlock_force_unlock(u->free_one);
    case 6:
        return rlock_holder_info(u->contended, &holder);
    case 7:
        return rlock_acquire(u->canceled, RLOCK_FOREVER, RLOCK_WATCHDOG);
    default:
        rlock_cancel(u->canceled);
        rlock_is_held(u->contended);
        sched_yield();
        return rlock_unlock(u->contended);
    }
}

static bool is_expected(rlock_status s)
{
    return s == RLOCK_OK || s == RLOCK_BUSY || s == RLOCK_TIMEOUT ||
           s == RLOCK_CANCELED || s == RLOCK_NOT_HELD || s == RLOCK_LOST;
}

static intptr_t use_until_closed(void *arg)
{
    user *u = arg;
    rlock_status s;
    do {
        if (!u->counted)
            atomic_fetch_add(u->inside, 1);
        u->counted = true;
        s = call_once(u);
        if (s != RLOCK_ECLOSED && !is_expected(s))
            FAIL("kind %d: %s", u->kind, rlock_last_error()->message);
    } while (s != RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_trylock(u->contended), RLOCK_ECLOSED);
    EXPECT(!rlock_is_held(u->contended));
    rlock_free(u->contended);
    rlock_free(u->free_one);
    return 0;
}

static void close_while_in_use(server *sv, int pause_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 3000;
    opts.command_timeout_ms = LONG_MS;
    rlock_client *cl = server_client(sv, &opts);
    atomic_int inside = 0;
    user users[2 * KINDS];
    test_thread *threads[2 * KINDS];
    rlock *canceled = test_lock(cl, "contended"), *held;
    held = test_lock(cl, "contended");
    EXPECT_STATUS(rlock_lock(held), RLOCK_OK);
    for (int i = 0; i < 2 * KINDS; i++) {
        users[i] = (user){.cl = cl,
                          .contended = test_lock(cl, "contended"),
                          .free_one = test_lock(cl, "free"),
                          .canceled = canceled,
                          .kind = i % KINDS,
                          .inside = &inside};
        threads[i] = test_spawn(use_until_closed, &users[i]);
    }
    EVENTUALLY(LONG_MS, atomic_load(&inside) == 2 * KINDS);
    test_pause_ms(pause_ms);
    rlock_client_free(cl);
    EXPECT_STATUS(rlock_unlock(held), RLOCK_ECLOSED);
    for (int i = 0; i < 2 * KINDS; i++)
        test_join(threads[i]);
    rlock_free(held);
    rlock_free(canceled);
}

TEST(threads, a_client_can_be_freed_while_threads_are_in_every_kind_of_call)
{
    server *sv = server_start(NULL);
    for (int i = 0; i < CLOSINGS; i++) {
        close_while_in_use(sv, 3 * i);
        server_cmd(sv, "DEL contended free");
    }
    EVENTUALLY(LONG_MS, server_info(sv, "connected_clients") == 1);
    server_stop(sv);
}

/* --- processes ------------------------------------------------------------ */

enum { PROCESSES = 4, CHILD_THREADS = 3, CHILD_TURNS = TURNS / 2 };

typedef struct shop {
    rlock_client *cl;
    char path[128];
} shop;

static redisReply *ask(redisContext *cx, const char *cmd)
{
    redisReply *r = redisCommand(cx, cmd);
    EXPECT(r && r->type != REDIS_REPLY_ERROR);
    return r;
}

/* GET and SET, with nothing but the lock between those of two owners. */
static void count_in_redis(redisContext *cx)
{
    char cmd[64];
    redisReply *r = ask(cx, "GET counter");
    int n = r->str ? atoi(r->str) : 0;
    freeReplyObject(r);
    snprintf(cmd, sizeof cmd, "SET counter %d", n + 1);
    freeReplyObject(ask(cx, cmd));
}

static intptr_t serve_shop(void *arg)
{
    shop *s = arg;
    redisContext *cx = redisConnectUnix(s->path);
    EXPECT(cx && !cx->err);
    rlock *lk = test_lock(s->cl, "shop");
    for (int i = 0; i < CHILD_TURNS; i++) {
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        count_in_redis(cx);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    rlock_free(lk);
    redisFree(cx);
    return 0;
}

/* In a child, forked before anything was started; told the server's path. */
static _Noreturn void run_child(int fd, pid_t parent)
{
    shop s = {0};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[160];
    test_thread *threads[CHILD_THREADS];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || read(fd, s.path, sizeof s.path) <= 0)
        _exit(2);
    snprintf(uri, sizeof uri, "unix://%s", s.path);
    opts.uri = uri;
    opts.command_timeout_ms = LONG_MS;
    EXPECT_STATUS(rlock_client_new(&opts, &s.cl), RLOCK_OK);
    for (int i = 0; i < CHILD_THREADS; i++)
        threads[i] = test_spawn(serve_shop, &s);
    for (int i = 0; i < CHILD_THREADS; i++)
        test_join(threads[i]);
    rlock_client_free(s.cl);
    _exit(0);
}

TEST(threads, processes_that_share_a_lock_lose_no_update)
{
    int fds[PROCESSES][2], status;
    pid_t child[PROCESSES], parent = getpid();
    for (int i = 0; i < PROCESSES; i++) {
        EXPECT_INT(pipe(fds[i]), 0);
        fflush(NULL);
        child[i] = fork();
        EXPECT(child[i] >= 0);
        if (child[i] == 0)
            run_child(fds[i][0], parent);
    }
    server *sv = server_start(NULL);
    char path[128] = "";
    snprintf(path, sizeof path, "%s", server_path(sv));
    for (int i = 0; i < PROCESSES; i++)
        EXPECT_INT(write(fds[i][1], path, sizeof path), sizeof path);
    for (int i = 0; i < PROCESSES; i++) {
        EXPECT(waitpid(child[i], &status, 0) == child[i]);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(fds[i][0]);
        close(fds[i][1]);
    }
    EXPECT_INT(atoi(server_str(sv, "GET counter")),
               PROCESSES * CHILD_THREADS * CHILD_TURNS);
    server_stop(sv);
}
