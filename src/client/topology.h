/*
 * Of a client whose servers others name: Sentinels, or a cluster. Builds what
 * asks them, and hears of every change.
 */
#ifndef RL_CLIENT_TOPOLOGY_H
#define RL_CLIENT_TOPOLOGY_H

#include "run/engine.h"

/*
 * d: the client's, which becomes the way to whatever is in office.
 * RLOCK_ENOMEM.
 */
rlock_status rl_topology_make(rl_engine *e, const rlock_options *o,
                              rl_dialer *d);

/* Puts it on the loop, which begins to run. The client has its first node.
   False: it has no descriptor, memory or thread. */
bool rl_topology_start(rl_engine *e);

/* Takes it off again. Without one nothing is done. */
void rl_topology_stop(rl_engine *e);
/* After that; or, forked, in a child that inherited it. */
void rl_topology_fini(rl_engine *e, bool forked);
/* Not in a child. After the hold table has gone, which has the nodes' due
   queues. */
void rl_topology_free(rl_engine *e);

#endif
