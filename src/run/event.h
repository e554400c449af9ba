/*
 * Events that are not told where they happen, but when the program dispatches:
 * those of a client with dispatch_events, and all of what has been started, as
 * who drives that calls nobody back.
 */
#ifndef RL_RUN_EVENT_H
#define RL_RUN_EVENT_H

#include "op/core.h"

/* A copy becomes a completion; without memory, nothing does. */
void rl_event_post(rl_core *c, const rlock_event *ev);

/* Does the calling thread drive jobs, which on_event may delay? */
bool rl_event_is_kept(void);

#endif
