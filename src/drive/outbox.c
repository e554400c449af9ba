/*
 * A letter is taken out under the mutex and delivered without it, so each is
 * delivered once, whoever calls, and a delivery may post, or deliver others.
 *
 * The program gets a copy of the descriptor. If it closes that, against the
 * rule, nothing of ours is ever written to a number that has become another
 * file.
 */
#include "drive/outbox.h"

#include <fcntl.h>
#include <unistd.h>

void rl_outbox_init(rl_outbox *b)
{
    rl_mutex_init(&b->mutex);
    rl_list_init(&b->letters);
    b->signal = RL_SIGNAL_NONE;
    b->fd = -1;
}

void rl_outbox_fini(rl_outbox *b, bool forked)
{
    if (b->fd >= 0)
        close(b->fd);
    rl_signal_fini(&b->signal);
    if (!forked)
        rl_mutex_fini(&b->mutex);
}

static int open_locked(rl_outbox *b) RL_REQUIRES(&b->mutex)
{
    if (b->signal.fd < 0 && !rl_signal_init(&b->signal))
        return -1;
    if (!rl_list_is_empty(&b->letters))
        rl_signal_raise(&b->signal);
    return fcntl(b->signal.fd, F_DUPFD_CLOEXEC, 0);
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
    bool first = rl_list_is_empty(&b->letters);
    rl_list_add_last(&b->letters, &l->link);
    atomic_fetch_add(&b->count, 1);
    if (first && b->signal.fd >= 0)
        rl_signal_raise(&b->signal);
    rl_mutex_unlock(&b->mutex);
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
    if (k && rl_list_is_empty(&b->letters) && b->signal.fd >= 0)
        rl_signal_clear(&b->signal);
    rl_mutex_unlock(&b->mutex);
    return k ? RL_CONTAINER(k, rl_letter, link) : NULL;
}

void rl_outbox_deliver(rl_outbox *b)
{
    size_t n = atomic_load(&b->count);
    rl_letter *l;
    while (n-- > 0 && (l = take(b)) != NULL)
        l->deliver(l);
}
