#include "loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "clerk.h"
#include "fiber.h"
#include "locks.h"
#include "queued.h"

enum {
    CALLS = 64, /* of an owner, that a second callback may still be about */
    TURN_MS = 10,
    BEAT_US = 100000,
    /* In beats: */
    UNTOLD = 30, /* after its limit a call is not called back any more */
    SCAN = 10,   /* between looks for threads of the library's */
    CANCEL = 3,  /* between cancels */
    ERA = 60,    /* with the same clients, at most */
    PATIENCE = 80
};

/* What was started once. */
typedef struct started {
    struct lodger *of;
    bool pending, untold;
    int beats; /* past its limit, while the loop ran */
    int64_t limit_us, over_us;
    rlock_status status;
    rlock_permit *permit; /* that was taken */
} started;

/* An owner, or rather a place for one after the other. */
typedef struct lodger {
    actor actor;
    fiber fiber;
    _Atomic(rlock_owner *) owner;
    char label[RLOCK_LABEL_MAX + 1];
    int number;
    atomic_int generation;     /* of the next owner */
    bool ready, resting, left; /* left: its owner was freed while it waited */
    int64_t due_us;            /* is ready then; INT64_MAX: never */
    int64_t leave_us;          /* its owner is freed then */
    started calls[CALLS];
    unsigned n_calls;
    rlock_status asked; /* by the clerk */
    rlock_holder holder;
} lodger;

static struct {
    int epoll;
    lodger lodgers[OWNERS];
    lodger *running;
    /* When a client's descriptor was last seen not to be readable, and that of
       the client that calls back now; or when the loop began to free clients,
       which is timed by itself. */
    int64_t looked_us[SERVERS], posted_us;
    int64_t beat_us;
    unsigned beats, era_ends, gives_up;
    uint64_t rng;
    clerk clerk;
} l;

/* --- owners ----------------------------------------------------------------
 */

static void make_owner(lodger *o)
{
    rlock_owner *owner;
    snprintf(o->label, sizeof o->label, "loop-%d-%d-%d", me.life, o->number,
             atomic_load(&o->generation));
    shim_spare_me(true);
    if (rlock_owner_new(o->label, &owner) != RLOCK_OK)
        attack_die("%s", rlock_last_error()->message);
    shim_spare_me(false);
    atomic_store(&o->owner, owner);
    atomic_fetch_add(&o->generation, 1);
    o->left = false;
}

/* The label is its own only: another one may have been freed meanwhile. */
bool loop_is_me(const char *label)
{
    return strcmp(l.running->label, label) == 0;
}

bool loop_owner_runs(void)
{
    return l.running != NULL;
}

/* Of one that was freed meanwhile, nobody is told any more. */
actor *loop_actor(const char *label)
{
    int life, number, generation;
    if (sscanf(label, "loop-%d-%d-%d", &life, &number, &generation) != 3 ||
        number < 0 || number >= OWNERS)
        return NULL;
    lodger *o = &l.lodgers[number];
    bool current = atomic_load(&o->generation) == generation + 1;
    return current ? &o->actor : NULL;
}

/* Enters the owner's stack, until it waits for something. */
static void run(lodger *o)
{
    o->ready = false;
    o->due_us = INT64_MAX;
    if (o->left)
        make_owner(o);
    l.running = o;
    act_as(&o->actor);
    rlock_owner_set(o->owner);
    fiber_enter(&o->fiber);
    rlock_owner_set(NULL);
    act_as(NULL);
    l.running = NULL;
}

/* Until it is ready. */
static void leave(void)
{
    fiber_leave(&l.running->fiber);
}

void loop_sleep(int64_t us)
{
    lodger *o = l.running;
    o->due_us = attack_now_us() + us;
    leave();
}

void loop_free_owner(void)
{
    lodger *o = l.running;
    rlock_owner_free(o->owner);
    make_owner(o);
    rlock_owner_set(o->owner);
}

/*
 * What the owner before had when the clients were freed is left in Redis until
 * its lease has run out. There may be new clients before it has slept enough.
 */
void loop_rest(int64_t us)
{
    lodger *o = l.running;
    bool anew = me.closed;
    o->resting = true;
    loop_sleep(us);
    anew = anew || me.closed;
    while (me.closed && !atomic_load(&me.a->stop))
        loop_sleep(BEAT_US);
    if (anew)
        loop_free_owner();
    o->resting = false;
}

/* --- calls -----------------------------------------------------------------
 */

static started *last_call(lodger *o)
{
    return &o->calls[(o->n_calls + CALLS - 1) % CALLS];
}

static bool waits(lodger *o)
{
    return last_call(o)->pending;
}

static void called_back(started *c, rlock_status s)
{
    c->pending = false;
    c->status = s;
    c->over_us = l.posted_us;
    c->of->leave_us = INT64_MAX;
    c->of->ready = true;
}

