/*
 * A round of a Multi lock: one verb for those of its members that are wanted,
 * asked at once. The owning thread enters their clients, each member's part
 * begins, one operation asks them all, each part ends, and the thread leaves
 * the clients again before it calls back into the program.
 */
#include <stdio.h>
#include <stdlib.h>

#include "lock/multi.h"
#include "run/caller.h"
#include "run/owner.h"

bool rl_multi_begin(rl_multi_call *p, rlock *lk)
{
    p->m = (rl_multi *)lk;
    p->worst.status = RLOCK_OK;
    p->group = NULL;
    p->until_us = RL_NEVER;
    p->n = p->m->n;
    p->part = calloc(p->n, sizeof *p->part);
    for (size_t i = 0; p->part && i < p->n; i++) {
        p->part[i].lk = p->m->member[i].lk;
        p->part[i].position = p->m->member[i].position;
    }
    if (!p->part)
        rl_lock_error(lk, RLOCK_ENOMEM, "out of memory");
    return p->part != NULL;
}

void rl_multi_end(rl_multi_call *p)
{
    rl_group_unref(p->group);
    free(p->part);
}

rl_op *rl_multi_over(rl_multi_call *p, rlock_status s)
{
    rl_multi_end(p);
    return rl_job_over(&p->job, s);
}

static int badness(rlock_status s)
{
    switch (s) {
    case RLOCK_OK:
        return 0;
    case RLOCK_NOT_HELD:
        return 1;
    case RLOCK_LOST:
        return 2;
    default:
        return 3;
    }
}

void rl_multi_note(rlock_error *worst, size_t position, rlock_status s)
{
    const rlock_error *e = rlock_last_error();
    if (badness(s) <= badness(worst->status))
        return;
    worst->status = s;
    worst->sys_errno = e->sys_errno;
    snprintf(worst->message, sizeof worst->message, "member %zu: %.*s",
             position, (int)sizeof e->message - 24, e->message);
}

rlock_status rl_multi_report(const rlock_error *worst)
{
    return worst->status == RLOCK_OK
               ? RLOCK_OK
               : rl_error_set(worst->status, worst->sys_errno, "%s",
                              worst->message);
}

/* --- rounds --------------------------------------------------------------- */

static void note_failure(rl_multi_call *p, const rl_multi_part *x,
                         const rl_multi_verb *v, rlock_status s)
{
    if (v->failed)
        v->failed(p, x, s);
    else
        rl_multi_note(&p->worst, x->position, s);
}

/* Into the client, with the thread's hold. */
static void come_in(rl_multi_call *p, rl_multi_part *x, const rl_multi_verb *v,
                    int64_t now_us)
{
    bool valid;
    x->wanted = false;
    x->left = false; /* what cannot even begin is not left for another round */
    rlock_status s = rl_member_enter(x->lk, &x->cancel);
    if (s != RLOCK_OK) {
        note_failure(p, x, v, s);
        return;
    }
    rl_core *c = rl_lock_core(x->lk);
    x->hold = rl_holds_pick(&c->holds, &x->lk->target, rl_owner_self(), now_us,
                            &valid, NULL);
    s = v->begin(p, x, valid, now_us);
    x->inside = s == RLOCK_OK;
    if (x->inside)
        return;
    note_failure(p, x, v, s);
    rl_holds_put(&c->holds, x->hold);
    rl_member_leave(x->lk, x->cancel);
}

static void go_out(rl_multi_part *x, const rl_multi_verb *v)
{
    const rl_hold *h = x->hold;
    if (x->it.ok && v->event == RLOCK_EVENT_RELEASED)
        rl_lock_emit(x->lk, v->event, h->token, x->it.level, h->began_us);
    else if (x->it.ok && v->event)
        rl_lock_emit(x->lk, v->event, h->token, x->it.request.level,
                     x->it.began_us);
    rl_holds_put(&rl_lock_core(x->lk)->holds, x->hold);
    rl_member_leave(x->lk, x->cancel);
    x->inside = false;
}

