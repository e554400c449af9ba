/*
 * Who has which slot of a cluster: a watcher on the loop asks one of the servers
 * whenever something is wrong, and once in a minute; and what servers say by
 * themselves, "MOVED" and "ASK", on whichever thread reads it.
 *
 * A server is known from the first time it is named until the end, by a number:
 * a node, by its id, at an address. One that has lost all its slots is left for
 * good: connections to it are shut, and a little later all else that there is
 * for it goes. It is used again only when a map with a higher epoch names it,
 * or another node at its address.
 */
#ifndef RL_ROUTE_CLUSTER_H
#define RL_ROUTE_CLUSTER_H

#include <poll.h>

#include "base/os.h"
#include "net/dial.h"
#include "wire/ask.h"

/* A client can know so many. */
#define RL_SERVERS 512

typedef struct rl_cluster rl_cluster;

/* One server; what `add` is given. */
typedef struct rl_server rl_server;

typedef struct rl_cluster_options {
    const rl_uri *uri;           /* names some of the servers; copied */
    rl_tls *tls;                 /* NULL: plain; stays */
    rl_credentials *credentials; /* stays */
    int64_t connect_timeout_ms;  /* for each connection that asks */
    /* A server that was not known. What it returns is what rl_cluster_route()
       answers; NULL: out of memory. Any thread; name: its URI; both stay. */
    void *(*add)(void *arg, rl_server *s, const char *name);
    /* On the loop, with no lock held: nothing is to be believed of it that
       comes over connections to its place before the nth. */
    void (*leave)(void *arg, void *server, uint64_t nth);
    /* Likewise: a map has been told, and so many servers were replaced, as
       `text` says. Slots may be elsewhere, or have been since a redirect. */
    void (*told)(void *arg, unsigned failovers, const char *text);
    /* Likewise: the server was left long ago; what there is for it may go.
       False: not yet. */
    bool (*dismiss)(void *arg, void *server);
    int64_t dismiss_us; /* so long ago: nobody is connecting to it any more */
    /* Its turn is to come soon. Any thread, whatever lock it has. */
    void (*nudge)(void *arg);
    const rl_signal *signal; /* raised when somebody is connected to; stays */
    void *arg;
    atomic_uint_fast64_t *refreshes, *redirects, *nodes; /* are counted */
} rl_cluster_options;

/* NULL: out of memory. */
rl_cluster *rl_cluster_new(const rl_cluster_options *o);
/*
 * The loop's: does what there is to do. Until when the next turn may wait;
 * *signaled: it is also to come when `signal` has been raised.
 */
int64_t rl_cluster_turn(rl_cluster *c, int64_t now_us, bool *signaled);
/* What is to be polled until then: one descriptor, or -1. */
size_t rl_cluster_look(rl_cluster *c, struct pollfd *p);
/* No server becomes known any more. */
void rl_cluster_close(rl_cluster *c);
/* It has no turns any more: who is being connected to is called off. Blocks for
   a moment. */
void rl_cluster_stop(rl_cluster *c);
/* After that; or, forked, in a child that inherited it: closes descriptors. */
void rl_cluster_free(rl_cluster *c, bool forked);

/* Waits until the slots are known. RLOCK_EINVAL: it is no cluster. */
rlock_status rl_cluster_await(rl_cluster *c, int64_t deadline_us, rl_fault *f);

/* What add() has made of the server that has the slot; NULL: not known. */
void *rl_cluster_route(rl_cluster *c, unsigned slot);

/* The same of a server by its number; see rl_redirects.ask. */
void *rl_cluster_server(rl_cluster *c, unsigned number);

/* All that are known: 1 to that number. */
unsigned rl_cluster_count(rl_cluster *c);

/* Has it lost all its slots? */
bool rl_cluster_is_retired(rl_cluster *c, unsigned number);

rl_redirects *rl_cluster_redirects(rl_cluster *c);

/* Something is wrong with the server, or, NULL, with one of them: ask. Any
   thread; does not block. */
void rl_cluster_suspect(rl_cluster *c, void *server);

/* A thread begins, or ends, to connect to the server. Does not block. */
void rl_cluster_dials(rl_cluster *c, void *server, bool begins);

/*
 * Is this a connection to the server, and not to another node of a cluster,
 * which has its address now? Asks it; false: no, or it does not answer, as *f
 * says.
 */
bool rl_cluster_recognizes(rl_cluster *c, void *server, rl_conn *conn,
                           int64_t deadline_us, rl_fault *f);

/* rl_dialer.locate, of an rl_server; and of any server of the rl_cluster. */
rlock_status rl_server_locate(void *server, int64_t deadline_us, rl_place *out,
                              rl_fault *f);
rlock_status rl_cluster_locate(void *cluster, int64_t deadline_us,
                               rl_place *out, rl_fault *f);

/* A dialer's URI for it. */
rlock_status rl_server_uri(const rl_server *s, rl_uri *u, rl_fault *f);

#endif
