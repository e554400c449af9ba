/*
 * The thread's loop. A job is in one of these places:
 *
 *   inbox --> in line --> at a desk: asks --> sleeps --> in line ...
 *                            `--> over
 *
 * At a desk (drive/desk.h) it has what only one who is awake needs. There are
 * few desks, so thousands of waits cost what is in rl_started and the job, and
 * thousands that begin at once go in turns.
 *
 * What stays true: the thread acts as a job's owner while it calls the job, and
 * as itself else; a job that sleeps is in the heap, and its waker, which others
 * call under the mutexes of the core, only puts it into the list of those woken
 * (this mutex is a leaf). A wake-up that comes while it asks is kept until it
 * sleeps.
 */
#include "drive/async.h"

#include <poll.h>
#include <stdlib.h>

#include "core/round.h"
#include "drive/desk.h"

/* More at a time fill a server's pipeline no better. */
#define DESKS 256

/* Without memory for a desk, or a descriptor, it is tried again after that. */
#define RETRY_US 10000

/* poll() does not notice that the machine slept; the lease clock does. */
#define SLICE_US 1000000

#define FIRST_POLL_ROOM 16

/* --- being woken ---------------------------------------------------------- */

static void raise_locked(rl_async *a) RL_REQUIRES(&a->mutex)
{
    if (!a->awake)
        rl_signal_raise(&a->signal);
    a->awake = true;
}

static void note_woken(rl_started *s, rl_wake why, unsigned node)
{
    rl_async *a = s->async;
    rl_mutex_lock(&a->mutex);
    if (s->why < why)
        s->why = why;
    if (why == RL_WAKE_RUNG)
        s->rung |= 1u << node;
    if (!s->ended && !rl_link_is_in(&s->woken_link))
        rl_list_add_last(&a->woken, &s->woken_link);
    raise_locked(a);
    rl_mutex_unlock(&a->mutex);
}

static void wake(rl_waker *w, rl_wake why, unsigned node)
{
    note_woken(RL_CONTAINER(w, rl_started, waker), why, node);
}

void rl_started_cancel(rl_started *s)
{
    note_woken(s, RL_WAKE_CANCEL, 0);
}

/* Why it is awake now; a cancel or a close stays. */
static rl_wake why_awake(rl_started *s)
{
    rl_async *a = s->async;
    rl_mutex_lock(&a->mutex);
    rl_wake why = s->why;
    if (why < RL_WAKE_CANCEL)
        s->why = RL_WAKE_NONE;
    s->op->rung |= s->rung;
    s->rung = 0;
    if (rl_link_is_in(&s->woken_link))
        rl_list_remove(&s->woken_link);
    rl_mutex_unlock(&a->mutex);
    return why;
}

static bool is_woken(rl_started *s)
{
    rl_mutex_lock(&s->async->mutex);
    bool woken = s->why != RL_WAKE_NONE;
    rl_mutex_unlock(&s->async->mutex);
    return woken;
}

static void line_up(rl_started *s)
{
    rl_heap_remove(&s->async->sleeping, &s->due);
    if (!rl_link_is_in(&s->link))
        rl_list_add_last(&s->async->in_line, &s->link);
}

/* Those that ask are not in the heap, and look when they sleep. */
static void take_woken(rl_async *a)
{
    rl_link *k;
    rl_mutex_lock(&a->mutex);
    while ((k = rl_list_first(&a->woken)) != NULL) {
        rl_started *s = RL_CONTAINER(k, rl_started, woken_link);
        rl_list_remove(k);
        if (s->due.at)
            line_up(s);
    }
    rl_mutex_unlock(&a->mutex);
}

static void take_due(rl_async *a, int64_t now_us)
{
    rl_heap_node *n;
    while ((n = rl_heap_first(&a->sleeping)) != NULL && n->due_us <= now_us)
        line_up(RL_CONTAINER(n, rl_started, due));
}

/* --- desks ---------------------------------------------------------------- */

