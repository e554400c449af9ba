/*
 * A numeric address is parsed on the spot. A name is looked up on a thread of
 * its own, because getaddrinfo() may take minutes and cannot be interrupted:
 * when the caller's time is up it goes away, and the thread, which nobody
 * joins, drops the answer. Caller and thread share the query; the last of the
 * two frees it.
 */
#include "redis/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/thread.h"

typedef struct query {
    rl_mutex mutex;
    rl_cond answered;
    bool done, abandoned; /* guarded by mutex */
    int error;            /* of getaddrinfo */
    struct addrinfo *found;
    char port[8];
    char host[];
} query;

static int look_up(const char *host, const char *port, int flags,
                   struct addrinfo **out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | flags};
    return getaddrinfo(host, port, &hints, out);
}

static void query_free(query *q)
{
    if (q->found)
        freeaddrinfo(q->found);
    rl_cond_fini(&q->answered);
    rl_mutex_fini(&q->mutex);
    free(q);
}

static void *run(void *arg)
{
    query *q = arg;
    struct addrinfo *found = NULL;
    int error = look_up(q->host, q->port, 0, &found);
    rl_mutex_lock(&q->mutex);
    q->done = true;
    q->error = error;
    q->found = found;
    bool abandoned = q->abandoned;
    rl_cond_wake(&q->answered);
    rl_mutex_unlock(&q->mutex);
    if (abandoned)
        query_free(q);
    return NULL;
}

static query *query_new(const char *host, const char *port)
{
    size_t size = strlen(host) + 1;
    query *q = calloc(1, sizeof *q + size);
    if (!q)
        return NULL;
    rl_mutex_init(&q->mutex);
    rl_cond_init(&q->answered);
    snprintf(q->port, sizeof q->port, "%s", port);
    memcpy(q->host, host, size);
    return q;
}

static rlock_status unknown_host(const char *why, rl_fault *f)
{
    return rl_fault_set(f, RLOCK_EIO, 0, "cannot look up the host: %s", why);
}

/* Waits for the thread; takes over what it found. */
static rlock_status await(query *q, int64_t deadline_us, struct addrinfo **out,
                          rl_fault *f)
{
    rl_mutex_lock(&q->mutex);
    while (!q->done && rl_now_us() < deadline_us)
        rl_cond_wait_until(&q->answered, &q->mutex, deadline_us);
    bool done = q->done;
    q->abandoned = !done;
    rl_mutex_unlock(&q->mutex);
    if (!done)
        return unknown_host("the name server does not answer", f);
    int error = q->error;
    *out = q->found;
    q->found = NULL;
    query_free(q);
    return error ? unknown_host(gai_strerror(error), f) : RLOCK_OK;
}

rlock_status rl_resolve(const char *host, int port, int64_t deadline_us,
                        struct addrinfo **out, rl_fault *f)
{
    char service[8];
    snprintf(service, sizeof service, "%d", port);
    int error = look_up(host, service, AI_NUMERICHOST, out);
    if (error == 0)
        return RLOCK_OK;
    if (error != EAI_NONAME)
        return unknown_host(gai_strerror(error), f);
    query *q = query_new(host, service);
    if (!q)
        return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
    if (!rl_thread_start_detached("rlock-resolve", run, q)) {
        query_free(q);
        return rl_fault_set(f, RLOCK_EIO, errno, "cannot start a thread: %s",
                            strerror(errno));
    }
    return await(q, deadline_us, out, f);
}
