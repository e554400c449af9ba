/*
 * Faults of the program while many calls that were started are under way: it
 * frees the client, does not dispatch, frees what it is called back about,
 * dispatches on several threads, or has several use one owner. Each start is
 * called back once. Each test sees first that all is well without the fault.
 */
#include <stdatomic.h>

#include "storm.h"

/* --- 155: thousands, and the client is freed ------------------------------ */

enum { THOUSANDS = SANITIZED ? 1000 : 10000 };

/* What they were told, each once, by the end of the client. */
static void expect_told_once(const storm *st)
{
    size_t ok = storm_told(st, RLOCK_OK),
           closed = storm_told(st, RLOCK_ECLOSED);
    for (size_t i = 0; i < st->n; i++)
        EXPECT_INT(st->r[i].told, 1);
    EXPECT_INT(ok + closed + storm_told(st, RLOCK_EIO), st->n);
}

static void free_client_in_storm(bool stopped)
{
    scene s = scene_start(0, 300);
    expect_undisturbed(&s);
    storm st = storm_new(s.cl, THOUSANDS);
    if (stopped)
        server_pause(s.sv);
    storm_acquire(&st, RLOCK_FOREVER, RLOCK_WATCHDOG);
    int64_t began_ms = test_now_ms();
    rlock_client_free(s.cl);
    s.cl = NULL;
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 300 + 1000 + 3 * SLACK_MS);
    if (stopped)
        server_resume(s.sv);
    expect_told_once(&st);
    EXPECT(!stopped || storm_told(&st, RLOCK_OK) == 0);
    storm_free(&st);
    scene_stop(&s);
}

TEST(async_ends, fault_155_a_client_may_be_freed_with_thousands_under_way)
{
    free_client_in_storm(false);
}

TEST(async_ends, fault_155_so_it_may_at_a_server_that_is_stopped)
{
    free_client_in_storm(true);
}

/* --- 156: nobody dispatches ----------------------------------------------- */

TEST(async_ends, fault_156_who_does_not_dispatch_for_a_lease_keeps_its_locks)
{
    enum { N = 50 };
    scene s = scene_start(BRISK_MS, 0);
    storm st = storm_new(s.cl, N);
    storm_undisturbed(&st);
    storm_acquire(&st, 0, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(s.cl).held_now == N);
    int64_t held_ms = test_now_ms();
    EVENTUALLY(SOON, test_since_ms(held_ms) > 2 * BRISK_MS);
    EXPECT_INT(stats_of(s.cl).held_now, N);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    for (size_t i = 0; i < N; i++)
        EXPECT_INT(st.r[i].told, 2); /* of the control */
    storm_settle(&st, 3);
    storm_expect(&st, RLOCK_OK);
    EXPECT(storm_holding(&st) == N);
    storm_unlock(&st);
    storm_settle(&st, 4);
    storm_expect(&st, RLOCK_OK);
    storm_free(&st);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* It was had, and its time is over: the clock says so, and the unlock. */
TEST(async_ends, fault_156_a_lease_that_ran_out_undelivered_is_over)
{
    enum { N = 50 };
    scene s = scene_start(0, 0);
    storm st = storm_new(s.cl, N);
    storm_undisturbed(&st);
    storm_acquire(&st, 0, 300);
    events_wait(s.ev, RLOCK_EVENT_LOST, N, SOON);
    storm_settle(&st, 3);
    storm_expect(&st, RLOCK_OK);
    EXPECT(storm_holding(&st) == 0);
    storm_unlock(&st);
    storm_settle(&st, 4);
    storm_expect(&st, RLOCK_LOST);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), N);
    storm_free(&st);
    scene_stop(&s);
}

/* --- 157: what callbacks do ----------------------------------------------- */

static void free_all(request *r)
{
    rlock_free(r->lk);
    rlock_owner_free(r->owner);
    r->lk = NULL;
    r->owner = NULL;
}

TEST(async_ends, fault_157_callbacks_may_free_all_they_are_about)
{
    enum { N = 200 };
    scene s = scene_start(0, 0);
    storm st = storm_new(s.cl, N);
    storm_undisturbed(&st);
    for (size_t i = 0; i < N; i++)
        st.r[i].then = free_all;
    storm_acquire(&st, 0, 60000);
    storm_settle(&st, 3);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, N, SOON);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    storm_free(&st);
    scene_stop(&s);
}

typedef struct crew {
    rlock_client *cl;
    atomic_int told;
    int all;
} crew;

static void count_in(request *r)
{
    atomic_fetch_add(&((crew *)r->arg)->told, 1);
}

static intptr_t dispatch_all(void *arg)
{
    crew *c = arg;
    while (atomic_load(&c->told) < c->all)
        EXPECT_STATUS(rlock_client_dispatch(c->cl), RLOCK_OK);
    return 0;
}

static void dispatch_by(crew *c, int threads, storm *st, rlock_status wanted)
{
    test_thread *t[8];
    c->all += (int)st->n;
    for (int i = 0; i < threads; i++)
        t[i] = test_spawn(dispatch_all, c);
    for (int i = 0; i < threads; i++)
        test_join(t[i]);
    EXPECT_INT(atomic_load(&c->told), c->all);
    storm_expect(st, wanted);
}

