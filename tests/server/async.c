/*
 * Locks on an event loop: what is started goes on by itself, and its callback
 * comes once, on the loop's thread.
 */
#include "loop.h"

#include <pthread.h>

TEST(async, an_acquire_and_an_unlock_call_back)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(request_holds(&r));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    EXPECT(!request_holds(&r));
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.acquires, 1);
    EXPECT_INT(st.releases, 1);
    expect_nothing_left(s.sv);
    request_free(&r);
    scene_stop(&s);
}

TEST(async, levels_are_counted_up_and_down)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    for (int i = 1; i <= 3; i++) {
        EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_INT(levels(s.sv, SCENE_LOCK), i);
    }
    for (int i = 3; i > 0; i--)
        EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_NOT_HELD);
    EXPECT_CONTAINS(r.error.message, SCENE_LOCK);
    expect_nothing_left(s.sv);
    request_free(&r);
    scene_stop(&s);
}

TEST(async, an_extend_sets_the_lease)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_extend(s.cl, &r, 5000), RLOCK_NOT_HELD);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_extend(s.cl, &r, 90000), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 60000, 90000);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}

/* --- two requests of one loop --------------------------------------------- */

TEST(async, two_requests_of_one_loop_exclude_each_other)
{
    scene s = scene_start(0, 0);
    request a = request_new(s.lk), b = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &a, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_acquire(s.cl, &b, 0, RLOCK_WATCHDOG), RLOCK_BUSY);
    EXPECT_STATUS(request_acquire(&b, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_INT(b.told, 1);
    EXPECT_STATUS(loop_unlock(s.cl, &a), RLOCK_OK);
    LOOP_UNTIL(s.cl, b.told == 2);
    EXPECT_STATUS(b.status, RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &b), RLOCK_OK);
    expect_nothing_left(s.sv);
    request_free(&a);
    request_free(&b);
    scene_stop(&s);
}

TEST(async, a_start_without_an_owner_is_refused_and_says_why)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire_start(s.lk, 0, 0, NULL, NULL), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "rlock_owner_set");
    EXPECT_STATUS(rlock_unlock_start(s.lk, NULL, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_extend_start(s.lk, 0, NULL, NULL), RLOCK_EINVAL);
    scene_stop(&s);
}

static void expect_idle(request *r)
{
    EXPECT(!rlock_owner_is_busy(r->owner));
}

static intptr_t is_busy(void *owner)
{
    return rlock_owner_is_busy(owner);
}

/* For who acts as it it is not busy, as it does what it is told. */
static void expect_busy_elsewhere(rlock_owner *o)
{
    rlock_owner_set(o);
    EXPECT(!rlock_owner_is_busy(o));
    EXPECT(test_join(test_spawn(is_busy, o)));
    rlock_owner_set(NULL);
    EXPECT(!test_join(test_spawn(is_busy, o)));
}

TEST(async, an_owner_does_one_thing_at_a_time)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    request r = request_new(s.lk);
    EXPECT(!rlock_owner_is_busy(NULL) && !rlock_owner_is_busy(r.owner));
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(rlock_owner_is_busy(r.owner));
    EXPECT_STATUS(request_acquire(&r, 0, RLOCK_WATCHDOG), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "operation under way");
    EXPECT_STATUS(request_unlock(&r), RLOCK_EINVAL);
    EXPECT(!request_holds(&r));
    r.then = expect_idle;
    rlock_cancel(s.lk);
    LOOP_UNTIL(s.cl, r.told == 1);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    expect_busy_elsewhere(r.owner);
    request_free(&r);
    scene_stop(&s);
}

TEST(async, what_is_out_of_range_is_refused_at_once)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(request_acquire(&r, -2, RLOCK_WATCHDOG), RLOCK_EINVAL);
    EXPECT_STATUS(request_acquire(&r, 0, -1), RLOCK_EINVAL);
    EXPECT_STATUS(request_extend(&r, RLOCK_LEASE_MAX_MS + 1), RLOCK_EINVAL);
    rlock_owner_set(r.owner);
    EXPECT_STATUS(rlock_unlock_start(NULL, NULL, NULL), RLOCK_EINVAL);
    rlock_owner_set(NULL);
    EXPECT_INT(rlock_client_fd(NULL), -1);
    EXPECT_STATUS(rlock_client_dispatch(NULL), RLOCK_EINVAL);
    EXPECT_INT(r.told, 0);
    request_free(&r);
    scene_stop(&s);
}

/* --- waiting -------------------------------------------------------------- */