/* Some go on in the callback, which may start the next thing. */
static void done(rlock *lk, rlock_status s, void *arg)
{
    started *c = arg;
    (void)lk;
    if (!c->pending || l.running) { /* or from within a call */
        worker_notice(NOTE_TOLD_TWICE, 0, c->limit_us, 0, s);
        return;
    }
    called_back(c, s);
    if (!me.closed && !c->of->left && c->of->number % 2)
        run(c->of);
}

static void done_permit(rlock_permit *p, rlock_status s, void *arg)
{
    started *c = arg;
    c->permit = p;
    done(NULL, s, c);
}

/* Of a client that was closed they are to be freed still, which asks nobody. */
static rlock_status begin_giving_back(const wish *w, started *c)
{
    rlock_permit *p = *w->permit;
    rlock_status s = rlock_permit_release_start(p, done_permit, c);
    if (s == RLOCK_ENOMEM)
        return s;
    *w->permit = NULL;
    return s == RLOCK_OK ? s : rlock_permit_release(p);
}

static rlock_status begin(const wish *w, started *c)
{
    switch (w->verb) {
    case CALL_ACQUIRE:
        return rlock_acquire_start(w->lk, w->wait_ms, w->lease_ms, done, c);
    case CALL_UNLOCK:
        return rlock_unlock_start(w->lk, done, c);
    case CALL_EXTEND:
        return rlock_extend_start(w->lk, w->lease_ms, done, c);
    case CALL_TAKE:
        return rlock_semaphore_acquire_start(
            w->semaphore, w->permits, w->wait_ms, w->lease_ms, done_permit, c);
    default:
        return begin_giving_back(w, c);
    }
}

rlock_status loop_call(const wish *w, int64_t limit_us, int64_t *over_us)
{
    lodger *o = l.running;
    started *c = &o->calls[o->n_calls++ % CALLS];
    *c = (started){.of = o, .pending = true, .limit_us = limit_us};
    rlock_status s = begin(w, c);
    if (s != RLOCK_OK)
        called_back(c, s);
    else if (w->leave_us)
        o->leave_us = attack_now_us() + w->leave_us;
    while (c->pending)
        leave();
    if (s != RLOCK_OK)
        c->over_us = attack_now_us();
    if (w->verb == CALL_TAKE)
        *w->permit = c->permit;
    if (c->status == RLOCK_EINVAL)
        worker_notice(NOTE_REFUSED, 0, 0, 0, s);
    *over_us = c->over_us;
    return c->status;
}

rlock_status loop_holder_info(rlock *lk, rlock_holder *who)
{
    lodger *o = l.running;
    if (!clerk_ask(&l.clerk, lk, o))
        return RLOCK_BUSY;
    leave();
    *who = o->holder;
    return o->asked;
}

/* --- clients come and go ---------------------------------------------------
 */

static void watch_clients(void)
{
    shim_spare_me(true);
    for (int i = 0; i < SERVERS; i++) {
        struct epoll_event ev = {.data.u32 = (uint32_t)i};
        ev.events = EPOLLIN | (me.life % 2 ? EPOLLET : 0);
        if (epoll_ctl(l.epoll, EPOLL_CTL_ADD, rlock_client_fd(me.cl[i]), &ev))
            attack_die("cannot watch a client: %s", strerror(errno));
        l.looked_us[i] = attack_now_us();
    }
    shim_spare_me(false);
    l.era_ends = l.beats + 10 + (unsigned)attack_pick(&l.rng, ERA);
}

static void note_untold(started *c)
{
    if (!c->untold)
        worker_notice(NOTE_UNTOLD, 0, c->limit_us, attack_now_us(), 0);
    c->untold = true;
}

/* Whatever is under way is called back by then. */
static void close_clients(void)
{
    me.closed = true;
    l.posted_us = attack_now_us();
    for (int i = 0; i < SERVERS; i++)
        epoll_ctl(l.epoll, EPOLL_CTL_DEL, rlock_client_fd(me.cl[i]), NULL);
    worker_free_clients();
    for (int i = 0; i < OWNERS; i++) {
        lodger *o = &l.lodgers[i];
        if (!waits(o))
            continue;
        note_untold(last_call(o));
        called_back(last_call(o), RLOCK_ECLOSED);
    }
}

/* When nobody has anything of theirs any more. */
static void perhaps_make_clients(void)
{
    for (int i = 0; i < OWNERS; i++)
        if (!l.lodgers[i].resting)
            return;
    worker_begin_anew();
    me.closed = false;
    watch_clients();
}

/* --- the loop --------------------------------------------------------------
 */

static void free_who_leaves(lodger *o)
{
    o->leave_us = INT64_MAX;
    if (!waits(o))
        return;
    o->left = true;
    rlock_owner_free(o->owner);
}

