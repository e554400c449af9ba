#include "net/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/os.h"
#include "net/hello.h"
#include "net/resolve.h"

#define LEAST_LIFE_US 1000000

/* How long a peer may be silent, and what is sent unacknowledged. */
static const rl_os_tcp patience = {
    .idle_s = 30,
    .every_s = 10,
    .probes = 3,
    .unacknowledged_s = 30,
};

void rl_dialer_init(rl_dialer *d)
{
    *d = (rl_dialer){0};
    rl_resolver_init(&d->resolver);
}

void rl_dialer_fini(rl_dialer *d)
{
    rl_uri_fini(&d->uri);
    rl_resolver_fini(&d->resolver);
}

static rlock_status cannot_connect(rl_fault *f, int err)
{
    return rl_fault_set(f, RLOCK_EIO, err, "cannot connect: %s", strerror(err));
}

static rlock_status no_memory(rl_fault *f)
{
    return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
}

/* Waits for the end of a connect(2) in progress; returns its errno. */
static int connect_result(int fd, int64_t deadline_us)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    for (;;) {
        int ms = rl_poll_ms(deadline_us);
        int n = poll(&p, 1, ms);
        if (n < 0 && errno != EINTR)
            return errno;
        if (n == 0 && ms == 0)
            return ETIMEDOUT;
        if (n > 0)
            break;
    }
    int err = 0;
    socklen_t len = sizeof err;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
    return err;
}

/*
 * A Unix socket answers EAGAIN while the server's backlog is full, and offers
 * no way to wait for room.
 */
static int start_connect(int fd, const struct sockaddr *addr, socklen_t len,
                         int64_t deadline_us)
{
    while (connect(fd, addr, len) != 0) {
        if (errno == EINPROGRESS || errno == EINTR)
            return connect_result(fd, deadline_us);
        if (errno != EAGAIN)
            return errno;
        if (rl_now_us() >= deadline_us)
            return ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return 0;
}

static void note_socket(const rl_dialer *d, int fd)
{
    if (d->opened)
        d->opened(d->met_arg, fd);
}

static void close_socket(const rl_dialer *d, int fd)
{
    note_socket(d, -1);
    close(fd);
}

/* Returns a connected socket, or -1 with errno. */
static int connect_to(const rl_dialer *d, const struct sockaddr *addr,
                      socklen_t len, int64_t deadline_us)
{
    int fd = rl_os_socket(addr->sa_family);
    if (fd < 0)
        return -1;
    note_socket(d, fd);
    int err = start_connect(fd, addr, len, deadline_us);
    if (err == 0)
        return fd;
    close_socket(d, fd);
    errno = err;
    return -1;
}

/* Each address gets its share of the time: the first may be a black hole. */
static int connect_to_one_of(const rl_dialer *d, const rl_addresses *found,
                             int64_t deadline_us)
{
    int fd = -1;
    for (int i = 0; i < found->count && fd < 0; i++) {
        int64_t now_us = rl_now_us();
        int64_t share_us = (deadline_us - now_us) / (found->count - i);
        fd = connect_to(d, &found->at[i].addr.any, found->at[i].len,
                        now_us + share_us);
    }
    return fd;
}

static rlock_status connect_tcp(rl_dialer *d, const rl_place *to,
                                int64_t deadline_us, int *fd, rl_fault *f)
{
    rl_addresses found;
    rlock_status s =
        rl_resolve(&d->resolver, to->host, to->port, deadline_us, &found, f);
    if (s != RLOCK_OK)
        return s;
    *fd = connect_to_one_of(d, &found, deadline_us);
    if (*fd < 0)
        return cannot_connect(f, errno);
    rl_os_tune_tcp(*fd, &patience);
    return RLOCK_OK;
}

static rlock_status connect_unix(const rl_dialer *d, int64_t deadline_us,
                                 int *fd, rl_fault *f)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    memcpy(addr.sun_path, d->uri.host, strlen(d->uri.host) + 1);
    *fd = connect_to(d, (struct sockaddr *)&addr, sizeof addr, deadline_us);
    return *fd < 0 ? cannot_connect(f, errno) : RLOCK_OK;
}

static rlock_status locate(rl_dialer *d, int64_t deadline_us, rl_place *to,
                           rl_fault *f)
{
    if (d->locate)
        return d->locate(d->locate_arg, deadline_us, to, f);
    *to = (rl_place){.port = d->uri.port};
    snprintf(to->host, sizeof to->host, "%s", d->uri.host);
    return RLOCK_OK;
}

