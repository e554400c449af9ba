/*
 * A trunk: the connection to one server for all jobs that have been started.
 * They ask on its line, and whoever drives sends and reads for all of them, and
 * waits for none.
 *
 * All is guarded by rl_async.driving (run/async.h), but what the connector
 * tells the visitor.
 */
#ifndef RL_RUN_TRUNK_H
#define RL_RUN_TRUNK_H

#include <limits.h>

#include "run/completion.h"
#include "run/connector.h"

struct pollfd;
struct rl_node;

typedef struct rl_trunk {
    rl_link link;
    struct rl_node *node;        /* fixed */
    rl_conn *conn;               /* NULL: it has none */
    rl_completions *completions; /* fixed */
    bool watched;       /* who dispatches is told when something comes */
    bool polled;        /* the loop may be in poll() with it */
    bool old;           /* nobody joins any more: another takes its place, and
                             it goes with its last user */
    size_t users;       /* legs that lead to it */
    rl_visitor visitor; /* while a connection is being made */
    bool visiting;
    unsigned first;  /* what its visits are counted from */
    unsigned visits; /* rises when one has ended */
    rl_fault fault;  /* of the last one; status RLOCK_OK: none */
} rl_trunk;

typedef struct rl_trunks {
    rl_list all;
    const rl_signal *signal;     /* fixed; raised when a connection has come */
    rl_completions *completions; /* fixed; watches them */
    unsigned visits; /* of all of them, so no two trunks count alike */
} rl_trunks;

void rl_trunks_init(rl_trunks *ts, const rl_signal *signal,
                    rl_completions *completions);
/* Nobody uses one. */
void rl_trunks_close(rl_trunks *ts);

/*
 * Connections that have come are used, and those that are spent given up: by
 * the loop, if it polls them.
 */
void rl_trunks_look(rl_trunks *ts);

/* Now and then: memory that a burst has needed goes. */
void rl_trunks_tidy(rl_trunks *ts);

/*
 * The node's trunk, which has a connection, and one user more. NULL: *visits
 * tells which visit is waited for; call again, with the same number, when the
 * signal was raised. If *visits has become UINT_MAX, there is none, and *f says
 * why.
 */
rl_trunk *rl_trunks_join(rl_trunks *ts, struct rl_node *node, unsigned *visits,
                         rl_fault *f);
void rl_trunk_leave(rl_trunk *t); /* it has no call under way */

/* Nothing comes over its connection any more, whose end poll() tells all the
   while. */
static inline bool rl_trunk_has_failed(const rl_trunk *t)
{
    return t->conn && t->conn->line.failed;
}

/*
 * What poll() of the loop is to look at, if it has a connection; which
 * nobody closes before rl_trunks_polled(). attended: what comes is told who
 * dispatches, if he is called for it, and the loop looks for its end only.
 */
struct pollfd rl_trunk_poll(rl_trunk *t, bool attended);
void rl_trunks_polled(rl_trunks *ts);

/*
 * Each sends; and reads, if poll() has told so: p, as of rl_trunk_poll().
 * attended: if it has answers to come, too, or if who dispatches is called for
 * it. He has to find its end as well: otherwise he is called again and again
 * until the loop finds it. True: one could not send, and those who asked on it
 * have to be looked at.
 */
bool rl_trunks_serve(rl_trunks *ts, const struct pollfd *p, size_t n,
                     bool attended);

/* Nothing has been asked for yet: what *visits begins as. */
#define RL_NO_VISIT (UINT_MAX - 1)

#endif
