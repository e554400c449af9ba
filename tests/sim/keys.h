/*
 * What a seed draws: a key is a line here, and what draws it is in fate.c. So
 * each can be set (--set key=value), told and made smaller.
 */
#ifndef SIM_KEYS_H
#define SIM_KEYS_H

#include <stdbool.h>
#include <stdint.h>

/* Name, and the smallest value that makes sense. */
#define CONFIG_KEYS(X)                                                         \
    /* the world's size */                                                     \
    X(dice, 0)  /* 0: the seed's own */                                        \
    X(calm, 0)  /* nothing goes wrong, and bounds are tight */                 \
    X(sound, 0) /* connections do not fail, servers may */                     \
    X(servers, 1)                                                              \
    X(processes, 1)                                                            \
    X(owners, 1)  /* in all */                                                 \
    X(singles, 0) /* names of single locks */                                  \
    X(braced, 0)  /* the second is the first in braces */                      \
    X(reds, 0)    /* and of Red locks over all servers */                      \
    X(multis, 0)  /* Multi locks of the locks above */                         \
    X(tasks, 0)   /* owners that are no threads, in all */                     \
    X(loops, 0)   /* threads of each process that dispatch */                  \
    X(steps, 1)   /* what an owner does before it ends */                      \
    /* threads */                                                              \
    X(mode, 0)    /* 1: threads have ranks, and change them; 2: strictly */    \
    X(depth, 0)   /* of changes in mode 2, and one */                          \
    X(call_ns, 1) /* what a call costs, about */                               \
    X(latency_us, 0)                                                           \
    X(preempt_ppm, 0)                                                          \
    X(spurious_ppm, 0) /* waits that end early, EINTR */                       \
    X(stall_ppm, 0)                                                            \
    X(stall_us, 1)                                                             \
    X(changes, 0) /* of ranks, in all */                                       \
    X(change_ppm, 0)                                                           \
    X(drift_ppm, 0) /* of clocks, either way */                                \
    /* memory */                                                               \
    X(scarce_ppm, 0) /* allocations that are refused */                        \
    X(scarce_us, 1)  /* and for how long then all others are */                \
    /* connections */                                                          \
    X(tls, 0)      /* 12, 13: its version */                                   \
    X(local, 0)    /* by Unix sockets */                                       \
    X(contexts, 0) /* the program makes them */                                \
    X(login, 0)    /* a password, with a user, or by a callback */             \
    X(rotate_ppm, 0)                                                           \
    X(valid_ms, 0) /* of a login that is asked for; 0: for good */             \
    X(db, 0)                                                                   \
    X(delay_us, 1)                                                             \
    X(tail_ppm, 0)                                                             \
    X(tail_us, 1)                                                              \
    X(short_ppm, 0) /* reads and writes of a part */                           \
    X(cut_ppm, 0)                                                              \
    X(freeze_ppm, 0)                                                           \
    X(freeze_us, 1)                                                            \
    X(silence_ppm, 0)                                                          \
    X(trickle_ppm, 0) /* answers come byte by byte */                          \
    X(trickle_us, 1)                                                           \
    X(refuse_ppm, 0) /* of connects */                                         \
    X(names_ppm, 0)  /* of look-ups that fail; slow ones, too */               \
    /* servers */                                                              \
    X(pause_ppm, 0)                                                            \
    X(pause_us, 1)                                                             \
    X(restart_ppm, 0)                                                          \
    X(down_us, 1)                                                              \
    X(power_ppm, 0)  /* its host is gone, and nobody says so; */               \
    X(dark_us, 1)    /* until it is back */                                    \
    X(flush_ppm, 0)  /* scripts are forgotten */                               \
    X(wipe_ppm, 0)   /* a restart without its data */                          \
    X(loading_us, 0) /* after a restart */                                     \
    X(full_ppm, 0)   /* it has no memory for what grows, for a while, */       \
    X(busy_ppm, 0)   /* or somebody's script runs for long */                  \
    X(step_ppm, 0)   /* clocks are put back */                                 \
    X(step_us, 1)                                                              \
    X(foreign_ppm, 0)                                                          \
    X(foreign_us, 1)                                                           \
    /* masters, replicas, clusters */                                          \
    X(cluster, 0)                                                              \
    X(sentinel, 0)                                                             \
    X(replicas, 0) /* of each master */                                        \
    X(lag_us, 1)   /* of a replica */                                          \
    X(gossip_us, 1)                                                            \
    X(move_ppm, 0)     /* a slot moves, at once */                             \
    X(migrate_ppm, 0)  /* or key by key */                                     \
    X(unserved_ppm, 0) /* CLUSTERDOWN */                                       \
    X(unserved_us, 1)                                                          \
    X(min_replicas, 0)                                                         \
    X(failover_us, 1) /* until it is noticed that one is dead */               \
    X(death_ppm, 0)                                                            \
    X(takeover_ppm, 0)   /* a replica takes over from one that lives */        \
    X(places_ppm, 0)     /* or changes places with it, and loses nothing */    \
    X(anew_ppm, 0)       /* all is made anew at the same addresses */          \
    X(swap_ppm, 0)       /* two masters change addresses */                    \
    X(contradict_ppm, 0) /* a Sentinel says something else */                  \
    /* clients */                                                              \
    X(eager, 0)                                                                \
    X(watchdog_ms, 100)                                                        \
    X(timeout_ms, 10)                                                          \
    X(connect_ms, 10)                                                          \
    X(turn_ms, 0)                                                              \
    X(grants, 0) /* 1: of all clients; 2: of every other */                    \
    X(layout, 0)                                                               \
    X(fair, 0)      /* 1: all locks in hashes are; 2: some handles are */      \
    X(no_tokens, 0) /* 1: no lock in a hash has; 2: some handles do without */ \
    X(local_levels, 0)                                                         \
    X(plain, 0) /* made and freed without options */                           \
    X(max_hold_ms, 0)                                                          \
    X(dispatch_events, 0)                                                      \
    X(redisson, 0)    /* its channels are listened to */                       \
    X(pool, 0)        /* connections for commands; 0: by default */            \
    X(blind, 0)       /* circles are not looked for */                         \
    X(uptime, 0)      /* of nodes of Red locks is looked at */                 \
    X(early, 0)       /* clients are made while things go wrong */             \
    X(spelled, 0)     /* options say what would be so anyway */                \
    X(callback_us, 0) /* how long on_event may take */                         \
    X(unheard, 0)     /* 1: every other client has none; 2: all */             \
    /* the program */                                                          \
    X(hold_ms, 1)                                                              \
    X(think_ms, 1)                                                             \
    X(lease_pct, 0)   /* acquires with a lease of their own */                 \
    X(lease_ms, 1)    /* and how long that is, at most */                      \
    X(forever_pct, 0) /* and such that wait for ever */                        \
    X(idle_pct, 0)    /* holders that do not look for long */                  \
    X(end_pct, 0)     /* threads that end and leave what they hold */          \
    X(nest, 0)        /* how often each verb comes, against the others */      \
    X(extend, 0)                                                               \
    X(more, 0) /* a second lock while one is held */                           \
    X(ask, 0)                                                                  \
    X(guard, 0) /* guarded writes */                                           \
    X(burst, 0) /* sections of one lock, one after the other */                \
    X(remake, 0)                                                               \
    X(cancel, 0)                                                               \
    X(silence, 0) /* a client cancels all waits for a while */                 \
    X(mind, 0)    /* waits for a loss */                                       \
    X(force, 0)                                                                \
    X(latch, 0)                                                                \
    X(rw, 0)                                                                   \
    X(permits, 0)                                                              \
    X(lend, 0)        /* as owners that others may free */                     \
    X(used, 0)        /* threads that use a client before it is Red's */       \
    X(kill_at_ms, 0)  /* the last process dies, if it is not the first */      \
    X(close_at_ms, 0) /* a client is closed while it is used; 0: at the end */ \
    X(release_held, 0)

#define CONFIG_MEMBER(name, least) int64_t name;
typedef struct config {
    CONFIG_KEYS(CONFIG_MEMBER)
} config;
#undef CONFIG_MEMBER

extern config cfg;

typedef struct key {
    const char *name;
    int64_t least;
} key;

extern const key keys[];
extern const int keys_n;

int64_t *key_value(config *c, int i);

void config_draw(config *c, uint64_t seed);

/* "key=value,key=value"; false: there is no such key, or value. */
bool config_set(config *c, const char *list);

/* Undoes what one key forbids another. Both of these do so in the end. */
void config_reconcile(config *c);

#endif
