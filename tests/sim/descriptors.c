/*
 * Descriptors, and what waits on them: eventfd, epoll and poll(). Sockets are
 * in sockets.c. Numbers are never used twice, so one that was closed is known
 * for ever, and whoever reads, polls or closes it again ends the run. So does
 * who closes what another one polls.
 *
 * Descriptors below 3 are the kernel's, for what the simulator prints; others
 * that are not from here end the run, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "world.h"

#define FIRST   10000
#define FDS_MAX 16384

static descriptor *all[FDS_MAX];
static int all_n;

descriptor *descriptor_new(fd_kind kind)
{
    if (all_n == FDS_MAX)
        finding("the world has too many descriptors");
    descriptor *d = need_memory(sizeof *d);
    d->kind = kind;
    d->fd = FIRST + all_n;
    all[all_n++] = d;
    return d;
}

descriptor *descriptor_of(int fd)
{
    return fd >= FIRST && fd < FIRST + all_n ? all[fd - FIRST] : NULL;
}

descriptor *descriptor_for(int fd, const char *call)
{
    descriptor *d = descriptor_of(fd);
    if (d && d->kind == FD_CLOSED)
        finding("%s of descriptor %d, which is closed", call, fd);
    if (!d && w.is_on && fd > 2)
        finding("%s of descriptor %d, which is none", call, fd);
    return d;
}

int descriptors_open(void)
{
    int n = 0;
    for (int i = 0; i < all_n; i++)
        n += all[i]->kind != FD_CLOSED;
    return n;
}

void descriptors_tell(void)
{
    static const char *const kinds[] = {"a socket", "an eventfd", "an epoll"};
    for (int i = 0; i < all_n; i++)
        if (all[i]->kind != FD_CLOSED)
            trace("open: %d, %s", all[i]->fd, kinds[all[i]->kind]);
}

/* --- what they are ready for ---------------------------------------------- */

static short state_of(int fd)
{
    const descriptor *d = descriptor_of(fd);
    if (!d || d->kind == FD_CLOSED)
        return POLLNVAL;
    if (d->kind == FD_SOCKET)
        return socket_state(d);
    if (d->kind == FD_EVENT)
        return (short)((d->count ? POLLIN : 0) | POLLOUT);
    for (size_t i = 0; i < d->watches_n; i++)
        if (state_of(d->watches[i]) & (POLLIN | POLLHUP | POLLERR))
            return POLLIN;
    return 0;
}

static short asked(const struct pollfd *p)
{
    short events = (short)(p->events | POLLERR | POLLHUP | POLLNVAL);
    return p->fd < 0 ? 0 : (short)(state_of(p->fd) & events);
}

static bool watches(const descriptor *d, int fd)
{
    for (size_t i = 0; i < d->watches_n; i++) {
        const descriptor *in = descriptor_of(d->watches[i]);
        if (d->watches[i] == fd ||
            (in && in->kind == FD_EPOLL && watches(in, fd)))
            return true;
    }
    return false;
}

static bool polls(const thread *t, int fd)
{
    for (nfds_t i = 0; i < t->polls_n; i++) {
        const descriptor *d = descriptor_of(t->polls[i].fd);
        if (t->polls[i].fd == fd ||
            (d && d->kind == FD_EPOLL && watches(d, fd)))
            return true;
    }
    return false;
}

static bool is_ready(const thread *t)
{
    for (nfds_t i = 0; i < t->polls_n; i++)
        if (asked(&t->polls[i]))
            return true;
    return false;
}

void descriptor_changed(int fd)
{
    for (int i = 0; i < threads_n; i++) {
        thread *t = threads[i];
        if (t->state == BLOCKED && t->polls && polls(t, fd) && is_ready(t))
            wake(t);
    }
}

int poll(struct pollfd *p, nfds_t n, int ms)
{
    if (!w.is_on)
        return (int)raw_call(SYS_poll, (long)p, (long)n, ms, 0, 0, 0);
    step();
    for (nfds_t i = 0; i < n; i++)
        if (p[i].fd >= 0)
            descriptor_for(p[i].fd, "poll");
    int64_t until = ms < 0 ? NEVER : w.now + true_span(ms * MS);
    for (;;) {
        int count = 0;
        for (nfds_t i = 0; i < n; i++) {
            p[i].revents = asked(&p[i]);
            count += p[i].revents != 0;
        }
        if (count || w.now >= until)
            return count;
        if (!w.is_quiet && chance_ppm(&w.dice, cfg.spurious_ppm)) {
            errno = EINTR;
            return -1;
        }
        running->polls = p;
        running->polls_n = n;
        block(p, "poll", until);
        running->polls = NULL;
    }
}

/* --- epoll, eventfd ------------------------------------------------------- */

int epoll_create1(int flags)
{
    (void)flags;
    step();
    return descriptor_new(FD_EPOLL)->fd;
}

static void watch(descriptor *d, int fd)
{
    descriptor_for(fd, "epoll_ctl");
    if (d->watches_n == d->watches_room) {
        d->watches_room = 2 * d->watches_room + 4;
        d->watches =
            need_more(d->watches, d->watches_room * sizeof *d->watches);
    }
    d->watches[d->watches_n++] = fd;
    if (state_of(fd) & (POLLIN | POLLHUP))
        descriptor_changed(fd);
}

