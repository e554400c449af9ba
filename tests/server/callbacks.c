/*
 * What the library calls it calls with none of its mutexes held, and not while
 * it makes operations of others go: so a callback may wait for any of them.
 */
#include <stdatomic.h>

#include "dialer.h"
#include "held.h"
#include "loop.h"
#include "multi_scene.h"
#include "nodes.h"

/* How often each of a client's callbacks has come. */
typedef struct witness {
    server *sv;
    atomic_int told[RLOCK_EVENT_FAILOVER + 1];
    atomic_int dialed, asked;
} witness;

static void on_event(const rlock_event *ev, void *arg)
{
    witness *w = arg;
    EXPECT_INT(held_here(), 0);
    atomic_fetch_add(&w->told[ev->type], 1);
}

static redisContext *dial(void *arg)
{
    witness *w = arg;
    EXPECT_INT(held_here(), 0);
    atomic_fetch_add(&w->dialed, 1);
    return redisConnectUnix(server_path(w->sv));
}

static int hand_out(rlock_credentials *out, void *arg)
{
    witness *w = arg;
    EXPECT_INT(held_here(), 0);
    atomic_fetch_add(&w->asked, 1);
    *out = (rlock_credentials){.user = "default", .password = "any"};
    return 1;
}

static void done(request *r)
{
    (void)r;
    EXPECT_INT(held_here(), 0);
}

static request watched(rlock *lk)
{
    request r = request_new(lk);
    r.then = done;
    return r;
}

static int times(witness *w, rlock_event_type type)
{
    return atomic_load(&w->told[type]);
}

/* --- all that calls back -------------------------------------------------- */

static void wait_for_each_other(scene *s)
{
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    waiter *w = waiter_start(s->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(s->cl).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
}

static void lose_it_in_each_way(scene *s, witness *w)
{
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    EVENTUALLY(SOON, times(w, RLOCK_EVENT_RENEWED) > 0);
    server_cmd(s->sv, "CLIENT KILL TYPE normal");
    EVENTUALLY(SOON, times(w, RLOCK_EVENT_RECONNECTED) > 0);
    server_cmd(s->sv, "DEL " SCENE_LOCK);
    EVENTUALLY(SOON, times(w, RLOCK_EVENT_LOST) == 1);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_LOST);
    EXPECT_STATUS(on_another_thread(rlock_lock, s->lk), RLOCK_OK);
    EVENTUALLY(SOON, times(w, RLOCK_EVENT_ABANDONED) == 1);
    EXPECT_STATUS(rlock_force_unlock(s->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s->lk, 0, 50), RLOCK_OK);
    EVENTUALLY(SOON, times(w, RLOCK_EVENT_LOST) == 2);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_LOST);
}

static void start_all_kinds(scene *s)
{
    request a = watched(s->lk), b = watched(s->lk);
    EXPECT_STATUS(loop_acquire(s->cl, &a, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_acquire(s->cl, &a, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&b, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s->cl).waiting_now == 1);
    EXPECT_STATUS(loop_extend(s->cl, &a, 60000), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s->cl, &a), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s->cl, &a), RLOCK_OK);
    LOOP_UNTIL(s->cl, b.told == 1);
    EXPECT_STATUS(request_acquire(&a, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s->cl).waiting_now == 1);
    rlock_cancel(s->lk);
    LOOP_UNTIL(s->cl, a.told == 6);
    EXPECT_STATUS(loop_unlock(s->cl, &b), RLOCK_OK);
    request_free(&a);
    request_free(&b);
}

static scene scene_of(witness *w, rlock_options *o)
{
    scene s = scene_server(NULL);
    w->sv = s.sv;
    o->on_event = on_event;
    o->event_arg = w;
    o->watchdog_lease_ms = BRISK_MS;
    if (!o->connect)
        o->uri = server_uri(s.sv);
    EXPECT_STATUS(rlock_client_new(o, &s.cl), RLOCK_OK);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    return s;
}

