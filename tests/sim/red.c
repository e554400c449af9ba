/*
 * The verbs of a lock on several servers, as lock/red.c and lock/red_nodes.c
 * have them. A node is the process' client of that server; none is ever closed,
 * so what these do for nodes that are is left out.
 */
#include "core/rule.h"
#include "core/vote.h"
#include "judge.h"
#include "owner.h"

static rl_core *node(owner *o, size_t i)
{
    return &o->p->client[i].e.core;
}

static owner *owner_of(runner *r)
{
    return RL_CONTAINER(r, owner, runner);
}

static const rl_target *target(const owner *o)
{
    return &o->p->w->lock[o->name].red;
}

static int64_t local_now(const owner *o)
{
    return process_now(o->p);
}

/* --- the nodes, during a verb --------------------------------------------- */

static void pick(owner *o)
{
    bool valid;
    o->group = NULL;
    for (size_t i = 0; i < o->nodes; i++) {
        o->node[i] = rl_holds_pick(&node(o, i)->holds, target(o),
                                   o->self.serial, local_now(o), &valid, NULL);
        if (o->node[i] && !o->group) {
            o->group = o->node[i]->group;
            rl_group_ref(o->group);
        }
    }
}

static void leave(owner *o)
{
    for (size_t i = 0; i < o->nodes; i++) {
        rl_holds_put(&node(o, i)->holds, o->node[i]);
        o->node[i] = NULL;
    }
    rl_group_unref(o->group);
    o->group = NULL;
}

static void tell(owner *o, rlock_status s)
{
    leave(o);
    owner_is_told(o, s);
}

static bool is_held_at(owner *o, size_t i, int64_t now_us)
{
    return o->node[i] &&
           rl_hold_is_valid_locked(&node(o, i)->holds, o->node[i], now_us);
}

static void begin(owner *o, verb what, size_t name)
{
    o->verb = what;
    o->name = name;
    o->names = 1u << name;
    o->began_us = local_now(o);
    o->nodes = o->p->w->set.servers;
    pick(o);
}

static void begin_op(owner *o)
{
    rl_op_init(&o->op);
    o->op.n = o->nodes;
    o->op.quorum = o->nodes / 2 + 1;
    o->op.several = o->op.insist = o->op.early = true;
    for (size_t i = 0; i < o->nodes; i++)
        o->op.part[i] = NULL;
}

static rlock_status confirmed(const owner *o, const rl_op *op)
{
    if (!rl_group_is_owned(o->group))
        return RLOCK_LOST;
    return rl_rule_ok(op) >= op->quorum ? RLOCK_OK : RLOCK_EQUORUM;
}

static void set_policy(owner *o, bool renewed)
{
    rl_group_set_renewed(o->group, renewed);
    for (size_t i = 0; i < o->nodes; i++) {
        rl_hold *h = o->node[i];
        rl_holds *t = &node(o, i)->holds;
        if (!h)
            continue;
        if (h->state == RL_VACANT && renewed && !h->in_flight)
            rl_hold_schedule_locked(t, h, local_now(o));
        if (h->state == RL_HELD && renewed && (!h->renewed || h->paused))
            rl_hold_start_renewal_locked(t, h, 0, local_now(o));
        else if (h->state == RL_HELD && !renewed && h->renewed)
            rl_hold_stop_renewal_locked(t, h);
    }
}

/* --- acquire -------------------------------------------------------------- */

/* The group, and the first of its holds, for the judges. */
static void keep(owner *o, holding *have)
{
    for (have->at = 0; have->at < o->nodes && !o->node[have->at];)
        have->at++;
    if (have->at == o->nodes)
        return;
    have->hold = o->node[have->at];
    have->hold->refs++;
    have->group = o->group;
    rl_group_ref(have->group);
}

static void acquired(runner *r)
{
    owner *o = owner_of(r);
    holding *have = &o->holding[o->name];
    leave(o);
    if (o->acquire.status == RLOCK_OK) {
        pick(o);
        keep(o, have);
        have->count = 1;
        judge_grant(o, o->name);
        leave(o);
    }
    owner_is_told(o, o->acquire.status);
}

