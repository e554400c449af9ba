/*
 * A completion is taken out under the mutex and delivered without it, so each
 * is delivered once, whoever calls, and a delivery may post, or deliver others.
 * Those of a call of which one is being delivered are passed over: there are no
 * more than the call has events.
 *
 * The program gets a copy of the descriptor. If it closes that, against the
 * rule, nothing of ours is ever written to a number that has become another
 * file, nor added to another watch.
 */
#include "run/completion.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void rl_completions_init(rl_completions *b)
{
    rl_mutex_init(&b->mutex, RL_RANK_COMPLETIONS);
    rl_list_init(&b->completions);
    b->signal = RL_SIGNAL_NONE;
    b->watch = b->fd = -1;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void rl_completions_fini(rl_completions *b, bool forked)
{
    close_fd(&b->fd);
    close_fd(&b->watch);
    rl_signal_fini(&b->signal);
    if (!forked)
        rl_mutex_fini(&b->mutex);
}

static void raise_locked(rl_completions *b) RL_REQUIRES(&b->mutex)
{
    if (b->signal.fd >= 0 && !atomic_exchange(&b->raised, true))
        rl_signal_raise(&b->signal);
}

static int open_locked(rl_completions *b) RL_REQUIRES(&b->mutex)
{
    if (b->signal.fd < 0 && !rl_signal_init(&b->signal))
        return -1;
    if (b->watch < 0)
        b->watch = rl_os_watch_new();
    int fd = b->watch >= 0 && rl_os_watch_add(b->watch, b->signal.fd)
                 ? fcntl(b->watch, F_DUPFD_CLOEXEC, 0)
                 : -1;
    if (fd < 0) { /* what is in there could not be added a second time */
        int err = errno;
        close_fd(&b->watch);
        errno = err;
    } else if (!rl_list_is_empty(&b->completions)) {
        raise_locked(b);
    }
    return fd;
}

int rl_completions_fd(rl_completions *b)
{
    rl_mutex_lock(&b->mutex);
    if (b->fd < 0)
        b->fd = open_locked(b);
    int fd = b->fd;
    rl_mutex_unlock(&b->mutex);
    return fd;
}

void rl_completions_post(rl_completions *b, rl_completion *l)
{
    rl_mutex_lock(&b->mutex);
    rl_list_add_last(&b->completions, &l->link);
    atomic_fetch_add(&b->count, 1);
    if (atomic_load(&b->attending) == 0)
        raise_locked(b);
    rl_mutex_unlock(&b->mutex);
}

void rl_completions_nudge(rl_completions *b)
{
    rl_mutex_lock(&b->mutex);
    raise_locked(b);
    rl_mutex_unlock(&b->mutex);
}

bool rl_completions_watch(rl_completions *b, int fd)
{
    rl_mutex_lock(&b->mutex);
    bool ok = b->fd >= 0 && rl_os_watch_add(b->watch, fd);
    rl_mutex_unlock(&b->mutex);
    return ok;
}

void rl_completions_unwatch(rl_completions *b, int fd)
{
    rl_mutex_lock(&b->mutex);
    rl_os_watch_remove(b->watch, fd);
    rl_mutex_unlock(&b->mutex);
}

void rl_completions_attend(rl_completions *b)
{
    atomic_fetch_add(&b->attending, 1);
    if (!atomic_load(&b->raised))
        return;
    rl_mutex_lock(&b->mutex);
    if (atomic_exchange(&b->raised, false))
        rl_signal_clear(&b->signal);
    rl_mutex_unlock(&b->mutex);
}

/* Who posts counts his completion before he looks whether somebody attends, and
   the caller reads the count behind this: so one of them sees the other. */
void rl_completions_attended(rl_completions *b)
{
    atomic_fetch_sub(&b->attending, 1);
}

/* The oldest that need not wait for another one; NULL: there is none. */
static rl_completion *first_locked(const rl_completions *b)
    RL_REQUIRES(&b->mutex)
{
    for (rl_link *k = rl_list_first(&b->completions); k;
         k = rl_list_next(&b->completions, k)) {
        rl_completion *l = RL_CONTAINER(k, rl_completion, link);
        if (!l->busy || !*l->busy)
            return l;
    }
    return NULL;
}

/* NULL: there is none. *busy: to be given back when it has been delivered. */
static rl_completion *take(rl_completions *b, bool **busy)
{
    rl_mutex_lock(&b->mutex);
    rl_completion *l = first_locked(b);
    *busy = l && !l->ends ? l->busy : NULL;
    if (*busy)
        **busy = true;
    if (l) {
        rl_list_remove(&l->link);
        atomic_fetch_sub(&b->count, 1);
    }
    rl_mutex_unlock(&b->mutex);
    return l;
}

static void give_back(rl_completions *b, bool *busy)
{
    if (!busy)
        return;
    rl_mutex_lock(&b->mutex);
    *busy = false;
    rl_mutex_unlock(&b->mutex);
}

/* Who delivers what the others have to wait for comes here, too. */
static void call_for_the_rest(rl_completions *b)
{
    rl_mutex_lock(&b->mutex);
    if (first_locked(b))
        raise_locked(b);
    rl_mutex_unlock(&b->mutex);
}

void rl_completions_deliver(rl_completions *b)
{
    size_t n = atomic_load(&b->count);
    bool *busy;
    rl_completion *l;
    while (n-- > 0 && (l = take(b, &busy)) != NULL) {
        l->deliver(l);
        give_back(b, busy);
    }
    if (atomic_load(&b->count) > 0)
        call_for_the_rest(b);
}
