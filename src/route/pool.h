/* The source of connections to one server. */
#ifndef RL_ROUTE_POOL_H
#define RL_ROUTE_POOL_H

#include "net/dial.h"
#include "route/source.h"

/*
 * Opens nothing yet. The pool takes over *dialer (its URI), also when it
 * fails. limit: most connections borrowed at a time. NULL: out of memory.
 */
rl_source *rl_pool_new(rl_dialer *dialer, unsigned limit);

#endif
