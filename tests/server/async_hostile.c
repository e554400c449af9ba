/*
 * What has been started, in the worst moment: whoever frees an owner or a
 * client, and whatever ends a connection, nobody turns in a circle, and nothing
 * that is gone is used.
 */
#include "loop.h"
#include "multi_scene.h"

#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

/* How often a loop is woken within this time. */
static int turns_within(rlock_client *cl, int64_t ms)
{
    struct pollfd p = {.fd = rlock_client_fd(cl), .events = POLLIN};
    int64_t began_ms = test_now_ms();
    int turns = 0;
    while (test_since_ms(began_ms) < ms)
        if (poll(&p, 1, 10) == 1) {
            turns++;
            EXPECT_STATUS(rlock_client_dispatch(cl), RLOCK_OK);
        }
    return turns;
}

static int64_t cpu_ms(void)
{
    return test_clock_us(CLOCK_PROCESS_CPUTIME_ID) / 1000;
}

/* The thread needs a moment to look. */
static void expect_rest(rlock_client *cl)
{
    turns_within(cl, 100);
    int64_t cpu = cpu_ms();
    EXPECT_BETWEEN(turns_within(cl, 500), 0, 20);
    EXPECT_BETWEEN(cpu_ms() - cpu, 0, 250);
}

TEST(async_hostile, a_loop_rests_when_the_server_has_closed_the_connection)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 60000), RLOCK_OK);
    turns_within(s.cl, 150);
    server_cmd(s.sv, "CLIENT KILL TYPE normal SKIPME yes");
    expect_rest(s.cl);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    server_cmd(s.sv, "CLIENT KILL TYPE normal SKIPME yes"); /* just after */
    expect_rest(s.cl);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_hostile, an_owner_may_be_freed_while_it_is_offered_the_lock)
{
    scene s = scene_start(0, 0);
    request a = request_new(s.lk), b = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &a, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&b, RLOCK_FOREVER, 60000), RLOCK_OK);
    waiters_settle(s.sv, 1, s.cl, 1);
    turns_within(s.cl, 300); /* it may look once more */
    server_pause(s.sv);
    EXPECT_STATUS(request_unlock(&a), RLOCK_OK);
    rlock_owner_free(b.owner);
    EXPECT_STATUS(rlock_client_dispatch(s.cl), RLOCK_OK);
    server_resume(s.sv);
    LOOP_UNTIL(s.cl, a.told && b.told);
    EXPECT_STATUS(b.status, RLOCK_CANCELED);
    request_free(&a);
    scene_stop(&s);
}

static void free_other(request *r)
{
    rlock_owner_free(r->arg);
}

TEST(async_hostile, a_callback_may_free_the_owner_that_the_thread_acts_as)
{
    scene s = scene_start(0, 0);
    request a = request_new(s.lk), b = request_new(s.lk);
    a.then = free_other;
    a.arg = b.owner;
    EXPECT_STATUS(request_acquire(&a, 0, 60000), RLOCK_OK);
    rlock_owner_set(b.owner);
    EVENTUALLY(SOON, rlock_client_dispatch(s.cl) == RLOCK_OK && a.told > 0);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EINVAL);
    rlock_owner_set(NULL);
    request_free(&a);
    scene_stop(&s);
}

/* --- two that dispatch ---------------------------------------------------- */

typedef struct chain {
    rlock *lk;
    rlock_client *cl;
    atomic_int left;
    atomic_int refused;
} chain;

static void go_on(rlock *lk, rlock_status s, void *arg)
{
    chain *c = arg;
    (void)s;
    if (atomic_fetch_sub(&c->left, 1) > 1 &&
        rlock_unlock_start(lk, go_on, c) != RLOCK_OK) {
        atomic_fetch_add(&c->refused, 1);
        atomic_store(&c->left, 0);
    }
}

static intptr_t dispatch_all(void *arg)
{
    chain *c = arg;
    while (atomic_load(&c->left) > 0)
        EXPECT_STATUS(rlock_client_dispatch(c->cl), RLOCK_OK);
    return 0;
}

