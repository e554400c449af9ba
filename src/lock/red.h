/*
 * What the files of Red locks share: the handle (red_new.c), its nodes while a
 * call is inside of their clients (red_nodes.c), the verbs (red.c), and who
 * holds it (red_inspect.c).
 */
#ifndef RL_LOCK_RED_H
#define RL_LOCK_RED_H

#include "lock/lock.h"

typedef struct rl_red {
    rlock base;
    size_t n;
    rlock_client *client[RLOCK_RED_MAX]; /* counted */
    int64_t longest_lease_ms;            /* as told; 0: what was used */
    bool check_uptime;
    /* By how much the fastest server's clock is ahead of ours; 0: unknown. */
    atomic_int_least64_t ahead_us;
} rl_red;

static inline const rl_red *rl_red_of(const rlock *lk)
{
    return (const rl_red *)lk;
}

extern const rl_lock_kind rl_red_kind;

rlock_status rl_red_inspect(rlock *lk, rlock_holder *out);
rl_view rl_red_view(rlock *lk);
rlock_status rl_red_visit_alarms(rlock *lk, rl_alarm_visit *v);
rlock *rl_red_copy(const rlock *lk);
void rl_red_free(rlock *lk);

/* The nodes, while a call is inside of their clients; and what it does. */
typedef struct rl_nodes {
    const rl_red *red;
    size_t n, quorum;
    rlock_status home; /* why the home is not inside; RLOCK_OK: it is */
    rl_core *core[RLOCK_RED_MAX]; /* NULL: its client is closed */
    rl_hold *hold[RLOCK_RED_MAX]; /* of the calling thread, referenced */
    rl_group *group;              /* of the holds; counted; NULL: none */
    int cancel[RLOCK_RED_MAX];
    rl_op op;
    rl_part *part[RLOCK_RED_MAX]; /* of the op */
} rl_nodes;

void rl_nodes_enter(rl_nodes *ns, const rlock *lk);
void rl_nodes_leave(rl_nodes *ns);
void rl_nodes_leave_one(rl_nodes *ns, size_t i); /* that is open */

/* The calling thread's holds. False: it has none. */
bool rl_nodes_pick(rl_nodes *ns, const rlock *lk);

/* Does this node have the hold? Then until when; else 0. */
int64_t rl_nodes_deadline(const rl_nodes *ns, size_t i, int64_t now_us);

/* Has the calling thread the lock? Then until when; else 0, from now on. */
int64_t rl_nodes_until(const rl_nodes *ns, int64_t now_us);

/*
 * By what holder id a hold goes at each node: clients of different nodes may
 * name their host differently, so each is asked. Where another one has the
 * lock, or nothing is answered, by the one that is given.
 */
void rl_red_ask_ids(rlock *lk, rl_nodes *ns, const rlock_holder *hold,
                    rlock_holder at[RLOCK_RED_MAX]);

/* Begins an operation on all nodes, without parts. */
void rl_nodes_begin(rl_nodes *ns, bool early);

/*
 * Whether a lock is renewed is the same on all its nodes, also on those that
 * have not answered.
 */
void rl_nodes_set_policy(const rl_nodes *ns, bool renewed, int64_t now_us);

/* Set the thread's error, and return its status. */
rlock_status rl_red_error(const rlock *lk, rlock_status s, const char *what);
rlock_status rl_red_fail(const rlock *lk, rlock_status s, const rl_op *op);
rlock_status rl_red_fail_closed(const rlock *lk, const rl_nodes *ns);

#endif
