/*
 * A group: holds that together are one lock, on several servers (Red) or of
 * several names (Multi). Each hold is renewed and watched by its own client;
 * the group knows how many are needed, and notices, once, that too few are
 * left.
 *
 * Holds change under their own clients' mutexes, so what they share here is
 * atomic. The states go one way:
 *
 *   FORMING -> OWNED -> LOST      too few are left; the owner is told
 *        `--------`---> OVER      released, given up, or abandoned
 */
#ifndef RL_CORE_GROUP_H
#define RL_CORE_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rlock/client.h>

typedef enum rl_group_state {
    RL_GROUP_FORMING,
    RL_GROUP_OWNED,
    RL_GROUP_LOST,
    RL_GROUP_OVER
} rl_group_state;

typedef struct rl_group {
    atomic_uint refs;
    atomic_int state; /* rl_group_state */
    atomic_int left;  /* holds that are not lost */
    int needed;       /* fixed */
    bool quorum;      /* fixed; Red: the holds are nothing by themselves */
    struct rlock_client *home; /* fixed; counted: the struct, not its engine */
    atomic_int count;          /* Red: the hold count; the owning thread's */
    uint64_t token;            /* Red: fixed once it is owned */
    atomic_bool renewed;       /* Red: by the watchdogs, also what comes late */
} rl_group;

/* With one reference; NULL: out of memory. */
rl_group *rl_group_new(struct rlock_client *home, int needed, bool quorum);
void rl_group_ref(rl_group *g);
void rl_group_unref(rl_group *g); /* NULL is accepted */

/* From one state to the next; false: it was in another one. */
bool rl_group_move(rl_group *g, rl_group_state from, rl_group_state to);

/* One hold less. True: with it the group is lost, which is to be reported. */
bool rl_group_lose_one(rl_group *g);

/* Adds the loss to the home client's statistics. */
void rl_group_count_loss(rl_group *g);

/* Are its holds worth nothing any more, though they may run on? */
bool rl_group_is_void(const rl_group *g);

/* Is there an on_event for its events but the one of the hold's own client? */
bool rl_group_has_ear(const rl_group *g);

/* Tells the home client. False: it has no on_event, or is closed. */
bool rl_group_tell(rl_group *g, const rlock_event *ev);

#endif