TEST(async, a_wait_runs_out)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    request r = request_new(s.lk);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(loop_acquire(s.cl, &r, 200, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(r.at_ms - began_ms, 200, 200 + SLACK_MS);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
    request_free(&r);
    scene_stop(&s);
}

TEST(async, another_process_is_rung_and_rings)
{
    scene s = scene_start(0, 0);
    scene other = scene_with(s.sv, &s.opts);
    request r = request_new(s.lk);
    EXPECT_STATUS(rlock_lock(other.lk), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(other.lk), RLOCK_OK);
    LOOP_UNTIL(s.cl, r.told == 1);
    EXPECT_STATUS(r.status, RLOCK_OK);
    EXPECT_BETWEEN(r.at_ms - freed_ms, 0, WELL_BEFORE_POLL_MS);
    waiter *w = waiter_start(other.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, other.cl, 1);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    request_free(&r);
    scene_leave(&other);
    scene_stop(&s);
}

TEST(async, a_thread_and_a_loop_hand_over_to_each_other)
{
    scene s = scene_held(0, 0);
    request r = request_new(s.lk);
    for (int i = 0; i < 20; i++) {
        int told = r.told;
        EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, RLOCK_WATCHDOG),
                      RLOCK_OK);
        EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
        LOOP_UNTIL(s.cl, r.told > told);
        EXPECT_STATUS(r.status, RLOCK_OK);
        waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
        EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    request_free(&r);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

enum { CROWD = 64 };

typedef struct crowd {
    scene s;
    request r[CROWD];
    int inside, sections;
    uint64_t token;
} crowd;

static void leave_section(request *r);

static void enter_section(request *r)
{
    crowd *c = r->arg;
    EXPECT_STATUS(r->status, RLOCK_OK);
    EXPECT_INT(c->inside++, 0);
    EXPECT(rlock_token(r->lk) > c->token); /* the thread acts as the owner */
    c->token = rlock_token(r->lk);
    r->then = leave_section;
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
    c->inside--;
}

static void leave_section(request *r)
{
    crowd *c = r->arg;
    EXPECT_STATUS(r->status, RLOCK_OK);
    c->sections++;
    r->then = NULL;
}

TEST(async, many_requests_for_one_name_come_one_at_a_time)
{
    crowd c = {.s = scene_start(0, 0)};
    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < CROWD; i++) {
            if (round == 1)
                c.r[i] = request_new(c.s.lk);
            c.r[i].arg = &c;
            c.r[i].then = enter_section;
            EXPECT_STATUS(
                request_acquire(&c.r[i], RLOCK_FOREVER, RLOCK_WATCHDOG),
                RLOCK_OK);
        }
        LOOP_UNTIL(c.s.cl, c.sections == round * CROWD);
    }
    for (int i = 0; i < CROWD; i++)
        request_free(&c.r[i]);
    expect_nothing_left(c.s.sv);
    scene_stop(&c.s);
}

/* --- events --------------------------------------------------------------- */

static void note_thread(const rlock_event *ev, void *arg)
{
    (void)ev;
    *(pthread_t *)arg = pthread_self();
}

static void act_as_nobody_for_a_while(const rlock_event *ev, void *arg)
{
    (void)ev, (void)arg;
    rlock_owner *former = rlock_owner_set(NULL);
    rlock_owner_set(former);
}

/* Told on a thread of the library's, which acts as the owner meanwhile. */
TEST(async, an_event_may_act_as_another_owner)
{
    scene s = scene_server(NULL);
    rlock_client *cl;
    rlock *lk;
    s.opts.uri = server_uri(s.sv);
    s.opts.on_event = act_as_nobody_for_a_while;
    EXPECT_STATUS(rlock_client_new(&s.opts, &cl), RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, SCENE_LOCK, &lk), RLOCK_OK);
    request r = request_new(lk);
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(loop_acquire(cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_STATUS(loop_unlock(cl, &r), RLOCK_OK);
    }
    request_free(&r);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(s.sv);
}