static rlock_status dial_place(rl_dialer *d, const rl_place *to,
                               int64_t deadline_us, rl_conn **out, rl_fault *f)
{
    int fd = -1;
    rlock_status s = d->uri.local ? connect_unix(d, deadline_us, &fd, f)
                                  : connect_tcp(d, to, deadline_us, &fd, f);
    if (s != RLOCK_OK)
        return s;
    rl_transport io = rl_plain_transport(fd);
    if (d->tls)
        s = rl_tls_shake_hands(d->tls, fd, to->host, deadline_us, &io, f);
    if (s != RLOCK_OK) {
        close_socket(d, fd);
        rl_tls_explain(d->tls, f);
        return s;
    }
    note_socket(d, -1); /* until it is met as a connection */
    *out = rl_conn_new(io);
    if (!*out)
        return no_memory(f);
    (*out)->nth = to->nth;
    return RLOCK_OK;
}

static rlock_status unusable(redisContext *ctx, rl_fault *f, const char *why)
{
    redisFree(ctx);
    return rl_fault_set(f, RLOCK_EINVAL, 0, "the connect callback returned %s",
                        why);
}

static rlock_status dial_callback(rl_dialer *d, rl_conn **out, rl_fault *f)
{
    redisContext *ctx = d->connect(d->connect_arg);
    if (!ctx)
        return rl_fault_set(f, RLOCK_EIO, 0,
                            "the connect callback returned NULL");
    if (ctx->err) {
        rl_fault_set(f, RLOCK_EIO, 0, "the connect callback failed: %s",
                     ctx->errstr);
        redisFree(ctx);
        return RLOCK_EIO;
    }
    if (d->is_ours(d->is_ours_arg, ctx))
        return rl_fault_set(f, RLOCK_EINVAL, 0,
                            "the connect callback returned a context that the "
                            "library owns already");
    if (ctx->fd < 0)
        return unusable(ctx, f, "a context that is not connected");
    if (!(ctx->flags & REDIS_BLOCK))
        return unusable(ctx, f, "a non-blocking context");
    if (ctx->reader->pos != ctx->reader->len)
        return unusable(ctx, f, "a context with unread replies");
    *out = rl_conn_new(rl_context_transport(ctx));
    return *out ? RLOCK_OK : no_memory(f);
}

static rlock_status introduce(rl_dialer *d, rl_conn *c, int64_t deadline_us,
                              rl_fault *f)
{
    rl_hello hello = {.uri = &d->uri,
                      .credentials = d->credentials,
                      .theirs = d->connect != NULL,
                      .master = d->role,
                      .strict = d->strict};
    return rl_hello_say(&hello, c, deadline_us, f);
}

static bool may_be_for_tls(const rl_dialer *d)
{
    return !d->tls && !d->connect && !d->uri.local && !atomic_load(&d->worked);
}

/*
 * A server that wants TLS answers our hello by an alert, whose first byte is
 * 21, or just hangs up.
 */
static void suggest_tls(const rl_dialer *d, const rl_conn *c, rl_fault *f)
{
    const char *scheme = d->uri.secure ? d->uri.secure : "rediss://";
    char cause[120];
    bool alert = strstr(f->text, "got \"\\x15\"") != NULL;
    bool mute = c->heard_us == 0 && f->sys_errno != ETIMEDOUT;
    snprintf(cause, sizeof cause, "%.*s", (int)sizeof cause - 1, f->text);
    if (alert || mute)
        rl_fault_set(f, RLOCK_EIO, f->sys_errno, "%s (%s %s)", cause,
                     alert ? "it speaks TLS: use"
                           : "if it is a port for TLS, use",
                     scheme);
}

static rlock_status begin(rl_dialer *d, rl_conn *c, int64_t deadline_us,
                          rl_fault *f)
{
    if (d->met)
        d->met(d->met_arg, c);
    rlock_status s = introduce(d, c, deadline_us, f);
    /* However short a login lasts, a connection is not made for nothing. */
    if (s == RLOCK_OK)
        atomic_store(&d->worked, true);
    if (s == RLOCK_OK)
        c->expires_us = rl_max(c->expires_us, rl_now_us() + LEAST_LIFE_US);
    if (s == RLOCK_EIO && d->tls)
        rl_tls_explain(d->tls, f);
    if (s == RLOCK_EIO && may_be_for_tls(d))
        suggest_tls(d, c, f);
    if (s != RLOCK_OK && d->parted)
        d->parted(d->met_arg, c);
    return s;
}

/* To find out where it is may take a connection of its own. */
rlock_status rl_dial(rl_dialer *d, int64_t deadline_us, rl_conn **out,
                     rl_fault *f)
{
    rl_place to;
    rl_conn *c = NULL;
    *out = NULL;
    rlock_status s = d->connect ? RLOCK_OK : locate(d, deadline_us, &to, f);
    if (s != RLOCK_OK)
        return s;
    deadline_us =
        rl_min(deadline_us, rl_after_ms(rl_now_us(), d->connect_timeout_ms));
    s = d->connect ? dial_callback(d, &c, f)
                   : dial_place(d, &to, deadline_us, &c, f);
    if (s == RLOCK_OK)
        s = begin(d, c, deadline_us, f);
    if (s == RLOCK_OK)
        *out = c;
    else
        rl_conn_free(c);
    return s;
}
