/*
 * The connector: opens connections for those who must not wait for it, on a
 * thread that there is only while somebody wants one, or the server is down. To
 * connect can take long, and cannot be interrupted when the program's own
 * callback does it. The keeper gets a connection of its own; for a caller who
 * asks several servers at once one is put into the pool.
 *
 * It also knows whether the server is down: it could not be reached, or did not
 * answer in time. Callers who can do without it leave it out then, and the
 * connector tries it from time to time until it answers.
 */
#ifndef RL_RUN_CONNECTOR_H
#define RL_RUN_CONNECTOR_H

#include "base/os.h"
#include "base/thread.h"
#include "net/conn.h"

struct rl_node;

/* Somebody wants a connection. */
typedef struct rl_visitor {
    rl_link link;
    bool own;         /* it is to be his; otherwise it is put into the pool */
    int64_t until_us; /* when an attempt to get one of his own ends */
    bool waiting;     /* the connector is to try, or is at it */
    const rl_signal *signal; /* raised when it has tried */
    rl_conn *conn;           /* his own, or NULL */
    rl_fault fault; /* why there is none; status RLOCK_OK: there is one */
} rl_visitor;

typedef struct rl_connector {
    rl_mutex mutex; /* guards all below */
    rl_cond work;
    rl_list own;        /* visitors who want one of their own: these first, */
    rl_list others;     /* and then the others; each in the order of coming */
    rl_visitor *served; /* for whom the thread is opening one of his own */
    bool down;
    rl_fault fault;   /* why */
    bool open;        /* its server may be asked */
    bool ends;        /* the client does: it is asked for visitors only */
    bool runs;        /* the thread does, or is about to */
    bool starting;    /* somebody starts it, without the mutex */
    rl_cond started;  /* nobody does any more */
    rl_thread thread; /* who is starting it, or stops it, joins it */
    int64_t since_us; /* when its try for the pool began; 0: there is none */
    int64_t pause_us; /* the thread's: between tries of a server that is down */
} rl_connector;

void rl_connector_init(rl_connector *c);
void rl_connector_fini(rl_connector *c);

/* Its server may be asked from now on; */
void rl_connector_open(struct rl_node *node);
/* A server that is down is not tried any more, but for who visits; */
void rl_connector_rest(struct rl_node *node);
/* and no more: whoever visits it until it is opened again is told so. */
void rl_connector_close(struct rl_node *node);
/* The same, for good: blocks for as long as a connection is being made. */
void rl_connector_stop(struct rl_node *node);

/* Is the server down? Then *why is filled. */
bool rl_connector_is_down(rl_connector *c, rl_fault *why);

/* Has its try taken so long already that it is not about to end? */
bool rl_connector_is_slow(rl_connector *c, int64_t limit_us, int64_t now_us);

/* It did not answer in time. */
void rl_connector_suspect(struct rl_node *node, const rl_fault *why);

/*
 * Has the connector try, now. The visitor stays where he is until it has.
 * own_until_us: he wants one of his own by then; 0: one in the pool. Whoever
 * renews leases is served before all others.
 */
void rl_connector_visit(struct rl_node *node, rl_visitor *v,
                        int64_t own_until_us, const rl_signal *signal);
bool rl_connector_has_news(rl_connector *c, rl_visitor *v); /* it has tried */
void rl_connector_forget(struct rl_node *node, rl_visitor *v);

#endif