TEST(async_hostile, the_next_may_be_delivered_before_the_callback_has_returned)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    chain c = {.lk = s.lk, .cl = s.cl};
    atomic_store(&c.left, 100000);
    rlock_owner_set(r.owner);
    EXPECT_STATUS(rlock_unlock_start(s.lk, go_on, &c), RLOCK_OK);
    rlock_owner_set(NULL);
    test_thread *t = test_spawn(dispatch_all, &c);
    dispatch_all(&c);
    test_join(t);
    EXPECT_INT(atomic_load(&c.refused), 0);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_hostile, an_owner_may_be_freed_while_its_extend_waits_for_a_renewal)
{
    scene s = scene_start(900, 2000);
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    server_pause(s.sv);
    turns_within(s.cl, 400); /* one is on its way */
    EXPECT_STATUS(request_extend(&r, 0), RLOCK_OK);
    rlock_owner_free(r.owner);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_dispatch(s.cl), RLOCK_OK);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 100);
    int64_t cpu = cpu_ms();
    turns_within(s.cl, 400);
    EXPECT_BETWEEN(cpu_ms() - cpu, 0, 200);
    server_resume(s.sv);
    LOOP_UNTIL(s.cl, r.told == 2);
    scene_stop(&s);
}

TEST(async_hostile, an_extend_that_waits_for_a_renewal_stays_its_own)
{
    scene s = scene_start(900, 2000);
    request a = request_new(s.lk), b = request_new(test_lock(s.cl, "other"));
    EXPECT_STATUS(loop_acquire(s.cl, &a, 0, RLOCK_WATCHDOG), RLOCK_OK);
    server_pause(s.sv);
    turns_within(s.cl, 400); /* a renewal is on its way */
    EXPECT_STATUS(request_extend(&a, 60000), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&b, 0, 30000), RLOCK_OK);
    server_resume(s.sv);
    LOOP_UNTIL(s.cl, a.told == 2 && b.told == 1);
    EXPECT_STATUS(a.status, RLOCK_OK);
    EXPECT_STATUS(b.status, RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 50000, 60000);
    EXPECT_BETWEEN(key_ttl(s.sv, "other"), 20000, 30000);
    EXPECT_STATUS(loop_unlock(s.cl, &a), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &b), RLOCK_OK);
    rlock_free(b.lk);
    request_free(&a);
    request_free(&b);
    scene_stop(&s);
}

/* More than the client asks for at once: some stand in line until it answers.
 */
TEST(async_hostile, a_wait_begins_with_the_start_also_of_who_stands_in_line)
{
    enum { N = 400, WAIT_MS = 600, PAUSE_MS = 1000 };
    scene s = scene_start(0, 0);
    static request r[N];
    int64_t last_ms = 0;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    request warm = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &warm, 0, 60000), RLOCK_BUSY);
    server_pause(s.sv);
    int64_t began_ms = test_now_ms();
    for (int i = 0; i < N; i++) {
        r[i] = request_new(s.lk);
        EXPECT_STATUS(request_acquire(&r[i], WAIT_MS, 60000), RLOCK_OK);
    }
    turns_within(s.cl, PAUSE_MS);
    server_resume(s.sv);
    for (int i = 0; i < N; i++) {
        LOOP_UNTIL(s.cl, r[i].told);
        EXPECT_STATUS(r[i].status, RLOCK_TIMEOUT);
        last_ms = r[i].at_ms > last_ms ? r[i].at_ms : last_ms;
        request_free(&r[i]);
    }
    EXPECT_BETWEEN(last_ms - began_ms, WAIT_MS, PAUSE_MS + WAIT_MS / 2);
    request_free(&warm);
    scene_stop(&s);
}

static request hold_one(rlock_client *cl, int i)
{
    char name[16];
    snprintf(name, sizeof name, "job%d", i);
    request r = request_new(test_lock(cl, name));
    EXPECT_STATUS(loop_acquire(cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    return r;
}

/* Some of them stand in line until the server answers. */
TEST(async_hostile, owners_may_be_freed_while_their_unlocks_stand_in_line)
{
    enum { N = 400 };
    scene s = scene_start(0, SOON);
    static request r[N];
    for (int i = 0; i < N; i++)
        r[i] = hold_one(s.cl, i);
    server_pause(s.sv);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(request_unlock(&r[i]), RLOCK_OK);
        request_free(&r[i]);
    }
    server_resume(s.sv);
    for (int i = 0; i < N; i++) {
        LOOP_UNTIL(s.cl, r[i].told == 2);
        EXPECT_STATUS(r[i].status, RLOCK_OK);
        rlock_free(r[i].lk);
    }
    expect_nothing_left(s.sv);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ABANDONED), 0);
    scene_stop(&s);
}

