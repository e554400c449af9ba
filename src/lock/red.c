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
 * one is made, is in red_new.c; the vote in core/vote.c.
 */
#include "lock/red.h"

#include <string.h>

#include "core/extend.h"
#include "core/rule.h"
#include "core/vote.h"
#include "drive/caller.h"

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
    if (!rl_group_is_owned(ns->group))
        return lost(lk);
    return rl_rule_ok(&ns->op) >= ns->quorum
               ? RLOCK_OK
               : rl_red_fail(lk, RLOCK_EQUORUM, &ns->op);
}

/* --- acquire -------------------------------------------------------------- */

/* The nodes of a call, as its vote has them. */
typedef struct vote {
    rl_ballot ballot;
    rl_nodes *ns;
} vote;

static void drop(rl_ballot *b, size_t i)
{
    rl_nodes_leave_one(RL_CONTAINER(b, vote, ballot)->ns, i);
}

static rlock_status acquire_first(rlock *lk, rl_nodes *ns, int64_t wait_ms,
                                  int64_t lease_ms, rl_cancel cancel)
{
    rl_red *r = (rl_red *)lk;
    int64_t now_us = rl_now_us();
    vote v = {.ns = ns,
              .ballot = {.n = ns->n,
                         .quorum = ns->quorum,
                         .drop = drop,
                         .home = &lk->client->home,
                         .longest_lease_ms = r->longest_lease_ms,
                         .check_uptime = r->check_uptime,
                         .ahead_us = &r->ahead_us}};
    memcpy(v.ballot.node, ns->core, sizeof v.ballot.node);
    rl_acquire a = {.contest = &rl_contest_vote,
                    .home = ns->core[0],
                    .what = &lk->target,
                    .handle = lk,
                    .owner = rl_owner_self(),
                    .cancel = cancel,
                    .wait_ms = wait_ms,
                    .lease_ms = lease_ms,
                    .listen = rl_lock_listen,
                    .ballot = &v.ballot};
    rl_op_init(&a.op);
    a.op.several = true;
    rl_acquire_init(&a, now_us);
    rl_drive(&a.op);
    if (a.status != RLOCK_OK)
        return rl_red_error(lk, a.status, a.fault.text);
    rl_lock_emit(lk, RLOCK_EVENT_ACQUIRED, a.token, 1, rl_now_us() - now_us);
    return RLOCK_OK;
}

