/*
 * The bells of a cluster's client at one server. A message there reaches those
 * who listen at any server, at a cost for each, and PUBLISH does not tell how
 * many have heard it; so a name's bell is a sharded channel, which lies in the
 * name's slot, and is subscribed to at the server that has that.
 *
 * A bell is kept for as long as somebody wants it, and a little longer, since
 * who waits for a name mostly waits for it again.
 */
#ifndef RL_RUN_BELLS_H
#define RL_RUN_BELLS_H

#include "base/map.h"
#include "base/thread.h"
#include "hold/target.h"
#include "net/conn.h"

struct rl_node;

typedef struct rl_bells {
    rl_mutex mutex; /* guards all below */
    rl_map map;     /* by channel */
    size_t count;
    bool news;        /* one is wanted that is not subscribed to */
    int64_t until_us; /* when the first of them may have had its time */
} rl_bells;

bool rl_bells_init(rl_bells *b); /* false: out of memory */
void rl_bells_fini(rl_bells *b, bool forked);

/* Somebody waits for this name. Any thread. */
void rl_bells_want(struct rl_node *node, const rl_target *what);

/* Is its bell subscribed to? Any thread. */
bool rl_bells_hear(struct rl_node *node, const rl_target *what);

/* --- for the doorbell ------------------------------------------------------ */

/* Is there one at all? */
bool rl_bells_are_wanted(rl_bells *b);

/* When rl_bells_adjust() has something to do without any news. */
int64_t rl_bells_until(rl_bells *b);

/* Subscribes to what is wanted, and leaves what is not. False: it broke. */
bool rl_bells_adjust(struct rl_node *node, rl_conn *c, int64_t now_us);

/*
 * Takes what the server says. True: it is a ring, for the name that *name
 * becomes, which nobody here wants.
 */
bool rl_bells_take(struct rl_node *node, const rl_reply *r, rl_item *name);

/* The connection is gone: none is heard, and everybody is to look. */
void rl_bells_lose_all(struct rl_node *node);

#endif
