/*
 * Threads of one client that would wait for each other for ever: one of them is
 * told, and can go on.
 */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nodes.h"

/* A thread that locks one lock, waits for another one, and lets go, each when
   it is told to. */
enum { HOLDS = 1, HAS_WAITED, IS_DONE };

typedef struct actor {
    test_thread *thread;
    rlock *mine, *wanted;
    int64_t wait_ms;
    atomic_int told, at;
    long tid;
    rlock_status status;
    char message[256];
} actor;

static void go_on(actor *a, int step)
{
    atomic_store(&a->at, step);
    while (atomic_load(&a->told) < step)
        test_pause_ms(1);
}

static intptr_t act(void *arg)
{
    actor *a = arg;
    a->tid = syscall(SYS_gettid);
    EXPECT_STATUS(rlock_lock(a->mine), RLOCK_OK);
    go_on(a, HOLDS);
    a->status = rlock_acquire(a->wanted, a->wait_ms, RLOCK_WATCHDOG);
    snprintf(a->message, sizeof a->message, "%s", rlock_last_error()->message);
    if (a->status == RLOCK_OK)
        EXPECT_STATUS(rlock_unlock(a->wanted), RLOCK_OK);
    go_on(a, HAS_WAITED);
    EXPECT(rlock_is_held(a->mine));
    EXPECT_STATUS(rlock_unlock(a->mine), RLOCK_OK);
    return 0;
}

static void is_at(actor *a, int step)
{
    EVENTUALLY(SOON, atomic_load(&a->at) == step);
}

static void tell(actor *a, int step)
{
    atomic_store(&a->told, step);
}

static void actor_end(actor *a, rlock_status wanted)
{
    tell(a, HAS_WAITED);
    test_join(a->thread);
    EXPECT_STR(rlock_status_str(a->status), rlock_status_str(wanted));
}

/* Each holds a lock, "a", "b" and so on, and will want the next one's. */
enum { MOST = 10 };

typedef struct ring {
    scene s;
    size_t n;
    rlock *lk[MOST];
    actor who[MOST];
} ring;

static void start(ring *r, size_t i, rlock *wanted)
{
    actor *a = &r->who[i];
    a->mine = r->lk[i];
    a->wanted = wanted;
    a->wait_ms = RLOCK_FOREVER;
    a->thread = test_spawn(act, a);
    is_at(a, HOLDS);
}

static void open_ring(ring *r, size_t n, const rlock_options *opts)
{
    memset(r, 0, sizeof *r);
    r->s = scene_server(NULL);
    if (opts)
        r->s.opts = *opts;
    scene_client(&r->s, 0, 0);
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        char name[2] = {(char)('a' + i)};
        EXPECT_STATUS(rlock_new(r->s.cl, name, &r->lk[i]), RLOCK_OK);
    }
    for (size_t i = 0; i < n; i++)
        start(r, i, r->lk[(i + 1) % n]);
}

static void close_ring(ring *r)
{
    for (size_t i = 0; i < r->n; i++)
        rlock_free(r->lk[i]);
    expect_nothing_left(r->s.sv);
    scene_stop(&r->s);
}

static void begin_waiting(ring *r, size_t i, unsigned waiting)
{
    tell(&r->who[i], HOLDS);
    EVENTUALLY(SOON, stats_of(r->s.cl).waiting_now == waiting);
}

/* All but the last wait; then that one does, and is told. */
static void close_circle(ring *r)
{
    for (size_t i = 0; i + 1 < r->n; i++)
        begin_waiting(r, i, (unsigned)i + 1);
    actor *last = &r->who[r->n - 1];
    int64_t began_ms = test_now_ms();
    tell(last, HOLDS);
    is_at(last, HAS_WAITED);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, SLACK_MS + 1000);
    EXPECT_INT(last->status, RLOCK_EDEADLK);
}

/* It lets go, and so does everybody, from there on backwards. */
static void all_go_on(ring *r)
{
    actor_end(&r->who[r->n - 1], RLOCK_EDEADLK);
    for (size_t i = r->n - 1; i-- > 0;) {
        is_at(&r->who[i], HAS_WAITED);
        actor_end(&r->who[i], RLOCK_OK);
    }
}