static rl_desk *take_desk(rl_async *a)
{
    rl_link *k = rl_list_first(&a->idle);
    if (k) {
        rl_list_remove(k);
        return RL_CONTAINER(k, rl_desk, link);
    }
    rl_desk *d = a->desks < DESKS ? calloc(1, sizeof *d) : NULL;
    a->desks += d != NULL;
    return d;
}

static void leave_desk(rl_started *s)
{
    rl_desk *d = s->desk;
    rl_desk_put_away(d);
    s->desk = NULL;
    if (rl_link_is_in(&d->link))
        rl_list_remove(&d->link);
    rl_list_add_first(&s->async->idle, &d->link);
}

/* --- a job ---------------------------------------------------------------- */

/* From here on nobody wakes it. */
static void end(rl_started *s)
{
    rl_async *a = s->async;
    rl_mutex_lock(&a->mutex);
    s->ended = true;
    if (rl_link_is_in(&s->woken_link))
        rl_list_remove(&s->woken_link);
    rl_mutex_unlock(&a->mutex);
    a->jobs--;
    s->over(s);
}

static void end_at_desk(rl_started *s)
{
    leave_desk(s);
    rl_heap_unreserve(&s->async->sleeping);
    end(s);
}

static void sleep_until(rl_started *s, int64_t until_us)
{
    leave_desk(s);
    rl_heap_set(&s->async->sleeping, &s->due, until_us);
}

/* The next operation of the job. False: it is over. */
static bool begin_op(rl_started *s)
{
    s->job->lent = &s->desk->part;
    s->op = s->job->next(s->job);
    if (s->op)
        s->op->waker = &s->waker;
    s->sleeps = false;
    return s->op != NULL;
}

/* The client is being freed: each wait is told, once. */
static rl_wake why_awake_or_closed(rl_started *s)
{
    rl_wake why = why_awake(s);
    if (!s->async->closing || s->told)
        return why;
    s->told = true;
    return RL_WAKE_CLOSE;
}

static rl_next resume(rl_started *s)
{
    rl_wake why = s->sleeps ? why_awake_or_closed(s) : RL_WAKE_NONE;
    s->op->lent = &s->desk->part;
    s->sleeps = false;
    return s->op->resume(s->op, why, rl_now_us());
}

/* It need not leave its desk: why it is to wake up is known already. */
static bool wakes_at_once(rl_started *s)
{
    return is_woken(s) || (s->async->closing && !s->told);
}

/* At its desk: until it asks, sleeps, or is over. */
static void go_on(rl_started *s)
{
    rl_desk *d = s->desk;
    while (s->op || begin_op(s)) {
        if (!rl_desk_get_ready(d, s->op, &s->async->trunks)) {
            sleep_until(s, rl_now_us() + RETRY_US);
            return;
        }
        switch (resume(s)) {
        case RL_DONE:
            rl_desk_put_away(d);
            s->op = NULL;
            break;
        case RL_SLEEP:
            rl_legs_close(&d->legs);
            s->sleeps = true;
            if (wakes_at_once(s))
                break;
            sleep_until(s, s->op->sleep_us);
            return;
        case RL_ASK:
            rl_round_begin(s->op);
            if (rl_desk_go_round(d))
                break;
            if (!rl_link_is_in(&d->link))
                rl_list_add_last(&s->async->asking, &d->link);
            return;
        }
    }
    end_at_desk(s);
}

static void act(rl_started *s)
{
    rl_owner_drive_as(s->owner);
    go_on(s);
    rl_owner_drive_as(NULL);
}

/* --- the loop ------------------------------------------------------------- */

/* Its first step is to be at a desk. Without memory for its sleep it is over.
 */
static void admit(rl_async *a, rl_started *s)
{
    a->jobs++;
    if (rl_heap_reserve(&a->sleeping)) {
        line_up(s);
        return;
    }
    s->job->status = rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    end(s);
}

