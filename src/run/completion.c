/*
 * A letter is taken out under the mutex and delivered without it, so each is
 * delivered once, whoever calls, and a delivery may post, or deliver others.
 *
 * The program gets a copy of the descriptor. If it closes that, against the
 * rule, nothing of ours is ever written to a number that has become another
 * file, nor added to another watch.
 */
#include "run/completion.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void rl_outbox_init(rl_outbox *b)
{
    rl_mutex_init(&b->mutex);
    rl_list_init(&b->letters);
    b->signal = RL_SIGNAL_NONE;
    b->watch = b->fd = -1;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void rl_outbox_fini(rl_outbox *b, bool forked)
{
    close_fd(&b->fd);
    close_fd(&b->watch);
    rl_signal_fini(&b->signal);
    if (!forked)
        rl_mutex_fini(&b->mutex);
}

static void raise_locked(rl_outbox *b) RL_REQUIRES(&b->mutex)
{
    if (b->signal.fd >= 0 && !atomic_exchange(&b->raised, true))
        rl_signal_raise(&b->signal);
}

static int open_locked(rl_outbox *b) RL_REQUIRES(&b->mutex)
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
    } else if (!rl_list_is_empty(&b->letters)) {
        raise_locked(b);
    }
    return fd;
}

int rl_outbox_fd(rl_outbox *b)
{
    rl_mutex_lock(&b->mutex);
    if (b->fd < 0)
        b->fd = open_locked(b);
    int fd = b->fd;
    rl_mutex_unlock(&b->mutex);
    return fd;
}

void rl_outbox_post(rl_outbox *b, rl_letter *l)
{
    rl_mutex_lock(&b->mutex);
    rl_list_add_last(&b->letters, &l->link);
    atomic_fetch_add(&b->count, 1);
    if (atomic_load(&b->attending) == 0)
        raise_locked(b);
    rl_mutex_unlock(&b->mutex);
}

void rl_outbox_nudge(rl_outbox *b)
{
    rl_mutex_lock(&b->mutex);
    raise_locked(b);
    rl_mutex_unlock(&b->mutex);
}

bool rl_outbox_watch(rl_outbox *b, int fd)
{
    rl_mutex_lock(&b->mutex);
    bool ok = b->fd >= 0 && rl_os_watch_add(b->watch, fd);
    rl_mutex_unlock(&b->mutex);
    return ok;
}

void rl_outbox_unwatch(rl_outbox *b, int fd)
{
    rl_mutex_lock(&b->mutex);
    rl_os_watch_remove(b->watch, fd);
    rl_mutex_unlock(&b->mutex);
}

void rl_outbox_attend(rl_outbox *b)
{
    atomic_fetch_add(&b->attending, 1);
    if (!atomic_load(&b->raised))
        return;
    rl_mutex_lock(&b->mutex);
    if (atomic_exchange(&b->raised, false))
        rl_signal_clear(&b->signal);
    rl_mutex_unlock(&b->mutex);
}

/* Who posts counts his letter before he looks whether somebody attends, and the
   caller reads the count behind this: so one of them sees the other. */
void rl_outbox_attended(rl_outbox *b)
{
    atomic_fetch_sub(&b->attending, 1);
}

/* NULL: there is none. */
static rl_letter *take(rl_outbox *b)
{
    rl_mutex_lock(&b->mutex);
    rl_link *k = rl_list_first(&b->letters);
    if (k) {
        rl_list_remove(k);
        atomic_fetch_sub(&b->count, 1);
    }
    rl_mutex_unlock(&b->mutex);
    return k ? RL_CONTAINER(k, rl_letter, link) : NULL;
}

void rl_outbox_deliver(rl_outbox *b)
{
    size_t n = atomic_load(&b->count);
    rl_letter *l;
    while (n-- > 0 && (l = take(b)) != NULL)
        l->deliver(l);
    if (atomic_load(&b->count) > 0)
        rl_outbox_nudge(b);
}
