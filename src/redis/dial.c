#include "redis/dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "redis/error.h"
#include "redis/resolve.h"

/* A dead peer of an idle connection is noticed within about a minute. */
#define KEEPALIVE_IDLE_S  30
#define KEEPALIVE_EVERY_S 10
#define KEEPALIVE_PROBES  3

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

/* Returns a connected socket, or -1 with errno. */
static int connect_to(const struct sockaddr *addr, socklen_t len,
                      int64_t deadline_us)
{
    int fd =
        socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int err = start_connect(fd, addr, len, deadline_us);
    if (err == 0)
        return fd;
    close(fd);
    errno = err;
    return -1;
}

static void tune_tcp(int fd)
{
    int on = 1, idle = KEEPALIVE_IDLE_S, every = KEEPALIVE_EVERY_S,
        probes = KEEPALIVE_PROBES;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
#ifdef TCP_KEEPIDLE
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
#endif
}

static rlock_status connect_tcp(const rl_uri *u, int64_t deadline_us, int *fd,
                                rl_fault *f)
{
    struct addrinfo *found = NULL;
    rlock_status s = rl_resolve(u->host, u->port, deadline_us, &found, f);
    if (s != RLOCK_OK)
        return s;
    int err = ETIMEDOUT;
    *fd = -1;
    for (struct addrinfo *a = found; a && *fd < 0; a = a->ai_next) {
        *fd = connect_to(a->ai_addr, a->ai_addrlen, deadline_us);
        err = errno;
    }
    freeaddrinfo(found);
    if (*fd < 0)
        return cannot_connect(f, err);
    tune_tcp(*fd);
    return RLOCK_OK;
}

static rlock_status connect_unix(const rl_uri *u, int64_t deadline_us, int *fd,
                                 rl_fault *f)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    memcpy(addr.sun_path, u->host, strlen(u->host) + 1);
    *fd = connect_to((struct sockaddr *)&addr, sizeof addr, deadline_us);
    return *fd < 0 ? cannot_connect(f, errno) : RLOCK_OK;
}

static rlock_status dial_uri(const rl_uri *u, int64_t deadline_us,
                             rl_conn **out, rl_fault *f)
{
    int fd;
    rlock_status s = u->local ? connect_unix(u, deadline_us, &fd, f)
                              : connect_tcp(u, deadline_us, &fd, f);
    if (s != RLOCK_OK)
        return s;
    redisContext *ctx = redisConnectFd(fd);
    if (!ctx) {
        close(fd);
        return no_memory(f);
    }
    *out = rl_conn_new(ctx);
    if (!*out) {
        redisFree(ctx);
        return no_memory(f);
    }
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
    if (!(ctx->flags & REDIS_BLOCK))
        return unusable(ctx, f, "a non-blocking context");
    if (ctx->reader->pos != ctx->reader->len)
        return unusable(ctx, f, "a context with unread replies");
    *out = rl_conn_new(ctx);
    if (!*out) {
        redisFree(ctx);
        return no_memory(f);
    }
    return RLOCK_OK;
}

/*
 * A server that does not know AUTH repeats its arguments, so its answer is
 * passed on only when the password is not in it.
 */
static rlock_status login_failed(const rl_uri *u, const rl_reply *r,
                                 rl_fault *f)
{
    const rl_error_kind *kind = rl_error_reply(r, NULL);
    bool safe = !*u->password || !strstr(r->top.str, u->password);
    rl_fault_set(f, RLOCK_ESERVER, 0, "login failed: %s",
                 safe ? r->top.str : "(the answer repeats the password)");
    f->transient = kind->transient;
    return RLOCK_ESERVER;
}

static rlock_status log_in(rl_conn *c, const rl_uri *u, int64_t deadline_us,
                           rl_fault *f)
{
    if (!u->password)
        return RLOCK_OK;
    const char *with_user[] = {"AUTH", u->user, u->password};
    const char *without[] = {"AUTH", u->password};
    rl_reply r;
    rlock_status s = rl_conn_ask(c, deadline_us, &r, f, u->user ? 3 : 2,
                                 u->user ? with_user : without);
    if (s != RLOCK_OK)
        return s;
    return rl_reply_is(&r, REDIS_REPLY_ERROR) ? login_failed(u, &r, f)
                                              : RLOCK_OK;
}

static rlock_status select_db(rl_conn *c, int db, int64_t deadline_us,
                              rl_fault *f)
{
    if (db == 0)
        return RLOCK_OK;
    char number[16];
    snprintf(number, sizeof number, "%d", db);
    rl_reply r;
    rlock_status s = rl_conn_ask(c, deadline_us, &r, f, 2,
                                 (const char *[]){"SELECT", number});
    if (s != RLOCK_OK)
        return s;
    if (rl_reply_is(&r, REDIS_REPLY_ERROR))
        return rl_fault_set(f, RLOCK_ESERVER, 0,
                            "cannot select database %d: %s", db, r.top.str);
    return RLOCK_OK;
}

static rlock_status expect_pong(rl_conn *c, bool theirs, int64_t deadline_us,
                                rl_fault *f)
{
    rl_reply r;
    rlock_status s =
        rl_conn_ask(c, deadline_us, &r, f, 1, (const char *[]){"PING"});
    if (s != RLOCK_OK)
        return s;
    if (rl_reply_is(&r, REDIS_REPLY_ERROR))
        return rl_error_reply(&r, f)->status;
    if (rl_reply_is(&r, REDIS_REPLY_STATUS) && strcmp(r.top.str, "PONG") == 0 &&
        !rl_conn_is_stale(c))
        return RLOCK_OK;
    if (!theirs)
        return rl_fault_set(f, RLOCK_EIO, 0, "not a Redis server: no PONG");
    return rl_fault_set(f, RLOCK_EINVAL, 0,
                        "the connect callback's context is not ready for "
                        "commands (in MULTI, subscribed, or with unread "
                        "replies): PING was answered \"%.60s\"",
                        r.top.str ? r.top.str : "(no text)");
}

rlock_status rl_dial(rl_dialer *d, int64_t deadline_us, rl_conn **out,
                     rl_fault *f)
{
    bool theirs = d->connect != NULL;
    deadline_us =
        rl_min(deadline_us, rl_after_ms(rl_now_us(), d->connect_timeout_ms));
    rl_conn *c = NULL;
    rlock_status s = theirs ? dial_callback(d, &c, f)
                            : dial_uri(&d->uri, deadline_us, &c, f);
    if (s == RLOCK_OK && !theirs) {
        s = log_in(c, &d->uri, deadline_us, f);
        if (s == RLOCK_OK)
            s = select_db(c, d->uri.db, deadline_us, f);
    }
    if (s == RLOCK_OK)
        s = expect_pong(c, theirs, deadline_us, f);
    if (s != RLOCK_OK) {
        rl_conn_free(c);
        c = NULL;
    }
    *out = c;
    return s;
}