/* In one call with others of its server, if there are any that it may join. */
static void add_part(rl_multi_call *p, rl_part *x, bool alone)
{
    rl_op *op = &p->op.op;
    x->op = op;
    x->until_us = rl_min(x->until_us, p->until_us);
    for (size_t i = 0; !alone && i < op->n; i++)
        if (rl_bundle_join(op->part[i], x))
            return;
    op->part[op->n++] = x;
}

/* NULL: nothing is to be asked. */
static rl_op *make_op(rl_multi_call *p, const rl_multi_verb *v,
                      int64_t until_us)
{
    rl_op *op = &p->op.op;
    bool alone = v->extends || atomic_load(&p->m->one_by_one);
    for (size_t i = 0; i < p->n; i++)
        if (p->part[i].inside)
            add_part(p, &p->part[i].it, alone);
    if (op->n == 0)
        return NULL;
    op->quorum = op->n;
    if (v->extends)
        rl_extend_init(&p->op, p->fresh_ms, rl_min(until_us, p->until_us));
    return op;
}

/*
 * More than one server? In a cluster even keys of one slot may lie on two,
 * while it moves.
 */
static bool are_several(const rl_multi_call *p)
{
    const rlock *first = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const rl_multi_part *x = &p->part[i];
        if (!x->inside)
            continue;
        if (first && (x->lk->client != first->client || x->lk->target.sharded))
            return true;
        first = x->lk;
    }
    return false;
}

static int64_t call_end(const rlock *lk, int64_t now_us)
{
    const rl_core *c = rl_lock_core(lk);
    return rl_confirmed_end(c, rl_replicas_of(c, lk->target.min_replicas),
                            now_us);
}

static rl_op *begin_round(rl_multi_call *p, const rl_multi_verb *v)
{
    int64_t now_us = rl_now_us(), until_us = 0;
    rl_op_init(&p->op.op, p->asked);
    for (size_t i = 0; i < p->n; i++) {
        rl_multi_part *x = &p->part[i];
        if (x->wanted)
            come_in(p, x, v, now_us);
        if (x->inside)
            until_us = rl_max(until_us, call_end(x->lk, now_us));
    }
    p->op.op.several = are_several(p);
    return make_op(p, v, until_us);
}

static void end_round(rl_multi_call *p, const rl_multi_verb *v)
{
    int64_t now_us = rl_now_us();
    for (size_t i = 0; i < p->n; i++) {
        rl_multi_part *x = &p->part[i];
        if (!x->inside)
            continue;
        if (v->end)
            v->end(p, x, now_us);
        if (x->it.refused)
            atomic_store(&p->m->one_by_one, true);
        if (!x->it.ok && !x->left)
            note_failure(p, x, v, rl_lock_fail(x->lk, &x->it.fault));
    }
    for (size_t i = 0; i < p->n; i++)
        if (p->part[i].inside)
            go_out(&p->part[i], v);
}

void rl_multi_round(rl_multi_call *p, const rl_multi_verb *v)
{
    rl_op *op = begin_round(p, v);
    if (op)
        rl_drive(op);
    end_round(p, v);
}

static rl_multi_call *of(rl_job *j)
{
    return RL_CONTAINER(j, rl_multi_call, job);
}

static rl_op *round_asked(rl_job *j)
{
    rl_multi_call *p = of(j);
    end_round(p, p->verb);
    return p->then(p);
}

rl_op *rl_multi_ask(rl_multi_call *p, const rl_multi_verb *v,
                    rl_multi_step *then)
{
    rl_op *op = begin_round(p, v);
    p->verb = v;
    p->then = then;
    return op ? rl_job_ask(&p->job, op, round_asked) : round_asked(&p->job);
}

/* --- one by itself -------------------------------------------------------- */

static rl_op *member_asked(rl_job *j)
{
    rl_multi_call *p = of(j);
    rl_job *member = &p->member.job;
    member->lent = j->lent;
    rl_op *op = member->next(member);
    if (op) {
        j->next = member_asked;
        return op;
    }
    p->alone = member->status;
    return p->then(p);
}

rl_op *rl_multi_ask_alone(rl_multi_call *p, rlock *lk, const rl_job_args *w,
                          rl_multi_step *then)
{
    rl_lock_begin(&p->member, lk, w, p->room);
    p->member.args.until_us = p->until_us;
    p->then = then;
    return member_asked(&p->job);
}
