/*
 * Makes connections: from a URI, or by the user's callback. Either way
 * something is said on a new one before it is used (net/hello.h).
 */
#ifndef RL_NET_DIAL_H
#define RL_NET_DIAL_H

#include <string.h>

#include "net/login.h"
#include "net/resolve.h"
#include "net/tls.h"
#include "net/uri.h"

#define RL_PLACE_HOST 256

/* Where a master is. */
typedef struct rl_place {
    uint64_t nth; /* grows whenever it is another one; 0: there is none */
    char host[RL_PLACE_HOST];
    int port;
} rl_place;

static inline bool rl_place_is(const rl_place *a, const rl_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

typedef struct rl_dialer {
    rl_uri uri;
    /* Instead of the URI's host and port: where the master is now. NULL: the
       URI says it. */
    rlock_status (*locate)(void *arg, int64_t deadline_us, rl_place *out,
                           rl_fault *f);
    void *locate_arg;
    bool role;   /* what answers has to say that it is a master */
    bool strict; /* see rl_hello */
    rl_resolver resolver;
    rl_tls *tls;                         /* its owner's; NULL: plain */
    rl_credentials *credentials;         /* likewise; NULL: the URI's */
    redisContext *(*connect)(void *arg); /* instead of the URI */
    void *connect_arg;
    /* Has the callback returned this context before? */
    bool (*is_ours)(void *arg, const redisContext *ctx);
    void *is_ours_arg;
    int64_t connect_timeout_ms; /* without what locate() takes */
    atomic_bool worked;         /* a connection has been made */
    /* For who may have to shut it meanwhile; or NULL. A socket is there, which
       is about to be connected; -1: it is to be closed, or has been. */
    void (*opened)(void *arg, int fd);
    /* A connection is there, but not introduced yet; and, if that fails, is
       about to be freed. */
    void (*met)(void *arg, rl_conn *c);
    void (*parted)(void *arg, rl_conn *c);
    void *met_arg;
} rl_dialer;

void rl_dialer_init(rl_dialer *d);
void rl_dialer_fini(rl_dialer *d);

/*
 * RLOCK_EIO, RLOCK_ESERVER, RLOCK_EINVAL (the callback's context cannot be
 * used) or RLOCK_ENOMEM. Nothing but logging in has been sent.
 */
rlock_status rl_dial(rl_dialer *d, int64_t deadline_us, rl_conn **out,
                     rl_fault *f);

#endif
