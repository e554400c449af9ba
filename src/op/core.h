/*
 * What one client believes and remembers: its settings, its hold table, its
 * waiting rooms, which server it talks to. It does no I/O, reads no clock and
 * has no thread; run/engine.h puts those around it.
 */
#ifndef RL_OP_CORE_H
#define RL_OP_CORE_H

#include "hold/hold.h"
#include "hold/longest.h"
#include "hold/room.h"
#include "hold/server_run.h"
#include "hold/stats.h"
#include "op/rtt.h"
#include "op/script_cache.h"
#include "wire/ask.h"
#include "wire/keys.h"

/* The options, with defaults filled in. */
typedef struct rl_settings {
    int64_t connect_timeout_ms;
    int64_t command_timeout_ms;
    int64_t watchdog_lease_ms;
    int64_t turn_us;      /* 0: no turns */
    int64_t warn_wait_ms; /* who waits for longer tells that; 0: nobody */
    uint8_t min_replicas; /* what a lock gets that does not say it */
    int64_t replica_wait_ms;
    bool redisson_channel;
    bool grants; /* who waits says what it wants, for a release to grant it */
    bool no_deadlock_check;
    char process[RL_HOST_MAX + 24]; /* host:pid, of the holder ids */
    void (*on_event)(const rlock_event *ev, void *arg);
    void *event_arg;
    bool dispatch_events;
    char metrics_label[RL_HOST_MAX + 1]; /* "": none */
} rl_settings;

typedef struct rl_core {
    rl_settings set;          /* fixed */
    const char *server;       /* fixed; what the program calls it */
    const char *_Atomic node; /* the same, or the master of now; in messages */
    rl_server_run server_run;
    rl_stats stats;
    rl_holds holds;
    rl_rooms rooms;
    rl_longest longest;
    rl_rtt rtt;
    rl_script_cache script_cache;
    char bell[RL_BELL_LEN + 1]; /* fixed; the channel of this client's bell */
    atomic_bool canceled;       /* rlock_client_cancel() */
    rl_redirects *redirects;    /* fixed; of a cluster; NULL: it is none */
    bool patient; /* fixed; a server that is gone will be replaced */
    /* Fixed; keeps an event until the program asks for it. */
    void (*post_event)(struct rl_core *c, const rlock_event *ev);
    /* Fixed; does it have to, since this thread must call nobody back? */
    bool (*keeps_events)(void);
    atomic_bool muted; /* what has been kept is told nobody any more */
    /* Fixed; of a cluster: is what this name's bell says heard? */
    bool (*hears)(struct rl_core *c, const rl_target *what);
} rl_core;

/* What a lease of RLOCK_WATCHDOG is at this client. */
static inline int64_t rl_lease_of(const rl_core *c, int64_t lease_ms)
{
    return lease_ms == RLOCK_WATCHDOG ? c->set.watchdog_lease_ms : lease_ms;
}

/* The end of a command that begins now. */
static inline int64_t rl_command_end(const rl_core *c, int64_t now_us)
{
    return rl_after_ms(now_us, c->set.command_timeout_ms);
}

/* How many replicas have to have what moves a deadline, if a lock says this. */
static inline uint8_t rl_replicas_of(const rl_core *c, int min_replicas)
{
    return min_replicas == 0  ? c->set.min_replicas
           : min_replicas < 0 ? 0
                              : (uint8_t)min_replicas;
}

/* The end of a command that begins now, and that so many have to have. */
static inline int64_t rl_confirmed_end(const rl_core *c, unsigned replicas,
                                       int64_t now_us)
{
    int64_t us = rl_command_end(c, now_us);
    return replicas ? rl_after_ms(us, c->set.replica_wait_ms) : us;
}

/*
 * The end of an attempt to renew that begins now. At least three attempts, with
 * the pauses between them, have to begin between the first renewal, after a
 * third of the lease, and its end.
 */
static inline int64_t rl_renewal_end(const rl_core *c, int64_t now_us)
{
    return now_us + rl_min(c->set.command_timeout_ms * 1000,
                           c->set.watchdog_lease_ms * 1000 / 6);
}

/* The channel to queue under, or "" while nobody would hear a ring. */
static inline const char *rl_bell_of(rl_core *c, const rl_target *what)
{
    bool hears = c->hears ? c->hears(c, what) : atomic_load(&c->rooms.hears);
    return hears ? c->bell : "";
}

/* A slot of a cluster; elsewhere all names are in one place. */
uint16_t rl_slot_of(const rl_core *c, const void *name, size_t len);

/* Is an on_event called, and not posted for who dispatches? It may block. */
static inline bool rl_calls_back(const rl_core *c)
{
    return c->set.on_event && !c->set.dispatch_events;
}

/* Calls on_event, if there is one: on the calling thread, or when dispatched.
 */
void rl_tell(rl_core *c, const rlock_event *ev);

#endif
