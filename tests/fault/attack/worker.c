/*
 * A process of the attack. Its threads lock as programs do: short sections
 * with and without waiting, nested ones, long ones under the watchdog, some
 * that stay longer than their lease, some that are abandoned. Each call is
 * timed, each hold written down.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "metronome.h"
#include "witness.h"

enum {
    RECENT = 64, /* holds of a lock that an event may still be about */
    NOTABLE_US = 5000,
    STAY_CHECK_US = 10000,
    OUTSTAY_MS = 50, /* that somebody stays longer than the lease */
    END_MS = 3 * COMMAND_MS,
    LATE_US = 50000,     /* of an answer */
    LINGER_US = 1000000, /* an undoing or a renewal ends meanwhile */
    RARELY_MS = 5000 /* between a thread's long, too long, abandoned holds */
};

/* What a thread has in mind with its next hold. */
typedef struct plan {
    int lock;
    int64_t wait_ms, lease_ms;
    int levels;
    int64_t stay_us;
    bool extend;
} plan;

typedef struct recent {
    pthread_mutex_t mutex;
    hold *holds[RECENT]; /* guarded by mutex, as is n */
    unsigned n;
} recent;

static struct {
    arena *a;
    history *h;
    int proc, life;
    rlock_client *cl;
    rlock *outer[LOCKS], *inner[LOCKS]; /* two handles are one lock */
    recent recent[LOCKS];
    /* To be compared with the client's. */
    _Atomic uint64_t acquires, releases;
} me;

/* Ending up in the histories: events, late calls, stalls. */

static void notice(note_kind kind, int lock, int64_t from_us, int64_t to_us,
                   uint64_t value)
{
    note n = {attack_now_us(), from_us, to_us, value, kind, (uint32_t)lock};
    history_note(me.h, &n);
}

static void pause_us(int64_t us)
{
    struct timespec ts = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&ts, NULL);
}

static void remember(hold *r)
{
    recent *of = &me.recent[r->lock];
    pthread_mutex_lock(&of->mutex);
    of->holds[of->n++ % RECENT] = r;
    pthread_mutex_unlock(&of->mutex);
}

static hold *recall(int lock, uint64_t token)
{
    recent *of = &me.recent[lock];
    hold *found = NULL;
    pthread_mutex_lock(&of->mutex);
    for (unsigned i = 0; i < RECENT && i < of->n && !found; i++)
        if (atomic_load(&of->holds[i]->token) == token)
            found = of->holds[i];
    pthread_mutex_unlock(&of->mutex);
    return found;
}

/* The end of a hold, told on a thread of the library's. */
static void note_end(const rlock_event *ev)
{
    bool lost = ev->type == RLOCK_EVENT_LOST;
    int lock = atoi(strchr(ev->name, ':') + 1);
    hold *r = recall(lock, ev->token);
    if (r && !r->told_ms)
        r->told_ms = (uint32_t)((attack_now_us() - r->granted_us) / 1000 + 1);
    if (r)
        atomic_fetch_add(lost ? &r->lost_events : &r->abandoned_events, 1);
    else /* told before our acquire has returned */
        notice(NOTE_EARLY_END, lock, lost, 0, ev->token);
}

/* That of the calling thread's last grant, also if it is lost at once. */
static _Thread_local uint64_t granted_token;

static void on_event(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type == RLOCK_EVENT_ACQUIRED)
        granted_token = ev->token;
    else if (ev->type == RLOCK_EVENT_LOST || ev->type == RLOCK_EVENT_ABANDONED)
        note_end(ev);
}

/* Of the calling thread; asked for with every call, so it stays open. */
static _Thread_local int schedstat = -1;

