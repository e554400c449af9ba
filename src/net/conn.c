#include "net/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "rlock_config.h"

#define REPLY_BUDGET (64 * 1024) /* bytes of one reply, before it is whole */

/*
 * A server on the same machine often answers sooner than a sleeping thread is
 * woken, so the reply is looked out for, for a moment, before going to sleep.
 * The processor is offered to others meanwhile: the server may need it. Where
 * that does not pay, because the server is far away or busy, it is given up,
 * and tried again only now and then.
 */
#define LOOK_OUT_US   100
#define GOOD_LUCK     16
#define BAD_LUCK      4
#define TRY_LUCK_EACH 64

/*
 * TLS contexts bring read and write functions of their own. There is no public
 * way to ask, but a context without TLS shares its functions with any other.
 */
static bool is_plain(const redisContext *ctx)
{
#ifdef RL_HIREDIS_HAS_FUNCS
    redisContext *model = redisConnectFd(-1);
    bool plain = model && model->funcs == ctx->funcs;
    if (model)
        redisFree(model);
    return plain;
#else
    (void)ctx;
    return true;
#endif
}

/* TLS needs hiredis' own reads and writes, which know no deadline. */
static void set_non_blocking(redisContext *ctx)
{
    ctx->flags &= ~REDIS_BLOCK;
    fcntl(ctx->fd, F_SETFL, fcntl(ctx->fd, F_GETFL) | O_NONBLOCK);
}

rl_conn *rl_conn_new(redisContext *ctx)
{
    rl_conn *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->ctx = ctx;
    c->plain = is_plain(ctx);
    c->luck = GOOD_LUCK;
    ctx->reader->fn = &rl_reply_builder;
    /* A large buffer that it gave back, it would have to get anew, and older
       versions abort where there is no memory for that. */
    ctx->reader->maxbuf = 0;
    fcntl(ctx->fd, F_SETFD, FD_CLOEXEC);
    if (!c->plain)
        set_non_blocking(ctx);
    return c;
}

void rl_conn_free(rl_conn *c)
{
    if (!c)
        return;
    redisFree(c->ctx);
    free(c->out);
    free(c);
}

static bool make_room(rl_conn *c, size_t more)
{
    if (c->out_len + more <= c->out_room)
        return true;
    size_t room = (c->out_len + more) * 2;
    char *out = realloc(c->out, room);
    if (!out)
        return false;
    c->out = out;
    c->out_room = room;
    return true;
}

/* A sign, digits, and the end of the line: "*3", "$12". */
#define COUNT_MAX 23