static rlock_status reenter(rlock *lk, rl_nodes *ns, int64_t lease_ms)
{
    int level = rl_group_count(ns->group) + 1;
    int64_t now_us = rl_now_us();
    if (!rl_group_is_owned(ns->group))
        return lost(lk);
    rl_vote_note_lease(ns->core, ns->n, &lk->target, lease_ms, now_us);
    rl_nodes_begin(ns, true);
    for (size_t i = 0; i < ns->n; i++) {
        rl_part *x = rl_nodes_deadline(ns, i, now_us)
                         ? rl_op_new_part(&ns->op, i)
                         : NULL;
        if (!x)
            continue;
        if (!rl_part_reenter(x, ns->core[i], ns->hold[i], lease_ms, now_us)) {
            rl_op_let_go(&ns->op);
            return rl_red_error(lk, RLOCK_EINVAL,
                                "the hold count is at its end");
        }
        x->request.level = level;
        rl_part_limit(x, lease_ms);
    }
    rl_drive(&ns->op);
    rlock_status s = confirmed(lk, ns);
    rl_op_let_go(&ns->op);
    if (s != RLOCK_OK)
        return s;
    rl_group_set_count(ns->group, level);
    if (lease_ms == RLOCK_WATCHDOG)
        rl_nodes_set_policy(ns, true, rl_now_us());
    rl_lock_emit(lk, RLOCK_EVENT_ACQUIRED, ns->group->token, level,
                 rl_now_us() - now_us);
    return RLOCK_OK;
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

static rlock_status red_acquire(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                                rl_cancel cancel)
{
    rl_nodes ns;
    int state;
    rlock_status s = rl_client_begin(lk->client, &state);
    if (s != RLOCK_OK)
        return s;
    rl_nodes_enter(&ns, lk);
    if (rl_nodes_pick(&ns, lk))
        s = reenter(lk, &ns, lease_ms);
    else if (start_all(lk, &ns))
        s = acquire_first(lk, &ns, wait_ms, lease_ms, cancel);
    else
        s = RLOCK_ENOMEM;
    rl_nodes_leave(&ns);
    rl_stats *stats = &rl_lock_core(lk)->stats;
    rl_add(s == RLOCK_OK ? &stats->acquires : &stats->acquires_failed, 1);
    rl_client_leave(lk->client, state);
    return s;
}

/* --- extend --------------------------------------------------------------- */

static rlock_status extend(rlock *lk, rl_nodes *ns, int64_t lease_ms)
{
    rl_extend e;
    int64_t now_us = rl_now_us();
    bool renewed = rl_group_is_renewed(ns->group);
    if (!rl_group_is_owned(ns->group))
        return lost(lk);
    rl_vote_note_lease(ns->core, ns->n, &lk->target, lease_ms, now_us);
    rl_nodes_begin(ns, true);
    for (size_t i = 0; i < ns->n; i++) {
        rl_part *x = rl_nodes_deadline(ns, i, now_us)
                         ? rl_op_new_part(&ns->op, i)
                         : NULL;
        if (x) {
            x->core = ns->core[i];
            x->hold = ns->hold[i];
        }
    }
    e.op = ns->op;
    for (size_t i = 0; i < ns->n; i++)
        if (e.op.part[i])
            e.op.part[i]->op = &e.op;
    rl_extend_init(
        &e, lease_ms,
        rl_confirmed_end(ns->core[0], rl_replicas_of(ns->core[0], 0), now_us));
    rl_drive(&e.op);
    ns->op = e.op;
    rlock_status s = confirmed(lk, ns);
    /* The policy changes with the outcome, and on all nodes. */
    rl_nodes_set_policy(
        ns, s == RLOCK_OK ? lease_ms == RLOCK_WATCHDOG : renewed, rl_now_us());
    rl_op_let_go(&ns->op);
    return s;
}

static rlock_status red_extend(rlock *lk, int64_t lease_ms)
{
    rl_nodes ns;
    rl_nodes_enter(&ns, lk);
    rlock_status s = ns.home != RLOCK_OK      ? rl_red_fail_closed(lk, &ns)
                     : rl_nodes_pick(&ns, lk) ? extend(lk, &ns, lease_ms)
                                              : not_held(lk);
    rl_nodes_leave(&ns);
    return s;
}

/* --- unlock --------------------------------------------------------------- */

/*
 * A hold that this node does not have, or not yet, or not any more: what may
 * have come of it, or may yet, is undone.
 */
static void give_up_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    h->unknown = h->unknown || h->state == RL_DRAFT || h->in_flight;
    bool undo = h->unknown || rl_hold_lingers(h, now_us);
    rl_hold_end_locked(t, h, now_us);
    rl_hold_drop_locked(t, h, undo, now_us);
}

/* True: it is to be released there. */
static bool count_down_locked(rl_holds *t, rl_hold *h, int level,
                              int64_t now_us) RL_REQUIRES(&t->mutex)
{
    if (h->state == RL_OVER || h->state == RL_UNDOING)
        return false; /* refused meanwhile, or being undone */
    bool held = rl_hold_is_valid_locked(t, h, now_us);
    h->count = level;
    if (level > 0)
        return held;
    if (held)
        rl_hold_end_locked(t, h, now_us);
    else
        give_up_locked(t, h, now_us);
    return held;
}

static bool count_down(rl_nodes *ns, size_t i, int level, int64_t now_us)
{
    rl_holds *t = &ns->core[i]->holds;
    rl_mutex_lock(&t->mutex);
    bool held = count_down_locked(t, ns->hold[i], level, now_us);
    rl_mutex_unlock(&t->mutex);
    return held;
}

/* It needs no memory: the part that asked for the hold is still there. */
static rl_part *release_part(rl_nodes *ns, size_t i)
{
    rl_part *x = ns->op.part[i] = rl_hold_take_spare(ns->hold[i]);
    if (!x)
        return rl_op_new_part(&ns->op, i);
    x->op = &ns->op;
    return x;
}

static void release(rl_nodes *ns, int level, int64_t now_us)
{
    rl_nodes_begin(ns, true);
    ns->op.insist = false;
    for (size_t i = 0; i < ns->n; i++) {
        if (!ns->hold[i] || !count_down(ns, i, level, now_us))
            continue;
        rl_part *x =
            level > 0 ? rl_op_new_part(&ns->op, i) : release_part(ns, i);
        if (x) {
            rl_part_release(x, ns->core[i], ns->hold[i], level, now_us);
            rl_part_limit(x, RLOCK_WATCHDOG);
        } else if (level == 0) {
            rl_mutex_lock(&ns->core[i]->holds.mutex);
            rl_hold_undo_locked(&ns->core[i]->holds, ns->hold[i], now_us);
            rl_mutex_unlock(&ns->core[i]->holds.mutex);
        }
    }
    rl_drive(&ns->op);
}

