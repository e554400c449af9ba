/*
 * The thread's round: those who join are taken in, poll() waits for all their
 * descriptors, or until the first is due, and each watcher for whom something
 * has come, or whose time has, gets its turn.
 *
 * What stays true: a nudge is not lost. Who nudges sets the watcher's flag and
 * then looks whether the loop sleeps; the loop says that it sleeps and then
 * looks at the flags: so one of the two sees the other.
 *
 * Memory for poll() is made by who adds a watcher that says how much it needs,
 * so that none of these can fail for lack of it later. Those that do not say it
 * come last, and the thread makes room for them as they need it.
 */
#include "run/loop.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* poll() does not notice that the machine slept; the lease clock does. */
#define SLICE_US 1000000

/* Less is not given back. */
#define LEAST_ROOM 256

void rl_loop_init(rl_loop *l)
{
    rl_mutex_init(&l->mutex, RL_RANK_LOOP);
    rl_cond_init(&l->left);
    rl_list_init(&l->joining);
    rl_list_init(&l->watchers);
    l->signal = RL_SIGNAL_NONE;
}

bool rl_loop_open(rl_loop *l)
{
    return l->signal.fd >= 0 || rl_signal_init(&l->signal);
}

void rl_loop_fini(rl_loop *l, bool forked)
{
    rl_signal_fini(&l->signal);
    if (forked && !rl_mutex_was_free(&l->mutex))
        return;
    free(l->fresh);
    free(l->poll);
    if (forked)
        return;
    rl_cond_fini(&l->left);
    rl_mutex_fini(&l->mutex);
}

/* --- who is in ------------------------------------------------------------ */

/* Memory for so many descriptors, and the signal. */
static bool reserve_locked(rl_loop *l, size_t n) RL_REQUIRES(&l->mutex)
{
    if (n + 1 <= l->made)
        return true;
    struct pollfd *p = calloc(n + 1, sizeof *p);
    if (!p)
        return false;
    free(l->fresh);
    l->fresh = p;
    l->made = n + 1;
    return true;
}

bool rl_loop_add(rl_loop *l, rl_watcher *w)
{
    rl_mutex_lock(&l->mutex);
    bool ok = w->in || reserve_locked(l, l->promised + w->most);
    w->again = w->in;
    if (ok && !w->in) {
        l->promised += w->most;
        w->in = true;
        w->due_us = 0;
        rl_list_add_last(&l->joining, &w->link);
    }
    rl_mutex_unlock(&l->mutex);
    if (ok) /* whether it sleeps or is about to */
        rl_signal_raise(&l->signal);
    return ok;
}

/* False: it is to end. Nobody looks at what poll() has told any more, so its
   memory may be another. */
static bool take_in(rl_loop *l)
{
    rl_link *k;
    rl_mutex_lock(&l->mutex);
    while ((k = rl_list_first(&l->joining)) != NULL) {
        rl_list_remove(k);
        rl_list_add_last(&l->watchers, k);
    }
    if (l->fresh) {
        free(l->poll);
        l->poll = l->fresh;
        l->fresh = NULL;
        l->room = l->least = l->made;
    }
    bool goes_on = !l->ending;
    rl_mutex_unlock(&l->mutex);
    return goes_on;
}

/* Who was added meanwhile has another turn, and may leave then. */
static void let_go(rl_loop *l, rl_watcher *w)
{
    rl_mutex_lock(&l->mutex);
    w->in = w->again;
    w->again = false;
    w->due_us = 0;
    if (!w->in) {
        rl_list_remove(&w->link);
        l->promised -= w->most;
        rl_cond_wake_all(&l->left);
    }
    rl_mutex_unlock(&l->mutex);
}

void rl_loop_await_end(rl_loop *l, rl_watcher *w)
{
    rl_mutex_lock(&l->mutex);
    if (!l->thread.started) { /* it could not be */
        rl_list_remove(&w->link);
        w->in = false;
    }
    while (w->in)
        rl_cond_wait_until(&l->left, &l->mutex, RL_NEVER);
    rl_mutex_unlock(&l->mutex);
}

void rl_loop_nudge(rl_loop *l, rl_watcher *w)
{
    atomic_store(&w->nudged, true);
    if (atomic_exchange(&l->sleeps, false))
        rl_signal_raise(&l->signal);
}

/* --- the thread ----------------------------------------------------------- */

