/*
 * The keeper of a server, on the loop: it renews the leases of all holds with
 * RLOCK_WATCHDOG, undoes acquires and releases whose outcome stayed unknown,
 * asks again on nodes of a Red lock that do not have it, reads answers that
 * nobody waits for any more, and watches the server while something is held
 * there (watch.h).
 *
 * What is due goes out on a connection of its own, many calls in flight
 * together (batch.h). The connection is made
 * before the first hold, so no busy pool and no lack of descriptors can keep it
 * from renewing; the connector replaces it.
 */
#ifndef RL_RUN_KEEPER_H
#define RL_RUN_KEEPER_H

#include "run/connector.h"
#include "run/loop.h"
#include "run/watch.h"

struct rl_node;
struct rl_part;

typedef struct rl_keeper {
    rl_watcher watcher;
    atomic_bool dismissed; /* it is to leave the loop */
    atomic_bool hurry;     /* what it backs off from may be over */
    /* When it is to look for connections that owe answers; any thread's. */
    atomic_int_least64_t owing_us;
    /* The loop's: */
    rl_conn *conn; /* NULL: to be opened */
    bool fresh;    /* it has had no turn yet */
    bool has_come; /* something for it, were it the end */
    bool holds;    /* in its last turn something was held here */
    rl_watch watch;
    rl_visitor visitor;    /* while one is being opened */
    rl_list owing;         /* connections whose answers it reads; by idle */
    int64_t pause_us;      /* length of the next back-off */
    int64_t not_before_us; /* end of the back-off */
    int64_t end_us;        /* when it stops, done or not; RL_NEVER */
    rl_list idle_batches;
    size_t batches; /* made so far */
    size_t in_flight;
    bool one_by_one; /* none of several holds over this connection */
    struct rl_chunk *chunks;
    struct rl_batch *unconfirmed; /* answered yes; replicas are being asked */
    bool confirming;              /* that is under way */
    rl_fault fault;               /* why the batch that just ends has failed */
} rl_keeper;

void rl_keeper_init(struct rl_node *node);
void rl_keeper_fini(rl_keeper *k);

/* No effect when it is on the loop. False: out of memory. For
   rl_node_start(). */
bool rl_keeper_start(struct rl_node *node);

/* Had it no connection in its last turn, though something was held? The loop's. */
bool rl_keeper_is_cut_off(const rl_keeper *k);

/* There is another server: a back-off ends. Any thread. */
void rl_keeper_hurry(struct rl_node *node);

/* Takes it off the loop, soon; it may be started again. What is under way then
   has failed. */
void rl_keeper_dismiss(struct rl_node *node);

/*
 * After rl_holds_stop(): undoes what can be undone in one more attempt, and
 * ends.
 */
void rl_keeper_stop(struct rl_node *node);

/*
 * Asks over its connection for who waits for no answer: the part is on the heap
 * and frees itself, also when there is no connection. The loop's.
 */
void rl_keeper_ask(struct rl_node *node, struct rl_part *x, int64_t now_us);

/* The longest pause between two attempts; short against the lease. */
int64_t rl_keeper_longest_pause_us(const struct rl_node *node);

/* A connection was given back that owes answers. */
void rl_keeper_expect(struct rl_node *node, int64_t now_us);

#endif
