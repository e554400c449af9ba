/*
 * Jobs that have been started, each in one of these places:
 *
 *   inbox --> in line --> at a desk: asks --> sleeps --> in line ...
 *                            `--> over
 *
 * At a desk (run/desk.h) it has what only one who is awake needs. There are
 * few desks, so thousands of waits cost what is in rl_started and the job, and
 * thousands that begin at once go in turns.
 *
 * What stays true: who drives acts as a job's owner while he calls the job, and
 * as before else; a job that sleeps is in the heap, or, without memory for
 * that, among the restless, and its waker, which others call under the mutexes
 * of the core, only puts it into the list of those woken (this mutex is a
 * leaf). A wake-up that comes while it asks is kept until it sleeps.
 */
#include <stdlib.h>

#include "op/round.h"
#include "run/async.h"
#include "run/desk.h"

/* More at a time fill a server's pipeline no better. */
#define DESKS 256

/*
 * Those who sit there may all be waiting for a server that hangs, and others in
 * line want another one: each time that nobody has left for so long there are
 * as many desks more, up to a limit.
 */
#define STUCK_US   20000
#define MOST_DESKS (16 * DESKS)

/* Those beyond that nobody has sat at for so long are not kept. */
#define DESKS_KEPT 64
#define TIDY_US    1000000

/* --- being woken ---------------------------------------------------------- */

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
    rl_async_call_locked(a);
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

void rl_async_put(rl_async *a, rl_started *s)
{
    s->async = a;
    s->waker.wake = wake;
    rl_mutex_lock(&a->mutex);
    rl_list_add_last(&a->inbox, &s->link);
    rl_mutex_unlock(&a->mutex);
}

/* Why it is awake now; a cancel or a close stays. */
static rl_wake why_awake(rl_started *s)
{
    rl_async *a = s->async;
    rl_mutex_lock(&a->mutex);
    rl_wake why = s->why;
    if (why < RL_WAKE_CANCEL)
        s->why = RL_WAKE_NONE;
    else
        s->heeded = why;
    s->op->rung |= s->rung;
    s->rung = 0;
    if (rl_link_is_in(&s->woken_link))
        rl_list_remove(&s->woken_link);
    rl_mutex_unlock(&a->mutex);
    return why;
}

/*
 * An operation that sleeps again although it has been told to end has to wait
 * for somebody (rl_room_rise()), who wakes it.
 */
static bool is_woken(rl_started *s)
{
    rl_mutex_lock(&s->async->mutex);
    bool woken = s->why > s->heeded || rl_link_is_in(&s->woken_link);
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
void rl_async_take_woken(rl_async *a)
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

/* Nobody knows which of them is the first, or is told who was woken. */
static void take_restless(rl_async *a, int64_t now_us)
{
    rl_link *next;
    for (rl_link *k = rl_list_first(&a->restless); k; k = next) {
        rl_started *s = RL_CONTAINER(k, rl_started, link);
        next = rl_list_next(&a->restless, k);
        if (s->due.due_us > now_us && !is_woken(s) && !a->closing)
            continue;
        rl_list_remove(k);
        line_up(s);
    }
}

void rl_async_take_due(rl_async *a, int64_t now_us)
{
    rl_heap_node *n;
    while ((n = rl_heap_first(&a->sleeping)) != NULL && n->due_us <= now_us)
        line_up(RL_CONTAINER(n, rl_started, due));
    take_restless(a, now_us);
}

/* --- desks ---------------------------------------------------------------- */

static bool has_room(const rl_async *a)
{
    if (a->desks < DESKS)
        return true;
    int64_t times = 1 + (rl_now_us() - a->left_us) / STUCK_US;
    return (int64_t)a->desks < rl_min(times * DESKS, MOST_DESKS);
}

static rl_desk *take_desk(rl_async *a)
{
    rl_link *k = rl_list_first(&a->idle);
    if (k) {
        rl_list_remove(k);
        return RL_CONTAINER(k, rl_desk, link);
    }
    rl_desk *d = has_room(a) ? calloc(1, sizeof *d) : NULL;
    a->desks += d != NULL;
    return d;
}

bool rl_async_furnish(rl_async *a)
{
    if (!a->spare)
        a->spare = malloc(RL_PARTS_MAX * sizeof *a->spare);
    rl_desk *d = a->desks == 0 ? take_desk(a) : NULL;
    if (d)
        rl_list_add_first(&a->idle, &d->link);
    return a->spare && a->desks > 0;
}

void rl_async_tidy(rl_async *a, int64_t now_us)
{
    rl_link *k;
    if (now_us - a->tidied_us < TIDY_US)
        return;
    a->tidied_us = now_us;
    size_t kept = a->most > DESKS_KEPT ? a->most : DESKS_KEPT;
    a->most = a->at_desks;
    while (a->desks > kept && (k = rl_list_first(&a->idle)) != NULL) {
        rl_list_remove(k);
        free(RL_CONTAINER(k, rl_desk, link));
        a->desks--;
    }
    rl_heap_trim(&a->sleeping);
    rl_trunks_tidy(&a->trunks);
}

static void leave_desk(rl_started *s)
{
    rl_async *a = s->async;
    rl_desk *d = s->desk;
    a->at_desks--;
    rl_desk_put_away(d, a);
    s->desk = NULL;
    a->left_us = rl_now_us();
    if (rl_link_is_in(&d->link))
        rl_list_remove(&d->link);
    if (a->desks > DESKS) {
        a->desks--;
        free(d);
        return;
    }
    rl_list_add_first(&a->idle, &d->link);
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
    if (s->reserved)
        rl_heap_unreserve(&s->async->sleeping);
    end(s);
}

static void sleep_until(rl_started *s, int64_t until_us)
{
    rl_async *a = s->async;
    leave_desk(s);
    s->reserved = s->reserved || rl_heap_reserve(&a->sleeping);
    if (s->reserved) {
        rl_heap_set(&a->sleeping, &s->due, until_us);
        return;
    }
    s->due.due_us = until_us;
    rl_list_add_last(&a->restless, &s->link);
}

/* The next operation of the job. False: it is over. */
static bool begin_op(rl_started *s)
{
    s->job->lent = &s->desk->part;
    s->op = s->job->next(s->job);
    if (s->op)
        s->op->waker = &s->waker;
    s->sleeps = s->told = false;
    s->heeded = RL_WAKE_NONE;
    return s->op != NULL;
}

/* The client is being freed: each operation that sleeps is told, once. */
static rl_wake why_awake_or_closed(rl_started *s)
{
    rl_wake why = why_awake(s);
    if (!s->async->closing || s->told)
        return why;
    s->told = true;
    return RL_WAKE_CLOSE;
}

static rl_next resume(rl_started *s, int64_t now_us)
{
    rl_wake why = s->sleeps ? why_awake_or_closed(s) : RL_WAKE_NONE;
    s->op->lent = &s->desk->part;
    s->sleeps = false;
    return s->op->resume(s->op, why, now_us);
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
        if (!rl_desk_get_ready(d, s->op, s->async)) {
            sleep_until(s, rl_now_us() + RL_RETRY_US);
            return;
        }
        int64_t now_us = rl_now_us();
        switch (resume(s, now_us)) {
        case RL_DONE:
            rl_desk_put_away(d, s->async);
            s->op = NULL;
            break;
        case RL_SLEEP:
            rl_legs_close(&d->legs);
            rl_op_tell(s->op);
            s->sleeps = true;
            if (wakes_at_once(s))
                break;
            sleep_until(s, s->op->sleep_us);
            return;
        case RL_ASK:
            rl_round_begin(s->op);
            if (rl_desk_go_round(d, now_us))
                break;
            rl_async_await(s->async, d);
            return;
        }
    }
    end_at_desk(s);
}