/* Nobody dispatches. */
TEST(async_hostile, what_else_an_owner_holds_is_abandoned_after_its_unlock)
{
    scene s = scene_start(0, SOON);
    request r = hold_one(s.cl, 0);
    rlock *first = r.lk;
    r.lk = s.lk;
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(request_unlock(&r), RLOCK_OK);
    request_free(&r);
    server_resume(s.sv);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, SOON);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    EXPECT_INT(levels(s.sv, "job0"), 1);
    LOOP_UNTIL(s.cl, r.told == 3);
    EXPECT_STATUS(r.status, RLOCK_OK);
    rlock_free(first);
    scene_stop(&s);
}

/* --- on_event ------------------------------------------------------------- */

static rlock_owner *mine;

static void act_as_mine(const rlock_event *ev, void *arg)
{
    (void)ev;
    (void)arg;
    rlock_owner *former = rlock_owner_set(mine);
    rlock_owner_set(former);
}

static rlock *wanted;
static _Atomic rlock_status got = RLOCK_EINVAL;

static void take_wanted(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type != RLOCK_EVENT_ACQUIRED || strcmp(ev->name, "other") != 0)
        return;
    rlock_owner *former = rlock_owner_set(NULL);
    atomic_store(&got, rlock_acquire(wanted, 2000, 60000));
    rlock_owner_set(former);
}

static intptr_t unlock_soon(void *arg)
{
    request *r = arg;
    usleep(200000);
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
    return 0;
}

TEST(async_hostile, on_event_may_wait_for_what_another_request_has)
{
    scene s = scene_server(NULL);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = server_uri(s.sv);
    o.on_event = take_wanted;
    EXPECT_STATUS(rlock_client_new(&o, &s.cl), RLOCK_OK);
    s.lk = wanted = test_lock(s.cl, SCENE_LOCK);
    request a = request_new(s.lk), b = request_new(test_lock(s.cl, "other"));
    EXPECT_STATUS(loop_acquire(s.cl, &a, 0, 60000), RLOCK_OK);
    test_thread *t = test_spawn(unlock_soon, &a);
    EXPECT_STATUS(loop_acquire(s.cl, &b, 0, 60000), RLOCK_OK);
    test_join(t);
    EVENTUALLY(SOON, atomic_load(&got) != RLOCK_EINVAL);
    EXPECT_STATUS(atomic_load(&got), RLOCK_OK);
    LOOP_UNTIL(s.cl, a.told == 2);
    rlock_free(b.lk);
    request_free(&a);
    request_free(&b);
    scene_stop(&s);
}

TEST(async_hostile, on_event_may_act_as_another_owner)
{
    scene s = scene_server(NULL);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = server_uri(s.sv);
    o.on_event = act_as_mine;
    EXPECT_STATUS(rlock_owner_new("mine", &mine), RLOCK_OK);
    EXPECT_STATUS(rlock_client_new(&o, &s.cl), RLOCK_OK);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    request r = request_new(s.lk);
    EXPECT_STATUS(request_acquire(&r, 0, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).held_now == 1); /* by its own thread */
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    rlock_owner_free(mine);
    request_free(&r);
    scene_stop(&s);
}

/* --- clients -------------------------------------------------------------- */

/* The home waited for a member at the other client's server. */
static void expect_clients_can_go(bool home_first)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    request r = request_new(m.all), other = request_new(m.lk[1]),
            again = request_new(m.lk[0]);
    EXPECT_STATUS(rlock_lock(m.lk[0]), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(m.lk[1]), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, 60000), RLOCK_OK);
    EVENTUALLY(SOON,
               stats_of(s.cl).waiting_now + stats_of(t.cl).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(m.lk[0]), RLOCK_OK);
    EVENTUALLY(SOON, m.sv[0] && levels(s.sv, "a") + levels(t.sv, "b") == 2);
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_OK);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    if (home_first) {
        rlock_client_free(s.cl);
        s.cl = NULL;
        EXPECT_STATUS(loop_acquire(t.cl, &other, 0, 60000), RLOCK_OK);
        EXPECT_STATUS(loop_unlock(t.cl, &other), RLOCK_OK);
    } else {
        rlock_client_free(t.cl);
        t.cl = NULL;
        EXPECT_STATUS(loop_acquire(s.cl, &again, 0, 60000), RLOCK_OK);
        EXPECT_STATUS(loop_unlock(s.cl, &again), RLOCK_OK);
    }
    request_free(&r);
    request_free(&other);
    request_free(&again);
    multi_scene_end_across(&m, &s, &t);
}

TEST_CASE(async_hostile, the_other_client_of_several_locks_may_go_first,
          expect_clients_can_go(false))
TEST_CASE(async_hostile, the_home_of_several_locks_may_go_first,
          expect_clients_can_go(true))

typedef struct starter {
    rlock *lk;
    atomic_int started, told;
    atomic_bool go;
} starter;