static bool unwatch(descriptor *d, int fd)
{
    for (size_t i = 0; i < d->watches_n; i++)
        if (d->watches[i] == fd) {
            d->watches[i] = d->watches[--d->watches_n];
            return true;
        }
    return false;
}

/* What is watched is watched for reading; the library asks for nothing else. */
int epoll_ctl(int ep, int op, int fd, struct epoll_event *e)
{
    step();
    descriptor *d = descriptor_for(ep, "epoll_ctl");
    if (op == EPOLL_CTL_ADD && e->events == EPOLLIN) {
        watch(d, fd);
        return 0;
    }
    if (op != EPOLL_CTL_DEL)
        finding("an epoll_ctl that the world does not know: %d", op);
    if (unwatch(d, fd))
        return 0;
    errno = ENOENT;
    return -1;
}

int eventfd(unsigned n, int flags)
{
    if (!w.is_on)
        return (int)raw_call(SYS_eventfd2, n, flags, 0, 0, 0, 0);
    step();
    descriptor *d = descriptor_new(FD_EVENT);
    d->count = n;
    d->blocks = !(flags & EFD_NONBLOCK);
    return d->fd;
}

ssize_t read(int fd, void *at, size_t n)
{
    descriptor *d = descriptor_for(fd, "read");
    if (!d)
        return raw_call(SYS_read, fd, (long)at, (long)n, 0, 0, 0);
    if (d->kind == FD_SOCKET)
        return recv(fd, at, n, 0);
    step();
    if (!d->count && d->blocks)
        finding("read of the eventfd %d would block", fd);
    if (!d->count || n < sizeof d->count) {
        errno = d->count ? EINVAL : EAGAIN;
        return -1;
    }
    memcpy(at, &d->count, sizeof d->count);
    d->count = 0;
    return sizeof d->count;
}

ssize_t write(int fd, const void *at, size_t n)
{
    descriptor *d = fd <= 2 ? NULL : descriptor_for(fd, "write");
    if (!d)
        return raw_call(SYS_write, fd, (long)at, (long)n, 0, 0, 0);
    if (d->kind == FD_SOCKET)
        return send(fd, at, n, 0);
    step();
    uint64_t more = 0;
    memcpy(&more, at, n < sizeof more ? n : sizeof more);
    d->count += more;
    descriptor_changed(fd);
    return sizeof more;
}

/* --- all of them ---------------------------------------------------------- */

static void check_nobody_polls(int fd)
{
    for (int i = 0; i < threads_n; i++) {
        const thread *t = threads[i];
        if (t->state != BLOCKED || !t->polls)
            continue;
        for (nfds_t k = 0; k < t->polls_n; k++)
            if (t->polls[k].fd == fd)
                finding("closes descriptor %d, which %s polls", fd, t->name);
    }
}

int close(int fd)
{
    descriptor *d = descriptor_for(fd, "close");
    if (!d)
        return (int)raw_call(SYS_close, fd, 0, 0, 0, 0, 0);
    step();
    check_nobody_polls(fd);
    for (int i = 0; i < all_n; i++)
        if (all[i]->kind == FD_EPOLL)
            unwatch(all[i], fd); /* as the kernel does */
    if (d->c)
        conn_close(d->c);
    d->kind = FD_CLOSED;
    d->c = NULL;
    return 0;
}

/* The kernel closes its connections; what else it has, nobody sees. */
void descriptors_die(const process *p)
{
    for (int i = 0; i < all_n; i++) {
        descriptor *d = all[i];
        if (!d->c || d->c->by != p)
            continue;
        conn_close(d->c);
        d->kind = FD_CLOSED;
        d->c = NULL;
    }
}

/* Of an epoll: another one that watches it, which is ready when it is. */
static int duplicate(const descriptor *d)
{
    if (d->kind != FD_EPOLL)
        finding("a copy of a descriptor that the world does not know");
    descriptor *copy = descriptor_new(FD_EPOLL);
    watch(copy, d->fd);
    return copy->fd;
}

int fcntl(int fd, int cmd, ...)
{
    va_list args;
    va_start(args, cmd);
    long arg = va_arg(args, long);
    va_end(args);
    descriptor *d = descriptor_for(fd, "fcntl");
    if (!d)
        return (int)raw_call(SYS_fcntl, fd, cmd, arg, 0, 0, 0);
    if (cmd == F_GETFL)
        return O_RDWR | (d->blocks ? 0 : O_NONBLOCK);
    if (cmd == F_DUPFD_CLOEXEC)
        return duplicate(d);
    if (cmd == F_SETFL)
        d->blocks = !(arg & O_NONBLOCK);
    else if (cmd != F_SETFD && cmd != F_GETFD)
        finding("an fcntl that the world does not know: %d", cmd);
    return 0;
}

int fstat(int fd, struct stat *is)
{
    descriptor *d = descriptor_of(fd);
    if (!d)
        return fstatat(fd, "", is, AT_EMPTY_PATH);
    memset(is, 0, sizeof *is);
    is->st_ino = (ino_t)fd;
    is->st_mode = d->kind == FD_SOCKET ? S_IFSOCK : S_IFIFO;
    return 0;
}
