/* The source of connections to one server. */
#ifndef RL_REDIS_POOL_H
#define RL_REDIS_POOL_H

#include "redis/dial.h"
#include "redis/source.h"

/*
 * Opens nothing yet. The pool takes over *dialer (its URI), also when it
 * fails. limit: most connections borrowed at a time. NULL: out of memory.
 */
rl_source *rl_pool_new(rl_dialer *dialer, unsigned limit);

#endif