static void open_schedstat(void)
{
    schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* How long this thread was ready to run, and did not. */
static uint64_t queued_us(void)
{
    unsigned long long ran_ns, queued_ns;
    char text[64];
    ssize_t n = pread(schedstat, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return sscanf(text, "%llu %llu", &ran_ns, &queued_ns) == 2
               ? queued_ns / 1000
               : 0;
}

/* A call that is being timed. */
typedef struct timer {
    int lock;
    int64_t limit_us;
    uint64_t queued_us;
} timer;

static timer timer_start(int lock, int64_t limit_ms)
{
    return (timer){lock, attack_now_us() + limit_ms * 1000, queued_us()};
}

static void timer_stop(const timer *t)
{
    int64_t now_us = attack_now_us();
    if (now_us - t->limit_us > NOTABLE_US)
        notice(NOTE_LATE, t->lock, t->limit_us, now_us,
               queued_us() - t->queued_us);
}

/* One hold. */

static rlock_status acquire(rlock *lk, const plan *p, int64_t wait_ms)
{
    timer t = timer_start(p->lock, wait_ms + COMMAND_MS);
    rlock_status s = rlock_acquire(lk, wait_ms, p->lease_ms);
    timer_stop(&t);
    atomic_fetch_add(&me.a->acquired[s], 1);
    if (s == RLOCK_OK)
        atomic_fetch_add(&me.acquires, 1);
    return s;
}

static rlock_status release(rlock *lk, int lock)
{
    timer t = timer_start(lock, COMMAND_MS);
    rlock_status s = rlock_unlock(lk);
    timer_stop(&t);
    atomic_fetch_add(&me.a->released[s], 1);
    if (s == RLOCK_OK)
        atomic_fetch_add(&me.releases, 1);
    return s;
}

static void extend(visit *v, const plan *p)
{
    timer t = timer_start(p->lock, COMMAND_MS);
    rlock_status s = rlock_extend(me.outer[p->lock], p->lease_ms);
    timer_stop(&t);
    if (s == RLOCK_OK)
        witness_prolong(v);
}

/* Says the server that the calling thread holds the lock? */
static bool is_mine(int lock, rlock_holder *who)
{
    return rlock_holder_info(me.outer[lock], who) == RLOCK_OK &&
           who->pid == getpid() && who->tid == gettid();
}

/* This thread does not hold the lock: what it finds is to be undone soon. */
static void look_for_left_over(int lock)
{
    rlock_holder first, again;
    int64_t from_us = attack_now_us();
    if (!is_mine(lock, &first))
        return;
    pause_us(LINGER_US);
    if (is_mine(lock, &again) && strcmp(first.hold_id, again.hold_id) == 0)
        notice(NOTE_LEFT, lock, from_us, attack_now_us(), 0);
}

/* The outermost acquire; NULL: not granted. */
static hold *begin_hold(const plan *p, int thread)
{
    int64_t asked_us = attack_now_us();
    rlock_status s = acquire(me.outer[p->lock], p, p->wait_ms);
    if (s == RLOCK_BUSY || s == RLOCK_TIMEOUT || s == RLOCK_EIO)
        look_for_left_over(p->lock);
    if (s != RLOCK_OK)
        return NULL;
    hold *r = history_hold(me.h);
    r->asked_us = asked_us;
    r->granted_us = r->held_us = attack_now_us();
    r->lease_ms = p->lease_ms;
    r->lock = (uint8_t)p->lock;
    r->thread = (uint8_t)thread;
    r->levels = 1;
    atomic_fetch_add(&me.a->grants, 1);
    atomic_store(&r->token, granted_token);
    remember(r);
    return r;
}

static visit begin_visit(hold *r)
{
    visit v = {.a = me.a, .h = me.h, .r = r, .lk = me.outer[r->lock]};
    v.me = (uint64_t)(me.life + 1) << 32 | (uint64_t)(r - me.h->holds);
    witness_enter(&v);
    return v;
}

static void work(visit *v, const plan *p)
{
    int64_t until_us = attack_now_us() + p->stay_us;
    while (witness_check(v) && attack_now_us() < until_us &&
           !atomic_load(&me.a->stop)) {
        pause_us(STAY_CHECK_US);
    }
    if (witness_check(v)) {
        witness_update(v);
        witness_check(v);
    }
}

/* A function that locks, called by one that has the lock. */
static void nest(visit *v, const plan *p, int level)
{
    if (level == p->levels) {
        work(v, p);
        return;
    }
    rlock *lk = me.inner[p->lock];
    if (acquire(lk, p, 0) != RLOCK_OK) {
        work(v, p);
        return;
    }
    witness_prolong(v);
    atomic_fetch_add(&me.a->reentries, 1);
    v->r->levels = (uint8_t)(level + 1);
    uint64_t token = rlock_token(lk);
    int count = rlock_hold_count(lk);
    bool wrong = token != atomic_load(&v->r->token) || count != level + 1;
    if (wrong && witness_check(v))
        notice(NOTE_REENTRY, p->lock, 0, (int64_t)token, (uint64_t)count);
    nest(v, p, level + 1);
    release(lk, p->lock);
    work(v, p); /* the lock is still ours */
}

static void end_hold(visit *v, rlock_status s)
{
    hold *r = v->r;
    if (s == RLOCK_OK && v->lost)
        notice(NOTE_REVIVED, r->lock, 0, 0, 1);
    if (!v->lost)
        r->over_us = attack_now_us();
    r->end = s == RLOCK_OK                              ? HOLD_RELEASED
             : s == RLOCK_LOST || s == RLOCK_EWRONGTYPE ? HOLD_LOST
             : v->lost                                  ? HOLD_LOST
                                                        : HOLD_UNKNOWN;
}

/*
 * Whoever had to wait long for the answer stays to the end of the lease, which
 * had begun long before.
 */
static void stay_if_late(plan *p, const hold *r)
{
    bool late = p->wait_ms == 0 && r->granted_us - r->asked_us > LATE_US;
    if (late && p->lease_ms > 0)
        p->stay_us = (p->lease_ms + OUTSTAY_MS) * 1000;
}

/* What is lost stays lost, whatever a renewal is answered now. */
static void linger(visit *v)
{
    int64_t until_us = attack_now_us() + LINGER_US;
    while (!witness_check(v) && attack_now_us() < until_us &&
           !atomic_load(&me.a->stop))
        pause_us(STAY_CHECK_US);
}

/* Tells how it ended; NULL: it was not granted. */
static const hold *hold_once(plan p, int thread)
{
    hold *r = begin_hold(&p, thread);
    if (!r)
        return NULL;
    visit v = begin_visit(r);
    stay_if_late(&p, r);
    nest(&v, &p, 1);
    if (p.extend && witness_check(&v))
        extend(&v, &p);
    if (!witness_check(&v)) {
        witness_write(&v);
        if (p.lease_ms == RLOCK_WATCHDOG)
            linger(&v);
    }
    witness_leave(&v);
    end_hold(&v, release(me.outer[p.lock], p.lock));
    return r;
}

/*
 * A release that was not answered may be executed yet. The next hold of this
 * thread is there to be hit by it.
 */
static void hold_again(plan p, int thread)
{
    p.wait_ms = LEASE_MS;
    p.lease_ms = RLOCK_WATCHDOG;
    p.stay_us = COMMAND_MS * 1000;
    hold_once(p, thread);
}

/* A thread that ends while it holds. */
static void hold_and_leave(const plan *p)
{
    hold *r = begin_hold(p, THREADS);
    if (!r)
        return;
    visit v = begin_visit(r);
    work(&v, p);
    witness_leave(&v);
    r->over_us = attack_now_us();
    r->end = HOLD_ABANDONED;
}

static void *abandon(void *arg)
{
    open_schedstat();
    hold_and_leave(arg);
    close(schedstat);
    return NULL;
}

static void hold_and_abandon(plan *p)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, abandon, p) == 0)
        pthread_join(thread, NULL);
}

