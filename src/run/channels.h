/*
 * The channels of Redisson's locks that somebody here waits for, on the
 * doorbell's connection. Redisson's release knows no bells; it publishes on
 * one channel for each lock. So a name is subscribed to while it has a waiting
 * room, and its waiter looks once more when the subscription stands, since a
 * release may have come before.
 *
 * They are the doorbell's own.
 */
#ifndef RL_RUN_CHANNELS_H
#define RL_RUN_CHANNELS_H

#include "base/map.h"
#include "net/conn.h"

struct rl_node;

typedef struct rl_channels {
    rl_map map; /* of those that are subscribed to, or about to be */
    bool known; /* the rooms that there are have been gone through */
} rl_channels;

bool rl_channels_init(rl_channels *ch); /* false: out of memory */
void rl_channels_fini(rl_channels *ch);

/* After a new connection: nothing is subscribed to. */
void rl_channels_forget(rl_channels *ch);

/* Subscribes to what is waited for, and to nothing else. False: it broke. */
bool rl_channels_adjust(struct rl_node *node, rl_conn *c);

/* A message of the subscriber connection. False: it is for somebody else. */
bool rl_channels_hear(struct rl_node *node, const rl_reply *r);

#endif