static void listen_to(rl_core *core)
{
    doorbell_start(client_of(core));
}

static void fill_ballot(owner *o)
{
    o->ballot = (rl_ballot){.n = o->nodes,
                            .quorum = o->nodes / 2 + 1,
                            .home = &o->p->client[0].handle.home,
                            .longest_lease_ms = o->p->w->set.watchdog_ms * 5,
                            .check_uptime = true,
                            .ahead_us = &o->ahead_us};
    for (size_t i = 0; i < o->nodes; i++)
        o->ballot.node[i] = node(o, i);
}

static void acquire_first(owner *o)
{
    rl_acquire *a = &o->acquire;
    fill_ballot(o);
    *a = (rl_acquire){
        .contest = &rl_contest_vote,
        .home = node(o, 0),
        .what = target(o),
        .handle = &o->handle[o->name],
        .owner = &o->self,
        .cancel = {&o->cancels[o->name], atomic_load(&o->cancels[o->name])},
        .wait_ms = o->wait_ms,
        .lease_ms = o->lease_ms,
        .listen = listen_to,
        .ballot = &o->ballot};
    rl_op_init(&a->op);
    a->op.several = true;
    rl_acquire_init(a, o->began_us);
    runner_start(&o->runner, &a->op, acquired);
}

static void reentered(runner *r)
{
    owner *o = owner_of(r);
    rlock_status s = confirmed(o, &o->op);
    rl_op_let_go(&o->op);
    if (s == RLOCK_OK) {
        rl_group_set_count(o->group, ++o->holding[o->name].count);
        if (o->lease_ms == RLOCK_WATCHDOG)
            set_policy(o, true);
    }
    tell(o, s);
}

static void reenter(owner *o)
{
    rl_vote_note_lease(o->ballot.node, o->ballot.n, target(o), o->lease_ms,
                       local_now(o));
    begin_op(o);
    for (size_t i = 0; i < o->nodes; i++) {
        if (!is_held_at(o, i, o->began_us))
            continue;
        rl_part *x = rl_op_new_part(&o->op, i);
        rl_part_reenter(x, node(o, i), o->node[i], o->lease_ms, o->began_us);
        x->request.level = rl_group_count(o->group) + 1;
        rl_part_limit(x, o->lease_ms);
    }
    runner_start(&o->runner, &o->op, reentered);
}

void red_acquire(owner *o, size_t name, int64_t wait_ms, int64_t lease_ms)
{
    begin(o, o->holding[name].hold ? REENTER : ACQUIRE, name);
    o->wait_ms = wait_ms;
    o->lease_ms = lease_ms;
    if (!o->group)
        acquire_first(o);
    else if (rl_group_is_owned(o->group))
        reenter(o);
    else
        tell(o, RLOCK_LOST);
}

/* --- extend --------------------------------------------------------------- */

static void extended(runner *r)
{
    owner *o = owner_of(r);
    rl_op *op = &o->extend.op;
    rlock_status s = confirmed(o, op);
    set_policy(o,
               s == RLOCK_OK ? o->lease_ms == RLOCK_WATCHDOG : o->was_renewed);
    rl_op_let_go(op);
    tell(o, s);
}

void red_extend(owner *o, size_t name, int64_t lease_ms)
{
    rl_extend *e = &o->extend;
    begin(o, EXTEND, name);
    o->lease_ms = lease_ms;
    if (!o->group || !rl_group_is_owned(o->group)) {
        tell(o, o->group ? RLOCK_LOST : RLOCK_NOT_HELD);
        return;
    }
    o->was_renewed = rl_group_is_renewed(o->group);
    rl_vote_note_lease(o->ballot.node, o->ballot.n, target(o), lease_ms,
                       local_now(o));
    begin_op(o);
    e->op = o->op;
    for (size_t i = 0; i < o->nodes; i++) {
        if (!is_held_at(o, i, o->began_us))
            continue;
        rl_part *x = rl_op_new_part(&e->op, i);
        x->core = node(o, i);
        x->hold = o->node[i];
    }
    rl_extend_init(e, lease_ms, rl_command_end(node(o, 0), o->began_us));
    runner_start(&o->runner, &e->op, extended);
}