static void take_inbox(rl_async *a)
{
    rl_list fresh;
    rl_link *k;
    rl_list_init(&fresh);
    rl_mutex_lock(&a->mutex);
    while ((k = rl_list_first(&a->inbox)) != NULL) {
        rl_list_remove(k);
        rl_list_add_last(&fresh, k);
    }
    rl_mutex_unlock(&a->mutex);
    while ((k = rl_list_first(&fresh)) != NULL) {
        rl_list_remove(k);
        admit(a, RL_CONTAINER(k, rl_started, link));
    }
}

/* Who stands in line, as far as there are desks. */
static void seat_those_in_line(rl_async *a)
{
    rl_link *k;
    while ((k = rl_list_first(&a->in_line)) != NULL) {
        rl_desk *d = take_desk(a);
        if (!d)
            return;
        rl_started *s = RL_CONTAINER(k, rl_started, link);
        rl_list_remove(k);
        s->desk = d;
        d->who = s;
        act(s);
    }
}

static bool has_news(const rl_async *a, rl_desk *d)
{
    size_t n = d->polled < a->polled ? a->polled - d->polled : 0;
    return rl_desk_look(d, a->poll + d->polled, n);
}

static void look_at_desks(rl_async *a)
{
    rl_link *next;
    for (rl_link *k = rl_list_first(&a->asking); k; k = next) {
        rl_desk *d = RL_CONTAINER(k, rl_desk, link);
        next = rl_list_next(&a->asking, k);
        if (has_news(a, d) && rl_desk_go_round(d)) {
            rl_list_remove(k);
            act(d->who);
        }
    }
}

/* Without memory it is looked at when its time is over. */
static void add_to_poll(rl_async *a, struct pollfd p)
{
    if (a->polled == a->poll_room) {
        size_t room = a->poll_room * 2;
        struct pollfd *more = realloc(a->poll, room * sizeof *more);
        if (!more)
            return;
        a->poll = more;
        a->poll_room = room;
    }
    a->poll[a->polled++] = p;
}

/* The signal, the trunks, and then each desk's legs. */
static void collect_polled(rl_async *a)
{
    a->polled = 0;
    add_to_poll(a, (struct pollfd){.fd = a->signal.fd, .events = POLLIN});
    for (rl_link *k = rl_list_first(&a->trunks.all); k;
         k = rl_list_next(&a->trunks.all, k)) {
        const rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        if (t->share)
            add_to_poll(a, rl_trunk_poll(t));
    }
    for (rl_link *k = rl_list_first(&a->asking); k;
         k = rl_list_next(&a->asking, k)) {
        rl_desk *d = RL_CONTAINER(k, rl_desk, link);
        d->polled = a->polled;
        for (size_t i = 0; i < d->legs.n; i++)
            add_to_poll(a, rl_desk_poll(d, i));
    }
}

static int64_t wake_up_us(const rl_async *a)
{
    int64_t us = rl_now_us() + SLICE_US;
    const rl_heap_node *n = rl_heap_first(&a->sleeping);
    if (n)
        us = rl_min(us, n->due_us);
    if (!rl_list_is_empty(&a->in_line) && rl_list_is_empty(&a->asking))
        us = rl_min(us, rl_now_us() + RETRY_US);
    for (rl_link *k = rl_list_first(&a->asking); k;
         k = rl_list_next(&a->asking, k))
        us = rl_min(us, RL_CONTAINER(k, rl_desk, link)->until_us);
    return us;
}

/* May it sleep? Then whoever has something for it raises the signal. */
static bool doze_off(rl_async *a)
{
    rl_mutex_lock(&a->mutex);
    a->awake = !rl_list_is_empty(&a->inbox) || !rl_list_is_empty(&a->woken) ||
               (a->stopping && !a->closing);
    bool sleeps = !a->awake;
    rl_mutex_unlock(&a->mutex);
    return sleeps;
}

