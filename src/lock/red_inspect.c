/* Who holds a Red lock: whoever a quorum of the nodes names. */
#include <string.h>

#include "lock/red.h"
#include "op/rule.h"
#include "op/verb_query.h"
#include "run/caller.h"

typedef struct inspection {
    rl_nodes ns;
    rlock_holder holder[RLOCK_RED_MAX]; /* on each node that has one */
} inspection;

static bool is_held(const rl_part *x)
{
    return x && x->ok && x->code == 1;
}

/* On how many nodes has the holder of this one got it? */
static size_t count_same(const rl_op *op, const rl_part *x)
{
    size_t n = 0;
    for (size_t i = 0; i < op->n; i++)
        n += is_held(op->part[i]) &&
             rl_is_same_hold(op->part[i]->holder, x->holder);
    return n;
}

/* A node whose holder has a quorum, or NULL. */
static const rl_part *find_holder(const rl_op *op)
{
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *x = op->part[i];
        if (is_held(x) && count_same(op, x) >= op->quorum)
            return x;
    }
    return NULL;
}

static size_t count_held(const rl_op *op)
{
    size_t held = 0;
    for (size_t i = 0; i < op->n; i++)
        held += is_held(op->part[i]);
    return held;
}

/* What is left of the holder's lease on a quorum. */
static void tell(const rl_op *op, const rl_part *x, rlock_holder *out)
{
    int64_t ttl[RLOCK_RED_MAX];
    size_t n = 0;
    *out = *x->holder;
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *y = op->part[i];
        if (is_held(y) && rl_is_same_hold(y->holder, out))
            ttl[n++] = y->holder->ttl_ms < 0 ? INT64_MAX : y->holder->ttl_ms;
    }
    int64_t ms = rl_group_quorum_end(ttl, n, op->quorum);
    out->ttl_ms = ms == INT64_MAX ? -1 : ms;
}

/* Those that are silent may have it, or not, all of them. */
static bool settles(const rl_op *op)
{
    size_t silent = op->n - rl_rule_ok(op), held = count_held(op);
    return find_holder(op) || silent == 0 || silent + held < op->quorum ||
           op->n - silent - held >= op->quorum;
}

static rlock_status judge(const rlock *lk, const rl_nodes *ns,
                          rlock_holder *out)
{
    const rl_op *op = &ns->op;
    const rl_part *x = find_holder(op);
    if (x) {
        tell(op, x, out);
        return RLOCK_OK;
    }
    return rl_rule_ok(op) < op->quorum || !settles(op)
               ? rl_red_fail(lk, RLOCK_EQUORUM, op)
               : RLOCK_NOT_HELD;
}

static void ask_nodes(const rlock *lk, rl_nodes *ns,
                      rlock_holder holder[RLOCK_RED_MAX])
{
    memset(holder, 0, RLOCK_RED_MAX * sizeof *holder);
    rl_nodes_begin(ns, false);
    ns->op.settles = settles;
    for (size_t i = 0; i < ns->n; i++) {
        rl_part *x = ns->core[i] ? rl_op_new_part(&ns->op, i) : NULL;
        if (!x)
            continue;
        rl_part_inspect(x, ns->core[i], &lk->target, &holder[i], rl_now_us());
        rl_part_limit(x, RLOCK_WATCHDOG, RL_NEVER);
    }
    rl_drive(&ns->op);
}

rlock_status rl_red_inspect(rlock *lk, rlock_holder *out)
{
    inspection it;
    rl_nodes *ns = &it.ns;
    rl_nodes_enter(ns, lk);
    ask_nodes(lk, ns, it.holder);
    rlock_status s =
        ns->home != RLOCK_OK ? rl_red_fail_closed(lk, ns) : judge(lk, ns, out);
    rl_op_let_go(&ns->op);
    rl_nodes_leave(ns);
    return s;
}

void rl_red_ask_ids(rlock *lk, rl_nodes *ns, const rlock_holder *hold,
                    rlock_holder at[RLOCK_RED_MAX])
{
    ask_nodes(lk, ns, at);
    for (size_t i = 0; i < ns->n; i++)
        if (!is_held(ns->op.part[i]) || !rl_is_same_hold(&at[i], hold))
            at[i] = *hold;
    rl_op_let_go(&ns->op);
}

/* --- what the client believes --------------------------------------------- */

rl_view rl_red_view(rlock *lk)
{
    rl_nodes ns;
    int64_t until_us = 0;
    rl_view v = {0};
    rl_nodes_enter(&ns, lk);
    if (rl_nodes_pick(&ns, lk))
        until_us = rl_nodes_until(&ns, rl_now_us());
    if (until_us > 0) {
        /* By the clock of now: a renewal may have come meanwhile. */
        v.valid_ms = rl_max(0, until_us - rl_now_us()) / 1000;
        v.count = rl_group_count(ns.group);
        v.token = ns.group->token;
        v.renewed = rl_group_is_renewed(ns.group);
    }
    rl_nodes_leave(&ns);
    return v;
}

/* All nodes' holds have one id. */
static const rl_uuid *id_of(const rl_nodes *ns)
{
    size_t i = 0;
    while (!ns->hold[i])
        i++;
    return &ns->hold[i]->id;
}

/* One that is lost by the clock is told at once. */
static void visit_alarms(const rl_nodes *ns, rl_alarm_visit *v)
{
    rl_nodes_until(ns, rl_now_us());
    rl_group_visit_alarms(ns->group, v, id_of(ns));
}

rlock_status rl_red_visit_alarms(rlock *lk, rl_alarm_visit *v)
{
    rl_nodes ns;
    rlock_status s = RLOCK_OK;
    rl_nodes_enter(&ns, lk);
    if (ns.home != RLOCK_OK)
        s = rl_red_fail_closed(lk, &ns);
    else if (rl_nodes_pick(&ns, lk))
        visit_alarms(&ns, v);
    else
        s = rl_red_error(lk, RLOCK_NOT_HELD, rl_not_held_text());
    rl_nodes_leave(&ns);
    return s;
}
