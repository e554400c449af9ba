/*
 * What a client runs: what it believes (core/core.h), where its connections
 * come from, and the threads that make it go. client.c builds it.
 */
#ifndef RL_DRIVE_ENGINE_H
#define RL_DRIVE_ENGINE_H

#include "core/core.h"
#include "drive/connector.h"
#include "drive/doorbell.h"
#include "drive/inquiry.h"
#include "drive/keeper.h"
#include "drive/notifier.h"
#include "route/sentinel.h"
#include "route/shares.h"

typedef struct rl_engine {
    rl_core core;
    rl_source *source;
    rl_sentinels *sentinels; /* NULL: the URI says where the server is */
    rl_shares shares;        /* of the source's connections */
    rl_mutex starting;       /* held while threads are being started */
    atomic_bool started;
    atomic_bool unchecked; /* a lazy client's server was never met */
    rl_connector connector;
    rl_keeper keeper;
    rl_notifier notifier;
    rl_doorbell doorbell;
} rl_engine;

static inline rl_engine *rl_engine_of(rl_core *c)
{
    return RL_CONTAINER(c, rl_engine, core);
}

/*
 * Starts the threads that a hold needs before it exists, if they do not run
 * yet. False: one could not be started.
 */
static inline bool rl_engine_start(rl_engine *e)
{
    if (atomic_load(&e->started))
        return true;
    rl_mutex_lock(&e->starting);
    bool ok =
        rl_notifier_start(e) && rl_connector_start(e) && rl_keeper_start(e);
    atomic_store(&e->started, ok);
    rl_mutex_unlock(&e->starting);
    return ok;
}

#endif
