/*
 * How a client reaches its server, and how it behaves. What is said here in a
 * line or three, the documents say in full; they are installed beside the
 * examples: servers.md (what is watched, Sentinels, clusters, replicas),
 * logins.md (TLS, credentials), threads.md (events, turns).
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
 *                       are the master's. rediss-sentinel:// with TLS to all
 *
 *   redis-cluster://[user[:password]@]host[:6379][,host[:port]...]
 *                       the masters of a cluster, of which some servers are
 *                       named (at most 8, one is enough); rediss-cluster://
 *                       with TLS to all of them
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

/*
 * Initialise it with RLOCK_OPTIONS_INIT: zero everywhere else means the
 * default, and `size` lets later versions of the library add members.
 */
typedef struct rlock_options {
    size_t size;
    const char *uri; /* as above; NULL: redis://127.0.0.1:6379/0 */
    /*
     * Instead of uri: returns a connected, blocking hiredis context, ready for
     * commands (authenticated, database selected, TLS set up), or NULL. The
     * library owns it from then on, makes its reads and writes itself, and
     * frees it with redisFree(). Called whenever a connection is needed, by any
     * thread, several at a time: it must return a new context each time (one
     * that the library has already is refused), and should fail within
     * connect_timeout_ms. It cannot be interrupted: a call that needs a
     * connection takes as long as it does, over all limits that are said here
     * and in lock.h.
     */
    struct redisContext *(*connect)(void *arg);
    void *connect_arg;
    int64_t connect_timeout_ms; /* one connection: name look-up, connect, TLS,
                                   login; 1000. Over TLS that is three or four
                                   times the way there and back */
    int64_t command_timeout_ms; /* one command and its reply; 3000 */
    int64_t watchdog_lease_ms;  /* lease with RLOCK_WATCHDOG; 30000, at least
                                   100; renewed every third of it */
    int64_t max_hold_ms;        /* a hold that the watchdog renews ends, as
                                   lost, when it is this old; 0: no limit. An
                                   explicit lease it has keeps its end */
    unsigned pool_size;         /* most connections for commands; 16. Threads
                                   share up to four for locks of one server,
                                   unless `connect` is set; Red and Multi take
                                   more, as one stays with each late answer for
                                   command_timeout_ms at most. The watchdog and
                                   the doorbell have their own */
    const char *host_id;        /* host part of the holder id, at most 255
                                   bytes; NULL: gethostname(). Blanks,
                                   control characters and colons become _ */
    /*
     * Called for every event; NULL: no events. Called with no lock of the
     * library held, one event at a time on each thread. It may call any
     * function of the library except rlock_client_free(), and has to return:
     * longjmp() must not leave it, nor any call of the library. A slow one
     * delays later events, and no renewal. On which thread: threads.md, Events.
     */
    void (*on_event)(const rlock_event *ev, void *arg);
    void *event_arg;
    /* Also listen, while a thread waits, on the channel on which Redisson
       (Java) tells of its releases: a wait for a lock that a Java process has
       ends at once, not with its lease or the next look, in 2 s at most. */
    bool redisson_channel;
    /* A server that is away, or loading, does not make rlock_client_new() fail:
       calls answer RLOCK_EIO until it is there, and is checked: servers.md. */
    bool lazy;
    /* Turns; 0: none, 1000 the most. For so long after a hand-over threads of
       this client pass the lock on, and the server is asked nothing. What that
       changes: threads.md, Turns. */
    int64_t turn_ms;
    const char *tls_ca_file;   /* PEM; trusted instead of the system's; also */
    const char *tls_ca_dir;    /* both, named as `openssl rehash` does */
    const char *tls_cert_file; /* the client's own, with its chain, for a
                                  server that asks for one; NULL: none */
    const char *tls_key_file;  /* NULL: the key is in tls_cert_file */
    const char *tls_server_name; /* expected and asked for (SNI) instead of the
                                    URI's host; may be an address */
    rlock_tls_verify tls_verify;
    /*
     * The last word on the SSL_CTX that connections are made from: ciphers, a
     * key in hardware. Called by rlock_client_new(), and with another SSL_CTX
     * whenever one of these files has changed, by whichever thread makes a
     * connection then, one at a time; it must not use this client. Returns 1;
     * anything else is RLOCK_EINVAL there, or leaves the one before in use.
     */
    int (*tls_setup)(struct ssl_ctx_st *ctx, void *arg);
    void *tls_setup_arg; /* as long as the client */
    /*
     * Credentials that change, instead of what a URI may name (together they
     * are RLOCK_EINVAL): called before each login, by the thread that connects,
     * one at a time; what *out points to is copied before it is called again.
     * Returns 1, or 0: there are none, RLOCK_EIO. It should return within
     * connect_timeout_ms, and must not use this client. See logins.md.
     */
    int (*credentials)(rlock_credentials *out, void *arg);
    void *credentials_arg;
    /* With what to log in at Sentinels; both NULL: they want nothing. */
    const char *sentinel_user, *sentinel_password;
    unsigned min_replicas;   /* so many replicas have to have what moves a
                                deadline (WAIT), or it does not count; 0: none,
                                16 the most: servers.md, Replicas */
    int64_t replica_wait_ms; /* for so long they are waited for, which a call
                                may take longer; 0: 1000. A renewal waits for a
                                twelfth of the lease, if that is less */
    bool dispatch_events;    /* every event waits for rlock_client_dispatch()
                               (async.h), and comes on its thread, in order; but
                               none for which there is no memory */
    bool no_deadlock_check;  /* waits of this client's owners for each other in
                               a circle are not looked for: RLOCK_EDEADLK at
                               rlock_acquire() (lock.h) */
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