/* --- unlock --------------------------------------------------------------- */

static void give_up(rl_holds *t, rl_hold *h, int64_t now_us)
{
    h->unknown = h->unknown || h->state == RL_DRAFT || h->in_flight;
    bool undo = h->unknown || rl_hold_lingers(h, now_us);
    rl_hold_end_locked(t, h, now_us);
    rl_hold_drop_locked(t, h, undo, now_us);
}

/* True: it is to be released there. */
static bool count_down(owner *o, size_t i, int level)
{
    rl_holds *t = &node(o, i)->holds;
    rl_hold *h = o->node[i];
    if (h->state == RL_OVER || h->state == RL_UNDOING)
        return false;
    bool held = rl_hold_is_valid_locked(t, h, o->began_us);
    h->count = level;
    if (level > 0)
        return held;
    if (held)
        rl_hold_end_locked(t, h, o->began_us);
    else
        give_up(t, h, o->began_us);
    return held;
}

static rl_part *release_part(owner *o, size_t i, int level)
{
    rl_part *x = level > 0 ? NULL : o->node[i]->spare;
    if (!x)
        return rl_op_new_part(&o->op, i);
    o->node[i]->spare = NULL;
    o->op.part[i] = x;
    x->op = &o->op;
    return x;
}

static void let_go(owner *o)
{
    holding *have = &o->holding[o->name];
    judge_end_of_hold(o, o->name);
    rl_holds_put(&node(o, have->at)->holds, have->hold);
    rl_group_unref(have->group);
    *have = (holding){0};
}

static void unlocked(runner *r)
{
    owner *o = owner_of(r);
    int level = rl_group_count(o->group);
    rlock_status s = RLOCK_OK;
    if (level == 0 && !rl_group_move(o->group, RL_GROUP_OWNED, RL_GROUP_OVER))
        s = RLOCK_LOST;
    else if (level > 0)
        s = confirmed(o, &o->op);
    else if (rl_rule_ok(&o->op) < o->op.quorum)
        s = RLOCK_EQUORUM;
    rl_op_let_go(&o->op);
    if (level == 0)
        let_go(o);
    tell(o, s);
}

void red_unlock(owner *o, size_t name)
{
    begin(o, UNLOCK, name);
    if (!o->group) {
        tell(o, RLOCK_NOT_HELD);
        return;
    }
    int level = rl_group_count(o->group) - 1;
    rl_group_set_count(o->group, level);
    o->holding[name].count = level;
    o->holding[name].releasing = level == 0;
    if (level == 0)
        o->self.holds--;
    begin_op(o);
    o->op.insist = false;
    for (size_t i = 0; i < o->nodes; i++) {
        if (!o->node[i] || !count_down(o, i, level))
            continue;
        rl_part *x = release_part(o, i, level);
        rl_part_release(x, node(o, i), o->node[i], level, o->began_us);
        rl_part_limit(x, RLOCK_WATCHDOG);
    }
    runner_start(&o->runner, &o->op, unlocked);
}

/* --- what is believed ----------------------------------------------------- */

bool red_believes(owner *o, size_t name)
{
    world *w = o->p->w;
    const holding *have = &o->holding[name];
    int64_t now_us = process_now(o->p);
    size_t n = 0;
    if (!have->group || have->releasing || !rl_group_is_owned(have->group))
        return false;
    for (size_t i = 0; i < w->set.servers; i++) {
        const rl_hold *h = rl_holds_find_locked(
            &node(o, i)->holds, &w->lock[name].red, o->self.serial);
        n += h && h->group == have->group && h->state == RL_HELD &&
             now_us < h->deadline_us;
    }
    if (o->verb == EXTEND && owner_is_about(o, name) &&
        now_us >= rl_lease_deadline(o->began_us,
                                    rl_lease_of(node(o, 0), o->lease_ms)))
        return false;
    return n >= w->set.servers / 2 + 1;
}
