/*
 * Who drives the jobs (run/started.c)? The loop, but a thread costs a switch
 * for each answer. So who starts a job takes its first step, and who dispatches
 * reads what has come, if nobody drives at the moment; his descriptor is
 * readable when something comes. While he comes regularly the loop leaves that
 * to him: it looks out for the ends of connections only, and after a while
 * whether he has come.
 * Connections that only one job has are always the loop's: nobody else closes
 * what it may be polling, or the number could be another's by then.
 *
 * What stays true: nothing is lost between them. What comes for a job is in a
 * list, or in a socket; who drives looks at the lists before he stops, and the
 * loop, which looks at both, waits only when there is nothing, or for as long
 * as it leaves things to who dispatches.
 */
#include "run/async.h"

#include <stdlib.h>

#include "run/desk.h"

/* So often it looks whether memory of a burst is to be given back. */
#define LOOK_US 1000000

/* Of jobs, in one turn: the others on the loop are not to wait for more; nor
   for more of who drives in its place. The rest is the next turn's. */
#define MOST_STEPS         64
#define MOST_STEPS_INSTEAD 256

/* For so long who has dispatched is expected to come again; */
#define ATTENDED_US 100000

/* and so long the loop leaves what comes to him. */
#define BACKUP_US 20000

/* A call of rl_async_dispatch() that delivers. */
typedef struct rl_dispatch {
    rl_async *of;
    bool begins; /* jobs have been started since */
} rl_dispatch;

static _Thread_local rl_dispatch *dispatch; /* the innermost one */

/* --- calling who drives --------------------------------------------------- */

/* So shortly after he has come, who dispatches will come again. */
static bool is_attended(const rl_async *a, int64_t now_us)
{
    return now_us - atomic_load(&a->dispatched_us) < ATTENDED_US;
}

void rl_async_call_loop_locked(rl_async *a)
{
    if (!a->called)
        rl_loop_nudge(a->loop, &a->watcher);
    a->called = true;
}

/*
 * There is something to do. If there is who dispatches, he does it; the loop
 * looks after a while, if it waits no longer than that.
 */
void rl_async_call_locked(rl_async *a)
{
    int64_t now_us = rl_now_us();
    bool attended = is_attended(a, now_us);
    if (attended)
        rl_completions_nudge(a->completions);
    if (!attended || a->sleeps_us > now_us + BACKUP_US)
        rl_async_call_loop_locked(a);
}

/* --- on the loop ---------------------------------------------------------- */

/* What is to be polled, as far as there is room, and how much there is. */
typedef struct list_of_polled {
    struct pollfd *p;
    size_t n, room;
} list_of_polled;

/* Without room it is looked at when its time is over. */
static void add_to_poll(list_of_polled *l, struct pollfd p)
{
    if (l->n < l->room)
        l->p[l->n] = p;
    l->n++;
}

/*
 * The trunks, and then each desk's legs. What comes over trunks is left to who
 * dispatches, if he is expected; but not that one is closed.
 */
static size_t look(rl_watcher *w, struct pollfd *p, size_t room)
{
    rl_async *a = RL_CONTAINER(w, rl_async, watcher);
    list_of_polled l = {p, 0, room};
    rl_mutex_lock(&a->driving);
    for (rl_link *k = rl_list_first(&a->trunks.all); k;
         k = rl_list_next(&a->trunks.all, k)) {
        rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        if (t->conn && !rl_trunk_has_failed(t))
            add_to_poll(&l, rl_trunk_poll(t, a->attended));
    }
    for (rl_link *k = rl_list_first(&a->asking); k;
         k = rl_list_next(&a->asking, k)) {
        rl_desk *d = RL_CONTAINER(k, rl_desk, link);
        d->at_poll = l.n;
        for (size_t i = 0; i < d->legs.n; i++)
            add_to_poll(&l, rl_desk_poll(d, i));
    }
    a->unseen = false;
    rl_mutex_unlock(&a->driving);
    return l.n;
}

/* Whatever was polled may be closed again. */
static void end_poll(rl_async *a)
{
    rl_trunks_polled(&a->trunks);
    for (rl_link *k = rl_list_first(&a->asking); k;
         k = rl_list_next(&a->asking, k))
        RL_CONTAINER(k, rl_desk, link)->polled = false;
}