/* What to do next. */

/* Mostly short, or whatever somebody holds long would stop everybody. */
static int64_t some_wait_ms(uint64_t *rng)
{
    int longest_ms[] = {1, 1, 20, 20, 20, 300};
    return attack_pick(rng, longest_ms[attack_pick(rng, 6)]);
}

static plan short_plan(uint64_t *rng)
{
    /* The smaller of two: some locks are wanted more than others. */
    int a = attack_pick(rng, LOCKS), b = attack_pick(rng, LOCKS);
    plan p = {.lock = a < b ? a : b, .levels = 1};
    p.wait_ms = some_wait_ms(rng);
    p.lease_ms = attack_pick(rng, 3) ? RLOCK_WATCHDOG : 1500;
    if (attack_pick(rng, 10) == 0)
        p.levels = 2 + attack_pick(rng, 2);
    p.extend = attack_pick(rng, 50) == 0;
    if (attack_pick(rng, 100) == 0)
        p.stay_us = attack_pick(rng, 20000);
    return p;
}

/* The watchdog has to renew it, more than once. */
static void hold_long(plan *p, uint64_t *rng, int thread)
{
    p->lease_ms = RLOCK_WATCHDOG;
    p->stay_us = (LEASE_MS + attack_pick(rng, LEASE_MS)) * 1000;
    hold_once(*p, thread);
}

/* Longer than its lease. */
static void outstay(plan *p, uint64_t *rng, int thread)
{
    p->lease_ms = 100 + attack_pick(rng, 200);
    p->stay_us = (p->lease_ms + OUTSTAY_MS) * 1000;
    p->extend = false;
    hold_once(*p, thread);
}

static void do_something_rare(plan *p, uint64_t *rng, int thread)
{
    switch (attack_pick(rng, 3)) {
    case 0:
        hold_long(p, rng, thread);
        break;
    case 1:
        outstay(p, rng, thread);
        break;
    case 2:
        hold_and_abandon(p);
        break;
    }
}

