/*
 * A question to several nodes at once, on the calling thread: one command on a
 * connection of each, and then whichever answers first. No thread has to be
 * woken for it as long as connections are there; those that are not are made
 * by the nodes' agents meanwhile.
 */
#ifndef RL_LOCK_NODES_H
#define RL_LOCK_NODES_H

#include "lock/lock.h"
#include "lock/step.h"

typedef struct rl_node {
    rlock_client *client;
    rl_engine *e;
    bool inside; /* of the client */
    int cancel;  /* the thread's state before */
    rl_hold *hold;
    rl_step step;
    bool due;  /* to be asked, or to be answered */
    bool late; /* left over by a round that ended early */
    int64_t until_us;
    rl_conn *conn; /* borrowed */
    rl_visitor visitor;
    struct rl_late *prior; /* an answer that comes before ours */
    bool visiting;         /* its agent is making a connection */
    bool asked;            /* the call is on its way */
    bool whole;            /* and carries the script */
    rl_script_id script;
    rl_answer answer;
    /* What came of it: */
    bool ok;
    char run_id[RL_RUN_ID_MAX]; /* of the server that may vote; "": none */
    rl_verdict verdict;         /* of an acquire */
    rl_grant grant;
    rl_fault fault; /* when not ok; "" if not asked */
} rl_node;

typedef struct rl_nodes {
    size_t n, quorum;
    int wake_fd;     /* of the visitors; -1: none yet */
    int64_t sent_us; /* the clock before the round's first command was sent */
    rl_node node[RLOCK_RED_MAX];
} rl_nodes;

/* How a round goes. */
typedef struct rl_round {
    /* The node's call; NULL: rl_step_call() */
    void (*call)(const void *arg, const rl_node *x, rl_hold_call *c);
    /* Last word before it is sent; may be NULL. False: fault is set */
    bool (*may_ask)(const void *arg, const rl_nodes *ns, rl_node *x);
    /* Takes the answer and sets ok, or fault */
    void (*got)(const void *arg, rl_node *x);
    /*
     * The round ends with a quorum that is ok, or when there can be none. Nodes
     * that have not answered by then are late, and are to be handed over or
     * dropped; so are, in any round, those that still owe an earlier answer
     * when all others have answered.
     */
    bool early;
    /* Nodes that are down are tried, too, when there is no quorum without. */
    bool insist;
    const void *arg;
} rl_round;

/* Enters the clients, those that can be; the others have a fault. */
void rl_nodes_enter(rl_nodes *ns, rlock_client *const clients[], size_t n);
void rl_nodes_leave(rl_nodes *ns);

/* Asks those that are due, and waits for each until its until_us. */
void rl_nodes_ask(rl_nodes *ns, const rl_round *how);

/*
 * A node that is late is left to its agent, which notes the answer of the step:
 * an acquire joins the group of its hold, which is in the table and has a
 * reference for this. False: it cannot be; it is to be dropped.
 */
bool rl_node_hand_over(rl_node *x);

/*
 * The other way round: what was handed over comes back, so that what is asked
 * next follows it on the same connection: an undoing the acquire of its hold,
 * an acquire an earlier release of the lock. False: there is no such thing, or
 * the agent is at it.
 */
bool rl_node_follow(rl_node *x, rl_verb verb);

/*
 * Or the node's next call follows the one that is late, on the same
 * connection; the hold has a reference for this. False: it is to be dropped.
 */
bool rl_node_chain(rl_node *x);

/* It is given up: as if it had not answered in time. */
void rl_node_drop(const rl_round *how, rl_node *x);

/* All that are late are handed over, or dropped. */
void rl_nodes_leave_late(rl_nodes *ns, const rl_round *how);

/* For a round in which any answer will do. */
void rl_node_got(const void *arg, rl_node *x);

size_t rl_nodes_ok(const rl_nodes *ns);

#endif
