/*
 * Ears: the channels of Redisson's locks that somebody here waits for, on the
 * doorbell's connection. Redisson's release knows no bells; it publishes on
 * one channel for each lock. So a name is subscribed to while it has a waiting
 * room, and its waiter looks once more when the subscription stands, since a
 * release may have come before.
 *
 * They are the doorbell thread's own.
 */
#ifndef RL_DRIVE_EARS_H
#define RL_DRIVE_EARS_H

#include "base/map.h"
#include "net/conn.h"

struct rl_engine;

typedef struct rl_ears {
    rl_map channels; /* subscribed to, or about to be */
} rl_ears;

bool rl_ears_init(rl_ears *ears); /* false: out of memory */
void rl_ears_fini(rl_ears *ears);

/* After a new connection: nothing is subscribed to. */
void rl_ears_forget(rl_ears *ears);

/* Subscribes to what is waited for, and to nothing else. False: it broke. */
bool rl_ears_adjust(struct rl_engine *e, rl_conn *c);

/* A message of the subscriber connection. False: it is for somebody else. */
bool rl_ears_hear(struct rl_engine *e, const rl_reply *r);

#endif
