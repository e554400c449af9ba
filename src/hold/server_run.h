/*
 * Which run of which server a client talks to: asked when the client is made,
 * and, once it is a node of a Red lock, with every new connection. A restart
 * closes all connections, so it is known before the new run is asked for
 * anything else.
 */
#ifndef RL_HOLD_SERVER_RUN_H
#define RL_HOLD_SERVER_RUN_H

#include <stdatomic.h>

#include "base/thread.h"
#include "wire/reply.h"

#define RL_RUN_ID_MAX 41

typedef struct rl_server_run {
    atomic_bool wanted;         /* with every new connection */
    rl_mutex mutex;             /* guards what follows */
    bool awaited;               /* the server was away from the beginning */
    char run_id[RL_RUN_ID_MAX]; /* "": the server does not tell */
    int64_t started_us;         /* the run has begun by then; one that took
                                   another's place: was met then */
    bool restarted;             /* it may have begun since others voted: it is
                                   not the first one, or came late */
} rl_server_run;

void rl_server_run_init(rl_server_run *id);
void rl_server_run_fini(rl_server_run *id);

/* It is away when the client is made: some connection will meet it. */
void rl_server_run_await(rl_server_run *id);

/*
 * What the probe or identify script tells, from its run_id on. False: the
 * server does not tell.
 */
bool rl_server_run_note(rl_server_run *id, const rl_item item[2],
                        int64_t now_us);

/* What is known, without the mutex. */
typedef struct rl_run {
    char id[RL_RUN_ID_MAX];
    int64_t started_us;
    bool restarted;
    bool awaited; /* it has not been met yet */
} rl_run;

rl_run rl_server_run_read(rl_server_run *id);

#endif
