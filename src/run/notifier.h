/*
 * The notifier, on the loop: it notices deadlines as they pass, and delivers
 * the events that do not belong to a call. With dispatch_events, or without an
 * on_event, that is all; an on_event that is to be called is called by a thread
 * of the notifier's own, so that it can delay nothing but other events.
 *
 * A hold that has something to report is queued itself, with a bit for each
 * event, so that a report needs no memory and cannot get lost; what waits
 * behind a slow callback is merged. What concerns the server, and no hold (a
 * failover, a warning, a reconnect), is noted once, and the latest text counts.
 */
#ifndef RL_RUN_NOTIFIER_H
#define RL_RUN_NOTIFIER_H

#include "base/thread.h"
#include "run/loop.h"

struct rl_engine;

/* What the next event of the kind says. */
struct rl_notes {
    char failover[640], warning[640];
};

typedef struct rl_notifier {
    rl_watcher watcher;
    rl_thread thread;       /* the loop's, once that runs */
    rl_cond wake;           /* with the hold table's mutex */
    struct rl_notes *notes; /* guarded by that mutex, too; NULL: no on_event */
    bool warned;            /* there is a warning to be told */
} rl_notifier;

bool rl_notifier_init(struct rl_engine *e); /* false: out of memory */
void rl_notifier_fini(rl_notifier *n, bool forked);

/* No effect when it is on the loop. False: no thread, or out of memory. For
   rl_engine_start(), before the loop runs. */
bool rl_notifier_start(struct rl_engine *e);

/* Another master is in office. */
void rl_notifier_failover(struct rl_engine *e, const char *text);

/* A warning that no call of the program's has brought about. */
void rl_notifier_warn(struct rl_engine *e, const char *text);

/* After rl_holds_stop(): delivers what is queued, and ends. */
void rl_notifier_stop(struct rl_engine *e);

#endif