static void expect_named(const ring *r, size_t by, size_t i)
{
    char thread[40], lock[8];
    snprintf(thread, sizeof thread, "thread %ld", r->who[i].tid);
    snprintf(lock, sizeof lock, "'%c'", (char)('a' + i));
    EXPECT_CONTAINS(r->who[by].message, thread);
    EXPECT_CONTAINS(r->who[by].message, lock);
}

static void expect_circle(size_t n, bool all_named)
{
    ring r;
    open_ring(&r, n, NULL);
    close_circle(&r);
    EXPECT_CONTAINS(r.who[n - 1].message, "lock 'a': deadlock: ");
    for (size_t i = 0; i < n; i++)
        if (all_named || i == 0 || i == n - 1)
            expect_named(&r, n - 1, i);
    all_go_on(&r);
    close_ring(&r);
}

TEST_CASE(deadlock, of_two_threads_one_is_told_and_all_go_on,
          expect_circle(2, true))
TEST_CASE(deadlock, of_three_threads_one_is_told_and_all_go_on,
          expect_circle(3, true))
TEST_CASE(deadlock, of_ten_threads_one_is_told_and_all_go_on,
          expect_circle(10, false))

TEST(deadlock, is_no_contention_and_a_failed_acquire)
{
    ring r;
    open_ring(&r, 2, NULL);
    close_circle(&r);
    EXPECT_INT(stats_of(r.s.cl).acquires_contended, 1);
    EXPECT_INT(stats_of(r.s.cl).acquires_failed, 1);
    EXPECT_INT(events_count(r.s.ev, RLOCK_EVENT_CONTENDED), 1);
    all_go_on(&r);
    close_ring(&r);
}

/* The last waits for nobody. */
TEST(deadlock, a_chain_is_none)
{
    ring r;
    open_ring(&r, 5, NULL);
    for (size_t i = 0; i < 4; i++)
        begin_waiting(&r, i, (unsigned)i + 1);
    r.who[4].wanted = r.lk[4]; /* its own, once more */
    tell(&r.who[4], HOLDS);
    for (size_t i = 5; i-- > 0;) {
        is_at(&r.who[i], HAS_WAITED);
        actor_end(&r.who[i], RLOCK_OK);
    }
    close_ring(&r);
}

TEST(deadlock, a_wait_that_was_canceled_is_in_none)
{
    ring r;
    open_ring(&r, 2, NULL);
    begin_waiting(&r, 0, 1);
    rlock_cancel(r.lk[1]);
    is_at(&r.who[0], HAS_WAITED);
    begin_waiting(&r, 1, 1);
    actor_end(&r.who[0], RLOCK_CANCELED);
    actor_end(&r.who[1], RLOCK_OK);
    close_ring(&r);
}

/* Both wait, and each for so long. */
static void expect_time_outs(ring *r)
{
    for (size_t i = 0; i < 2; i++)
        r->who[i].wait_ms = 300;
    tell(&r->who[0], HOLDS);
    tell(&r->who[1], HOLDS);
    is_at(&r->who[0], HAS_WAITED);
    is_at(&r->who[1], HAS_WAITED);
    EXPECT(r->who[0].status == RLOCK_TIMEOUT ||
           r->who[1].status == RLOCK_TIMEOUT);
    for (size_t i = 0; i < 2; i++) {
        EXPECT(r->who[i].status != RLOCK_EDEADLK);
        actor_end(&r->who[i], r->who[i].status);
    }
}

TEST(deadlock, with_the_option_it_is_not_looked_for)
{
    ring r;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.no_deadlock_check = true;
    open_ring(&r, 2, &opts);
    expect_time_outs(&r);
    close_ring(&r);
}

TEST(deadlock, with_another_client_it_is_not_seen)
{
    ring r;
    open_ring(&r, 1, NULL);
    rlock_client *cl = server_client(r.s.sv, NULL);
    r.n = 2;
    EXPECT_STATUS(rlock_new(cl, "b", &r.lk[1]), RLOCK_OK);
    start(&r, 1, NULL);
    EXPECT_STATUS(rlock_new(r.s.cl, "b", &r.who[0].wanted), RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, "a", &r.who[1].wanted), RLOCK_OK);
    expect_time_outs(&r);
    rlock_free(r.who[0].wanted);
    rlock_free(r.who[1].wanted);
    rlock_free(r.lk[1]);
    rlock_client_free(cl);
    r.n = 1;
    close_ring(&r);
}

/* --- Multi ---------------------------------------------------------------- */

