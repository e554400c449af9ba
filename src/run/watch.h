/*
 * The watch over a server at which something is held: its keeper notices the
 * end of its connection by poll(), and asks for a sign of life when nothing has
 * come for a while; on each new connection it asks which run of the server that
 * is. All is the loop's.
 *
 * Why the run: one that came back without its data, or took another one's
 * place, does not know what is held here, and may grant it to others. So what
 * was confirmed before is asked about at once.
 */
#ifndef RL_RUN_WATCH_H
#define RL_RUN_WATCH_H

#include "hold/server_run.h"

struct rl_node;

typedef struct rl_watch {
    bool met;        /* this connection's server was asked which run it is */
    int64_t trip_us; /* how long it took to give the latest sign of life */
    int64_t told_us; /* when its silence was last told */
    char run_id[RL_RUN_ID_MAX]; /* "": not known */
} rl_watch;

/*
 * Puts what is to be asked on the keeper's connection, which is good. holds:
 * something is held there; due: for a while, so a sign of life may be.
 */
void rl_watch_ask(struct rl_node *node, bool holds, bool due, int64_t now_us);

/*
 * Has the server been silent for too long, and was that not told in the last
 * second? Then it is to be told now.
 */
bool rl_watch_is_alarmed(struct rl_node *node, int64_t now_us);

/* When to call these two again, if nothing comes. */
int64_t rl_watch_due_us(const struct rl_node *node);

#endif
