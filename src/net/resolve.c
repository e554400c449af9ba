#include "net/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* Shared by the thread that looks up and those who wait for it. */
struct rl_query {
    atomic_int refs;
    rl_mutex mutex; /* guards done, error and found */
    rl_cond answered;
    bool done;
    int error; /* of getaddrinfo */
    rl_addresses found;
    char port[8]; /* fixed */
    char host[];  /* fixed */
};

void rl_resolver_init(rl_resolver *r)
{
    *r = (rl_resolver){0};
    rl_mutex_init(&r->mutex, RL_RANK_ALONE);
}

static void unref(rl_query *q)
{
    if (atomic_fetch_sub(&q->refs, 1) != 1)
        return;
    rl_cond_fini(&q->answered);
    rl_mutex_fini(&q->mutex);
    free(q);
}

void rl_resolver_fini(rl_resolver *r)
{
    if (r->pending)
        unref(r->pending);
    rl_mutex_fini(&r->mutex);
}

static int look_up(const char *host, const char *port, int flags,
                   rl_addresses *out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *found;
    int error = getaddrinfo(host, port, &hints, &found);
    out->count = 0;
    if (error)
        return error;
    for (struct addrinfo *a = found; a && out->count < RL_ADDRESSES;
         a = a->ai_next) {
        if (a->ai_addrlen > sizeof out->at->addr)
            continue; /* of no family that Redis listens in */
        memcpy(&out->at[out->count].addr, a->ai_addr, a->ai_addrlen);
        out->at[out->count++].len = a->ai_addrlen;
    }
    freeaddrinfo(found);
    return 0;
}

static void *run(void *arg)
{
    rl_query *q = arg;
    rl_addresses found;
    rl_thread_name("rlock-resolve");
    int error = look_up(q->host, q->port, 0, &found);
    rl_mutex_lock(&q->mutex);
    q->done = true;
    q->error = error;
    q->found = found;
    rl_cond_wake_all(&q->answered);
    rl_mutex_unlock(&q->mutex);
    unref(q);
    return NULL;
}

/* A query that runs, with a reference for the thread and one for the caller. */
static rl_query *start(const char *host, const char *port)
{
    size_t size = strlen(host) + 1;
    rl_query *q = calloc(1, sizeof *q + size);
    if (!q)
        return NULL;
    atomic_init(&q->refs, 2);
    rl_mutex_init(&q->mutex, RL_RANK_ALONE);
    rl_cond_init(&q->answered);
    memcpy(q->port, port, strlen(port) + 1);
    memcpy(q->host, host, size);
    if (!rl_thread_start_detached(run, q)) {
        unref(q);
        unref(q);
        return NULL;
    }
    return q;
}

/* Its answer has been seen: the next caller asks anew. */
static void finish(rl_resolver *r, rl_query *q, const rl_addresses *found)
{
    rl_mutex_lock(&r->mutex);
    bool pending = r->pending == q;
    if (pending)
        r->pending = NULL;
    if (pending && found->count)
        r->last = *found;
    rl_mutex_unlock(&r->mutex);
    if (pending)
        unref(q);
}

/* The query under way, referenced; if there is none, a new one for the host, or
   NULL without one. */
static rl_query *under_way(rl_resolver *r, const char *host, const char *port)
{
    rl_mutex_lock(&r->mutex);
    if (!r->pending && host)
        r->pending = start(host, port);
    rl_query *q = r->pending;
    if (q)
        atomic_fetch_add(&q->refs, 1);
    rl_mutex_unlock(&r->mutex);
    return q;
}

/* An answer that came when nobody waited any more may be hours old. */
static void put_away_answered(rl_resolver *r)
{
    rl_query *q = under_way(r, NULL, NULL);
    if (!q)
        return;
    rl_mutex_lock(&q->mutex);
    bool done = q->done;
    rl_addresses found = q->found;
    rl_mutex_unlock(&q->mutex);
    if (done)
        finish(r, q, &found);
    unref(q);
}

static const char *await(rl_resolver *r, rl_query *q, int64_t deadline_us,
                         rl_addresses *out)
{
    rl_mutex_lock(&q->mutex);
    while (!q->done && !atomic_load(&r->off) && rl_now_us() < deadline_us)
        rl_cond_wait_until(&q->answered, &q->mutex, deadline_us);
    bool done = q->done;
    int error = q->error;
    if (done)
        *out = q->found;
    rl_mutex_unlock(&q->mutex);
    if (!done)
        return "the name server does not answer";
    finish(r, q, out);
    return error ? gai_strerror(error) : NULL;
}

static rlock_status fall_back(rl_resolver *r, rlock_status s, const char *why,
                              rl_addresses *out, rl_fault *f)
{
    rl_mutex_lock(&r->mutex);
    *out = r->last;
    rl_mutex_unlock(&r->mutex);
    if (out->count)
        return RLOCK_OK;
    return rl_fault_passes(
        f, rl_fault_set(f, s, 0, "cannot look up the host: %s", why));
}

/* Where the last good answer may have to do, it is to leave time to connect. */
static int64_t patience(rl_resolver *r, int64_t deadline_us)
{
    int64_t now_us = rl_now_us();
    rl_mutex_lock(&r->mutex);
    bool known = r->last.count > 0;
    rl_mutex_unlock(&r->mutex);
    return known ? now_us + (deadline_us - now_us) / 2 : deadline_us;
}

/* What is known of another host is of no use. */
static void turn_to(rl_resolver *r, const char *host, int port)
{
    rl_query *old = NULL;
    rl_mutex_lock(&r->mutex);
    if (r->port != port || strcmp(r->host, host) != 0) {
        snprintf(r->host, sizeof r->host, "%s", host);
        r->port = port;
        r->last.count = 0;
        old = r->pending;
        r->pending = NULL;
    }
    rl_mutex_unlock(&r->mutex);
    if (old)
        unref(old);
}

rlock_status rl_resolve(rl_resolver *r, const char *host, int port,
                        int64_t deadline_us, rl_addresses *out, rl_fault *f)
{
    char service[8];
    snprintf(service, sizeof service, "%d", port);
    if (look_up(host, service, AI_NUMERICHOST, out) == 0)
        return RLOCK_OK;
    out->count = 0;
    turn_to(r, host, port);
    put_away_answered(r);
    rl_query *q = under_way(r, host, service);
    if (!q)
        return fall_back(r, RLOCK_ENOMEM, "no memory or thread for it", out, f);
    const char *failed = await(r, q, patience(r, deadline_us), out);
    unref(q);
    return failed ? fall_back(r, RLOCK_EIO, failed, out, f) : RLOCK_OK;
}

void rl_resolver_call_off(rl_resolver *r)
{
    atomic_store(&r->off, true);
    rl_query *q = under_way(r, NULL, NULL);
    if (!q)
        return;
    rl_mutex_lock(&q->mutex);
    rl_cond_wake_all(&q->answered);
    rl_mutex_unlock(&q->mutex);
    unref(q);
}

void rl_resolver_resume(rl_resolver *r)
{
    atomic_store(&r->off, false);
}