/* Who has "b" wants "a" and "c", whose owner waits for "b". */
TEST(deadlock, of_a_multi_lock_leaves_no_member_taken)
{
    ring r;
    rlock *all;
    open_ring(&r, 3, NULL);
    r.who[0].wanted = r.lk[1];
    r.who[2].wanted = r.lk[2];
    actor_end(&r.who[2], RLOCK_OK); /* so "c" is free */
    begin_waiting(&r, 0, 1);
    EXPECT_STATUS(rlock_multi_new((rlock *[]){r.lk[2], r.lk[0]}, 2, &all),
                  RLOCK_OK);
    r.who[1].wanted = all;
    tell(&r.who[1], HOLDS);
    is_at(&r.who[1], HAS_WAITED);
    EXPECT_CONTAINS(r.who[1].message, "member 2: lock 'a': deadlock: ");
    expect_named(&r, 1, 0);
    expect_named(&r, 1, 1);
    EXPECT_INT(levels(r.s.sv, "c"), 0);
    actor_end(&r.who[1], RLOCK_EDEADLK);
    actor_end(&r.who[0], RLOCK_OK);
    rlock_free(all);
    close_ring(&r);
}

typedef struct crowd {
    rlock **set;
    size_t n;
    int sections;
    unsigned seed;
} crowd;

static unsigned draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1103515245u + 12345u;
    return (*seed >> 16) % below;
}