static rl_watcher *watcher_of(rl_link *k)
{
    return RL_CONTAINER(k, rl_watcher, link);
}

static bool has_come(const rl_watcher *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->polled[i].revents)
            return true;
    return false;
}

static void take_turns(rl_loop *l, bool signaled)
{
    rl_link *next;
    int64_t now_us = rl_now_us();
    for (rl_link *k = rl_list_first(&l->watchers); k; k = next) {
        rl_watcher *w = watcher_of(k);
        next = rl_list_next(&l->watchers, k);
        bool nudged = atomic_exchange(&w->nudged, false);
        if (nudged || (signaled && w->called) || now_us >= w->due_us ||
            has_come(w))
            w->due_us = w->turn(w, now_us);
        w->n = 0;
        if (w->due_us == RL_LOOP_LEAVE)
            let_go(l, w);
    }
}

/* More room, or less than a burst has needed. False: out of memory. Under the
   mutex, so that a forked child knows whether it is whole. */
static bool resize(rl_loop *l, size_t room)
{
    rl_mutex_lock(&l->mutex);
    struct pollfd *p = realloc(l->poll, room * sizeof *p);
    if (p) {
        l->poll = p;
        l->room = room;
    }
    rl_mutex_unlock(&l->mutex);
    return p != NULL;
}

static size_t look(rl_loop *l, rl_watcher *w, size_t n)
{
    size_t wants = w->look(w, l->poll + n, l->room - n);
    if (wants > l->room - n && resize(l, 2 * (n + wants)))
        wants = w->look(w, l->poll + n, l->room - n);
    w->at = n;
    w->n = wants < l->room - n ? wants : l->room - n;
    return n + w->n;
}

/* The signal comes first, and those last whose number nobody knew. */
static size_t collect(rl_loop *l)
{
    size_t n = 0;
    l->poll[n++] = (struct pollfd){.fd = l->signal.fd, .events = POLLIN};
    for (int any = 0; any <= 1; any++) {
        for (rl_link *k = rl_list_first(&l->watchers); k;
             k = rl_list_next(&l->watchers, k))
            if (any == (watcher_of(k)->most == 0))
                n = look(l, watcher_of(k), n);
    }
    if (l->room > l->least && l->room > LEAST_ROOM && n < l->room / 8)
        resize(l, rl_max(l->least, l->room / 2));
    for (rl_link *k = rl_list_first(&l->watchers); k;
         k = rl_list_next(&l->watchers, k))
        watcher_of(k)->polled = l->poll + watcher_of(k)->at;
    return n;
}

/* 0: somebody was nudged meanwhile. */
static int64_t first_due_us(const rl_loop *l)
{
    int64_t us = RL_NEVER;
    for (rl_link *k = rl_list_first(&l->watchers); k;
         k = rl_list_next(&l->watchers, k)) {
        rl_watcher *w = watcher_of(k);
        us = rl_min(us, atomic_load(&w->nudged) ? 0 : w->due_us);
    }
    return us == RL_NEVER ? us : rl_min(us, rl_now_us() + SLICE_US);
}

/* True: the signal was raised. */
static bool doze(rl_loop *l)
{
    size_t n = collect(l);
    atomic_store(&l->sleeps, true);
    if (poll(l->poll, n, rl_poll_ms(first_due_us(l))) <= 0)
        for (size_t i = 0; i < n; i++)
            l->poll[i].revents = 0;
    atomic_store(&l->sleeps, false);
    if (!l->poll[0].revents)
        return false;
    rl_signal_clear(&l->signal);
    return true;
}

static void *run(void *arg)
{
    rl_loop *l = arg;
    while (take_in(l)) {
        bool signaled = doze(l);
        take_turns(l, signaled);
    }
    return NULL;
}

bool rl_loop_start(rl_loop *l)
{
    rl_mutex_lock(&l->mutex);
    bool ok = l->thread.started ||
              (reserve_locked(l, l->promised) &&
               rl_thread_start(&l->thread, "rlock-loop", run, l));
    rl_mutex_unlock(&l->mutex);
    return ok;
}

void rl_loop_stop(rl_loop *l)
{
    rl_mutex_lock(&l->mutex);
    l->ending = true;
    rl_mutex_unlock(&l->mutex);
    if (l->signal.fd >= 0)
        rl_signal_raise(&l->signal);
    rl_thread_join(&l->thread);
}