static void wait_for_news(rl_async *a)
{
    collect_polled(a);
    int ms = doze_off(a) ? rl_poll_ms(wake_up_us(a)) : 0;
    if (poll(a->poll, a->polled, ms) <= 0)
        for (size_t i = 0; i < a->polled; i++)
            a->poll[i].revents = 0;
    rl_mutex_lock(&a->mutex);
    a->awake = true;
    rl_mutex_unlock(&a->mutex);
    if (a->poll[0].revents)
        rl_signal_clear(&a->signal);
}

static void close_waits(rl_async *a)
{
    rl_heap_node *n;
    a->closing = true;
    while ((n = rl_heap_first(&a->sleeping)) != NULL)
        line_up(RL_CONTAINER(n, rl_started, due));
}

/* False: it is to end, and every job is over. */
static bool goes_on(rl_async *a)
{
    rl_mutex_lock(&a->mutex);
    bool stopping = a->stopping, empty = rl_list_is_empty(&a->inbox);
    rl_mutex_unlock(&a->mutex);
    if (stopping && !a->closing)
        close_waits(a);
    return !stopping || !empty || a->jobs > 0;
}

static void *run(void *arg)
{
    rl_async *a = arg;
    while (goes_on(a)) {
        take_inbox(a);
        take_woken(a);
        take_due(a, rl_now_us());
        seat_those_in_line(a);
        rl_trunks_serve(&a->trunks, NULL, 0);
        wait_for_news(a);
        rl_trunks_serve(&a->trunks, a->poll + 1, a->polled - 1);
        rl_trunks_look(&a->trunks);
        look_at_desks(a);
    }
    rl_trunks_close(&a->trunks);
    return NULL;
}

/* --- from other threads --------------------------------------------------- */

void rl_async_init(rl_async *a)
{
    rl_mutex_init(&a->starting);
    rl_mutex_init(&a->mutex);
    rl_list_init(&a->inbox);
    rl_list_init(&a->woken);
    rl_list_init(&a->in_line);
    rl_list_init(&a->asking);
    rl_list_init(&a->idle);
    a->signal = RL_SIGNAL_NONE;
    rl_trunks_init(&a->trunks, &a->signal);
}

void rl_async_fini(rl_async *a, bool forked)
{
    rl_link *k;
    rl_signal_fini(&a->signal);
    if (forked)
        return;
    while ((k = rl_list_first(&a->idle)) != NULL) {
        rl_list_remove(k);
        free(RL_CONTAINER(k, rl_desk, link));
    }
    free(a->poll);
    rl_heap_fini(&a->sleeping);
    rl_mutex_fini(&a->mutex);
    rl_mutex_fini(&a->starting);
}

static bool run_locked(rl_async *a) RL_REQUIRES(&a->starting)
{
    if (!a->poll) {
        a->poll_room = FIRST_POLL_ROOM;
        a->poll = malloc(a->poll_room * sizeof *a->poll);
    }
    if (!a->poll || (a->signal.fd < 0 && !rl_signal_init(&a->signal)))
        return false;
    return a->thread.started ||
           rl_thread_start(&a->thread, "rlock-async", run, a);
}

bool rl_async_run(rl_async *a)
{
    if (atomic_load(&a->started))
        return true;
    rl_mutex_lock(&a->starting);
    bool ok = run_locked(a);
    atomic_store(&a->started, ok);
    rl_mutex_unlock(&a->starting);
    return ok;
}

void rl_async_start(rl_async *a, rl_started *s)
{
    s->async = a;
    s->waker.wake = wake;
    rl_mutex_lock(&a->mutex);
    rl_list_add_last(&a->inbox, &s->link);
    raise_locked(a);
    rl_mutex_unlock(&a->mutex);
}

void rl_async_stop(rl_async *a)
{
    if (!atomic_load(&a->started))
        return;
    rl_mutex_lock(&a->mutex);
    a->stopping = true;
    raise_locked(a);
    rl_mutex_unlock(&a->mutex);
    rl_thread_join(&a->thread);
}
