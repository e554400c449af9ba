/*
 * What a client runs: what it believes (core/core.h), its servers
 * (drive/node.h), and the threads that make it go. client.c builds it.
 */
#ifndef RL_DRIVE_ENGINE_H
#define RL_DRIVE_ENGINE_H

#include "core/core.h"
#include "drive/inquiry.h"
#include "drive/node.h"
#include "drive/notifier.h"
#include "route/sentinel.h"

typedef struct rl_engine {
    rl_core core;
    rl_node node;      /* the only one */
    rl_mutex starting; /* held while the notifier is being started */
    atomic_bool started;
    rl_sentinels *sentinels; /* NULL: the URI says where the server is */
    atomic_bool unchecked;   /* a lazy client's server was never met */
    rl_notifier notifier;
} rl_engine;

static inline rl_engine *rl_engine_of(rl_core *c)
{
    return RL_CONTAINER(c, rl_engine, core);
}

/* Where a slot is asked about. */
static inline rl_node *rl_node_of(rl_core *c, unsigned slot)
{
    (void)slot;
    return &rl_engine_of(c)->node;
}

/*
 * Starts the threads that a hold of this slot needs before it exists. False:
 * one could not be started.
 */
bool rl_engine_start(rl_engine *e, unsigned slot);

#endif
