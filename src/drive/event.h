/* Events that wait for the program to ask for them: dispatch_events. */
#ifndef RL_DRIVE_EVENT_H
#define RL_DRIVE_EVENT_H

#include "core/core.h"

/* A copy goes into the client's outbox; without memory, nothing does. */
void rl_event_post(rl_core *c, const rlock_event *ev);

/* Does the calling thread drive the client's jobs, which on_event may delay? */
bool rl_event_is_kept(rl_core *c);

#endif
