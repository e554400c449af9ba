/*
 * What a client runs, and the few services that all its parts share. client.c
 * builds it; each part knows the engine and takes from it what it needs.
 */
#ifndef RL_DRIVE_ENGINE_H
#define RL_DRIVE_ENGINE_H

#include "core/call.h"
#include "core/hold.h"
#include "core/identity.h"
#include "core/room.h"
#include "drive/agent.h"
#include "drive/doorbell.h"
#include "drive/notifier.h"
#include "drive/watchdog.h"

/* The options, with defaults filled in. */
typedef struct rl_settings {
    int64_t connect_timeout_ms;
    int64_t command_timeout_ms;
    int64_t watchdog_lease_ms;
    bool redisson_channel;
    char process[RL_HOST_MAX + 24]; /* host:pid, of the holder ids */
    void (*on_event)(const rlock_event *ev, void *arg);
    void *event_arg;
} rl_settings;

typedef struct rl_engine {
    rl_settings set;   /* fixed */
    rl_mutex starting; /* held while threads are being started */
    atomic_bool started;
    rl_source *source;
    rl_identity identity;
    rl_stats stats;
    rl_holds holds;
    rl_rooms rooms;
    rl_watchdog watchdog;
    rl_notifier notifier;
    rl_doorbell doorbell;
    rl_agent agent;
} rl_engine;

/*
 * Starts the watchdog and the notifier, if they do not run yet: what a hold
 * needs before it exists. False: a thread could not be started.
 */
bool rl_engine_start(rl_engine *e);

/*
 * Asks by script until there is an answer, at most three times, one after the
 * other, and until the deadline; each attempt has the command timeout. *a is
 * about the last one, but a->open about all of them.
 */
void rl_ask(rl_engine *e, const rl_call *c, int64_t deadline_us, rl_answer *a);

/*
 * The same for n calls in one round trip. Asks call() for each call, i from 0,
 * and hands each answer to got(), in any order; what has no answer at once is
 * asked again by itself. A connection is borrowed meanwhile: got() must not
 * call back into the program.
 */
#define RL_QUESTIONS_MAX 64

typedef struct rl_questions {
    size_t n; /* at most RL_QUESTIONS_MAX */
    void (*call)(void *arg, size_t i, rl_hold_call *c);
    void (*got)(void *arg, size_t i, rl_answer *a);
    void *arg;
} rl_questions;

void rl_ask_all(rl_engine *e, const rl_questions *q, int64_t deadline_us);

/* The end of a command that begins now. */
static inline int64_t rl_command_deadline(const rl_engine *e)
{
    return rl_after_ms(rl_now_us(), e->set.command_timeout_ms);
}

/*
 * Takes this client out of a lock's queue; if it had been rung already, for a
 * lock that is still free, the next client is rung. When the server cannot be
 * reached, that client's fallback poll has to do.
 */
void rl_leave_queue(rl_engine *e, const void *name, size_t len,
                    int64_t deadline_us);

/* What a lease of RLOCK_WATCHDOG is at this client. */
static inline int64_t rl_lease_of(const rl_engine *e, int64_t lease_ms)
{
    return lease_ms == RLOCK_WATCHDOG ? e->set.watchdog_lease_ms : lease_ms;
}

#endif