static void run_those_ready(int64_t now_us)
{
    for (int i = 0; i < OWNERS; i++) {
        lodger *o = &l.lodgers[i];
        if (o->leave_us <= now_us)
            free_who_leaves(o);
        if (!o->fiber.over && (o->ready || o->due_us <= now_us))
            run(o);
    }
}

static int wait_ms(void)
{
    int64_t now_us = attack_now_us(), until_us = now_us + TURN_MS * 1000;
    for (int i = 0; i < OWNERS; i++) {
        const lodger *o = &l.lodgers[i];
        int64_t due_us = o->ready                  ? now_us
                         : o->due_us < o->leave_us ? o->due_us
                                                   : o->leave_us;
        if (!o->fiber.over && due_us < until_us)
            until_us = due_us;
    }
    return until_us <= now_us ? 0 : (int)((until_us - now_us + 999) / 1000);
}

static void take_answer(void)
{
    rlock_status s;
    rlock_holder holder;
    lodger *o = clerk_answer(&l.clerk, &s, &holder);
    o->asked = s;
    o->holder = holder;
    o->ready = true;
}

/* What is there now has come since the last look. */
static void dispatch(int server)
{
    l.posted_us = l.looked_us[server];
    l.looked_us[server] = attack_now_us();
    rlock_client_dispatch(me.cl[server]);
}

static void look(void)
{
    struct epoll_event ev[SERVERS + 1];
    bool readable[SERVERS] = {false};
    int64_t now_us = attack_now_us();
    int n = epoll_wait(l.epoll, ev, SERVERS + 1, wait_ms());
    for (int i = 0; i < n; i++) {
        if (ev[i].data.u32 == SERVERS) {
            take_answer();
            continue;
        }
        readable[ev[i].data.u32] = true;
        dispatch((int)ev[i].data.u32);
    }
    for (int i = 0; n >= 0 && i < SERVERS; i++)
        if (!readable[i])
            l.looked_us[i] = now_us;
}

static void count_beats(int64_t now_us)
{
    for (int i = 0; i < OWNERS; i++) {
        started *c = last_call(&l.lodgers[i]);
        if (c->pending && now_us > c->limit_us && ++c->beats == UNTOLD)
            note_untold(c);
    }
}

static void cancel(int lock)
{
    if (me.semaphores[lock])
        rlock_semaphore_cancel(me.semaphores[lock]);
    else
        rlock_cancel(me.outer[lock]);
}

/* From time to time, as long as the loop runs at all. */
static void beat(int64_t now_us)
{
    if (now_us < l.beat_us)
        return;
    l.beat_us = now_us + BEAT_US;
    l.beats++;
    count_beats(now_us);
    if (l.beats % SCAN == 0)
        queued_with("rlock-loop");
    if (me.closed)
        perhaps_make_clients();
    else if (atomic_load(&me.a->stop) ? l.gives_up && l.beats >= l.gives_up
                                      : l.beats >= l.era_ends)
        close_clients();
    else if (l.beats % CANCEL == 0)
        cancel(attack_pick(&l.rng, LOCKS));
    if (!l.gives_up && atomic_load(&me.a->stop))
        l.gives_up = l.beats + PATIENCE;
}

static bool is_over(void)
{
    for (int i = 0; i < OWNERS; i++)
        if (!l.lodgers[i].fiber.over)
            return false;
    return true;
}

static void live(void *arg)
{
    labour(((lodger *)arg)->number);
}

static void move_in(lodger *o, int number)
{
    o->number = number;
    o->due_us = o->leave_us = INT64_MAX;
    o->ready = true;
    make_owner(o);
    if (!fiber_init(&o->fiber, live, o))
        attack_die("no stack: %s", strerror(errno));
}

static void begin_loop(void)
{
    l.rng = me.a->seed + (uint64_t)me.life;
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    clerk_start(&l.clerk);
    struct epoll_event ev = {.events = EPOLLIN, .data.u32 = SERVERS};
    if (l.epoll < 0 || epoll_ctl(l.epoll, EPOLL_CTL_ADD, l.clerk.fd, &ev))
        attack_die("no loop: %s", strerror(errno));
    queued_begin();
    watch_clients();
    for (int i = 0; i < OWNERS; i++)
        move_in(&l.lodgers[i], i);
}

void loop_run(void)
{
    begin_loop();
    while (!is_over()) {
        look();
        run_those_ready(attack_now_us());
        beat(attack_now_us());
    }
    clerk_stop(&l.clerk);
    queued_end();
    for (int i = 0; i < OWNERS; i++) {
        rlock_owner_free(l.lodgers[i].owner);
        fiber_fini(&l.lodgers[i].fiber);
    }
}
