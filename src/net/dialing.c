/*
 * Who leaves it shuts the socket down that the thread waits on; one that the
 * thread opens afterwards is shut at once. The socket is noted from before it
 * is connected until it is closed, so nobody shuts one that is somebody else's.
 */
#include "net/dialing.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static void opened(void *arg, int fd)
{
    rl_dialing *d = arg;
    rl_mutex_lock(&d->mutex);
    d->fd = fd;
    if (d->off && fd >= 0)
        shutdown(fd, SHUT_RDWR);
    rl_mutex_unlock(&d->mutex);
}

static void met(void *arg, rl_conn *c)
{
    opened(arg, c->io.fd);
}

static void parted(void *arg, rl_conn *c)
{
    (void)c;
    opened(arg, -1);
}

void rl_dialing_init(rl_dialing *d)
{
    *d = (rl_dialing){.fd = -1};
    rl_dialer_init(&d->dialer);
    rl_mutex_init(&d->mutex, RL_RANK_ALONE);
    d->dialer.opened = opened;
    d->dialer.met = met;
    d->dialer.parted = parted;
    d->dialer.met_arg = d;
}

void rl_dialing_fini(rl_dialing *d, bool forked)
{
    if (!forked) {
        rl_dialer_fini(&d->dialer);
        rl_mutex_fini(&d->mutex);
    } else if (rl_mutex_was_free(&d->mutex) && d->fd >= 0) {
        close(d->fd);
    }
}

static void *run(void *arg)
{
    rl_dialing *d = arg;
    rl_dial(&d->dialer, d->until_us, &d->conn, &d->fault);
    d->took_us = rl_now_us() - d->began_us;
    atomic_store(&d->over, true);
    rl_signal_raise(d->signal);
    return NULL;
}

bool rl_dialing_begin(rl_dialing *d, int64_t until_us, const rl_signal *signal)
{
    d->began_us = rl_now_us();
    d->until_us = until_us;
    d->signal = signal;
    d->conn = NULL;
    d->off = false;
    rl_resolver_resume(&d->dialer.resolver);
    atomic_store(&d->over, false);
    return rl_thread_start(&d->thread, "rlock-dial", run, d);
}

rl_conn *rl_dialing_end(rl_dialing *d)
{
    rl_conn *c;
    rl_thread_join(&d->thread);
    opened(d, -1); /* from here on it is the owner's */
    c = d->conn;
    d->conn = NULL;
    return c;
}

void rl_dialing_leave(rl_dialing *d)
{
    if (!rl_dialing_is_under_way(d) || d->off)
        return;
    rl_mutex_lock(&d->mutex);
    d->off = true;
    if (d->fd >= 0)
        shutdown(d->fd, SHUT_RDWR);
    rl_mutex_unlock(&d->mutex);
    rl_resolver_call_off(&d->dialer.resolver);
}

bool rl_dialing_reap(rl_dialing *d)
{
    if (!rl_dialing_is_under_way(d) || !d->off || !atomic_load(&d->over))
        return false;
    rl_conn_free(rl_dialing_end(d));
    return true;
}

void rl_dialing_call_off(rl_dialing *d)
{
    if (!rl_dialing_is_under_way(d))
        return;
    rl_dialing_leave(d);
    rl_conn_free(rl_dialing_end(d));
}