static int64_t next_rare_us(uint64_t *rng)
{
    return attack_now_us() + attack_pick(rng, 2 * RARELY_MS) * INT64_C(1000);
}

static void *labour(void *arg)
{
    int thread = (int)(intptr_t)arg;
    uint64_t rng = me.a->seed * 1000003 + (uint64_t)(me.life * 16 + thread);
    int64_t rare_us = next_rare_us(&rng);
    open_schedstat();
    while (!atomic_load(&me.a->stop)) {
        plan p = short_plan(&rng);
        if (attack_now_us() < rare_us) {
            const hold *r = hold_once(p, thread);
            if (r && r->end == HOLD_UNKNOWN)
                hold_again(p, thread);
        } else {
            do_something_rare(&p, &rng, thread);
            rare_us = next_rare_us(&rng);
        }
    }
    close(schedstat);
    return NULL;
}

/* From start to end. */

static void make_client(void)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = me.a->uri[me.proc];
    opts.connect_timeout_ms = COMMAND_MS;
    opts.command_timeout_ms = COMMAND_MS;
    opts.watchdog_lease_ms = LEASE_MS;
    opts.on_event = on_event;
    /* A process may be started while the server is being attacked. */
    while (rlock_client_new(&opts, &me.cl) != RLOCK_OK) {
        pause_us(20000);
        if (atomic_load(&me.a->stop))
            _exit(0);
    }
}

static rlock_layout layout_of(int lock)
{
    if (lock == LOCKS - 1)
        return RLOCK_LAYOUT_STRING;
    return lock == LOCKS - 2 ? RLOCK_LAYOUT_TIMESTAMP : RLOCK_LAYOUT_HASH;
}

static void make_locks(void)
{
    for (int i = 0; i < LOCKS; i++) {
        char name[16];
        int len = snprintf(name, sizeof name, "attack:%d", i);
        rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
        opts.layout = layout_of(i);
        if (rlock_new_ex(me.cl, name, (size_t)len, &opts, &me.outer[i]) ||
            rlock_new_ex(me.cl, name, (size_t)len, &opts, &me.inner[i]))
            attack_die("%s", rlock_last_error()->message);
        pthread_mutex_init(&me.recent[i].mutex, NULL);
    }
}

static void start(pthread_t *thread, void *(*fn)(void *), int arg)
{
    int err = pthread_create(thread, NULL, fn, (void *)(intptr_t)arg);
    if (err)
        attack_die("cannot start a thread: %s", strerror(err));
}

static void compare(uint64_t clients, uint64_t ours)
{
    if (clients != ours)
        notice(NOTE_COUNT, 0, (int64_t)clients, (int64_t)ours, 0);
}

/* Nobody holds anything any more. */
static void compare_counts(void)
{
    rlock_stats stats;
    if (rlock_client_stats(me.cl, &stats) != RLOCK_OK)
        attack_die("%s", rlock_last_error()->message);
    compare(stats.acquires, atomic_load(&me.acquires));
    compare(stats.releases, atomic_load(&me.releases));
    compare(stats.held_now, 0);
}

static void free_all(void)
{
    for (int i = 0; i < LOCKS; i++) {
        rlock_free(me.outer[i]);
        rlock_free(me.inner[i]);
    }
    int64_t from_us = attack_now_us();
    rlock_client_free(me.cl);
    int64_t to_us = attack_now_us();
    if (to_us - from_us > END_MS * 1000)
        notice(NOTE_SLOW_END, 0, from_us, to_us, 0);
}

static void ignore_signal(int sig)
{
    (void)sig;
}

/* System calls are interrupted, not restarted. */
static void take_signals(void)
{
    struct sigaction sa = {.sa_handler = ignore_signal};
    sigaction(SIGUSR1, &sa, NULL);
}

int worker_main(const char *dir, int proc, int life, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    take_signals();
    me.a = arena_map(dir, false);
    me.h = history_map(dir, life, true);
    shim_share(&me.a->panels[proc]);
    me.proc = proc;
    me.life = life;
    pthread_t threads[THREADS];
    metronome beat;
    make_client();
    shim_spare_me(true);
    make_locks();
    shim_spare_me(false);
    metronome_start(&beat, me.h);
    for (int i = 0; i < THREADS; i++)
        start(&threads[i], labour, i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    compare_counts();
    free_all();
    metronome_stop(&beat);
    history_unmap(me.h);
    return 0;
}
