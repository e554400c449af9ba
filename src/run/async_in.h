/*
 * What the files of the async thread have in common: the jobs (started.c), and
 * who drives them (async.c).
 */
#ifndef RL_RUN_ASYNC_IN_H
#define RL_RUN_ASYNC_IN_H

#include "run/async.h"
#include "run/desk.h"

/* Without memory for a desk, or a descriptor, it is tried again after that. */
#define RL_RETRY_US 10000

/* Into the inbox, by any thread. */
void rl_async_put(rl_async *a, rl_started *s);

/* --- for who drives (started.c) ------------------------------------------- */

void rl_async_take_inbox(rl_async *a);
void rl_async_take_woken(rl_async *a);
void rl_async_take_due(rl_async *a, int64_t now_us);

/* Who stands in line goes on, as far as there are desks. */
void rl_async_port(rl_async *a);

/* polled: of how much poll() has told; 0: the caller has not asked it. */
void rl_async_look_at_desks(rl_async *a, size_t polled);

/*
 * Memory that a burst has needed, and nobody has since, is given back: to be
 * called by the thread each time that it wakes up.
 */
void rl_async_tidy(rl_async *a, int64_t now_us);

/*
 * What one job needs, whatever it is: so with that much there is always one
 * that goes on. Before the first is started. False: out of memory.
 */
bool rl_async_furnish(rl_async *a);

/* The client is being freed. */
void rl_async_close_waits(rl_async *a);

/* --- for who has something to do (async.c) -------------------------------- */

/* Whoever is to drive it. */
void rl_async_call_locked(rl_async *a) RL_REQUIRES(&a->mutex);
void rl_async_wake_thread_locked(rl_async *a) RL_REQUIRES(&a->mutex);

#endif