static void go_through_all(rlock_options *o, witness *w)
{
    scene s = scene_of(w, o);
    request last = watched(s.lk);
    wait_for_each_other(&s);
    lose_it_in_each_way(&s, w);
    start_all_kinds(&s);
    EXPECT_STATUS(request_acquire(&last, 0, RLOCK_WATCHDOG), RLOCK_OK);
    rlock_client_free(s.cl); /* which calls back, too */
    s.cl = NULL;
    EXPECT_INT(last.told, 1);
    for (int i = RLOCK_EVENT_ACQUIRED; i <= RLOCK_EVENT_RECONNECTED; i++)
        EXPECT(i == RLOCK_EVENT_RENEW_FAILED || times(w, i) > 0);
    request_free(&last);
    scene_stop(&s);
}

TEST(callbacks, nothing_is_called_with_a_mutex_held)
{
    static witness w;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.credentials = hand_out;
    o.credentials_arg = &w;
    o.lazy = true;
    go_through_all(&o, &w);
    EXPECT(atomic_load(&w.asked) > 1);
}

TEST(callbacks, nothing_is_called_with_a_mutex_held_where_the_program_connects)
{
    static witness w;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.connect = dial;
    o.connect_arg = &w;
    go_through_all(&o, &w);
    EXPECT(atomic_load(&w.dialed) > 1);
}