static int64_t wake_up_us(const rl_async *a, bool attended, int64_t now_us)
{
    int64_t us = now_us + (attended ? BACKUP_US : LOOK_US);
    if (a->most_steps == 0 || a->broke)
        return now_us;
    const rl_heap_node *n = rl_heap_first(&a->sleeping);
    if (n)
        us = rl_min(us, n->due_us);
    if (!rl_list_is_empty(&a->in_line) || !rl_list_is_empty(&a->restless))
        us = rl_min(us, now_us + RL_RETRY_US);
    return rl_min(us, a->first_us);
}

/* Of desks that have gone, nobody knows whether they were the first. */
static void find_first(rl_async *a)
{
    a->first_us = RL_NEVER;
    for (rl_link *k = rl_list_first(&a->asking); k;
         k = rl_list_next(&a->asking, k)) {
        const rl_desk *d = RL_CONTAINER(k, rl_desk, link);
        a->first_us = rl_min(a->first_us, d->until_us);
    }
}

/* May it wait until then? Then whoever has something for it calls the loop. 0:
   it may not. */
static int64_t doze_off(rl_async *a, int64_t until_us)
{
    rl_mutex_lock(&a->mutex);
    a->called = !rl_list_is_empty(&a->inbox) || !rl_list_is_empty(&a->woken) ||
                (a->stopping && !a->closing) || (a->ending && a->jobs == 0);
    a->sleeps_us = a->called ? 0 : until_us;
    rl_mutex_unlock(&a->mutex);
    return a->sleeps_us;
}

static void wake_up(rl_async *a)
{
    rl_mutex_lock(&a->mutex);
    a->called = true;
    a->sleeps_us = 0;
    rl_mutex_unlock(&a->mutex);
}

/* False: it is to end, and every job is over. */
static bool goes_on(rl_async *a)
{
    rl_mutex_lock(&a->mutex);
    bool stopping = a->stopping;
    bool more = !a->ending || !rl_list_is_empty(&a->inbox);
    rl_mutex_unlock(&a->mutex);
    if (stopping && !a->closing)
        rl_async_close_waits(a);
    return more || a->jobs > 0;
}

/* What can be begun is; and what that has to say is sent. */
static void begin_what_is_due(rl_async *a)
{
    rl_async_take_inbox(a);
    rl_async_take_woken(a);
    rl_async_take_due(a, rl_now_us());
    rl_async_admit(a);
    a->broke = rl_trunks_serve(&a->trunks, NULL, 0, false);
}

static void take_what_has_come(rl_async *a) RL_REQUIRES(&a->driving)
{
    const rl_watcher *w = &a->watcher;
    end_poll(a);
    rl_trunks_serve(&a->trunks, w->polled, w->n, is_attended(a, rl_now_us()));
    rl_trunks_look(&a->trunks);
    rl_async_look_at_desks(a, w->polled, w->n);
}

/* Others drive until the next. */
static int64_t turn(rl_watcher *w, int64_t now_us)
{
    rl_async *a = RL_CONTAINER(w, rl_async, watcher);
    int64_t until_us = RL_LOOP_LEAVE;
    rl_mutex_lock(&a->driving);
    wake_up(a);
    a->most_steps = MOST_STEPS;
    take_what_has_come(a);
    if (goes_on(a)) {
        rl_async_tidy(a, now_us);
        begin_what_is_due(a);
        find_first(a);
        now_us = rl_now_us();
        a->attended = is_attended(a, now_us);
        until_us = doze_off(a, wake_up_us(a, a->attended, now_us));
    } else {
        rl_trunks_close(&a->trunks);
    }
    rl_mutex_unlock(&a->driving);
    return until_us;
}

/* --- from other threads --------------------------------------------------- */

void rl_async_init(rl_async *a, rl_loop *loop, rl_completions *completions)
{
    rl_mutex_init(&a->starting, RL_RANK_STARTING);
    rl_mutex_init(&a->mutex, RL_RANK_WAKER);
    rl_mutex_init(&a->driving, RL_RANK_DRIVING);
    rl_list_init(&a->inbox);
    rl_list_init(&a->woken);
    rl_list_init(&a->in_line);
    rl_list_init(&a->asking);
    rl_list_init(&a->idle);
    rl_list_init(&a->restless);
    a->first_us = RL_NEVER;
    a->watcher = (rl_watcher){.turn = turn, .look = look, .called = true};
    a->loop = loop;
    a->completions = completions;
    atomic_init(&a->dispatched_us, -ATTENDED_US);
    rl_trunks_init(&a->trunks, &loop->signal, completions);
}

