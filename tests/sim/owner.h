/*
 * Owners: threads of the program, each with a random program of its own. What
 * a verb does before and after its operation is what lock/single.c (verbs.c)
 * and lock/red.c (red.c) do.
 */
#ifndef SIM_OWNER_H
#define SIM_OWNER_H

#include "world.h"

/* What a judge keeps of each hold that was ever granted. */
typedef struct account {
    char uuid[RL_UUID_LEN + 1];
    size_t name;
    uint64_t token;
    unsigned losses_told;
    bool lost; /* it was, for all that is known at its end */
    rl_loss why;
} account;

/* An owner's hold of a name. */
typedef struct holding {
    rl_hold *hold; /* referenced; NULL: none. Of a Red lock, the first node's */
    rl_group *group; /* of a Red lock, counted */
    size_t at;       /* whose that first hold is */
    size_t account;  /* its number */
    int count;
    bool unsure;    /* what the server counts is not known */
    bool releasing; /* it is not believed in any more */
    unsigned harm;  /* of the server, when it was granted there */
    int64_t granted_us;
    int64_t past_us; /* true time at which it was first seen past its end */
} holding;

typedef enum verb {
    NOTHING,
    ACQUIRE,
    REENTER,
    EXTEND,
    UNLOCK,
    FORCE,
    INSPECT
} verb;

struct owner {
    runner runner;
    process *p;
    rl_owner self;
    unsigned number; /* in the whole world */
    holding holding[NAMES_MAX];
    unsigned harm[NAMES_MAX];  /* of the server, at the latest grant there; of
                                  a Red lock at the first of a try */
    uint64_t tried[NAMES_MAX]; /* the hash of the holder id of that one */
    account *accounts;
    size_t count, room;
    bool is_done;
    int64_t next_us; /* local: when the program goes on */

    /* The verb that is under way: */
    verb verb;
    size_t name;
    int64_t began_us, wait_ms, lease_ms;
    atomic_uint cancels[NAMES_MAX];
    char handle[NAMES_MAX]; /* each an address */
    rl_acquire acquire;
    rl_ballot ballot;
    atomic_int_least64_t ahead_us;
    rl_op op;
    rl_part part;
    rl_extend extend;
    /* Of a Red lock: its nodes, with the holds there, referenced. */
    size_t nodes;
    rl_hold *node[SERVERS_MAX];
    rl_group *group;
    bool was_renewed;
    rlock_holder holder;
    rlock_status status;
};

owner *owner_open(process *p, unsigned index);
void owner_close(owner *o);
void owner_dies(owner *o);
owner *owner_by_serial(world *w, uint64_t serial);
bool owner_is_waiting(const owner *o, size_t name);

/* The verbs. Each ends in owner_is_told(). */
void verb_acquire(owner *o, size_t name, int64_t wait_ms, int64_t lease_ms);
void verb_extend(owner *o, size_t name, int64_t lease_ms);
void verb_unlock(owner *o, size_t name);
void verb_force(owner *o, size_t name);
void verb_inspect(owner *o, size_t name);
void red_acquire(owner *o, size_t name, int64_t wait_ms, int64_t lease_ms);
void red_extend(owner *o, size_t name, int64_t lease_ms);
void red_unlock(owner *o, size_t name);
bool red_believes(owner *o, size_t name);
void owner_cancel(owner *o, size_t name);

void owner_is_told(owner *o, rlock_status status);

/* The client and target by which an owner has a name. */
client *owner_client(owner *o, size_t name);
const rl_target *owner_target(const owner *o, size_t name);
static inline server *lock_server(world *w, size_t name)
{
    return &w->server[name % w->set.servers];
}

#endif