/* Blocking, and started at the first one's client. */
static void go_through_several(rlock *all, rlock_client *first)
{
    request a = watched(all), b = watched(all);
    EXPECT_STATUS(rlock_lock(all), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&a, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(first).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(all), RLOCK_OK);
    LOOP_UNTIL(first, a.told == 1);
    EXPECT_STATUS(a.status, RLOCK_OK);
    EXPECT_STATUS(loop_acquire(first, &b, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_STATUS(loop_extend(first, &a, 60000), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(first, &a), RLOCK_OK);
    request_free(&a);
    request_free(&b);
}

TEST(callbacks, nothing_of_several_clients_is_called_with_a_mutex_held)
{
    static witness w[2];
    scene s[2];
    for (int i = 0; i < 2; i++) {
        rlock_options o = RLOCK_OPTIONS_INIT;
        s[i] = scene_of(&w[i], &o);
    }
    multi_scene m = multi_scene_across(&s[0], "a", &s[1], "b");
    go_through_several(m.all, s[0].cl);
    for (int i = 0; i < 2; i++)
        EXPECT(times(&w[i], RLOCK_EVENT_RELEASED) == 2);
    multi_scene_end_across(&m, &s[0], &s[1]);
}

TEST(callbacks, nothing_of_a_majority_is_called_with_a_mutex_held)
{
    static witness w[3];
    scene s[3];
    rlock_client *cl[3];
    rlock *red;
    for (int i = 0; i < 3; i++) {
        rlock_options o = RLOCK_OPTIONS_INIT;
        s[i] = scene_of(&w[i], &o);
        cl[i] = s[i].cl;
    }
    EXPECT_STATUS(rlock_red_new(cl, 3, "all", &red), RLOCK_OK);
    go_through_several(red, cl[0]);
    EXPECT(times(&w[0], RLOCK_EVENT_RELEASED) == 2);
    rlock_free(red);
    for (int i = 0; i < 3; i++)
        scene_stop(&s[i]);
}

/* --- another client's ----------------------------------------------------- */

static multi_scene pair_of(scene *s, rlock_client *other)
{
    multi_scene m = {0};
    multi_scene_add(&m, s->sv, s->cl, "a");
    multi_scene_add(&m, s->sv, other, "b");
    multi_scene_join(&m);
    return m;
}

typedef struct taker {
    rlock *wanted;
    _Atomic rlock_status got;
} taker;

static void take_wanted(const rlock_event *ev, void *arg)
{
    taker *t = arg;
    if (ev->type != RLOCK_EVENT_ACQUIRED)
        return;
    rlock_owner *former = rlock_owner_set(NULL);
    atomic_store(&t->got, rlock_acquire(t->wanted, 2000, 60000));
    rlock_owner_set(former);
}

static intptr_t unlock_when_awaited(void *arg)
{
    request *r = arg;
    scene *s = r->arg;
    EVENTUALLY(SOON, stats_of(s->cl).waiting_now == 1);
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
    return 0;
}

/* What it waits for is given back by what has been started at the first. */
TEST(callbacks, on_event_of_another_client_may_wait_for_what_a_request_has)
{
    scene s = scene_start(0, 0);
    taker t = {.wanted = s.lk, .got = RLOCK_EINVAL};
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.on_event = take_wanted;
    o.event_arg = &t;
    rlock_client *cl = server_client(s.sv, &o);
    multi_scene m = pair_of(&s, cl);
    request holder = request_new(s.lk), both = request_new(m.all);
    holder.arg = &s;
    EXPECT_STATUS(loop_acquire(s.cl, &holder, 0, 60000), RLOCK_OK);
    test_thread *other = test_spawn(unlock_when_awaited, &holder);
    EXPECT_STATUS(loop_acquire(s.cl, &both, 0, 60000), RLOCK_OK);
    test_join(other);
    EXPECT_STATUS(atomic_load(&t.got), RLOCK_OK);
    LOOP_UNTIL(s.cl, holder.told == 2);
    EXPECT_STATUS(loop_unlock(s.cl, &both), RLOCK_OK);
    request_free(&holder);
    request_free(&both);
    multi_scene_free(&m);
    rlock_client_free(cl);
    scene_stop(&s);
}

/* Asks the client that tells it, which has one connection. */
typedef struct asker {
    scene s;
    _Atomic rlock_status pinged;
} asker;

static void ask_when_contended(const rlock_event *ev, void *arg)
{
    asker *a = arg;
    if (ev->type == RLOCK_EVENT_CONTENDED)
        atomic_store(&a->pinged, rlock_client_ping(a->s.cl));
}

static void ask_by_the_only_connection(bool several)
{
    asker a = {.pinged = RLOCK_EINVAL};
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.pool_size = 1;
    o.command_timeout_ms = 1000;
    o.on_event = ask_when_contended;
    o.event_arg = &a;
    nodes ns = nodes_start(1);
    a.s.cl = server_client(ns.sv[0], &o);
    if (several)
        EXPECT_STATUS(rlock_red_new(&a.s.cl, 1, SCENE_LOCK, &a.s.lk), RLOCK_OK);
    else
        a.s.lk = test_lock(a.s.cl, SCENE_LOCK);
    take_by_hand(ns.sv[0], SCENE_LOCK, 0);
    waiter *w = waiter_start(a.s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, atomic_load(&a.pinged) != RLOCK_EINVAL);
    EXPECT_STATUS(atomic_load(&a.pinged), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(a.s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(a.s.lk);
    rlock_client_free(a.s.cl);
    nodes_stop(&ns);
}

TEST_CASE(callbacks, contended_may_use_the_only_connection,
          ask_by_the_only_connection(false))
TEST_CASE(callbacks, contended_of_a_majority_may_use_the_only_connection,
          ask_by_the_only_connection(true))

static scene scene_told_by(server *sv, witness *w, bool dispatched)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.on_event = on_event;
    o.event_arg = w;
    o.dispatch_events = dispatched;
    return (scene){.sv = sv, .cl = server_client(sv, &o)};
}

static void expect_told_first(request *r)
{
    witness *w = r->arg;
    EXPECT_INT(times(w, RLOCK_EVENT_ACQUIRED), 1);
}

TEST(callbacks, events_of_what_was_started_come_by_its_client_before_done)
{
    static witness w;
    scene s = scene_start(0, 0), t = scene_told_by(s.sv, &w, false);
    multi_scene m = pair_of(&s, t.cl);
    request r = request_new(m.all);
    r.then = expect_told_first;
    r.arg = &w;
    EXPECT_STATUS(request_acquire(&r, 0, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(t.cl).acquires == 1);
    EXPECT_INT(times(&w, RLOCK_EVENT_ACQUIRED), 0);
    LOOP_UNTIL(s.cl, r.told == 1);
    r.then = NULL;
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    EXPECT_INT(times(&w, RLOCK_EVENT_RELEASED), 1);
    request_free(&r);
    multi_scene_free(&m);
    rlock_client_free(t.cl);
    scene_stop(&s);
}

TEST(callbacks, events_that_are_dispatched_come_by_their_own_client)
{
    static witness w;
    scene s = scene_start(0, 0), t = scene_told_by(s.sv, &w, true);
    multi_scene m = pair_of(&s, t.cl);
    request r = request_new(m.all);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 60000), RLOCK_OK);
    EXPECT_INT(times(&w, RLOCK_EVENT_ACQUIRED), 0);
    loop_turn(t.cl);
    EXPECT_INT(times(&w, RLOCK_EVENT_ACQUIRED), 1);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    request_free(&r);
    multi_scene_free(&m);
    rlock_client_free(t.cl);
    scene_stop(&s);
}

/* Nobody is there any more to be told. */
TEST(callbacks, a_client_may_go_before_its_events_are_dispatched)
{
    static witness w;
    scene s = scene_start(0, 0), t = scene_told_by(s.sv, &w, false);
    multi_scene m = pair_of(&s, t.cl);
    request r = request_new(m.all);
    EXPECT_STATUS(request_acquire(&r, 0, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(t.cl).acquires == 1);
    EXPECT_INT(r.told, 0);
    rlock_client_free(t.cl);
    LOOP_UNTIL(s.cl, r.told == 1);
    EXPECT_INT(times(&w, RLOCK_EVENT_ACQUIRED), 0);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_ECLOSED);
    request_free(&r);
    multi_scene_free(&m);
    scene_stop(&s);
}

/* --- what it does to the call from which it comes ------------------------- */

/* Once, at an event of this type. */
typedef struct meddler {
    server *sv;
    rlock_client *cl;
    rlock *lk;
    rlock_owner *owner;
    rlock_event_type when;
    void (*what)(struct meddler *m);
    rlock_status got;
    atomic_int abandoned;
} meddler;

static void meddle(const rlock_event *ev, void *arg)
{
    meddler *m = arg;
    void (*what)(meddler *) = m->what;
    if (ev->type == RLOCK_EVENT_ABANDONED)
        atomic_fetch_add(&m->abandoned, 1);
    if (!what || ev->type != m->when)
        return;
    m->what = NULL;
    what(m);
}

typedef rlock *make_lock(rlock_client *cl);

static rlock *plain(rlock_client *cl)
{
    return test_lock(cl, SCENE_LOCK);
}

static rlock *fair(rlock_client *cl)
{
    return test_fair_lock(cl, SCENE_LOCK);
}

static rlock *red(rlock_client *cl)
{
    rlock *lk;
    EXPECT_STATUS(rlock_red_new(&cl, 1, SCENE_LOCK, &lk), RLOCK_OK);
    return lk;
}

static rlock *multi(rlock_client *cl)
{
    rlock *lk, *only = plain(cl);
    EXPECT_STATUS(rlock_multi_new(&only, 1, &lk), RLOCK_OK);
    rlock_free(only);
    return lk;
}

static make_lock *const kinds[] = {plain, fair, red, multi};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void meddler_open(meddler *m, make_lock *make, bool blind)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.on_event = meddle;
    o.event_arg = m;
    o.warn_wait_ms = 50;
    o.no_deadlock_check = blind;
    m->sv = server_start(NULL);
    m->cl = server_client(m->sv, &o);
    m->lk = make(m->cl);
}

static void meddler_close(meddler *m)
{
    rlock_free(m->lk);
    rlock_client_free(m->cl);
    server_stop(m->sv);
}

/* The lock is another program's for a while. */
static rlock_status acquire_meddled(meddler *m, rlock_event_type when,
                                    void (*what)(meddler *), int64_t wait_ms)
{
    take_by_hand(m->sv, SCENE_LOCK, 200);
    m->when = when;
    m->what = what;
    rlock_status s = rlock_acquire(m->lk, wait_ms, 60000);
    EXPECT(!m->what);
    return s;
}

static void free_handle(meddler *m)
{
    rlock_free(m->lk);
    m->lk = NULL;
}

static void free_in(rlock_event_type when)
{
    for (int k = 0; k < KINDS; k++) {
        meddler m = {.got = RLOCK_OK};
        meddler_open(&m, kinds[k], false);
        EXPECT_STATUS(acquire_meddled(&m, when, free_handle, SOON), RLOCK_OK);
        m.lk = kinds[k](m.cl);
        EXPECT_STATUS(rlock_unlock(m.lk), RLOCK_OK);
        meddler_close(&m);
    }
}

TEST_CASE(callbacks, contended_may_free_the_handle,
          free_in(RLOCK_EVENT_CONTENDED))
TEST_CASE(callbacks, waited_long_may_free_the_handle,
          free_in(RLOCK_EVENT_WAITED_LONG))
TEST_CASE(callbacks, acquired_may_free_the_handle,
          free_in(RLOCK_EVENT_ACQUIRED))

TEST(callbacks, released_may_free_the_handle)
{
    for (int k = 0; k < KINDS; k++) {
        meddler m = {.got = RLOCK_OK};
        meddler_open(&m, kinds[k], false);
        EXPECT_STATUS(rlock_lock(m.lk), RLOCK_OK);
        m.when = RLOCK_EVENT_RELEASED;
        m.what = free_handle;
        EXPECT_STATUS(rlock_unlock(m.lk), RLOCK_OK);
        EXPECT(!m.lk);
        meddler_close(&m);
    }
}

static void free_the_owner(meddler *m)
{
    rlock_owner_free(m->owner);
}

/* Nobody waits any more, and what was granted is nobody's. (Of a Multi lock each
   member is told, when it is not yet had as a whole: nothing of it stays.) */
static void end_owner_in(rlock_event_type when)
{
    for (int k = 0; k < KINDS; k++) {
        int stays = when == RLOCK_EVENT_ACQUIRED && kinds[k] != multi;
        meddler m = {.got = RLOCK_OK};
        meddler_open(&m, kinds[k], false);
        EXPECT_STATUS(rlock_owner_new("own", &m.owner), RLOCK_OK);
        rlock_owner_set(m.owner);
        EXPECT_STATUS(acquire_meddled(&m, when, free_the_owner, SOON),
                      RLOCK_CANCELED);
        EXPECT_CONTAINS(rlock_last_error()->message, "owner was freed");
        EXPECT(!rlock_owner_set(NULL) && !rlock_is_held(m.lk));
        EXPECT_INT(stats_of(m.cl).held_now, 0);
        EVENTUALLY(SOON, atomic_load(&m.abandoned) == stays);
        EVENTUALLY(SOON, levels(m.sv, SCENE_LOCK) == stays);
        meddler_close(&m);
    }
}

TEST_CASE(callbacks, contended_may_free_the_owner,
          end_owner_in(RLOCK_EVENT_CONTENDED))
TEST_CASE(callbacks, waited_long_may_free_the_owner,
          end_owner_in(RLOCK_EVENT_WAITED_LONG))
TEST_CASE(callbacks, acquired_may_free_the_owner,
          end_owner_in(RLOCK_EVENT_ACQUIRED))

/* It is free all of a sudden. */
static void acquire_it(meddler *m)
{
    server_cmd(m->sv, "DEL " SCENE_LOCK);
    m->got = rlock_acquire(m->lk, 0, 60000);
}

/* But for a fair lock: it is granted to whom stands in line. */
static void acquire_in(rlock_event_type when)
{
    for (int k = 0; k < KINDS; k++) {
        if (kinds[k] == fair)
            continue;
        meddler m = {.got = RLOCK_EINVAL};
        meddler_open(&m, kinds[k], false);
        EXPECT_STATUS(acquire_meddled(&m, when, acquire_it, RLOCK_FOREVER),
                      RLOCK_EDEADLK);
        EXPECT_STATUS(m.got, RLOCK_OK);
        EXPECT_INT(rlock_hold_count(m.lk), 1);
        EXPECT_STATUS(rlock_unlock(m.lk), RLOCK_OK);
        meddler_close(&m);
    }
}

TEST_CASE(callbacks, who_acquires_it_in_contended_does_not_wait_for_himself,
          acquire_in(RLOCK_EVENT_CONTENDED))
TEST_CASE(callbacks, who_acquires_it_in_waited_long_does_not_wait_for_himself,
          acquire_in(RLOCK_EVENT_WAITED_LONG))

TEST(callbacks, without_the_check_who_acquires_it_waits_for_himself)
{
    meddler m = {.got = RLOCK_EINVAL};
    meddler_open(&m, plain, true);
    EXPECT_STATUS(acquire_meddled(&m, RLOCK_EVENT_CONTENDED, acquire_it, 1000),
                  RLOCK_TIMEOUT);
    EXPECT_STATUS(m.got, RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.lk), RLOCK_OK);
    meddler_close(&m);
}
