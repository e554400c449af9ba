/*
 * The client: a server, the connections to it, and the threads that renew
 * leases, listen for wake-ups and deliver events.
 *
 * One client serves any number of threads and locks. It opens connections as
 * they are needed and starts each of its threads with the first use that needs
 * it; mostly there is one:
 *
 *   rlock-loop       the first acquire, or Red lock (multi.h): the watchdog,
 *                    which renews leases; watches servers while something is
 *                    held there; notices leases that run out; undoes what a
 *                    failed call may have left on the server, and reads
 *                    answers that nobody waits for any more; from the first
 *                    wait on, a subscriber connection to each server that is
 *                    waited at, on which releases of other clients ring; from
 *                    the first start of async.h on, what has been started
 *   rlock-notifier   likewise, if there is an on_event that is not dispatched:
 *                    calls it
 *   rlock-connector  for each server, while a connection to it is made for the
 *                    loop, or for calls of a Red lock, which must not wait for
 *                    one server; and while it is down
 *
 * Besides, while a host name is looked up, there is one rlock-resolve; and, for
 * servers that Sentinels or a cluster name, from rlock_client_new() on
 * rlock-topology, with an rlock-dial for each of those that it is connecting
 * to.
 *
 * The library's threads block all signals. Except where it says otherwise,
 * every function may be called from any thread, and a call that is in progress
 * is not a point of thread cancellation (pthread_cancel() takes effect
 * afterwards). Nothing here may be called from a signal handler.
 *
 * After fork() a child must make clients of its own: every call on an
 * inherited handle answers RLOCK_EFORKED, sends nothing, and leaves the
 * parent's locks alone; the handles can be freed in the child, which closes
 * only the child's copies of the descriptors.
 */
#ifndef RLOCK_CLIENT_H
#define RLOCK_CLIENT_H

#include <rlock/event.h>