static intptr_t lock_sets(void *arg)
{
    crowd *c = arg;
    for (int i = 0; i < c->sections; i++) {
        rlock *lk = c->set[draw(&c->seed, (unsigned)c->n)];
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    return 0;
}

/* They have one order. */
TEST(deadlock, multi_locks_are_in_none_with_each_other)
{
    enum { THREADS = 4, SETS = 4 };
    static const int of[SETS][3] = {{0, 1, 2}, {2, 1, 3}, {3, 0, 2}, {1, 3, 0}};
    ring r;
    rlock *set[SETS];
    crowd c[THREADS];
    test_thread *t[THREADS];
    open_ring(&r, 0, NULL);
    for (r.n = 0; r.n < 4; r.n++)
        EXPECT_STATUS(
            rlock_new(r.s.cl, (char[2]){(char)('a' + r.n)}, &r.lk[r.n]),
            RLOCK_OK);
    for (size_t i = 0; i < SETS; i++) {
        rlock *m[3] = {r.lk[of[i][0]], r.lk[of[i][1]], r.lk[of[i][2]]};
        EXPECT_STATUS(rlock_multi_new(m, 3, &set[i]), RLOCK_OK);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        c[i] = (crowd){
            .set = set, .n = SETS, .sections = SANITIZED ? 20 : 100, .seed = i};
        t[i] = test_spawn(lock_sets, &c[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        test_join(t[i]);
    for (size_t i = 0; i < SETS; i++)
        rlock_free(set[i]);
    close_ring(&r);
}

/* --- Red ------------------------------------------------------------------ */

/* By what the first node's client knows. */
TEST(deadlock, of_red_locks_is_seen)
{
    ring r = {0};
    nodes ns = nodes_start(3);
    party p = party_clients(&ns, 0, 0);
    r.n = 2;
    r.s.cl = p.cl[0];
    r.lk[0] = party_lock(&p, "a", NULL);
    r.lk[1] = party_lock(&p, "b", NULL);
    start(&r, 0, r.lk[1]);
    start(&r, 1, r.lk[0]);
    close_circle(&r);
    EXPECT_CONTAINS(r.who[1].message, "lock 'a' on 3 nodes: deadlock: ");
    expect_named(&r, 1, 0);
    expect_named(&r, 1, 1);
    all_go_on(&r);
    rlock_free(r.lk[0]);
    rlock_free(r.lk[1]);
    party_leave(&p);
    nodes_stop(&ns);
}

TEST(deadlock, of_a_red_lock_and_another_one_is_seen)
{
    ring r = {0};
    nodes ns = nodes_start(3);
    party p = party_clients(&ns, 0, 0);
    r.n = 2;
    r.s.cl = p.cl[0];
    r.lk[0] = party_lock(&p, "a", NULL);
    EXPECT_STATUS(rlock_new(p.cl[0], "b", &r.lk[1]), RLOCK_OK);
    start(&r, 0, r.lk[1]);
    start(&r, 1, r.lk[0]);
    close_circle(&r);
    all_go_on(&r);
    rlock_free(r.lk[0]);
    rlock_free(r.lk[1]);
    party_leave(&p);
    nodes_stop(&ns);
}

/* --- many ----------------------------------------------------------------- */

enum { LOCKS = 4, THREADS = 8, NOBODY = THREADS, LONGEST_PAUSE_MS = 256 };

/* What each thread has and wants, as it knows itself. */
typedef struct throng {
    rlock **lk;
    atomic_size_t has[LOCKS];     /* which thread; NOBODY */
    atomic_size_t wants[THREADS]; /* the lock that it asks for */
    atomic_int doubled, told, in_no_circle;
} throng;

typedef struct member {
    throng *t;
    size_t me;
    unsigned seed;
} member;

static void note(throng *t, size_t lock, size_t was, size_t is)
{
    if (atomic_exchange(&t->has[lock], is) != was)
        t->doubled++;
}

/*
 * Who is in a circle waits until this thread lets go: so nothing of it moves
 * while one looks.
 */
static bool is_in_circle(throng *t, size_t me)
{
    size_t at = me;
    for (size_t i = 0; i < THREADS; i++) {
        at = atomic_load(&t->has[atomic_load(&t->wants[at])]);
        if (at == NOBODY || at == me)
            return at == me && i > 0;
    }
    return false;
}

/* Some of the locks, in any order. False: in vain, and nothing is held. */
static bool take_some(throng *t, size_t me, const size_t order[LOCKS], size_t n)
{
    size_t held = 0;
    rlock_status s = RLOCK_OK;
    for (; held < n; held++) {
        atomic_store(&t->wants[me], order[held]);
        s = rlock_lock(t->lk[order[held]]);
        if (s != RLOCK_OK)
            break;
        note(t, order[held], NOBODY, me);
    }
    if (s != RLOCK_OK) {
        EXPECT_STATUS(s, RLOCK_EDEADLK);
        t->told++;
        t->in_no_circle += !is_in_circle(t, me);
    }
    while (held > 0) {
        note(t, order[--held], me, NOBODY);
        EXPECT_STATUS(rlock_unlock(t->lk[order[held]]), RLOCK_OK);
    }
    return s == RLOCK_OK;
}

/*
 * Who starts again is behind all others, so it is mostly told once more as long
 * as its pauses are shorter than their sections.
 */
static intptr_t take_in_any_order(void *arg)
{
    member *m = arg;
    for (int i = 0; i < (SANITIZED ? 10 : 60); i++) {
        size_t order[LOCKS] = {0, 1, 2, 3};
        for (unsigned k = LOCKS; k > 1; k--) {
            unsigned other = draw(&m->seed, k);
            size_t was = order[k - 1];
            order[k - 1] = order[other];
            order[other] = was;
        }
        size_t n = 2 + draw(&m->seed, LOCKS - 1);
        unsigned most_ms = 1;
        while (!take_some(m->t, m->me, order, n)) {
            test_pause_ms(1 + (int)draw(&m->seed, most_ms));
            if (most_ms < LONGEST_PAUSE_MS)
                most_ms *= 2;
        }
    }
    return 0;
}

/* Who is told lets go, and starts again after a while. */
static void expect_all_get_there(int64_t turn_ms)
{
    ring r;
    member m[THREADS];
    test_thread *thread[THREADS];
    throng t = {.lk = r.lk};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.turn_ms = turn_ms;
    open_ring(&r, 0, &opts);
    for (r.n = 0; r.n < LOCKS; r.n++) {
        atomic_store(&t.has[r.n], NOBODY);
        EXPECT_STATUS(
            rlock_new(r.s.cl, (char[2]){(char)('a' + r.n)}, &r.lk[r.n]),
            RLOCK_OK);
    }
    for (size_t i = 0; i < THREADS; i++) {
        m[i] = (member){&t, i, (unsigned)i};
        thread[i] = test_spawn(take_in_any_order, &m[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        test_join(thread[i]);
    EXPECT_INT(t.doubled, 0);
    EXPECT(t.told > 0);
    EXPECT_INT(t.in_no_circle, 0);
    EXPECT_INT(stats_of(r.s.cl).lost, 0);
    close_ring(&r);
}

TEST_CASE(deadlock, threads_that_lock_in_any_order_all_get_there,
          expect_all_get_there(0))
TEST_CASE(deadlock, with_turns_they_all_get_there, expect_all_get_there(5))
