/*
 * Where the master is, as Sentinels tell: a watcher on the loop is connected to
 * each of them, is told by them of each failover, and asks them whenever
 * something is wrong with the master.
 *
 * Of what they say that counts which has the highest epoch, and never one lower
 * than that of the master in use: a Sentinel that was cut off may still name
 * one that has been replaced. Unless most of them name another one, while the
 * one in use is gone (route/sentinel_choice.h). They also name each other, so
 * one that the program knows is enough to find the rest.
 */
#ifndef RL_ROUTE_SENTINEL_H
#define RL_ROUTE_SENTINEL_H

#include <poll.h>

#include "base/os.h"
#include "net/dial.h"

/* So many descriptors at most are polled: two for each Sentinel. */
#define RL_SENTINELS_POLLED 32

typedef struct rl_sentinels rl_sentinels;

typedef struct rl_sentinels_options {
    const rl_uri *uri;           /* names the master, and Sentinels; its texts
                                    stay */
    rl_tls *tls;                 /* NULL: plain; stays */
    rl_credentials *credentials; /* the master's; stays */
    const char *user, *password; /* what Sentinels want, or NULL */
    int64_t connect_timeout_ms;  /* for each connection to one, and for a look
                                    at the master */
    /* On the loop, with no lock held: there is another master than before,
       the nth, whom nobody is told of yet. name: a URI of it, for messages;
       stays. NULL: out of memory. */
    void (*leave)(void *arg, uint64_t nth, const char *name);
    /* Likewise: now everybody is; it is not the first. */
    void (*failed_over)(void *arg, const rl_place *was, const rl_place *is);
    /* Likewise: they contradict each other, and go on doing so. */
    void (*warn)(void *arg, const char *text);
    /* Its turn is to come soon. Any thread. */
    void (*nudge)(void *arg);
    void *arg;
    const rl_signal *signal; /* raised when somebody is connected to; stays */
    atomic_uint_fast64_t *refreshes; /* counts how often all were asked */
} rl_sentinels_options;

/* NULL: out of memory. */
rl_sentinels *rl_sentinels_new(const rl_sentinels_options *o);
/*
 * The loop's: does what there is to do. Until when the next turn may wait;
 * *signaled: it is also to come when `signal` has been raised.
 */
int64_t rl_sentinels_turn(rl_sentinels *s, int64_t now_us, bool *signaled);
/* What is to be polled until then; how many. */
size_t rl_sentinels_look(rl_sentinels *s, struct pollfd *p);
/* It has no turns any more: who is being connected to is called off. Blocks for
   a moment. */
void rl_sentinels_stop(rl_sentinels *s);
/* After that; or, forked, in a child that inherited it: closes descriptors. */
void rl_sentinels_free(rl_sentinels *s, bool forked);

/*
 * The master's place; waits for it until the deadline. RLOCK_EIO: nobody knows
 * it, as *f says. s is the rl_sentinels; see rl_dialer.locate.
 */
rlock_status rl_sentinels_locate(void *s, int64_t deadline_us, rl_place *out,
                                 rl_fault *f);

/* The i-th Sentinel that the URI names; NULL: there are no more. Any thread. */
const struct rl_sentinel_link *rl_sentinels_link(const rl_sentinels *s,
                                                 size_t i);

/* Something is wrong with the master: ask. Any thread; does not block. */
void rl_sentinels_suspect(rl_sentinels *s);

#endif
