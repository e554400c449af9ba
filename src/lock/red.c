/*
 * Red: one name on several independent servers, held by who holds it on a
 * majority of them (Redlock; Redis documentation, "Distributed locks with
 * Redis").
 *
 * Each node's hold is an ordinary hold of that node's client: renewed by its
 * keeper, lost at its own deadline. What makes them one is a group that needs
 * a quorum of them; the lock is valid until the deadline of the worst hold in
 * the best quorum. So renewal and loss by majority need no code of their own.
 *
 * Every verb asks all nodes at once and is over with a quorum (a forced unlock
 * asks for every answer). The owning thread calls it, inside of the clients of
 * all nodes that are open; a level is counted in the group when a quorum has
 * confirmed it, and counted down whatever the nodes say. The handle, and how
 * one is made, is in red_new.c; the vote in red/attempt_red.c.
 */
#include "lock/red.h"

#include <string.h>

#include "hold/level.h"
#include "hold/step.h"
#include "op/extend.h"
#include "op/rule.h"
#include "red/attempt_red.h"
#include "run/caller.h"
#include "run/client.h"

static rlock_status not_held(const rlock *lk)
{
    return rl_red_error(lk, RLOCK_NOT_HELD, rl_not_held_text());
}

static rlock_status lost(const rlock *lk)
{
    return rl_red_error(lk, RLOCK_LOST, rl_loss_text(RL_LOSS_GROUP));
}

/* What a quorum has to confirm, for a hold that was good before. */
static rlock_status confirmed(const rlock *lk, const rl_nodes *ns)
{
    if (!rl_nodes_until(ns, rl_now_us()))
        return lost(lk);
    return rl_rule_ok(&ns->op) >= ns->quorum
               ? RLOCK_OK
               : rl_red_fail(lk, RLOCK_EQUORUM, &ns->op);
}

/* --- jobs ----------------------------------------------------------------- */

/* A verb of the owner's. */
typedef struct red_job {
    rl_job job;
    rlock *lk;
    rl_job_args args;
    rl_nodes ns;
    int home; /* the thread's state, while inside of the home's client */
    int level;
    int64_t began_us;
    bool renewed; /* before an extend */
    union {
        struct {
            rl_acquire it;
            rl_red_attempt red;
        } acquire;
        rl_extend extend;
    } op;
} red_job;

static red_job *of(rl_job *j)
{
    return RL_CONTAINER(j, red_job, job);
}

static rl_op *over(red_job *j, rlock_status s)
{
    rl_nodes_leave(&j->ns);
    return rl_job_over(&j->job, s);
}

/* --- acquire -------------------------------------------------------------- */

static void drop(rl_red_attempt *b, size_t i)
{
    rl_nodes_leave_one(&RL_CONTAINER(b, red_job, op.acquire.red)->ns, i);
}

static rl_op *acquire_over(red_job *j, rlock_status s)
{
    rl_nodes_leave(&j->ns);
    rl_lock_count_acquire(j->lk, j->args.joins, s);
    rl_client_leave(j->lk->client, j->home);
    return rl_job_over(&j->job, s);
}

static rl_op *first_acquired(rl_job *job)
{
    red_job *j = of(job);
    const rl_acquire *a = &j->op.acquire.it;
    if (a->status != RLOCK_OK)
        return acquire_over(j, rl_red_error(j->lk, a->status, a->fault.text));
    rl_lock_emit(j->lk, RLOCK_EVENT_ACQUIRED, a->token, 1, j->began_us);
    return acquire_over(j, RLOCK_OK);
}

