/*
 * The channels that the subscriber's connection to one server listens on for
 * names that somebody here waits for, beside this client's own bell.
 *
 * In a cluster a message reaches those who listen at any server, at a cost for
 * each, and PUBLISH does not tell how many have heard it; so there a name's
 * bell is a sharded channel, which lies in the name's slot. And Redisson's
 * release knows no bells: it publishes on one channel for each lock, which is
 * listened on if the program wants that (redisson_channel).
 *
 * A channel is kept for as long as somebody wants it, and a little longer,
 * since who waits for a name mostly waits for it again.
 */
#ifndef RL_RUN_SUBSCRIPTIONS_H
#define RL_RUN_SUBSCRIPTIONS_H

#include "base/map.h"
#include "base/thread.h"
#include "hold/target.h"
#include "net/conn.h"

struct rl_node;

typedef struct rl_subscriptions {
    rl_mutex mutex; /* guards all below */
    rl_map map;     /* by channel */
    size_t count;
    bool news;        /* one is wanted that is not subscribed to */
    int64_t until_us; /* when the first of them may have had its time; */
    int64_t again_us; /* or what was refused is asked for again */
} rl_subscriptions;

bool rl_subscriptions_init(rl_subscriptions *s); /* false: out of memory */
void rl_subscriptions_fini(rl_subscriptions *s, bool forked);

/* Somebody waits for this name, and says so with each look. Any thread. */
void rl_subscriptions_want(struct rl_node *node, const rl_target *what);

/* Of a cluster: is its bell subscribed to? Any thread. */
bool rl_subscriptions_hear(struct rl_node *node, const rl_target *what);

/* --- for the doorbell ------------------------------------------------------ */

/* Is there one at all? */
bool rl_subscriptions_are_wanted(rl_subscriptions *s);

/* When rl_subscriptions_adjust() has something to do without any news. */
int64_t rl_subscriptions_until(rl_subscriptions *s);

/* Subscribes to what is wanted, and leaves what is not. False: it broke. */
bool rl_subscriptions_adjust(struct rl_node *node, rl_conn *c, int64_t now_us);

/*
 * Takes what the server says. False: it is about none of them. *name: of a ring
 * that nobody here wants; its text is NULL if it is none.
 */
bool rl_subscriptions_take(struct rl_node *node, const rl_reply *r,
                           rl_item *name);

/* The connection is gone: none is heard, and everybody is to look. */
void rl_subscriptions_lose_all(struct rl_node *node);

#endif
