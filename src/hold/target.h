/*
 * What is locked: a name, and how. Locks of one name in different scopes know
 * nothing of each other here; the server tells them apart, or does not.
 */
#ifndef RL_HOLD_TARGET_H
#define RL_HOLD_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "hold/owner.h"
#include "wire/script.h"

/* Scopes of single locks are layouts, a fair lock's that of the hash, which it is;
   latches have one; a Red lock's are above. */
#define RL_LATCH_SCOPE   RL_LAYOUTS
#define RL_SINGLE_SCOPES (RL_LAYOUTS + 1)

/* The largest min_replicas. */
#define RL_REPLICAS_MAX 16

/* What only a semaphore has, and what permits are. */
typedef struct rl_semaphore {
    int64_t permits; /* so many there are if nobody has said yet; or 0 */
    rl_owner owner;  /* of permits: who has them; or 0 */
    uint32_t idle_s; /* so long its keys are kept; 0: for ever */
    uint16_t weight; /* of permits: how many; or 0 */
} rl_semaphore;

typedef struct rl_target {
    const char *name;
    uint64_t scope;
    rl_semaphore *semaphore; /* NULL: it is a lock, or a latch */
    uint16_t len;
    uint16_t slot;         /* of a cluster; 0 elsewhere */
    uint8_t layout;        /* of rl_layouts */
    int8_t min_replicas;   /* as of rlock_lock_options */
    bool local_levels : 1; /* the same; of a lock by itself */
    bool sharded : 1;      /* it is in a cluster, and so are its channels */
} rl_target;

static inline const rl_layout *rl_target_layout(const rl_target *t)
{
    return &rl_layouts[t->layout];
}

/* Is it one of a side of a read-write lock? And that of its other side. */
static inline bool rl_scope_is_side(uint64_t scope)
{
    return scope == RL_LAYOUT_READ || scope == RL_LAYOUT_WRITE;
}

static inline uint64_t rl_other_side(uint64_t scope)
{
    return scope == RL_LAYOUT_READ ? RL_LAYOUT_WRITE : RL_LAYOUT_READ;
}

/* Do those in this room stand in a line of the server's? */
static inline bool rl_room_lines_up(uint64_t room)
{
    return room < RL_LAYOUTS && rl_layouts[room].line;
}

/* In which room who waits for it is: those who stand in line are by themselves,
   though their holds may be of the same scope as others. */
static inline uint64_t rl_target_room(const rl_target *t)
{
    return rl_target_layout(t)->line ? t->layout : t->scope;
}

#endif