TEST(async_ends, fault_157_four_threads_that_dispatch_call_back_once)
{
    enum { N = 300 };
    scene s = scene_start(0, 0);
    crew c = {.cl = s.cl};
    storm st = storm_new(s.cl, N);
    storm_undisturbed(&st);
    for (size_t i = 0; i < N; i++) {
        st.r[i].arg = &c;
        st.r[i].then = count_in;
    }
    for (int round = 1; round <= 4; round++) {
        storm_acquire(&st, 0, RLOCK_WATCHDOG);
        dispatch_by(&c, 4, &st, RLOCK_OK);
        storm_unlock(&st);
        dispatch_by(&c, 4, &st, RLOCK_OK);
        storm_settle(&st, 2 + 2 * round);
    }
    storm_free(&st);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* An event has it start the next one, and dispatch. */
typedef struct eager {
    rlock_client *cl;
    request *next;
    atomic_int left, events;
} eager;

static void start_and_dispatch(const rlock_event *ev, void *arg)
{
    eager *e = arg;
    atomic_fetch_add(&e->events, 1);
    if (ev->type != RLOCK_EVENT_ACQUIRED || !e->next ||
        atomic_fetch_sub(&e->left, 1) <= 0)
        return;
    request *r = e->next++;
    EXPECT_STATUS(request_acquire(r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_client_dispatch(e->cl), RLOCK_OK);
}

/* dispatched: on_event is called by who dispatches; or by the library. */
static void start_in_events(bool dispatched)
{
    enum { N = 30 };
    eager e = {.left = N - 1};
    scene s = scene_server(NULL);
    s.opts.uri = server_uri(s.sv);
    s.opts.on_event = start_and_dispatch;
    s.opts.event_arg = &e;
    s.opts.dispatch_events = dispatched;
    EXPECT_STATUS(rlock_client_new(&s.opts, &s.cl), RLOCK_OK);
    storm st = storm_new(s.cl, N);
    storm_undisturbed(&st);
    e.cl = s.cl;
    e.next = st.r + 1;
    EXPECT_STATUS(request_acquire(st.r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    storm_settle(&st, 3);
    storm_expect(&st, RLOCK_OK);
    EXPECT(storm_holding(&st) == N);
    storm_unlock(&st);
    storm_settle(&st, 4);
    storm_free(&st);
    rlock_client_free(s.cl);
    expect_nothing_left(s.sv);
    server_stop(s.sv);
}

TEST(async_ends, fault_157_an_event_may_start_the_next_and_dispatch)
{
    start_in_events(false);
}

TEST(async_ends, fault_157_an_event_that_is_dispatched_may_do_so_too)
{
    start_in_events(true);
}

/* --- 158: owners that several use ----------------------------------------- */

enum { USERS = 4, TRIES = 200 };

typedef struct quarrel {
    scene *s;
    rlock_owner *owner[2];
    atomic_int started, told, refused, levels;
} quarrel;

static void acquired(rlock *lk, rlock_status status, void *arg)
{
    quarrel *q = arg;
    (void)lk;
    EXPECT(status == RLOCK_OK || status == RLOCK_BUSY);
    atomic_fetch_add(&q->levels, status == RLOCK_OK);
    atomic_fetch_add(&q->told, 1);
}

static void released(rlock *lk, rlock_status status, void *arg)
{
    quarrel *q = arg;
    (void)lk;
    EXPECT(status == RLOCK_OK || status == RLOCK_NOT_HELD);
    atomic_fetch_sub(&q->levels, status == RLOCK_OK);
    atomic_fetch_add(&q->told, 1);
}

static intptr_t use_owners(void *arg)
{
    quarrel *q = arg;
    for (int i = 0; i < TRIES; i++) {
        rlock_owner_set(q->owner[i % 2]);
        rlock_status s =
            i % 4 < 2
                ? rlock_acquire_start(q->s->lk, 0, RLOCK_WATCHDOG, acquired, q)
                : rlock_unlock_start(q->s->lk, released, q);
        EXPECT(s == RLOCK_OK || s == RLOCK_EINVAL);
        atomic_fetch_add(s == RLOCK_OK ? &q->started : &q->refused, 1);
        rlock_owner_set(NULL);
        EXPECT_STATUS(rlock_client_dispatch(q->s->cl), RLOCK_OK);
    }
    return 0;
}

TEST(async_ends, fault_158_threads_that_share_owners_are_refused_or_served)
{
    scene s = scene_start(0, 0);
    quarrel q = {.s = &s};
    test_thread *t[USERS];
    expect_undisturbed(&s);
    for (int i = 0; i < 2; i++)
        EXPECT_STATUS(rlock_owner_new(NULL, &q.owner[i]), RLOCK_OK);
    for (int i = 0; i < USERS; i++)
        t[i] = test_spawn(use_owners, &q);
    for (int i = 0; i < USERS; i++)
        test_join(t[i]);
    LOOP_UNTIL(s.cl, atomic_load(&q.told) == atomic_load(&q.started));
    EXPECT_INT(q.started + q.refused, USERS * TRIES);
    EXPECT(q.started > 0 && q.refused > 0);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), q.levels);
    for (int i = 0; i < 2; i++)
        rlock_owner_free(q.owner[i]);
    scene_stop(&s);
}

/* Some are freed in line, some at a desk, some when they have been granted. */
TEST(async_ends, fault_158_owners_that_are_freed_under_way_have_nothing)
{
    enum { N = 400 };
    scene s = scene_start(0, 0);
    storm st = storm_new(s.cl, N);
    storm_undisturbed(&st);
    storm_acquire(&st, SOON, 60000);
    for (size_t i = 0; i < N; i++) {
        rlock_owner_free(st.r[i].owner);
        st.r[i].owner = NULL;
    }
    storm_settle(&st, 3);
    storm_expect(&st, RLOCK_CANCELED);
    EVENTUALLY(SOON, stats_of(s.cl).held_now == 0);
    EXPECT_INT(stats_of(s.cl).waiting_now, 0);
    storm_free(&st);
    scene_stop(&s);
}
