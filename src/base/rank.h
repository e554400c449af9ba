/*
 * The order of the library's mutexes: inside of one are taken only those that
 * stand behind it here. Two of one rank are never taken together. What each of
 * them guards is said in src/threads.md. Built with RLOCK_CHECK_RANKS a program
 * that takes one out of order, or in vain, ends at once, and says which.
 */
#ifndef RL_BASE_RANK_H
#define RL_BASE_RANK_H

typedef enum rl_rank {
    RL_RANK_DRIVING,       /* rl_async.driving: before all others */
    RL_RANK_FOLLOWERS,     /* rlock_client.following */
    RL_RANK_OWNERS,        /* owner.c: who listens for ends of threads */
    RL_RANK_CLUSTER,       /* rl_cluster */
    RL_RANK_STARTING,      /* rl_engine.starting, rl_async.starting */
    RL_RANK_NODE,          /* rl_node.starting */
    RL_RANK_DOORBELL,      /* rl_doorbell.starting */
    RL_RANK_SUBSCRIPTIONS, /* rl_subscriptions */
    RL_RANK_HOLDS,         /* rl_holds */
    RL_RANK_ROOMS,         /* rl_rooms */
    RL_RANK_GROUP,         /* rl_group */
    RL_RANK_ALARM,         /* rl_alarm */
    RL_RANK_LONGEST,       /* rl_longest */
    RL_RANK_RUN,           /* rl_server_run */
    RL_RANK_WAKER, /* who sleeps: a caller, or the inbox of started jobs */
    RL_RANK_COMPLETIONS, /* rl_completions */
    RL_RANK_CONNECTOR,   /* rl_connector */
    RL_RANK_LOOP,        /* rl_loop */
    RL_RANK_MUX_SET,     /* rl_mux_set */
    RL_RANK_POOL,        /* rl_pool */
    RL_RANK_MUX,         /* rl_mux */
    RL_RANK_PORT,        /* rl_port */
    RL_RANK_ALONE        /* all others: nothing is taken inside of them */
} rl_rank;

#endif