TEST(async, events_can_be_dispatched_too)
{
    scene s = scene_server(NULL);
    pthread_t told_on = {0};
    rlock_client *cl;
    rlock *lk;
    s.opts.uri = server_uri(s.sv);
    s.opts.dispatch_events = true;
    s.opts.on_event = note_thread;
    s.opts.event_arg = &told_on;
    EXPECT_STATUS(rlock_client_new(&s.opts, &cl), RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, SCENE_LOCK, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT(!told_on);
    loop_turn(cl);
    EXPECT(pthread_equal(told_on, pthread_self()));
    told_on = 0;
    EXPECT_INT(server_int(s.sv, "DEL " SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    loop_turn(cl); /* what the notifier has to tell */
    EXPECT(pthread_equal(told_on, pthread_self()));
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(s.sv);
}

/* --- deadlocks ------------------------------------------------------------ */

TEST(async, requests_that_wait_in_a_circle_are_told)
{
    scene s = scene_start(0, 0);
    rlock *other = test_lock(s.cl, "other");
    request a = request_new(s.lk), b = request_new(other);
    EXPECT_STATUS(loop_acquire(s.cl, &a, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_acquire(s.cl, &b, 0, RLOCK_WATCHDOG), RLOCK_OK);
    a.lk = other;
    b.lk = s.lk;
    EXPECT_STATUS(request_acquire(&a, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    EXPECT_STATUS(loop_acquire(s.cl, &b, RLOCK_FOREVER, RLOCK_WATCHDOG),
                  RLOCK_EDEADLK);
    EXPECT_CONTAINS(b.error.message, "owner 'owner-");
    EXPECT_CONTAINS(b.error.message, SCENE_LOCK);
    EXPECT_CONTAINS(b.error.message, "other");
    b.lk = other;
    EXPECT_STATUS(loop_unlock(s.cl, &b), RLOCK_OK);
    LOOP_UNTIL(s.cl, a.told == 2);
    EXPECT_STATUS(a.status, RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &a), RLOCK_OK);
    a.lk = s.lk;
    EXPECT_STATUS(loop_unlock(s.cl, &a), RLOCK_OK);
    request_free(&a);
    request_free(&b);
    rlock_free(other);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- without a loop ------------------------------------------------------- */

/* Nobody dispatches: what was started goes on, and what is held is renewed. */
TEST(async, nobody_has_to_dispatch_for_it_to_go_on)
{
    scene s = scene_held(BRISK_MS, 0);
    request r = request_new(s.lk);
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).acquires == 2);
    watch_renewals(s.cl, 4);
    EXPECT_INT(r.told, 0);
    EXPECT_STATUS(rlock_client_dispatch(s.cl), RLOCK_OK);
    EXPECT_STATUS(r.status, RLOCK_OK);
    EXPECT(request_holds(&r));
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}

/* The thread leaves them to who dispatches, and he is not called once more for
   what he has found himself. */
TEST(async, an_answer_calls_who_dispatches_once)
{
    enum { PAIRS = 200, WARM = 20 };
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    int turns = 0;
    for (int i = 0; i < WARM + PAIRS; i++) {
        int told = r.told;
        turns = i == WARM ? 0 : turns;
        EXPECT_STATUS(request_acquire(&r, 0, RLOCK_WATCHDOG), RLOCK_OK);
        for (; r.told == told; turns++)
            loop_turn(s.cl);
        EXPECT_STATUS(request_unlock(&r), RLOCK_OK);
        for (; r.told == told + 1; turns++)
            loop_turn(s.cl);
    }
    EXPECT_BETWEEN(turns, 2 * PAIRS, 2 * PAIRS + PAIRS / 2);
    request_free(&r);
    scene_stop(&s);
}

/* --- within a callback ---------------------------------------------------- */

static void start_unlock(request *r)
{
    r->then = NULL;
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
}

/* A system call for each would cost more than all else that a start does. */
TEST(async, what_callbacks_start_is_sent_together)
{
    enum { REQUESTS = 32 };
    scene s = scene_start(0, 0);
    request r[REQUESTS];
    int over = 0;
    for (int i = 0; i < REQUESTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "together:%d", i);
        r[i] = request_new(test_lock(s.cl, name));
        r[i].then = start_unlock;
        EXPECT_STATUS(request_acquire(&r[i], 0, RLOCK_WATCHDOG), RLOCK_OK);
    }
    EVENTUALLY(SOON, stats_of(s.cl).acquires == REQUESTS);
    long long before = server_info(s.sv, "total_reads_processed");
    while (over < REQUESTS) {
        loop_turn(s.cl);
        over = 0;
        for (int i = 0; i < REQUESTS; i++)
            over += r[i].told == 2 && r[i].status == RLOCK_OK;
    }
    EXPECT_BETWEEN(server_info(s.sv, "total_reads_processed") - before, 1,
                   REQUESTS / 2);
    for (int i = 0; i < REQUESTS; i++) {
        rlock_free(r[i].lk);
        request_free(&r[i]);
    }
    scene_stop(&s);
}

static void start_unlock_and_watch(request *r)
{
    server *sv = r->arg;
    start_unlock(r);
    EVENTUALLY(SOON, levels(sv, SCENE_LOCK) == 0);
}

TEST(async, what_a_callback_starts_goes_on_while_the_callback_does)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    r.then = start_unlock_and_watch;
    r.arg = s.sv;
    EXPECT_STATUS(request_acquire(&r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    LOOP_UNTIL(s.cl, r.told == 2);
    EXPECT_STATUS(r.status, RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}