static rlock_status unlock(rlock *lk, rl_nodes *ns, int64_t now_us)
{
    int level = rl_group_count(ns->group) - 1;
    rl_group_set_count(ns->group, level);
    if (level == 0)
        rl_owner_self()->holds--;
    release(ns, level, now_us);
    rlock_status s = RLOCK_OK;
    if (level == 0 && !rl_group_move(ns->group, RL_GROUP_OWNED, RL_GROUP_OVER))
        s = lost(lk);
    else if (level > 0)
        s = confirmed(lk, ns);
    else if (rl_rule_ok(&ns->op) < ns->quorum)
        s = rl_red_fail(lk, RLOCK_EQUORUM, &ns->op);
    rl_op_let_go(&ns->op);
    return s;
}

/* The home's events and statistics, as long as it is open. */
static void note_release(rlock *lk, const rl_nodes *ns, int64_t began_us,
                         int64_t now_us)
{
    if (!ns->core[0])
        return;
    rl_add(&ns->core[0]->stats.releases, 1);
    rl_lock_emit(lk, RLOCK_EVENT_RELEASED, ns->group->token,
                 rl_group_count(ns->group), now_us - began_us);
}

static int64_t first_grant_us(const rl_nodes *ns, int64_t now_us)
{
    int64_t us = now_us;
    for (size_t i = 0; i < ns->n; i++) {
        const rl_hold *h = ns->hold[i];
        if (!h)
            continue;
        rl_mutex_lock(&ns->core[i]->holds.mutex);
        if (h->began_us > 0)
            us = rl_min(us, h->began_us);
        rl_mutex_unlock(&ns->core[i]->holds.mutex);
    }
    return us;
}

/* Also of a lock that is closed: the nodes that are left are told. */
static rlock_status red_unlock(rlock *lk)
{
    rl_nodes ns;
    rlock_status s;
    rl_nodes_enter(&ns, lk);
    if (rl_nodes_pick(&ns, lk)) {
        int64_t now_us = rl_now_us(), began_us = first_grant_us(&ns, now_us);
        s = unlock(lk, &ns, now_us);
        if (s == RLOCK_OK)
            note_release(lk, &ns, began_us, rl_now_us());
    } else {
        s = not_held(lk);
    }
    if (ns.home != RLOCK_OK)
        s = rl_red_fail_closed(lk, &ns);
    rl_nodes_leave(&ns);
    return s;
}

/* --- what needs no hold --------------------------------------------------- */

static rlock_status red_force_unlock(rlock *lk)
{
    rl_nodes ns;
    bool freed = false;
    rlock_status s = RLOCK_OK;
    rl_nodes_enter(&ns, lk);
    rl_nodes_begin(&ns, false);
    for (size_t i = 0; i < ns.n; i++) {
        rl_part *x = ns.core[i] ? rl_op_new_part(&ns.op, i) : NULL;
        if (!x)
            continue;
        rl_part_force(x, ns.core[i], &lk->target, rl_now_us());
        rl_part_limit(x, RLOCK_WATCHDOG);
    }
    rl_drive(&ns.op);
    for (size_t i = 0; i < ns.n; i++)
        freed = freed || (ns.op.part[i] && ns.op.part[i]->ok &&
                          ns.op.part[i]->code == 1);
    if (ns.home != RLOCK_OK)
        s = rl_red_fail_closed(lk, &ns);
    else if (rl_rule_ok(&ns.op) < ns.quorum)
        s = rl_red_fail(lk, RLOCK_EQUORUM, &ns.op);
    else if (!freed)
        s = rl_red_error(lk, RLOCK_NOT_HELD, "nobody holds it");
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

static rl_view red_view(rlock *lk)
{
    rl_nodes ns;
    int64_t end_us[RLOCK_RED_MAX], now_us = rl_now_us();
    size_t n = 0;
    rl_view v = {0};
    rl_nodes_enter(&ns, lk);
    if (rl_nodes_pick(&ns, lk) && rl_group_is_owned(ns.group)) {
        for (size_t i = 0; i < ns.n; i++)
            if ((end_us[n] = rl_nodes_deadline(&ns, i, now_us)) > 0)
                n++;
        v.count = rl_group_count(ns.group);
        v.token = ns.group->token;
    }
    rl_nodes_leave(&ns);
    if (n < ns.quorum)
        return (rl_view){0};
    /* By the clock of now: a renewal may have come meanwhile. */
    int64_t left_us = rl_red_quorum_end(end_us, n, ns.quorum) - rl_now_us();
    v.valid_ms = rl_max(0, left_us / 1000);
    return v;
}

const rl_lock_kind rl_red_kind = {
    .several = true,
    .acquire = red_acquire,
    .unlock = red_unlock,
    .extend = red_extend,
    .force_unlock = red_force_unlock,
    .cancel = red_cancel,
    .view = red_view,
    .inspect = rl_red_inspect,
    .copy = rl_red_copy,
    .free = rl_red_free,
};
