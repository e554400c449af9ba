/*
 * The program has the number of the descriptor, and may have closed it though
 * it must not. Then the number may be a file of the program's by now, which is
 * neither to be written to nor closed: so before both, it is looked at.
 */
#include "run/lost_fd.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/os.h"

typedef struct lost_fd {
    rl_alarm alarm;
    rl_signal signal;
    rl_os_file made_as;
} lost_fd;

static lost_fd *lost_fd_of(const rl_alarm *a)
{
    return RL_CONTAINER(a, lost_fd, alarm);
}

static void forget_if_closed(lost_fd *x)
{
    rl_os_file now;
    if (!rl_os_file_of(x->signal.fd, &now) || !rl_os_file_is(&now, &x->made_as))
        rl_signal_forget(&x->signal);
}

static void raise_fd(rl_alarm *a)
{
    lost_fd *x = lost_fd_of(a);
    forget_if_closed(x);
    rl_signal_raise(&x->signal);
}

static void close_fd(rl_alarm *a)
{
    lost_fd *x = lost_fd_of(a);
    forget_if_closed(x);
    rl_signal_fini(&x->signal);
}

static lost_fd *give_up(lost_fd *x)
{
    int err = errno;
    rl_signal_fini(&x->signal);
    free(x);
    errno = err;
    return NULL;
}

rl_alarm *rl_lost_fd_new(const rl_uuid *of)
{
    lost_fd *x = malloc(sizeof *x);
    if (!x)
        return NULL;
    x->signal = RL_SIGNAL_NONE;
    if (!rl_signal_init(&x->signal) ||
        !rl_os_file_of(x->signal.fd, &x->made_as))
        x = give_up(x);
    if (!x)
        return NULL;
    rl_alarm_init(&x->alarm, of);
    x->alarm.raise = raise_fd;
    x->alarm.close = close_fd;
    return &x->alarm;
}

int rl_lost_fd(const rl_alarm *a)
{
    return lost_fd_of(a)->signal.fd;
}
