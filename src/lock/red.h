/*
 * What the two halves of a Red lock share: one try for a majority (vote.c), and
 * the lock made of it (red.c).
 */
#ifndef RL_LOCK_RED_H
#define RL_LOCK_RED_H

#include "lock/nodes.h"

typedef struct rl_red {
    rlock base;
    size_t n;
    rlock_client *client[RLOCK_RED_MAX]; /* counted */
    int64_t longest_lease_ms;            /* as told; 0: what was used */
    bool check_uptime;
    atomic_int_least64_t used_lease_ms; /* the longest so far */
    /* The fastest server's clock, less ours, and the way there; 0: unknown. */
    atomic_int_least64_t clock_ahead_us;
} rl_red;

static inline const rl_red *rl_red_of(const rlock *lk)
{
    return (const rl_red *)lk;
}

/* A lease of this length is about to be asked for. */
void rl_red_remember_lease(rlock *lk, int64_t lease_ms);

/* How long a node may take, and that it is to be asked. Its own time limit is a
 * part of this lease. */
int64_t rl_red_limit_us(const rl_node *x, int64_t lease_ms);
void rl_red_make_due(rl_node *x, int64_t lease_ms, int64_t until_us);

/* The deadline of the worst hold in the best quorum; 0: there is none. */
int64_t rl_red_valid_until(int64_t *deadline_us, size_t n, size_t quorum);

#define RL_SAYS_MAX 200

/* What each node answered, as far as there is room. */
void rl_red_tell(const rl_nodes *ns, char out[RL_SAYS_MAX]);

/* One try of the outermost acquire. */
typedef struct rl_vote {
    rlock *lk;
    int64_t lease_ms;       /* as asked for */
    int64_t until_us;       /* when to stop asking */
    uint64_t token;         /* when acquired */
    char says[RL_SAYS_MAX]; /* why not */
} rl_vote;

/*
 * RLOCK_OK; RLOCK_BUSY: others hold it; RLOCK_EQUORUM: too few nodes did their
 * part; RLOCK_ENOMEM. Unless acquired, every node has been told to forget it,
 * or is being told by its watchdog.
 */
rlock_status rl_vote_try(rl_vote *v);

#endif
