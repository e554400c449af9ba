/*
 * How a client reaches its server, and how it behaves. The documents say it in
 * full, and are installed beside the examples: servers.md (what is watched,
 * Sentinels, clusters, replicas), logins.md (TLS, credentials), threads.md.
 *
 * Where the server is (uri), %XX being escapes in user, password, path, name:
 *
 *   redis://[user[:password]@]host[:port][/db]   TCP; [::1] for IPv6
 *   redis://:password@host                       password only
 *   unix:///path/to.sock[?db=N]                  Unix-domain socket; also
 *                                                unix://user:password@/path
 *   rediss://[user[:password]@]host[:port][/db]  TLS, by the options tls_
 *
 *   redis-sentinel://[user[:password]@]host[:26379][,host...]/name[/db]
 *                       the master of that name, as Sentinels tell, each with
 *                       a port of its own if there is one; user and password
 *                       are the master's. rediss-sentinel://: TLS to all
 *
 *   redis-cluster://[user[:password]@]host[:6379][,host[:port]...]
 *                       the masters of a cluster, of which some servers are
 *                       named (at most 8, one is enough). rediss-cluster://:
 *                       TLS to all
 */
#ifndef RLOCK_OPTIONS_H
#define RLOCK_OPTIONS_H

#include <rlock/event.h>

