/*
 * Which run of which server a client talks to: asked when the client is made,
 * and, once it is a node of a Red lock, with every new connection. A restart
 * closes all connections, so it is known before the new run is asked for
 * anything else.
 */
#ifndef RL_CORE_IDENTITY_H
#define RL_CORE_IDENTITY_H

#include <stdatomic.h>

#include "base/thread.h"
#include "net/conn.h"

#define RL_RUN_ID_MAX 41

typedef struct rl_identity {
    atomic_bool wanted;         /* with every new connection */
    rl_mutex mutex;             /* guards what follows */
    char run_id[RL_RUN_ID_MAX]; /* "": the server does not tell */
    int64_t started_us;         /* the run has begun by then */
    bool restarted;             /* it is not the first one that we met */
} rl_identity;

struct rl_engine;

void rl_identity_init(rl_identity *id);
void rl_identity_fini(rl_identity *id);

/*
 * What the probe or identify script tells, from its run_id on. False: the
 * server does not tell.
 */
bool rl_identity_note(rl_identity *id, const rl_item item[2]);

/* Asks. False: the connection failed, or the server does not tell. */
bool rl_identify(struct rl_engine *e, rl_conn *c, int64_t deadline_us,
                 rl_fault *f);

/* What is known, without the mutex. */
typedef struct rl_run {
    char id[RL_RUN_ID_MAX];
    int64_t started_us;
    bool restarted;
} rl_run;

rl_run rl_identity_run(rl_identity *id);

#endif