static rl_op *acquire_first(red_job *j)
{
    rl_red *r = (rl_red *)j->lk;
    rl_red_attempt *b = &j->op.acquire.red;
    rl_acquire *a = &j->op.acquire.it;
    *b = (rl_red_attempt){.n = j->ns.n,
                          .quorum = j->ns.quorum,
                          .drop = drop,
                          .home = rl_lock_home(j->lk),
                          .longest_lease_ms = r->longest_lease_ms,
                          .check_uptime = r->check_uptime,
                          .ahead_us = &r->ahead_us};
    memcpy(b->node, j->ns.core, sizeof b->node);
    *a = (rl_acquire){.attempt = &rl_attempt_vote,
                      .home = j->ns.core[0],
                      .what = &j->lk->target,
                      .handle = j->lk,
                      .owner = rl_owner_self(),
                      .cancel = j->args.cancel,
                      .wait_ms = j->args.wait_ms,
                      .lease_ms = j->args.lease_ms,
                      .joins = j->args.joins,
                      .listen = rl_lock_listen,
                      .red = b};
    rl_op_init(&a->op, b->part);
    a->op.several = true;
    rl_acquire_init(a, j->began_us);
    a->call_until_us = rl_min(a->call_until_us, j->args.until_us);
    return rl_job_ask(&j->job, &a->op, first_acquired);
}

static rl_op *level_asked(rl_job *job)
{
    red_job *j = of(job);
    rl_nodes *ns = &j->ns;
    rlock_status s = confirmed(j->lk, ns);
    rl_op_let_go(&ns->op);
    if (s != RLOCK_OK)
        return acquire_over(j, s);
    rl_group_set_count(ns->group, j->level);
    if (j->args.lease_ms == RLOCK_WATCHDOG)
        rl_nodes_set_policy(ns, true, rl_now_us());
    rl_lock_emit(j->lk, RLOCK_EVENT_ACQUIRED, ns->group->token, j->level,
                 j->began_us);
    return acquire_over(j, RLOCK_OK);
}

static rl_op *reenter(red_job *j)
{
    rl_nodes *ns = &j->ns;
    int64_t lease_ms = j->args.lease_ms, now_us = rl_now_us();
    j->level = rl_group_count(ns->group) + 1;
    if (!rl_nodes_until(ns, now_us))
        return acquire_over(j, lost(j->lk));
    rl_vote_note_lease(ns->core, ns->n, &j->lk->target, lease_ms, now_us);
    rl_nodes_begin(ns, true);
    for (size_t i = 0; i < ns->n; i++) {
        rl_part *x = rl_nodes_deadline(ns, i, now_us)
                         ? rl_op_new_part(&ns->op, i)
                         : NULL;
        if (!x)
            continue;
        if (!rl_part_reenter(x, ns->core[i], ns->hold[i], lease_ms, now_us)) {
            rl_op_let_go(&ns->op);
            return acquire_over(j,
                                rl_red_error(j->lk, RLOCK_EINVAL,
                                             "the hold count is at its end"));
        }
        x->request.level = j->level;
        rl_part_limit(x, lease_ms, j->args.until_us);
    }
    return rl_job_ask(&j->job, &ns->op, level_asked);
}

static bool start_all(const rlock *lk, const rl_nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++)
        if (ns->core[i] && !rl_engine_start(rl_engine_of(ns->core[i]), 0)) {
            rl_red_error(
                lk, RLOCK_ENOMEM,
                "the watchdog thread, or memory for it, cannot be had");
            return false;
        }
    return rl_lock_start(lk);
}

static rl_op *acquire(rl_job *job)
{
    red_job *j = of(job);
    rlock_status s = rl_client_begin(j->lk->client, &j->home);
    if (s != RLOCK_OK)
        return rl_job_over(job, s);
    rl_nodes_enter(&j->ns, j->lk);
    j->began_us = rl_job_args_began(&j->args);
    if (rl_nodes_pick(&j->ns, j->lk))
        return reenter(j);
    return start_all(j->lk, &j->ns) ? acquire_first(j)
                                    : acquire_over(j, RLOCK_ENOMEM);
}

/* --- extend --------------------------------------------------------------- */

static rl_op *extended(rl_job *job)
{
    red_job *j = of(job);
    rl_nodes *ns = &j->ns;
    ns->op = j->op.extend.op;
    rlock_status s = confirmed(j->lk, ns);
    /* The policy changes with the outcome, and on all nodes. */
    rl_nodes_set_policy(
        ns, s == RLOCK_OK ? j->args.lease_ms == RLOCK_WATCHDOG : j->renewed,
        rl_now_us());
    rl_op_let_go(&ns->op);
    return over(j, s);
}