static _Thread_local rl_async *driven;
static _Thread_local bool *telling; /* of the job that is driven */

rl_async *rl_async_driven_here(void)
{
    return driven;
}

bool *rl_async_telling_here(void)
{
    return telling;
}

void rl_started_post(rl_started *s, rl_completion *l)
{
    l->busy = &s->telling;
    l->ends = true;
    rl_completions_post(s->async->completions, l);
}

/* It calls nobody back (run/event.c), so it drives for one client at a time.
 */
static void act(rl_started *s)
{
    rlock_owner *former = rl_owner_drive_as(s->owner);
    s->async->most_steps--;
    driven = s->async;
    telling = &s->telling;
    go_on(s);
    driven = NULL;
    telling = NULL;
    rl_owner_drive_end(former);
}

/* Its first step is to be at a desk. */
static void enlist(rl_async *a, rl_started *s)
{
    a->jobs++;
    s->reserved = rl_heap_reserve(&a->sleeping);
    line_up(s);
}

void rl_async_take_inbox(rl_async *a)
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
        enlist(a, RL_CONTAINER(k, rl_started, link));
    }
}

/* Who stands in line, as far as there are desks. */
void rl_async_admit(rl_async *a)
{
    rl_link *k;
    while (a->most_steps > 0 && (k = rl_list_first(&a->in_line)) != NULL) {
        rl_desk *d = take_desk(a);
        if (!d)
            return;
        rl_started *s = RL_CONTAINER(k, rl_started, link);
        rl_list_remove(k);
        s->desk = d;
        d->who = s;
        a->at_desks++;
        if (a->most < a->at_desks)
            a->most = a->at_desks;
        act(s);
    }
}

void rl_async_await(rl_async *a, rl_desk *d)
{
    a->first_us = rl_min(a->first_us, d->until_us);
    a->unseen = a->unseen || rl_desk_is_unseen(d);
    if (!rl_link_is_in(&d->link))
        rl_list_add_last(&a->asking, &d->link);
}

static bool has_news(rl_desk *d, const struct pollfd *p, size_t n,
                     int64_t now_us)
{
    if (d->polled)
        return false;
    return d->at_poll < n
               ? rl_desk_look(d, p + d->at_poll, n - d->at_poll, now_us)
               : rl_desk_look(d, NULL, 0, now_us);
}

void rl_async_look_at_desks(rl_async *a, const struct pollfd *p, size_t n)
{
    rl_link *next;
    int64_t now_us = rl_now_us();
    for (rl_link *k = rl_list_first(&a->asking); k && a->most_steps > 0;
         k = next) {
        rl_desk *d = RL_CONTAINER(k, rl_desk, link);
        next = rl_list_next(&a->asking, k);
        if (!has_news(d, p, n, now_us))
            continue;
        if (rl_desk_go_round(d, rl_now_us())) {
            rl_list_remove(k);
            act(d->who);
            continue;
        }
        rl_async_await(a, d);
        a->most_steps -= !rl_desk_is_expecting(d); /* it has asked */
    }
}

void rl_async_close_waits(rl_async *a)
{
    rl_heap_node *n;
    a->closing = true;
    while ((n = rl_heap_first(&a->sleeping)) != NULL)
        line_up(RL_CONTAINER(n, rl_started, due));
}
