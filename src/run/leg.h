/*
 * The legs of an operation: its ways to the servers of its parts, one for each
 * client.
 *
 * A leg is a borrowed connection, which stays with the operation from round to
 * round, so that what is asked later about a hold follows what was asked
 * before. While the operation sleeps, and when it is done, legs are given back;
 * a connection that owes answers to parts that are late goes back with them,
 * and the keeper reads it.
 *
 * With one leg, the calling thread takes a port at a connection that it shares
 * with others (route/mux_set.h), or opens one itself if there is none.
 * With several it must not wait for one server, so it stands in line for a
 * connection or lets the connector make one, and who is down is left out.
 *
 * The loop must never wait. Alone, an operation takes a port at that
 * thread's trunk (run/trunk.h); what may not share goes as if among several.
 *
 * Legs belong to the thread that makes the call. The connector and who gives a
 * connection back reach only the signal, by a visitor or a claim.
 */
#ifndef RL_RUN_LEG_H
#define RL_RUN_LEG_H

#include "op/round.h"
#include "run/node.h"
#include "run/trunk.h"

typedef struct rl_leg {
    rl_way way; /* what the round knows of it; its line is the connection's */
    rl_node *node;
    rl_port *port;   /* at the node's muxes: of who may wait; or NULL */
    rl_trunk *trunk; /* of who may not; NULL: it has a connection of its own, a
                        port, or nothing yet */
    unsigned visits; /* while a trunk is waited for; see rl_trunks_join() */
    rl_visitor visitor;
    rl_claim claim;
    bool in_line;  /* all connections are out; claim tells when one is not */
    bool visiting; /* the connector is making a connection */
    bool calling;  /* a trunk is being made */
} rl_leg;

typedef struct rl_legs {
    rl_op *op;
    rl_trunks *trunks; /* of who never waits; NULL: this thread may */
    rl_signal signal;  /* of visitors and turns, if there are no trunks; none
                          until one is needed */
    size_t n;
    rl_leg *leg; /* room for one, or for RL_PARTS_MAX */
} rl_legs;

void rl_legs_init(rl_legs *ls, rl_op *op, rl_leg *leg, rl_trunks *trunks);
void rl_legs_fini(rl_legs *ls);

/*
 * A step of a round that has begun: what is to be asked is, over connections
 * that are there. True: the round is over. Otherwise something has to come, if
 * the round has no work. *now_us: since the thread has last waited; it is read
 * anew where it may have waited here.
 */
bool rl_legs_ask(rl_legs *ls, int64_t *now_us);

/* What was waited for has come, or its time is over. */
void rl_legs_look(rl_legs *ls, int64_t now_us);

/* All are given back. */
void rl_legs_close(rl_legs *ls);

static inline rl_leg *rl_leg_of(rl_way *w)
{
    return RL_CONTAINER(w, rl_leg, way);
}

/* Its own; NULL: it has none yet, or none any more, or shares one. */
static inline rl_conn *rl_leg_conn(const rl_leg *l)
{
    bool own = l->way.line && !l->port && !l->trunk;
    return own ? RL_CONTAINER(l->way.line, rl_conn, line) : NULL;
}

#endif