#ifdef __cplusplus
extern "C" {
#endif

struct redisContext; /* of hiredis */
struct ssl_ctx_st;   /* of OpenSSL: its SSL_CTX */

typedef struct rlock_client rlock_client;

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
 * How to reach the server and how the client behaves. Initialise with
 * RLOCK_OPTIONS_INIT: zero everywhere else means the default, and `size` lets
 * later versions of the library add members.
 */
typedef struct rlock_options {
    size_t size;
    /*
     * Where the server is; NULL means redis://127.0.0.1:6379/0.
     *
     *   redis://[user[:password]@]host[:port][/db]   TCP; [::1] for IPv6
     *   redis://:password@host                       password only
     *   unix:///path/to.sock[?db=N]                  Unix-domain socket; also
     *                                                unix://user:password@/path
     *   rediss://[user[:password]@]host[:port][/db]  TLS, by the options tls_
     *
     *   redis-sentinel://[user[:password]@]host[:26379][,host...]/name[/db]
     *                       the master of that name, as Sentinels tell, each
     *                       with a port of its own if there is one;
     *                       rediss-sentinel:// with TLS to all of them
     *
     *   redis-cluster://[user[:password]@]host[:6379][,host[:port]...]
     *                       the masters of a cluster, of which some servers
     *                       are named (at most 8, one is enough);
     *                       rediss-cluster:// with TLS to all of them
     *
     * User, password, path and name may contain %XX escapes. With Sentinels,
     * user and password are those of the master; see sentinel_user.
     */
    /*
     * While something is held at a server, renewed or by a lease of its own,
     * it is watched, without a call of the program:
     *
     *   its end      is seen at once, by the connection that rlock-loop has.
     *                It is made anew after pauses that grow up to a twelfth of
     *                watchdog_lease_ms, at most a second
     *   its silence  when nothing has been heard for 0.85 s it is asked for a
     *                sign of life: a PEXPIRE of nothing, beside what is held,
     *                which a server that is no master there any more refuses.
     *                When that takes longer than 0.15 s, and than two round
     *                trips, Sentinels or cluster are asked, and again every
     *                second. After command_timeout_ms, at most a sixth of
     *                watchdog_lease_ms, the connection is made anew
     *   its restart  each new connection asks which run of the server it leads
     *                to. If that is another one, or is not told (it takes the
     *                right to INFO), all that is held there is asked about at
     *                once: what is renewed is renewed, what has a lease of its
     *                own is looked at, once, and not prolonged. What the server
     *                does not have is LOST
     *
     * So an owner that does nothing is told of what a server has lost within a
     * second of when that can be asked again; while it cannot be, holds are
     * good until their deadlines. A Red lock with a lease of its own is not
     * asked about: a node that has restarted gives its vote to nobody until
     * that is over (multi.h).
     *
     * At rest that costs 1.2 commands a second for each server at which
     * something is held, however much it is, and none where nothing is;
     * renewals count as signs of life. The thread wakes up three times a second
     * for it.
     */
    /*
     * With Sentinels the thread rlock-topology listens to all that the URI
     * names, and to those that these name, and follows a failover at once.
     * Whom most of them name counts, and while they do not agree, the highest
     * epoch; a server has to say that it is a master before anything is asked
     * of it. Connections to the master before are shut, and what still comes
     * over them is not believed; it is left for good. What is held is asked of
     * the new master within a twelfth of watchdog_lease_ms, at most a quarter
     * of a second: what it does not have is LOST, what is renewed and has an
     * older lease there is prolonged. Nothing is made anew there. A call that
     * finds no master, or one that is being replaced, is asked again after
     * pauses of 10 to 100 ms, until its time is over: command_timeout_ms, of an
     * acquire after its wait. Then it fails with RLOCK_EIO. (Not a node of a
     * Red lock, where the others decide.)
     *
     * A lower epoch than that of the master in use is not followed: a Sentinel
     * that says so may have been cut off. But Sentinels that were told to watch
     * another master begin anew with their epochs. So when most of them, three
     * times in a row, name another one, and each time the one in use cannot be
     * reached, or says that it is none, the other one is used, as after a
     * failover. While the one in use is there, it stays; if one of them has
     * named another one for 10 s, there is an RLOCK_EVENT_WARNING, once for
     * each other one.
     *
     * Replication is asynchronous, and a failover loses what had not been
     * replicated: a grant of the last moments may be given to somebody else
     * too, until that first question has found it out; and what was released in
     * the last moments may be held again, by nobody, until its lease is over
     * (rlock_force_unlock() frees it). A master that was cut
     * off from its Sentinels, and from us, may grant for as long as it does not
     * know. Only tokens tell two such owners apart, and only while the servers'
     * clocks differ by less than the failover took.
     */
    /*
     * In a cluster each lock is on the master that has its name's slot. The
     * thread rlock-topology asks one of the servers for the map of slots: at
     * first, once in a minute, and when something is wrong, ever more rarely
     * while it stays so; a replica, if no master that is known answers. Of two
     * nodes that are named for a slot the one with the higher epoch has it.
     * Failovers are followed as with Sentinels, and lose the same; but nobody
     * tells of them, so they are noticed later by up to a twentieth of what
     * they took, or by the next sign of life, if the old master lives on as a
     * replica.
     *
     * A slot may move: what is held in it stays held, and is renewed on either
     * server. While it moves, the servers put off calls with more than one key,
     * so an acquire goes on asking until its time is over; an unlock whose time
     * is nearly over frees the lock without waking anybody, who then finds out
     * by himself within 2 s.
     *
     * A node is who it is by its id. One that comes back at another address
     * keeps its slots, and what is held in them. Of another node that has its
     * address now nothing is asked: each new connection says who it leads to
     * (CLUSTER MYID), and calls fail with RLOCK_EIO if the right one is not
     * found in time. A cluster that is made anew at its addresses is followed
     * when for three times in a row no master that was known was found, and
     * most of those who answered knew none of them; what was held is LOST.
     *
     * What is refused for the moment (no slot is served, a master is being
     * replaced, or its new address is not known yet) is asked again after
     * pauses of 10 to 100 ms, until the call's time is over:
     * command_timeout_ms, of an acquire after its wait.
     *
     * The name of a lock must have all its keys in one slot: no braces at all,
     * or something in the first ones ("a{b}c"); rlock_new() refuses others. The
     * first hold starts two threads for each master, for renewals there and for
     * connections, and the first wait at a master one more. When a master has
     * been replaced they end, connect_timeout_ms and a second later. Servers
     * before Redis 7 have no sharded channels: waiters poll. A client can get
     * to know 512 addresses of servers; one whose cluster has gone through more
     * has to be made anew.
     */
    const char *uri;
    /*
     * Instead of uri: returns a connected, blocking hiredis context, ready
     * for commands (authenticated, database selected, TLS set up), or NULL.
     * The library owns the context from then on, makes its reads and writes
     * itself, and frees it with redisFree(). It calls back whenever it needs
     * a connection, now and for reconnecting, from the calling threads and
     * from its own, several at a time: the callback must be thread-safe,
     * return a new context each time (one that the library has already is
     * refused), and should fail within connect_timeout_ms: the library cannot
     * interrupt it, so a call that needs a connection takes as long as the
     * callback does, over all limits that are said here and in lock.h.
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
     * longjmp() must not leave it, nor any call of the library. A slow
     * callback on rlock-notifier delays later events but no renewal; events of
     * one kind for one hold that wait behind it are delivered as one. What has
     * been started (async.h) tells its events by rlock_client_dispatch(), but
     * none for which there is no memory; `done` tells the same. Of a Multi
     * lock that is the first member's client, which tells those of the others
     * there, too, on their on_event, unless they have been freed by then.
     */
    void (*on_event)(const rlock_event *ev, void *arg);
    void *event_arg;
    /*
     * Also listen, while a thread waits for a lock, on the channel on which
     * Redisson (Java) tells of its releases. A wait for a lock that a Java
     * process holds then ends at once, instead of with its lease or the next
     * look, 2 s later at most. Costs two commands a wait; needs the right to
     * subscribe to redisson_lock__channel:*.
     */
    bool redisson_channel;
    /*
     * A server that cannot be reached (or is loading, say: what may pass) when
     * the client is made does not make rlock_client_new() fail: calls answer
     * RLOCK_EIO until it is there. Its version and its user's rights are then
     * checked with the first connection. For the nodes of a Red lock
     * (multi.h): a program can start while some of them are down; a node that
     * is met only later does not vote until it has been up for the longest
     * lease.
     */
    bool lazy;
    /*
     * Turns; 0: none. Without them each section costs the server a call, even
     * when threads of this client only hand the lock to each other. For so many
     * milliseconds after such a hand-over, 1 is enough and 1000 the most, who
     * unlocks gives the hold itself to the thread that has waited longest here,
     * and the server is asked nothing. That is for locks of one server in the
     * hash layout which the watchdog renews, while a thread sleeps and waits
     * for one; it needs three of them, or more, that want the lock. The server
     * is asked, as without turns, while a command of this hold may come late,
     * while this client stands in the server's queue, when the hold was nested
     * with levels or a lease that the server may still have, or when less than
     * 60 % of its lease is left (so a max_hold_ms below that leaves no turns).
     *
     * What is said elsewhere, and changes with them:
     *
     *   - On the server all holds of a turn are one: its holder id, and so
     *     what rlock_holder_info() tells, names the thread that began it.
     *   - A lock that was force-unlocked, or that the server has lost with its
     *     data, may be granted here for up to turn_ms after that, and an
     *     unlock that passes it on returns RLOCK_OK. The other owner's token is
     *     larger, unless the data went within 63 us of the hand-over, so a
     *     resource that checks fencing tokens refuses what is late.
     *   - Other clients wait longer, for each client that stands before them:
     *     by turn_ms, and by a section here that begins within it.
     *
     * Tokens still grow from hold to hold; up to 64 holds make a turn. Needs
     * the right to INCRBY; without that each section asks the server as before.
     */
    int64_t turn_ms;
    /*
     * TLS, for rediss://. By default the server has to have a certificate that
     * one of the system's authorities has signed, for the host name or the
     * address in the URI; TLS 1.2 or newer is spoken. A server that cannot
     * prove that, or does not speak TLS, is never spoken to in another way.
     * The files, in PEM, are read by rlock_client_new(), and again before a
     * connection is made if they have changed since (written, or replaced), so
     * certificates may be renewed while the client lives; connections that are
     * open stay. Changes that are of no use are not taken: a file that is just
     * being written, a key that does not belong to its certificate yet. What
     * was read before is used on, and if a connection fails then, its message,
     * and that of RLOCK_EVENT_RENEW_FAILED, says what is wrong with the newer
     * file. Folders of authorities, the system's too, are looked into whenever
     * a connection is made. A key that needs a passphrase is refused; tls_setup
     * can load one by itself. A
     * certificate that has no names of its own is matched by its common name,
     * as OpenSSL does it.
     *
     * OpenSSL's queue of errors of the calling thread is empty after a call
     * that connects. It is initialised without its handler for exit(), unless
     * the program has initialised it before: then free clients before exit(),
     * as that handler frees what their threads may be using.
     */
    const char *tls_ca_file;   /* trusted instead of the system's; also both */
    const char *tls_ca_dir;    /* of them, named as `openssl rehash` does */
    const char *tls_cert_file; /* the client's own, with its chain, for a
                                  server that asks for one; NULL: none */
    const char *tls_key_file;  /* NULL: the key is in tls_cert_file */
    const char *tls_server_name; /* expected and asked for (SNI) instead of the
                                    URI's host; may be an address */
    rlock_tls_verify tls_verify;
    /*
     * The last word on the SSL_CTX that connections of the client are made
     * from: ciphers, versions, a key in hardware. Called by rlock_client_new(),
     * and, with another SSL_CTX, whenever one of the files above has changed,
     * by whichever thread makes a connection then, one at a time. It must not
     * use this client, and what tls_setup_arg points to has to stay as long as
     * that. Returns 1; anything else makes rlock_client_new() fail with
     * RLOCK_EINVAL, or later leaves the SSL_CTX before in use. NULL: none.
     */
    int (*tls_setup)(struct ssl_ctx_st *ctx, void *arg);
    void *tls_setup_arg;
    /*
     * Credentials that change: passwords that are rotated, tokens that expire.
     * Called before each login, instead of what a URI may name (together they
     * are RLOCK_EINVAL), by whichever thread makes the connection, one at a
     * time; what *out points to is copied before it is called again. Returns 1,
     * or 0 when there are none: then the connection fails with RLOCK_EIO. When
     * the server refuses them it is called once more, before that counts as
     * RLOCK_ESERVER; and again with each further try, as the server may know a
     * new password before the program does: an rlock_acquire() asks until its
     * wait is over, the watchdog until the lease is. It should return within
     * connect_timeout_ms, as it cannot be interrupted, and must not use this
     * client, which is waiting for it.
     *
     * With valid_ms a connection is not used for longer than nine tenths of
     * that, and a second at least, but replaced; so no login runs out while it
     * is in use. Less than 0: they have expired, and the connection fails. A
     * connection without it stays logged in for as long as the server lets it:
     * Redis keeps it after the password has been changed.
     */
    int (*credentials)(rlock_credentials *out, void *arg);
    void *credentials_arg;
    /* With what to log in at Sentinels; both NULL: they want nothing. */
    const char *sentinel_user, *sentinel_password;
    /*
     * How many replicas of the server have to have what moves a deadline; 0:
     * none, 16 the most. A grant, a renewal or an extension then counts only
     * when so many have acknowledged it within replica_wait_ms (0: 1000; for a
     * renewal within a twelfth of the lease, if that is less): WAIT goes right
     * behind the call, in the same write. The library believes in nothing that
     * is short of it:
     *
     *   - A grant is not told. rlock_acquire() asks again until its wait is
     *     over, then undoes it and answers RLOCK_EQUORUM ("1 of 2 replicas
     *     within 1000 ms"). It may take replica_wait_ms longer than it says.
     *     While it asks, others find the lock busy.
     *   - A renewal is RLOCK_EVENT_RENEW_FAILED, and is tried again until the
     *     deadline, at which the hold is LOST.
     *   - rlock_extend(), and a nested call that wants a longer lease, answer
     *     RLOCK_EQUORUM, and the deadline does not become later. (If it was to
     *     become earlier, it has.)
     *
     * Releases, and nested calls that want no more than the hold has, do not
     * wait. Nor does a nested RLOCK_WATCHDOG then prolong what the watchdog
     * renews anyway. Such locks are not handed over from thread to thread, so
     * turn_ms has no effect on them, and calls about them take connections of
     * their own. Members of a Multi lock that are on one server wait once, for
     * all. A node of a Red lock goes by its own client's options; a vote that
     * is short is none. rlock_lock_options (lock.h) can say another number.
     *
     * What is kept, and what is not:
     *
     *   one server      what it loses, it loses
     *   min_replicas 0  after a failover: what had been replicated. Grants and
     *                   renewals of the last moments may not be, nor releases,
     *                   and a master that does not know that it was replaced
     *                   grants on
     *   min_replicas k  after a failover also all that was told, if one of the
     *                   k that have it becomes the master. A master that was
     *                   replaced grants no more when fewer than k replicas are
     *                   left to it. Releases do not wait: what was released
     *                   just before a master died may be held, by nobody, until
     *                   its lease is over (rlock_force_unlock() frees it)
     *   k = all         after every single failover of a master that is dead,
     *                   but releases as with k; while one replica is away
     *                   nothing is granted
     *   no k            a master that was killed and comes back without its
     *                   data before it has been replaced: it is the master
     *                   still, its replicas copy that it has nothing, and it
     *                   grants anew what others hold, who learn of it as said
     *                   above. Give it an append-only file, or have it not
     *                   restarted before it has been replaced (RestartSec of
     *                   systemd). master-reboot-down-after-period of Sentinels
     *                   comes too late: by then the replicas have copied it.
     *                   And in a cluster what was moved with its slot to a
     *                   master that is replaced before its own replicas have it
     *
     * It is replication and no consensus: a replica that lacks the lock may
     * become the master although others have it, a master that is cut off with
     * k of its replicas grants on, and who has acknowledged has it in memory
     * only. Tokens tell, as ever; or a Red lock.
     *
     * rlock_client_new() tries WAIT once: without it the answer is
     * RLOCK_ENOTSUP, and with too few replicas there is an
     * RLOCK_EVENT_WARNING. May be given with `connect`, too.
     */
    unsigned min_replicas;
    int64_t replica_wait_ms;
    /*
     * Every event waits for rlock_client_dispatch() (async.h), on whose thread
     * on_event is then called, in the order in which they came; so a loop gets
     * them as it gets all else. For an event for which there is no memory it is
     * not called. RLOCK_EVENT_WARNING of rlock_client_new() waits, too.
     */
    bool dispatch_events;
    /*
     * Waits of this client's owners for each other in a circle are not looked
     * for: they last until one of them ends by itself. See RLOCK_EDEADLK at
     * rlock_acquire() (lock.h).
     */
    bool no_deadlock_check;
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

/* Counters since the client was made; gauges are marked. Grows: see base.h. */
typedef struct rlock_stats {
    uint64_t acquires;           /* calls that returned RLOCK_OK */
    uint64_t acquires_contended; /* of all calls, those that had to wait */
    uint64_t acquires_failed;    /* calls that returned anything else */
    uint64_t releases;           /* unlocks that returned RLOCK_OK */
    uint64_t renewals;           /* leases prolonged by the watchdog */
    uint64_t renew_failures;     /* renewals that failed once; retried */
    uint64_t lost;               /* holds lost */
    uint64_t wakeups;            /* rings that woke a waiter, hand-overs, and
                                    passes */
    uint64_t wakeups_futile;     /* of them, those that found it busy again */
    uint64_t passes;             /* unlocks that passed the lock on: turn_ms */
    uint64_t reconnects;         /* connections opened after one broke */
    uint64_t script_loads;       /* scripts sent whole: the server lacked it */
    uint64_t held_now;           /* gauge: holds, lost ones not counted */
    uint64_t waiting_now;        /* gauge: threads waiting in an acquire */
    uint64_t wait_us_total;      /* time spent waiting in acquires */
    uint64_t hold_us_total;      /* time locks were held, outermost to last
                                    unlock or loss */
    uint64_t failovers;          /* masters that took another one's place */
    uint64_t refreshes;          /* times Sentinels, or servers of a cluster,
                                    were asked who is in office */
    uint64_t redirects;          /* answers of a cluster that a slot is, or for
                                    once is asked for, elsewhere */
    uint64_t nodes;              /* masters of the cluster, at present */
    uint64_t replica_shortfalls; /* grants, renewals and extensions that too few
                                    replicas had: min_replicas */
} rlock_stats;

/*
 * Makes a client and checks the server once, so that a wrong address or
 * password fails here. Blocks for at most connect_timeout_ms plus
 * command_timeout_ms (with a connect callback: for as long as that takes). In
 * that time Sentinels, or servers of a cluster, are asked, too, each over a
 * connection that may take connect_timeout_ms by itself; if none of them
 * answers within that, it is over.
 *
 * opts may be NULL: all defaults. Its strings are copied.
 *
 * RLOCK_OK        *out is the client; free it with rlock_client_free()
 * RLOCK_EINVAL    an option is out of range, uri and connect are both given,
 *                 the URI is malformed (the message says where), or names a
 *                 server of a cluster, or a Sentinel, as if it were a server by
 *                 itself, or the other way round; an option of TLS is set
 *                 without rediss:// or cannot be used (a file that cannot be
 *                 read, a key of another certificate), or the callback's
 *                 context cannot be used (inside MULTI, with unread replies,
 *                 subscribed, non-blocking)
 * RLOCK_ENOTSUP   rediss:// with an rlock that was built without OpenSSL; the
 *                 server is older than Redis 6.2, or lacks WAIT, which
 *                 min_replicas needs; or the program brings a hiredis whose
 *                 structs are not those that this library was compiled for
 * RLOCK_EIO       unknown host, connection refused, no answer in time, what
 *                 answers is no Redis server, TLS failed (the message says what
 *                 is wrong with the server's certificate), no Sentinel names a
 *                 master, or a callback has failed; never with lazy
 * RLOCK_ESERVER   the server refused: wrong password, no such database, a right
 *                 is missing (the message names the command or key), loading,
 *                 read-only replica, too many clients, ...
 * RLOCK_ENOMEM    out of memory
 *
 * *out is NULL unless RLOCK_OK. When the server may evict keys (maxmemory with
 * a policy other than noeviction), or has fewer replicas than min_replicas,
 * on_event gets RLOCK_EVENT_WARNING.
 */
RLOCK_API rlock_status rlock_client_new(const rlock_options *opts,
                                        rlock_client **out);

/*
 * What the server has of the client's locks is released: for a program that
 * stops tidily, so that who comes next need not wait for its leases.
 */
#define RLOCK_CLOSE_RELEASE_HELD 1u

/*
 * Closes and frees a client; NULL is accepted. Wakes every waiter with
 * RLOCK_ECLOSED (but who waits for a Red lock that has its home elsewhere goes
 * on without this node), waits until the calls now running on the client have
 * returned (each within its command timeout), makes one last attempt, of at
 * most a second, to undo what failed calls may have left on the server, and
 * joins the client's threads.
 *
 * flags  0: locks that are still held are not released, and their leases run
 *        out by themselves
 *        RLOCK_CLOSE_RELEASE_HELD: all that threads and other owners hold with
 *        this client is released, however often they have locked it, and
 *        waiters are woken. From the beginning of this call on no owner is told
 *        any more that it holds one; but see that none is at work. The last
 *        attempt takes up to command_timeout_ms then. Of a Multi or Red lock
 *        what lies at this client's server is released, the rest with the other
 *        clients
 *
 * No further event is delivered for what was held.
 *
 * RLOCK_OK       nothing is left that had to be released or undone
 * RLOCK_EIO, RLOCK_ESERVER, RLOCK_ENOMEM
 *                closed all the same; but so many locks as the message says
 *                were not released, or undone, and their leases run out
 * RLOCK_EFORKED  freed in a child of fork(), where nothing is released
 * RLOCK_EINVAL   flags that there are not; the client is left as it is
 *
 * Lock handles may outlive the client: calls on them answer RLOCK_ECLOSED, or
 * say that nothing is held, and they can be freed. Must not be called from a
 * callback, nor twice, nor while another thread may still start a call with
 * the client itself (a call on a lock handle is safe at any time).
 */
RLOCK_API rlock_status rlock_client_close(rlock_client *cl, unsigned flags);

/* rlock_client_close(cl, 0), whatever that answers. */
RLOCK_API void rlock_client_free(rlock_client *cl);

/*
 * Asks the server for a sign of life. Blocks for at most command_timeout_ms.
 *
 * RLOCK_OK, RLOCK_EIO, RLOCK_ESERVER, RLOCK_ENOMEM, RLOCK_EFORKED; RLOCK_EINVAL
 * for NULL.
 */
RLOCK_API rlock_status rlock_client_ping(rlock_client *cl);

/*
 * While it is on, every wait for a lock of this client, now and later, on any
 * handle and in any thread, ends with RLOCK_CANCELED; so a program that stops
 * sets it before it joins its threads, and no wait can begin behind its back.
 * Acquires with wait 0, re-entries and unlocks are not affected; an acquire
 * with a wait may be canceled without a try. A Red lock follows the client of
 * its first node, a Multi lock those of its members. Does not block on I/O.
 *
 * RLOCK_OK, RLOCK_ECLOSED, RLOCK_EFORKED; RLOCK_EINVAL for NULL.
 */
RLOCK_API rlock_status rlock_client_cancel(rlock_client *cl, bool on);

/*
 * Copies the counters to *out, without I/O. Counters that change together may
 * be seen one apart. size is sizeof *out; see base.h.
 *
 * RLOCK_OK, RLOCK_EFORKED; RLOCK_EINVAL for NULL, and for a size that no
 * version of the struct has.
 */
RLOCK_API rlock_status rlock_client_stats(rlock_client *cl, rlock_stats *out,
                                          size_t size);

#ifdef __cplusplus
}
#endif

#endif