static void count_told(rlock *lk, rlock_status s, void *arg)
{
    starter *it = arg;
    (void)lk;
    (void)s;
    atomic_fetch_add(&it->told, 1);
}

static intptr_t start_until_closed(void *arg)
{
    starter *it = arg;
    rlock_owner *o[64];
    rlock_status s = RLOCK_OK;
    int n = 0;
    while (!atomic_load(&it->go))
        ;
    while (s == RLOCK_OK && n < 64) {
        EXPECT_STATUS(rlock_owner_new(NULL, &o[n]), RLOCK_OK);
        rlock_owner_set(o[n++]);
        s = rlock_unlock_start(it->lk, count_told, it);
        if (s == RLOCK_OK)
            atomic_fetch_add(&it->started, 1);
    }
    rlock_owner_set(NULL);
    for (int i = 0; i < n; i++)
        rlock_owner_free(o[i]);
    return s;
}

TEST(async_hostile, what_is_started_while_the_client_is_freed_is_called_back)
{
    scene s = scene_server(NULL);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = server_uri(s.sv);
    for (int i = 0; i < 1000; i++) {
        EXPECT_STATUS(rlock_client_new(&o, &s.cl), RLOCK_OK);
        starter it = {.lk = test_lock(s.cl, SCENE_LOCK)};
        test_thread *t[2];
        for (int k = 0; k < 2; k++)
            t[k] = test_spawn(start_until_closed, &it);
        atomic_store(&it.go, true);
        if (i % 4)
            usleep((unsigned)(rand() % 300));
        rlock_client_free(s.cl);
        for (int k = 0; k < 2; k++)
            test_join(t[k]);
        EXPECT_INT(atomic_load(&it.told), atomic_load(&it.started));
        rlock_free(it.lk);
    }
    s.cl = NULL;
    scene_stop(&s);
}

/* --- several threads dispatch --------------------------------------------- */

static rlock_client *dispatched_by_all;
static atomic_int dispatches, events_told, called_back;

static bool is_over(void)
{
    rlock_stats stats = stats_of(dispatched_by_all);
    return stats.acquires + stats.acquires_failed == 1;
}

/* In its time the call ends, and others could dispatch all there is. */
static void take_long(const rlock_event *ev, void *wanted)
{
    if (ev->type != *(rlock_event_type *)wanted)
        return;
    EVENTUALLY(SOON, is_over());
    int until = atomic_load(&dispatches) + 100;
    EVENTUALLY(SOON, atomic_load(&dispatches) >= until);
    atomic_fetch_add(&events_told, 1);
}

static void expect_told_before(request *r)
{
    EXPECT_INT(atomic_load(&events_told), 1);
    EXPECT(r->told == 1);
    atomic_store(&called_back, 1);
}

static intptr_t dispatch_on(void *cl)
{
    while (!atomic_load(&called_back)) {
        EXPECT_STATUS(rlock_client_dispatch(cl), RLOCK_OK);
        atomic_fetch_add(&dispatches, 1);
    }
    return 0;
}

static void expect_event_before_callback(rlock_event_type type, bool dispatched)
{
    scene s = {.sv = server_start(NULL), .opts = RLOCK_OPTIONS_INIT};
    s.opts.on_event = take_long;
    s.opts.event_arg = &type;
    s.opts.dispatch_events = dispatched;
    s.cl = server_client(s.sv, &s.opts);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    dispatched_by_all = s.cl;
    request r = request_new(s.lk);
    test_thread *t[3];
    r.then = expect_told_before;
    if (type == RLOCK_EVENT_CONTENDED)
        take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_STATUS(request_acquire(&r, 50, RLOCK_WATCHDOG), RLOCK_OK);
    for (int i = 0; i < 3; i++)
        t[i] = test_spawn(dispatch_on, s.cl);
    for (int i = 0; i < 3; i++)
        test_join(t[i]);
    request_free(&r);
    rlock_free(s.lk);
    rlock_client_free(s.cl);
    server_stop(s.sv);
}

TEST_CASE(async_hostile, an_event_has_been_told_before_who_started_is,
          expect_event_before_callback(RLOCK_EVENT_ACQUIRED, false))
TEST_CASE(async_hostile, one_that_is_dispatched_has_been_told_before,
          expect_event_before_callback(RLOCK_EVENT_ACQUIRED, true))
TEST_CASE(async_hostile, an_event_of_a_wait_has_been_told_before_its_end,
          expect_event_before_callback(RLOCK_EVENT_CONTENDED, false))