#ifdef __cplusplus
extern "C" {
#endif

struct redisContext; /* of hiredis */
struct ssl_ctx_st;   /* of OpenSSL: its SSL_CTX */

/* What of a server's certificate is checked, over TLS. */
typedef enum rlock_tls_verify {
    RLOCK_TLS_VERIFY_FULL = 0, /* who has signed it, and the name in it */
    RLOCK_TLS_VERIFY_CA = 1,   /* who has signed it: any server of theirs may
                                  pass for this one */
    RLOCK_TLS_VERIFY_NONE = 2  /* nothing: whoever sits between may read all,
                                  and grant what he likes */
} rlock_tls_verify;

/* With what to log in; see rlock_options.credentials. */
typedef struct rlock_credentials {
    const char *user;     /* NULL: the default user */
    const char *password; /* NULL: none is needed */
    int64_t valid_ms;     /* from now on; 0: for as long as the server likes */
} rlock_credentials;

/* Initialise it with RLOCK_OPTIONS_INIT; zero elsewhere means the default. */
typedef struct rlock_options {
    size_t size;     /* set by RLOCK_OPTIONS_INIT; lets the struct grow */
    const char *uri; /* as above; NULL: redis://127.0.0.1:6379/0 */
    /* Instead of uri: returns a new hiredis context, connected, blocking, ready
       for commands (authenticated, database selected, TLS set up), or NULL. The
       library owns it, makes its reads and writes itself, and frees it with
       redisFree(). Called by any thread, several at a time. It should fail
       within connect_timeout_ms, as nothing can interrupt it: hiredis.md. */
    struct redisContext *(*connect)(void *arg);
    void *connect_arg;
    int64_t connect_timeout_ms; /* one connection, with name look-up, TLS and
                                   login; 1000 */
    int64_t command_timeout_ms; /* one command and its reply; 3000 */
    int64_t watchdog_lease_ms;  /* lease with RLOCK_WATCHDOG; 30000, at least
                                   100; renewed every third of it, in a
                                   cluster sometimes earlier */
    int64_t max_hold_ms;        /* a hold that is renewed ends, as lost, when
                                   it is this old; 0: no limit */
    unsigned pool_size;         /* most connections for commands; 16. Threads
                                   share up to four for a server's locks (with
                                   `connect`, none); rlock-loop has its own */
    const char *host_id;        /* host part of the holder id; NULL:
                                   gethostname(). At most 255 bytes; blanks,
                                   control characters and colons become _ */
    /* Called for every event; NULL: no events. Called with no lock of the
       library held, one event at a time on each thread (event.h). It may call
       any function but rlock_client_close() and rlock_client_free(), also to
       free the handle and the owner of the call that it comes from, but must
       not wait for the lock that this call waits for. It has to return. A slow
       one delays later events, and no renewal. */
    void (*on_event)(const rlock_event *ev, void *arg);
    void *event_arg;
    /* Also listen, while a thread waits, to Redisson's (Java's) releases: these
       end a wait at once, which otherwise looks every 2 s. */
    bool redisson_channel;
    /* A server that is away, or loading, does not make rlock_client_new() fail:
       calls answer RLOCK_EIO until it is there, and is checked: servers.md. */
    bool lazy;
    /* So long after a hand-over threads of this client pass the lock on without
       asking the server; 0: never; 1000 the most: threads.md, Turns. */
    int64_t turn_ms;
    const char *tls_ca_file;   /* PEM; trusted instead of the system's; also */
    const char *tls_ca_dir;    /* both, named as `openssl rehash` does */
    const char *tls_cert_file; /* the client's own, with its chain, for a
                                  server that asks for one; NULL: none */
    const char *tls_key_file;  /* NULL: the key is in tls_cert_file */
    const char *tls_server_name; /* expected and asked for (SNI) instead of the
                                    URI's host; may be an address */
    rlock_tls_verify tls_verify;
    /* The last word on the SSL_CTX that connections are made from. Called by
       rlock_client_new(), and with another SSL_CTX when one of these files has
       changed, by a thread that connects, one at a time; must not use this
       client. Returns 1; else RLOCK_EINVAL there, or the one before is kept. */
    int (*tls_setup)(struct ssl_ctx_st *ctx, void *arg);
    void *tls_setup_arg; /* as long as the client */
    /* Credentials that change, instead of a URI's: called before each login, by
       the thread that connects, one at a time; what *out points to is copied
       before it is called again. Returns 1, or 0: there are none, RLOCK_EIO. It
       should take no longer than connect_timeout_ms, and must not use this
       client: logins.md. */
    int (*credentials)(rlock_credentials *out, void *arg);
    void *credentials_arg;
    /* With what to log in at Sentinels; both NULL: they want nothing. */
    const char *sentinel_user, *sentinel_password;
    unsigned min_replicas;   /* so many replicas (16 the most) have to have what
                                moves a deadline: servers.md, Replicas */
    int64_t replica_wait_ms; /* at most so long, over a call's other limits;
                                0: 1000 */
    bool dispatch_events;    /* every event waits for rlock_client_dispatch()
                                (async.h); if there is memory for it */
    bool no_deadlock_check;  /* no acquire answers RLOCK_EDEADLK (lock.h) */
    /* What its figures are called by (metrics.h): the label client="...", of 1
       to 255 bytes; NULL: they have none. */
    const char *metrics_label;
    bool metrics; /* its histograms, too: how long waits, holds, calls take */
    /* Alarms (event.h): a renewal later than half the lease is an
       RLOCK_EVENT_RENEW_LATE; what is held for longer an RLOCK_EVENT_HELD_LONG,
       what waits for longer an RLOCK_EVENT_WAITED_LONG; 0: never. */
    bool warn_renew_late;
    int64_t warn_hold_ms, warn_wait_ms;
    unsigned metrics_names; /* of the first so many names of locks, 1000 the
                               most, figures are told by name (metrics.h); 0:
                               of none */
    /* Who unlocks what other clients wait for gives it to the first of these,
       if that has this option, too, and tells it so, instead of freeing the
       lock and ringing it: threads.md, Grants. */
    bool grants;
} rlock_options;

#if defined(__cplusplus)
static inline rlock_options rlock_options_init_()
{
    rlock_options o = rlock_options();
    o.size = sizeof o;
    return o;
}
#define RLOCK_OPTIONS_INIT rlock_options_init_()
#else
#define RLOCK_OPTIONS_INIT                                                     \
    {                                                                          \
        .size = sizeof(rlock_options)                                          \
    }
#endif

#ifdef __cplusplus
}
#endif
#endif
