/*
 * The scenes of Red locks: n servers, and parties, each of which has a client
 * of every server and a Red lock over them. No function returns an error: what
 * cannot be done fails the test.
 */
#ifndef TEST_SUPPORT_NODES_H
#define TEST_SUPPORT_NODES_H

#include "scene.h"

typedef struct nodes {
    size_t n;
    server *sv[RLOCK_RED_MAX];
    proxy *px[RLOCK_RED_MAX]; /* NULL: parties talk to the server itself */
} nodes;

/* Servers that have the scripts; also behind a proxy each. */
nodes nodes_start(size_t n);
nodes nodes_proxied(size_t n);
void nodes_stop(nodes *ns);

/* The same servers, the way round the proxies. */
nodes nodes_direct(const nodes *ns);
/* The first n of them. */
nodes nodes_first(const nodes *ns, size_t n);

typedef struct party {
    size_t n;
    events *ev[RLOCK_RED_MAX];
    rlock_client *cl[RLOCK_RED_MAX];
    rlock *lk; /* SCENE_LOCK */
} party;

/* Watchdog lease and command timeout, 0 for the defaults. */
party party_join(const nodes *ns, int64_t lease_ms, int64_t timeout_ms);
/* With options of the lock. */
party party_join_with(const nodes *ns, int64_t lease_ms, int64_t timeout_ms,
                      const rlock_red_options *red);
/* Only the clients, with these options but for URI and events; and a lock of
   theirs. */
party party_clients_of(const nodes *ns, const rlock_options *of);
party party_clients(const nodes *ns, int64_t lease_ms, int64_t timeout_ms);
rlock *party_lock(const party *p, const char *name,
                  const rlock_red_options *red);
void party_free_client(party *p, size_t i);
void party_leave(party *p);
/* The last one leaves, and the nodes stop. */
void party_end(party *p, nodes *ns);

/* A node counts from 0 here, though in messages from 1. */

/* Is the lock's key there? */
bool node_has(server *sv);
/* How many nodes have it. */
size_t nodes_having(const nodes *ns);
/* Clients that count the lock among their holds. */
size_t party_holding(const party *p);
/* The holder id on a node of a lock in the hash layout; "" if none. Valid until
   the test has asked for four more. */
const char *node_holder(server *sv);
/* Another program takes the lock on the nodes from..to - 1, for ever; or gives
   it back. */
void nodes_take(const nodes *ns, size_t from, size_t to);
void nodes_give_back(const nodes *ns, size_t from, size_t to);
/* As for one server (leftovers.h); but an unlock need not wait for the last of
   them: so first the lock is awaited to be nowhere, or all that is in doubt. */
void nodes_expect_nothing_left(const nodes *ns);
void nodes_expect_all_undone(const nodes *ns);

/* Has every client open a connection, so that all are asked at once next. */
void party_connect(party *p);
/* Acquires with an explicit lease, on all nodes. */
void party_hold(party *p, int64_t lease_ms);
/*
 * The same with renewal by the watchdog, whose lease may be short: the limits
 * of the nodes are those of a lease of 30 s.
 */
void party_hold_renewed(party *p);
/* Until each has it, and that counts: one may have been late for the acquire. */
void party_await_renewals(const party *p);
/* A lease so long that the limit of a node is its client's command timeout, the
   default: a twentieth of the lease would be as much. */
#define LONG_LEASE 60000
#define LIMIT_MS   3000
/* What takes no longer has waited for no node that hangs. */
#define FAST_MS 1500
void expect_fast(int64_t began_ms);
/* What a fault disturbs, without it: every node takes part. */
void expect_undisturbed_party(party *p);
/* Empties the last n nodes. */
void nodes_flush(const nodes *ns, size_t n);
/* Events of a type at all clients. */
int party_events(const party *p, rlock_event_type type);
/* The first client has been told of a loss, once, and no other has. */
void expect_one_loss(const party *p);
/* Another party tries for a second, in vain; the owner still holds it then. */
void expect_one_owner(const party *owner, const party *other);

#endif
