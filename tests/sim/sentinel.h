/* A master with replicas, and three Sentinels that watch it. */
#ifndef SIM_SENTINEL_H
#define SIM_SENTINEL_H

#include "world.h"

#define SENTINELS     3
#define SENTINEL_NAME "mymaster"

typedef struct sentinel_view {
    int master; /* the server's index */
    int64_t epoch;
    bool is_passing; /* it is being replaced */
} sentinel_view;

extern sentinel_view office, says[SENTINELS]; /* what is so; what each says */

extern const server_kind server_sentinel;

server *sentinel_of(int i);
bool sentinel_is_one(const server *s);

#endif
