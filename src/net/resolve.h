/*
 * Name look-up with a deadline, which getaddrinfo() does not have.
 *
 * A numeric address is parsed on the spot. A name is looked up on a thread of
 * its own, because getaddrinfo() may take minutes and cannot be interrupted:
 * who runs out of time goes away, later callers join the same query, and the
 * thread, which nobody joins, leaves its answer to whoever is still there. When
 * the name servers fail, or use up half of the time, the last good answer has
 * to do.
 */
#ifndef RL_NET_RESOLVE_H
#define RL_NET_RESOLVE_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/thread.h"

#define RL_ADDRESSES 8

typedef struct rl_addresses {
    int count;
    struct {
        socklen_t len;
        union {
            struct sockaddr any;
            struct sockaddr_in v4;
            struct sockaddr_in6 v6;
        } addr;
    } at[RL_ADDRESSES];
} rl_addresses;

typedef struct rl_query rl_query;

/* For one host and port at a time. */
typedef struct rl_resolver {
    rl_mutex mutex; /* guards the members below */
    char host[256]; /* whose they are */
    int port;
    rl_query *pending; /* counted; NULL: none */
    rl_addresses last; /* the last good answer */
    atomic_bool off;   /* nobody waits any more; not guarded */
} rl_resolver;

void rl_resolver_init(rl_resolver *r);
void rl_resolver_fini(rl_resolver *r);

/* RLOCK_OK; RLOCK_EIO: no such host, or not in time; RLOCK_ENOMEM. */
rlock_status rl_resolve(rl_resolver *r, const char *host, int port,
                        int64_t deadline_us, rl_addresses *out, rl_fault *f);

/* Who waits is told that there was no answer, and so is who comes, until it is
   resumed. Any thread. */
void rl_resolver_call_off(rl_resolver *r);
void rl_resolver_resume(rl_resolver *r);

#endif