void rl_async_fini(rl_async *a, bool forked)
{
    rl_link *k;
    if (forked)
        return;
    while ((k = rl_list_first(&a->idle)) != NULL) {
        rl_list_remove(k);
        free(RL_CONTAINER(k, rl_desk, link));
    }
    free(a->spare);
    rl_heap_fini(&a->sleeping);
    rl_mutex_fini(&a->driving);
    rl_mutex_fini(&a->mutex);
    rl_mutex_fini(&a->starting);
}

bool rl_async_run(rl_async *a)
{
    if (atomic_load(&a->started))
        return true;
    rl_mutex_lock(&a->starting);
    /* Once it is on the loop, the rest belongs to who drives. */
    bool ok = atomic_load(&a->started) ||
              (rl_async_furnish(a) && rl_loop_start(a->loop) &&
               rl_loop_add(a->loop, &a->watcher));
    atomic_store(&a->started, ok);
    rl_mutex_unlock(&a->starting);
    return ok;
}

/* Unless it wakes up by then by itself. */
static void call_loop_by(rl_async *a, int64_t us)
{
    rl_mutex_lock(&a->mutex);
    if (a->sleeps_us > us)
        rl_async_call_loop_locked(a);
    rl_mutex_unlock(&a->mutex);
}

/* What has come of what was begun is due earlier than the loop would look. */
static void call_loop_in_time(rl_async *a) RL_REQUIRES(&a->driving)
{
    int64_t now_us = rl_now_us();
    int64_t us = a->unseen ? now_us : wake_up_us(a, true, now_us);
    call_loop_by(a, us);
}

/*
 * Jobs are in the inbox: who drives begins them, the caller if nobody does. Behind
 * those at desks, if who drove before had no steps left for all of them: they have
 * begun earlier, and may stand in a server's line in the order in which they ask.
 */
static void begin_jobs(rl_async *a)
{
    if (rl_mutex_try_lock(&a->driving)) {
        bool others_first = a->most_steps == 0;
        a->most_steps = MOST_STEPS_INSTEAD;
        if (others_first)
            rl_async_look_at_desks(a, NULL, 0);
        begin_what_is_due(a);
        call_loop_in_time(a);
        rl_mutex_unlock(&a->driving);
        return;
    }
    rl_mutex_lock(&a->mutex);
    rl_async_call_loop_locked(a);
    rl_mutex_unlock(&a->mutex);
}

void rl_async_start(rl_async *a, rl_started *s)
{
    rl_async_put(a, s);
    if (!dispatch || dispatch->of != a) {
        begin_jobs(a);
        return;
    }
    dispatch->begins = true;
    /* Should what is called back take long, the loop begins them. */
    call_loop_by(a, rl_now_us() + BACKUP_US);
}

static void help(rl_async *a)
{
    if (!atomic_load(&a->started))
        return;
    atomic_store(&a->dispatched_us, rl_now_us());
    if (!rl_mutex_try_lock(&a->driving))
        return;
    a->most_steps = MOST_STEPS_INSTEAD;
    rl_trunks_serve(&a->trunks, NULL, 0, true);
    rl_trunks_look(&a->trunks);
    rl_async_look_at_desks(a, NULL, 0);
    begin_what_is_due(a);
    call_loop_in_time(a);
    rl_mutex_unlock(&a->driving);
}

/* Jobs leave their errors behind. */
static void keep_error(rl_async *a, void (*go_on)(rl_async *a))
{
    rlock_error before = *rlock_last_error();
    go_on(a);
    rl_error_put(&before);
}

void rl_async_dispatch(rl_async *a)
{
    rl_dispatch here = {.of = a}, *outer = dispatch;
    rl_completions_attend(a->completions);
    keep_error(a, help);
    rl_completions_attended(a->completions);
    dispatch = &here;
    rl_completions_deliver(a->completions);
    dispatch = outer;
    if (here.begins)
        keep_error(a, begin_jobs);
}

void rl_async_close(rl_async *a)
{
    rl_mutex_lock(&a->mutex);
    a->stopping = true;
    if (atomic_load(&a->started))
        rl_async_call_loop_locked(a);
    rl_mutex_unlock(&a->mutex);
}

void rl_async_stop(rl_async *a)
{
    if (!atomic_load(&a->started))
        return;
    rl_mutex_lock(&a->mutex);
    a->ending = true;
    rl_async_call_loop_locked(a);
    rl_mutex_unlock(&a->mutex);
    rl_loop_await_end(a->loop, &a->watcher);
}
