/*
 * The resting thread of a worker. It has clients of its own at home: one that
 * rests, with a lease that is longer than any rest, so that no renewal tells of
 * a loss; and another one, by which it looks what is left when the first has
 * been closed. Names are this process's own: nobody else takes the lock.
 *
 * Its callbacks wait, as those of programs do: for the desk, a mutex that the
 * thread holds over each of its calls, and then for the other client's server.
 * Who calls back while others wait for what he does never comes to an end then.
 *
 * The desk guards told, and what is about to be told of.
 */
#include "rest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "locks.h"
#include "queued.h"
#include "worker.h"

enum {
    REST_MOST_MS = 6000,
    RESTS_MOST = 4, /* with one client */
    WAIT_MS = 1000,
    RETRY_US = 50000,
    TICK_US = 10000
};

static struct {
    pthread_mutex_t desk;
    pthread_t thread;
    uint64_t rng;
    rlock_client *cl, *other;
    rlock *lk, *seen; /* the same name, with either */
    char name[LOCK_KEY_MAX];
    uint64_t token;
    int64_t told_us; /* of its loss; 0: not */
} r = {.desk = PTHREAD_MUTEX_INITIALIZER};

static void sit_down(void)
{
    pthread_mutex_lock(&r.desk);
}

static void stand_up(void)
{
    pthread_mutex_unlock(&r.desk);
}

/* --- the library's threads ------------------------------------------------ */

/* What a call tells of itself comes while the thread sits at the desk. */
static void on_event(const rlock_event *ev, void *arg)
{
    rlock_holder who;
    (void)arg;
    if (pthread_equal(pthread_self(), r.thread))
        return;
    sit_down();
    if (ev->type == RLOCK_EVENT_LOST && ev->token == r.token)
        r.told_us = attack_now_us();
    if (r.seen)
        rlock_holder_info(r.seen, &who, sizeof who);
    stand_up();
}

/* --- the thread ----------------------------------------------------------- */

static bool is_over(void)
{
    return atomic_load(&me.a->stop);
}

/* NULL: the server was not there. */
static rlock_client *new_client(bool lazy,
                                void (*tell)(const rlock_event *, void *))
{
    rlock_client *cl = NULL;
    rlock_options opts = worker_options(HOME);
    opts.watchdog_lease_ms = LEASE_AT_REST_MS;
    opts.lazy = lazy;
    opts.on_event = tell;
    rlock_client_new(&opts, &cl);
    return cl;
}

static rlock *handle(rlock_client *cl)
{
    rlock *lk = NULL;
    if (cl && rlock_new(cl, r.name, &lk) != RLOCK_OK)
        attack_die("%s", rlock_last_error()->message);
    return lk;
}

static bool make_clients(void)
{
    shim_spare_me(true);
    snprintf(r.name, sizeof r.name, "rest:%d:%d", me.life,
             attack_pick(&r.rng, 1000000));
    rlock_client *cl = new_client(attack_pick(&r.rng, 2), on_event);
    rlock_client *other = new_client(true, NULL);
    sit_down();
    r.cl = cl;
    r.other = other;
    r.lk = handle(cl);
    r.seen = handle(other);
    stand_up();
    shim_spare_me(false);
    return r.cl && r.other;
}

static bool lock_it(void)
{
    sit_down();
    r.told_us = 0;
    r.token = 0;
    timer t = timer_start(NOTE_LATE_ACQUIRE, 0,
                          WAIT_MS + COMMAND_MS + worker_replicas_ms());
    bool granted = rlock_acquire(r.lk, WAIT_MS, RLOCK_WATCHDOG) == RLOCK_OK;
    timer_stop(&t, attack_now_us());
    if (granted)
        r.token = rlock_token(r.lk);
    stand_up();
    return granted;
}

static int64_t told_us(void)
{
    sit_down();
    int64_t at_us = r.told_us;
    stand_up();
    return at_us;
}

/* Until it is told, or has rested enough. */
static void do_nothing(void)
{
    int64_t until_us =
        attack_now_us() + attack_pick(&r.rng, REST_MOST_MS) * INT64_C(1000);
    while (!told_us() && attack_now_us() < until_us && !is_over())
        usleep(TICK_US);
}

/* Nobody but who has it can release it: what is not ours was lost. */
static rest_end unlock_it(void)
{
    sit_down();
    timer t = timer_start(NOTE_LATE_UNLOCK, 0, COMMAND_MS);
    rlock_status s = rlock_unlock(r.lk);
    timer_stop(&t, attack_now_us());
    stand_up();
    return s == RLOCK_LOST ? REST_UNTOLD : REST_RELEASED;
}

static void rest_once(void)
{
    if (!lock_it()) {
        usleep(RETRY_US);
        return;
    }
    int64_t from_us = attack_now_us();
    do_nothing();
    int64_t to_us = told_us();
    rest_end end = REST_TOLD;
    if (!to_us) {
        to_us = attack_now_us();
        end = unlock_it();
    }
    worker_notice(NOTE_REST, 0, from_us, to_us, end);
    if (end == REST_TOLD)
        unlock_it();
}

static void look_for_left_over(void)
{
    rlock_holder who;
    int64_t from_us = attack_now_us();
    if (rlock_holder_info(r.seen, &who, sizeof who) == RLOCK_OK &&
        who.pid == getpid())
        worker_notice(NOTE_LEFT, 0, from_us, attack_now_us(), 0);
}

/* As others close theirs, or as who stops tidily does. The desk is free: an
   event that waits for it is waited for. */
static void close_clients(void)
{
    bool held = r.cl && attack_pick(&r.rng, 2) && lock_it();
    if (held && rlock_client_close(r.cl, RLOCK_CLOSE_RELEASE_HELD) == RLOCK_OK)
        look_for_left_over();
    else if (!held)
        rlock_client_free(r.cl);
    rlock_free(r.lk);
    rlock_free(r.seen);
    r.seen = NULL; /* for the next client's first event */
    rlock_client_free(r.other);
}

static void *rest_until_over(void *arg)
{
    (void)arg;
    queued_begin();
    r.thread = pthread_self();
    r.rng = me.a->seed * 31 + (uint64_t)me.life;
    while (!is_over()) {
        bool made = make_clients();
        for (int i = attack_pick(&r.rng, RESTS_MOST); made && i >= 0; i--)
            rest_once();
        close_clients();
        if (!made)
            usleep(RETRY_US);
    }
    queued_end();
    return NULL;
}

void rest_start(rest *of)
{
    int err = pthread_create(&of->thread, NULL, rest_until_over, NULL);
    if (err)
        attack_die("cannot start a thread: %s", strerror(err));
}

void rest_stop(rest *of)
{
    pthread_join(of->thread, NULL);
}
