/*
 * The watchdog: one thread that renews the leases of all holds with
 * RLOCK_WATCHDOG, and undoes acquires and releases whose outcome stayed
 * unknown. It has a connection of its own, made before the first hold, so no
 * busy pool and no lack of descriptors can keep it from renewing.
 *
 * What is due together is pipelined in batches. Each answer concerns one hold.
 * When the connection fails, nothing of the batch is believed, and everything
 * that is due is tried again after a short back-off.
 */
#ifndef RL_DRIVE_WATCHDOG_H
#define RL_DRIVE_WATCHDOG_H

#include "base/thread.h"
#include "route/source.h"

struct rl_engine;

typedef struct rl_watchdog {
    rl_thread thread;
    rl_conn *conn;         /* the thread's; NULL: to be opened */
    int64_t pause_us;      /* the thread's: length of the next back-off */
    int64_t not_before_us; /* the thread's: end of the back-off */
    rl_fault failure;      /* guarded by the hold table: the latest one */
} rl_watchdog;

void rl_watchdog_init(rl_watchdog *w);

/* No effect when it runs; called by rl_engine_start(). */
bool rl_watchdog_start(struct rl_engine *e);

/* When an attempt that begins now has to end, so that three fit in a lease. */
int64_t rl_watchdog_attempt_end(const struct rl_engine *e);

/* After rl_holds_stop(): undoes what can be undone in one more attempt, and
 * ends the thread. */
void rl_watchdog_stop(struct rl_engine *e);

#endif
