/*
 * The nodes of a Red lock during a call. Called by the thread that makes it;
 * each node's holds are guarded by the mutex of that node's table, of which no
 * two are ever taken together.
 */
#include "hold/step.h"
#include "lock/red.h"
#include "op/rule.h"
#include "run/client.h"

/* --- messages ------------------------------------------------------------- */

rlock_status rl_red_error(const rlock *lk, rlock_status s, const char *what)
{
    char name[41];
    rl_printable(name, sizeof name, lk->target.name, lk->target.len);
    return rl_error_set(s, 0, "lock '%s' on %zu nodes: %s", name,
                        rl_red_of(lk)->n, what);
}

rlock_status rl_red_fail(const rlock *lk, rlock_status s, const rl_op *op)
{
    char says[RL_SAYS_MAX];
    rl_rule_tell(op, says);
    return rl_red_error(lk, s, says);
}

/* --- the nodes, while a call is inside of their clients ------------------- */

void rl_nodes_enter(rl_nodes *ns, const rlock *lk)
{
    ns->red = rl_red_of(lk);
    ns->n = ns->red->n;
    ns->quorum = ns->n / 2 + 1;
    ns->group = NULL;
    for (size_t i = 0; i < ns->n; i++) {
        rlock_client *cl = ns->red->client[i];
        rlock_status s = rl_client_enter(cl, &ns->cancel[i]);
        ns->core[i] = s == RLOCK_OK ? &cl->engine.core : NULL;
        ns->hold[i] = NULL;
        if (i == 0)
            ns->home = s;
    }
}

void rl_nodes_leave_one(rl_nodes *ns, size_t i)
{
    rl_holds_put(&ns->core[i]->holds, ns->hold[i]);
    ns->core[i] = NULL;
    rl_client_leave(ns->red->client[i], ns->cancel[i]);
}

void rl_nodes_leave(rl_nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++)
        if (ns->core[i])
            rl_nodes_leave_one(ns, i);
    rl_group_unref(ns->group);
}

/* Without its home it is closed, or we are a forked child. */
rlock_status rl_red_fail_closed(const rlock *lk, const rl_nodes *ns)
{
    return rl_red_error(lk, ns->home, rlock_status_str(ns->home));
}

bool rl_nodes_pick(rl_nodes *ns, const rlock *lk)
{
    int64_t now_us = rl_now_us();
    const rl_owner *owner = rl_owner_self();
    for (size_t i = 0; i < ns->n; i++) {
        bool valid;
        if (ns->core[i])
            ns->hold[i] = rl_holds_pick(&ns->core[i]->holds, &lk->target, owner,
                                        now_us, &valid, NULL);
        if (ns->hold[i] && !ns->group) {
            ns->group = ns->hold[i]->group;
            rl_group_ref(ns->group);
        }
    }
    return ns->group != NULL;
}

/* 0: the node does not have it. */
int64_t rl_nodes_deadline(const rl_nodes *ns, size_t i, int64_t now_us)
{
    rl_hold *h = ns->hold[i];
    return h ? rl_hold_deadline(&ns->core[i]->holds, h, now_us) : 0;
}

/*
 * Leases that have run out are noticed first, each where it belongs. A node
 * whose client is being closed has it no more.
 */
int64_t rl_nodes_until(const rl_nodes *ns, int64_t now_us)
{
    unsigned open = 0;
    for (size_t i = 0; i < ns->n && i < RLOCK_RED_MAX; i++) {
        rl_nodes_deadline(ns, i, now_us);
        open |= (unsigned)(ns->core[i] != NULL) << i;
    }
    int64_t us = rl_group_until(ns->group, open);
    return us > now_us ? us : 0;
}

/* --- an operation on all nodes -------------------------------------------- */

void rl_nodes_begin(rl_nodes *ns, bool early)
{
    rl_op_init(&ns->op, ns->part);
    ns->op.n = ns->n;
    ns->op.quorum = ns->quorum;
    ns->op.several = ns->op.insist = true;
    ns->op.early = early;
    for (size_t i = 0; i < ns->n; i++) {
        ns->op.part[i] = NULL;
        if (!ns->core[i])
            ns->op.closed |= 1u << i;
    }
}

void rl_nodes_set_policy(const rl_nodes *ns, bool renewed, int64_t now_us)
{
    rl_group_set_renewed(ns->group, renewed);
    for (size_t i = 0; i < ns->n; i++) {
        rl_hold *h = ns->hold[i];
        if (h)
            rl_hold_set_policy(&ns->core[i]->holds, h, renewed, now_us);
    }
}