static char *put_count(char *at, char sign, size_t n)
{
    char digits[20], *first = digits + sizeof digits;
    do {
        *--first = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    size_t len = (size_t)(digits + sizeof digits - first);
    *at++ = sign;
    memcpy(at, first, len);
    memcpy(at + len, "\r\n", 2);
    return at + len + 2;
}

/*
 * Put together here, because a lock over several servers says the same many
 * times, and hiredis' formatting is a good part of what that costs the client.
 */
bool rl_conn_append(rl_conn *c, int argc, const char **argv, const size_t *lens)
{
    size_t most = COUNT_MAX;
    for (int i = 0; i < argc; i++)
        most += COUNT_MAX + lens[i] + 2;
    if (!make_room(c, most))
        return false;
    char *at = put_count(c->out + c->out_len, '*', (size_t)argc);
    for (int i = 0; i < argc; i++) {
        at = put_count(at, '$', lens[i]);
        memcpy(at, argv[i], lens[i]);
        memcpy(at + lens[i], "\r\n", 2);
        at += lens[i] + 2;
    }
    c->out_len = (size_t)(at - c->out);
    return true;
}

void rl_conn_discard(rl_conn *c)
{
    c->out_len = 0;
}

static rlock_status fail(rl_conn *c, rl_fault *f, int err, const char *what)
{
    c->broken = true;
    if (err)
        return rl_fault_set(f, RLOCK_EIO, err, "%s: %s", what, strerror(err));
    return rl_fault_set(f, RLOCK_EIO, 0, "%s", what);
}

/* What a new connection may have room for. */
static rlock_status no_memory(rl_conn *c, rl_fault *f, const char *what)
{
    c->broken = true;
    return rl_fault_passes(
        f, rl_fault_set(f, RLOCK_ENOMEM, 0, "%s: out of memory", what));
}

/*
 * Waits for the socket; false: the deadline is there, or poll failed. A socket
 * may be ready each time and never do anything, so the deadline comes first.
 */
static bool wait_for(const rl_conn *c, short events, int64_t deadline_us)
{
    struct pollfd p = {.fd = c->ctx->fd, .events = events};
    while (rl_now_us() < deadline_us) {
        int n = poll(&p, 1, rl_poll_ms(deadline_us));
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return false;
    }
    errno = ETIMEDOUT;
    return false;
}

/*
 * Runs hiredis' own write, which can raise SIGPIPE, without letting the
 * signal out: it is blocked for this thread, and taken back if it came.
 */
static int write_tls(rl_conn *c, int *done)
{
    sigset_t pipe, before, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    int result = redisBufferWrite(c->ctx, done);
    int saved = errno;
    sigpending(&pending);
    if (!was_pending && sigismember(&pending, SIGPIPE)) {
        while (sigtimedwait(&pipe, NULL, &(struct timespec){0}) < 0 &&
               errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return result;
}

static rlock_status flush_tls(rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    if (redisAppendFormattedCommand(c->ctx, c->out, c->out_len) != REDIS_OK)
        return no_memory(c, f, "cannot send");
    c->out_len = 0;
    int done = 0;
    while (!done) {
        if (write_tls(c, &done) != REDIS_OK)
            return fail(c, f, 0, c->ctx->errstr);
        /* TLS may have to read before it can write: look again soon. */
        int64_t soon_us = rl_now_us() + 10000;
        if (!done && rl_now_us() >= deadline_us)
            return fail(c, f, ETIMEDOUT, "cannot send");
        if (!done)
            wait_for(c, POLLIN | POLLOUT, rl_min(soon_us, deadline_us));
    }
    return RLOCK_OK;
}

rlock_status rl_conn_flush(rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    if (c->broken)
        return fail(c, f, 0, "connection is broken");
    if (!c->plain)
        return flush_tls(c, deadline_us, f);
    for (size_t sent = 0; sent < c->out_len;) {
        ssize_t n = send(c->ctx->fd, c->out + sent, c->out_len - sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(c, POLLOUT, deadline_us))
                return fail(c, f, errno, "cannot send");
        } else if (errno != EINTR) {
            return fail(c, f, errno, "cannot send");
        }
    }
    c->out_len = 0;
    return RLOCK_OK;
}

/* TLS: bytes may wait inside the library, where poll does not see them. */
static rlock_status fill_tls(rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    size_t before = c->ctx->reader->len;
    if (redisBufferRead(c->ctx) != REDIS_OK)
        return fail(c, f, 0, c->ctx->errstr);
    if (c->ctx->reader->len == before && !wait_for(c, POLLIN, deadline_us))
        return fail(c, f, errno, "no reply");
    return RLOCK_OK;
}

static bool would_block(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Looks out for a reply; as recv(MSG_DONTWAIT). */
static ssize_t look_out(rl_conn *c, void *bytes, size_t size)
{
    int64_t until_us = rl_now_us() + LOOK_OUT_US;
    ssize_t n;
    for (;;) {
        n = recv(c->ctx->fd, bytes, size, MSG_DONTWAIT);
        if (!would_block(n) || rl_now_us() >= until_us)
            break;
        sched_yield();
    }
    if (would_block(n))
        c->luck = c->luck > BAD_LUCK ? c->luck - BAD_LUCK : 0;
    else if (c->luck < GOOD_LUCK)
        c->luck++;
    return n;
}

/* As recv(2), but EAGAIN when the deadline is there. */
static ssize_t receive(rl_conn *c, void *bytes, size_t size,
                       int64_t deadline_us)
{
    if (c->eager && (c->luck > 0 || ++c->waits % TRY_LUCK_EACH == 0)) {
        ssize_t n = look_out(c, bytes, size);
        if (!would_block(n))
            return n;
    }
    if (!wait_for(c, POLLIN, deadline_us) && errno != ETIMEDOUT)
        return -1;
    return recv(c->ctx->fd, bytes, size, MSG_DONTWAIT);
}

/* Hands over what recv has returned. */
static rlock_status feed(rl_conn *c, const char *bytes, ssize_t n, rl_fault *f)
{
    redisReader *reader = c->ctx->reader;
    if (n == 0)
        return fail(c, f, 0, "connection closed by the server");
    if (n < 0)
        return fail(c, f, errno, "no reply");
    if (redisReaderFeed(reader, bytes, (size_t)n) != REDIS_OK)
        return no_memory(c, f, "no reply");
    return RLOCK_OK;
}

/* Reads what there is; waits for it if there is nothing. */
static rlock_status fill(rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    redisReader *reader = c->ctx->reader;
    if (reader->len - reader->pos > REPLY_BUDGET)
        return fail(c, f, 0, "not a Redis reply: too long");
    if (!c->plain)
        return fill_tls(c, deadline_us, f);

    char bytes[4096];
    ssize_t n = receive(c, bytes, sizeof bytes, deadline_us);
    if (would_block(n) && rl_now_us() >= deadline_us)
        return fail(c, f, ETIMEDOUT, "no reply");
    if (would_block(n) || (n < 0 && errno == EINTR))
        return RLOCK_OK;
    return feed(c, bytes, n, f);
}

/* Takes a whole reply out of what was read; RLOCK_BUSY: there is none yet. */
static rlock_status parse(rl_conn *c, rl_fault *f)
{
    void *reply = NULL;
    redisReader *reader = c->ctx->reader;
    /* The reader would begin a reply here, and remember where it is to go. */
    if (!rl_conn_has_input(c))
        return RLOCK_BUSY;
    if (redisReaderGetReply(reader, &reply) == REDIS_OK)
        return reply ? RLOCK_OK : RLOCK_BUSY;
    c->broken = true;
    return rl_fault_set(f, RLOCK_EIO, 0, "not a Redis reply: %s",
                        reader->err == REDIS_ERR_OOM
                            ? "unexpected size or shape"
                            : reader->errstr);
}

rlock_status rl_conn_read(rl_conn *c, int64_t deadline_us, rl_reply *into,
                          rl_fault *f)
{
    if (c->broken)
        return fail(c, f, 0, "connection is broken");
    c->ctx->reader->privdata = into;
    for (;;) {
        rlock_status s = parse(c, f);
        if (s == RLOCK_BUSY)
            s = fill(c, deadline_us, f);
        else
            return s;
        if (s != RLOCK_OK)
            return s;
    }
}

rlock_status rl_conn_try_read(rl_conn *c, rl_reply *into, rl_fault *f)
{
    redisReader *reader = c->ctx->reader;
    if (c->broken)
        return fail(c, f, 0, "connection is broken");
    reader->privdata = into;
    rlock_status s = parse(c, f);
    if (s != RLOCK_BUSY)
        return s;
    if (reader->len - reader->pos > REPLY_BUDGET)
        return fail(c, f, 0, "not a Redis reply: too long");
    if (c->plain) {
        char bytes[4096];
        ssize_t n = recv(c->ctx->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (would_block(n) || (n < 0 && errno == EINTR))
            return RLOCK_BUSY;
        s = feed(c, bytes, n, f);
    } else if (redisBufferRead(c->ctx) != REDIS_OK) {
        s = fail(c, f, 0, c->ctx->errstr);
    }
    return s == RLOCK_OK || s == RLOCK_BUSY ? parse(c, f) : s;
}

bool rl_conn_is_mid_reply(const rl_conn *c)
{
    return rl_conn_has_input(c) || c->ctx->reader->ridx != -1;
}

bool rl_conn_last_words(rl_conn *c, rl_reply *into)
{
    char bytes[512];
    void *reply = NULL;
    ssize_t n =
        c->plain ? recv(c->ctx->fd, bytes, sizeof bytes, MSG_DONTWAIT) : 0;
    if (n > 0)
        redisReaderFeed(c->ctx->reader, bytes, (size_t)n);
    c->ctx->reader->privdata = into;
    return redisReaderGetReply(c->ctx->reader, &reply) == REDIS_OK && reply &&
           rl_reply_is(into, REDIS_REPLY_ERROR);
}

rlock_status rl_conn_ask(rl_conn *c, int64_t deadline_us, rl_reply *into,
                         rl_fault *f, int argc, const char **argv)
{
    size_t lens[8];
    for (int i = 0; i < argc; i++)
        lens[i] = strlen(argv[i]);
    if (!rl_conn_append(c, argc, argv, lens))
        return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
    rlock_status s = rl_conn_flush(c, deadline_us, f);
    return s == RLOCK_OK ? rl_conn_read(c, deadline_us, into, f) : s;
}

bool rl_conn_is_stale(const rl_conn *c)
{
    struct pollfd p = {.fd = c->ctx->fd, .events = POLLIN};
    int n;
    if (rl_conn_has_input(c))
        return true;
    do {
        n = poll(&p, 1, 0);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

bool rl_conn_has_input(const rl_conn *c)
{
    return c->ctx->reader->pos != c->ctx->reader->len;
}
