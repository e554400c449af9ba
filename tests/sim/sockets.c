/* Sockets, and the names of hosts: calls that end at a connection (link.c). */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "world.h"

int socket(int family, int type, int protocol)
{
    if (!w.is_on)
        return (int)raw_call(SYS_socket, family, type, protocol, 0, 0, 0);
    step();
    if (memory_refuses(0)) {
        errno = EMFILE;
        return -1;
    }
    descriptor *d = descriptor_new(FD_SOCKET);
    d->blocks = !(type & SOCK_NONBLOCK);
    return d->fd;
}

short socket_state(const descriptor *d)
{
    const conn *c = d->c;
    if (!c)
        return POLLOUT | POLLHUP;
    if (c->is_dialing)
        return 0;
    if (c->error)
        return POLLOUT | POLLIN | POLLERR | POLLHUP;
    int state = c->is_full && !c->was_reset && !c->is_shut ? 0 : POLLOUT;
    if (c->inbox.len || c->has_ended || c->was_reset || c->is_shut)
        state |= POLLIN;
    if (c->was_reset || c->has_ended)
        state |= POLLRDHUP;
    if (c->was_reset)
        state |= POLLERR | POLLHUP;
    return (short)state;
}

/* At once, or not at all: also while its backlog is full. */
static int connect_local(descriptor *d, const struct sockaddr *to)
{
    struct sockaddr_un at;
    int port = 0;
    memcpy(&at, to, sizeof at);
    if (sscanf(at.sun_path, LOCAL_PATH, &port) != 1)
        finding("connects to %s, where nobody is", at.sun_path);
    if (!w.is_quiet && chance_ppm(&w.dice, cfg.refuse_ppm)) {
        errno = EAGAIN;
        return -1;
    }
    d->c = conn_dial(d->fd, port);
    conn_settle(d->c);
    errno = d->c->error;
    return d->c->error ? -1 : 0;
}

int connect(int fd, const struct sockaddr *to, socklen_t len)
{
    descriptor *d = descriptor_for(fd, "connect");
    if (!d)
        return (int)raw_call(SYS_connect, fd, (long)to, len, 0, 0, 0);
    step();
    if (d->blocks)
        finding("connect of descriptor %d would block", fd);
    if (to->sa_family == AF_UNIX)
        return connect_local(d, to);
    if (to->sa_family != AF_INET)
        finding("connects to an address that the world does not know");
    struct sockaddr_in in;
    memcpy(&in, to, sizeof in);
    d->c = conn_dial(fd, ntohs(in.sin_port));
    errno = EINPROGRESS;
    return -1;
}

ssize_t send(int fd, const void *at, size_t n, int flags)
{
    descriptor *d = descriptor_for(fd, "send");
    if (!d)
        return raw_call(SYS_sendto, fd, (long)at, (long)n, flags, 0, 0);
    step();
    if (!d->c) {
        errno = ENOTCONN;
        return -1;
    }
    return conn_send(d->c, at, n);
}

/* hiredis does, in the program's callback, for as long as it was told; nobody
   else may. */
static bool await_bytes(const descriptor *d)
{
    struct pollfd p = {d->fd, POLLIN, 0};
    if (!cfg.contexts)
        finding("recv of descriptor %d would block", d->fd);
    return poll(&p, 1, d->patience_ms) > 0;
}

ssize_t recv(int fd, void *at, size_t room, int flags)
{
    descriptor *d = descriptor_for(fd, "recv");
    if (!d)
        return raw_call(SYS_recvfrom, fd, (long)at, (long)room, flags, 0, 0);
    step();
    if (!d->c) {
        errno = ENOTCONN;
        return -1;
    }
    bool waits = d->blocks && !(flags & MSG_DONTWAIT);
    /* poll() may have said so, and yet there is nothing. */
    if (!waits && !w.is_quiet && chance_ppm(&w.dice, cfg.spurious_ppm)) {
        errno = EAGAIN;
        return -1;
    }
    ssize_t n = conn_receive(d->c, at, room, flags & MSG_PEEK);
    if (n < 0 && errno == EAGAIN && waits && await_bytes(d))
        return recv(fd, at, room, flags);
    return n;
}

int shutdown(int fd, int how)
{
    descriptor *d = descriptor_for(fd, "shutdown");
    if (!d)
        return (int)raw_call(SYS_shutdown, fd, how, 0, 0, 0, 0);
    step();
    if (!d->c) {
        errno = ENOTCONN;
        return -1;
    }
    d->c->is_shut = true;
    descriptor_changed(fd);
    return 0;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
    descriptor *d = descriptor_for(fd, "setsockopt");
    const struct timeval *most = value;
    if (d && level == SOL_SOCKET && name == SO_RCVTIMEO)
        d->patience_ms = (int)(most->tv_sec * 1000 + most->tv_usec / 1000);
    if (d)
        return 0;
    return (int)raw_call(SYS_setsockopt, fd, level, name, (long)value, n, 0);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
    descriptor *d = descriptor_for(fd, "getsockopt");
    if (!d)
        return (int)raw_call(SYS_getsockopt, fd, level, name, (long)value,
                             (long)n, 0);
    step();
    if (level != SOL_SOCKET || name != SO_ERROR)
        finding("a getsockopt that the world does not know: %d", name);
    int error = d->c ? d->c->error : 0;
    memcpy(value, &error, sizeof error);
    *n = sizeof error;
    return 0;
}

/* --- names ---------------------------------------------------------------- */

/* Every name is one of ours, and which server it is the port says. */
int getaddrinfo(const char *host, const char *port,
                const struct addrinfo *hints, struct addrinfo **out)
{
    static __typeof__(&getaddrinfo) real;
    if (!real)
        real = REAL(getaddrinfo);
    struct addrinfo numeric = *hints;
    if (!w.is_on || hints->ai_flags & AI_NUMERICHOST)
        return real(host, port, hints, out);
    step();
    bool is_slow = !w.is_quiet && cfg.names_ppm > 0;
    sleep_for(100 * US + chance_skewed(&w.dice, is_slow ? 3 * S : 5 * MS));
    if (!w.is_quiet && chance_ppm(&w.dice, cfg.names_ppm))
        return EAI_AGAIN;
    numeric.ai_flags |= AI_NUMERICHOST;
    return real("127.0.0.1", port, &numeric, out);
}