static void add_extends(rl_nodes *ns, rl_op *op, int64_t now_us)
{
    for (size_t i = 0; i < ns->n; i++) {
        rl_part *x =
            rl_nodes_deadline(ns, i, now_us) ? rl_op_new_part(op, i) : NULL;
        if (x) {
            x->core = ns->core[i];
            x->hold = ns->hold[i];
        }
    }
}

static rl_op *extend(rl_job *job)
{
    red_job *j = of(job);
    rl_nodes *ns = &j->ns;
    rl_extend *e = &j->op.extend;
    int64_t lease_ms = j->args.lease_ms, now_us = rl_now_us();
    rl_nodes_enter(ns, j->lk);
    if (ns->home != RLOCK_OK)
        return over(j, rl_red_fail_closed(j->lk, ns));
    if (!rl_nodes_pick(ns, j->lk))
        return over(j, not_held(j->lk));
    if (!rl_nodes_until(ns, now_us))
        return over(j, lost(j->lk));
    j->renewed = rl_group_is_renewed(ns->group);
    rl_vote_note_lease(ns->core, ns->n, &j->lk->target, lease_ms, now_us);
    rl_nodes_begin(ns, true);
    e->op = ns->op;
    add_extends(ns, &e->op, now_us);
    int64_t until_us =
        rl_confirmed_end(ns->core[0], rl_replicas_of(ns->core[0], 0),
                         rl_job_args_began(&j->args));
    rl_extend_init(e, lease_ms, rl_min(until_us, j->args.until_us));
    return rl_job_ask(job, &e->op, extended);
}

/* --- unlock --------------------------------------------------------------- */

/* It needs no memory: the part that asked for the hold is still there. */
static rl_part *release_part(rl_nodes *ns, size_t i)
{
    rl_part *x = ns->op.part[i] = rl_hold_take_spare(ns->hold[i]);
    if (!x)
        return rl_op_new_part(&ns->op, i);
    x->op = &ns->op;
    return x;
}

static void add_releases(rl_nodes *ns, int level, int64_t until_us,
                         int64_t now_us)
{
    rl_nodes_begin(ns, true);
    ns->op.insist = false;
    for (size_t i = 0; i < ns->n; i++) {
        if (!ns->hold[i] ||
            !rl_hold_count_down_node(&ns->core[i]->holds, ns->hold[i], level,
                                     now_us))
            continue;
        rl_part *x =
            level > 0 ? rl_op_new_part(&ns->op, i) : release_part(ns, i);
        if (x) {
            rl_part_release(x, ns->core[i], ns->hold[i], level, now_us);
            rl_part_limit(x, RLOCK_WATCHDOG, until_us);
        } else if (level == 0) {
            rl_hold_undo(&ns->core[i]->holds, ns->hold[i], now_us);
        }
    }
}

/* The home's events and statistics, as long as it is open. */
static void note_release(rlock *lk, const rl_nodes *ns)
{
    const rl_group *g = ns->group;
    if (!ns->core[0])
        return;
    rl_lock_count_release(lk);
    rl_lock_emit(lk, RLOCK_EVENT_RELEASED, g->token, rl_group_count(g),
                 g->began_us);
}

static rlock_status outcome(const rlock *lk, rl_nodes *ns, int level)
{
    if (level == 0 && !rl_group_move(ns->group, RL_GROUP_OWNED, RL_GROUP_OVER))
        return lost(lk);
    if (level > 0)
        return confirmed(lk, ns);
    return rl_rule_ok(&ns->op) < ns->quorum
               ? rl_red_fail(lk, RLOCK_EQUORUM, &ns->op)
               : RLOCK_OK;
}

/* Also of a lock that is closed: the nodes that are left are told. */
static rlock_status unlock_status(const red_job *j, rlock_status s)
{
    return j->ns.home == RLOCK_OK ? s : rl_red_fail_closed(j->lk, &j->ns);
}

static rl_op *unlocked(rl_job *job)
{
    red_job *j = of(job);
    rlock_status s = outcome(j->lk, &j->ns, j->level);
    rl_op_let_go(&j->ns.op);
    if (s == RLOCK_OK)
        note_release(j->lk, &j->ns);
    return over(j, unlock_status(j, s));
}

