/*
 * A hiredis context that the program's connect callback has made. Without TLS
 * only its socket is used. With TLS the bytes go through the context's own
 * functions, which know no deadline and may raise SIGPIPE: the socket is made
 * non-blocking, and the signal is kept from the program.
 *
 * A readable socket is no input there: TLS has records of its own (1.3 sends
 * session tickets whenever it likes), and only a read tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>

#include "base/os.h"
#include "net/transport.h"
#include "rlock_config.h"

static void context_close(rl_transport *t)
{
    redisFree(t->context);
}

static const rl_transport_ops socket_ops = {rl_plain_write, rl_plain_read,
                                            context_close};

#ifdef RL_HIREDIS_HAS_FUNCS

/* Right after the call: hiredis keeps no errno. */
static ssize_t broken(const rl_transport *t, rl_fault *f)
{
    int err = t->context->err == REDIS_ERR_IO ? errno : 0;
    rl_fault_set(f, RLOCK_EIO, err, "%s", t->context->errstr);
    return -1;
}

/* What the context has taken counts as sent: it may be at any time. */
static ssize_t tls_write(rl_transport *t, const char *bytes, size_t n,
                         rl_fault *f)
{
    rl_os_sigpipe pipe;
    int done = 0;
    if (n > 0 &&
        redisAppendFormattedCommand(t->context, bytes, n) != REDIS_OK) {
        rl_fault_passes(
            f, rl_fault_set(f, RLOCK_ENOMEM, 0, "cannot send: out of memory"));
        return -1;
    }
    rl_os_block_sigpipe(&pipe);
    int result = redisBufferWrite(t->context, &done);
    rl_os_restore_sigpipe(&pipe);
    if (result != REDIS_OK)
        return broken(t, f);
    t->holds = !done;
    return (ssize_t)n;
}

static ssize_t tls_read(rl_transport *t, char *bytes, size_t room, rl_fault *f)
{
    ssize_t n = t->context->funcs->read(t->context, bytes, room);
    return n < 0 ? broken(t, f) : n;
}

static const rl_transport_ops tls_ops = {tls_write, tls_read, context_close};

/* There is no public way to ask, but all without TLS share their functions. */
static bool has_tls(const redisContext *context)
{
    redisContext *model = redisConnectFd(-1);
    bool plain = model && model->funcs == context->funcs;
    if (model)
        redisFree(model);
    return !plain;
}

static void set_non_blocking(redisContext *context)
{
    context->flags &= ~REDIS_BLOCK;
    fcntl(context->fd, F_SETFL, fcntl(context->fd, F_GETFL) | O_NONBLOCK);
}

#endif

rl_transport rl_context_transport(redisContext *context)
{
    rl_transport t = {
        .ops = &socket_ops, .fd = context->fd, .context = context};
    fcntl(context->fd, F_SETFD, FD_CLOEXEC);
#ifdef RL_HIREDIS_HAS_FUNCS
    if (has_tls(context)) {
        set_non_blocking(context);
        t.ops = &tls_ops;
    }
#endif
    return t;
}