static rl_op *unlock(rl_job *job)
{
    red_job *j = of(job);
    rl_nodes *ns = &j->ns;
    rl_nodes_enter(ns, j->lk);
    if (!rl_nodes_pick(ns, j->lk))
        return over(j, unlock_status(j, not_held(j->lk)));
    int64_t now_us = rl_now_us();
    j->level = rl_group_count(ns->group) - 1;
    rl_group_set_count(ns->group, j->level);
    if (j->level == 0) {
        rl_owner_self()->holds--;
        rl_group_end_alarms(ns->group);
    } else if (j->args.lapses) {
        rl_nodes_set_policy(ns, false, now_us);
    }
    add_releases(ns, j->level, j->args.until_us, now_us);
    return rl_job_ask(job, &ns->op, unlocked);
}

_Static_assert(sizeof(red_job) <= RL_JOB_ROOM &&
                   sizeof(red_job) <= RL_MEMBER_ROOM,
               "room for a job");

static rl_job *red_begin(rlock *lk, const rl_job_args *w, void *room)
{
    static rl_op *(*const first[])(rl_job * j) = {[RL_JOB_ACQUIRE] = acquire,
                                                  [RL_JOB_UNLOCK] = unlock,
                                                  [RL_JOB_EXTEND] = extend};
    red_job *j = room;
    j->job = (rl_job){.next = first[w->verb]};
    j->lk = lk;
    j->args = *w;
    j->args.until_us = w->until_us ? w->until_us : RL_NEVER;
    return &j->job;
}

/* --- what needs no hold --------------------------------------------------- */

/* At each node the hold that goes by this id there; NULL: whosever it is. */
static rlock_status force_nodes(rlock *lk, rl_nodes *ns, const rlock_holder *at)
{
    bool freed = false;
    rl_nodes_begin(ns, false);
    for (size_t i = 0; i < ns->n; i++) {
        rl_part *x = ns->core[i] ? rl_op_new_part(&ns->op, i) : NULL;
        if (!x)
            continue;
        rl_part_force(x, ns->core[i], &lk->target, at ? at[i].raw : NULL,
                      rl_now_us());
        rl_part_limit(x, RLOCK_WATCHDOG, RL_NEVER);
    }
    rl_drive(&ns->op);
    for (size_t i = 0; i < ns->n; i++)
        freed = freed || (ns->op.part[i] && ns->op.part[i]->ok &&
                          ns->op.part[i]->code == 1);
    if (ns->home != RLOCK_OK)
        return rl_red_fail_closed(lk, ns);
    if (rl_rule_ok(&ns->op) < ns->quorum)
        return rl_red_fail(lk, RLOCK_EQUORUM, &ns->op);
    return freed ? RLOCK_OK
                 : rl_red_error(lk, RLOCK_NOT_HELD,
                                rl_not_forced_text(at ? at->raw : NULL));
}

static rlock_status red_force_unlock(rlock *lk, const char *holder_id)
{
    rl_nodes ns;
    rlock_holder hold, at[RLOCK_RED_MAX];
    rlock_status s = RLOCK_OK;
    if (holder_id)
        s = rl_lock_check_holder(lk, holder_id, &hold);
    if (s != RLOCK_OK)
        return s;
    rl_nodes_enter(&ns, lk);
    if (holder_id)
        rl_red_ask_ids(lk, &ns, &hold, at);
    s = force_nodes(lk, &ns, holder_id ? at : NULL);
    rl_op_let_go(&ns.op);
    rl_nodes_leave(&ns);
    return s;
}

static void red_cancel(rlock *lk)
{
    int cancel;
    if (rl_client_enter(lk->client, &cancel) != RLOCK_OK)
        return;
    rl_rooms_cancel(&rl_lock_core(lk)->rooms, &lk->target, lk);
    rl_client_leave(lk->client, cancel);
}

const rl_lock_kind rl_red_kind = {
    .several = true,
    .has_home = true,
    .job_size = sizeof(red_job),
    .begin = red_begin,
    .force_unlock = red_force_unlock,
    .cancel = red_cancel,
    .view = rl_red_view,
    .inspect = rl_red_inspect,
    .visit_alarms = rl_red_visit_alarms,
    .copy = rl_red_copy,
    .free = rl_red_free,
};
