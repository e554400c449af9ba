/*
 * Multi: several locks, all or nothing.
 *
 * The members are held as by themselves. What makes them one is a group, in
 * which those are that the acquire took anew: its first loss is the loss of the
 * whole, and is reported once. A member that is a Red lock is no single hold,
 * and goes by its own verbs.
 *
 * Called by the owning thread. A verb does what it can with all members, and
 * reports the worst that came of it.
 */
#include <pthread.h>

#include "hold/level.h"
#include "hold/step.h"
#include "lock/multi.h"
#include "run/owner.h"

/* --- release -------------------------------------------------------------- */

static rlock_status begin_release(rl_multi_call *p, rl_multi_part *x,
                                  bool valid, int64_t now_us)
{
    rl_core *c = rl_lock_core(x->lk);
    rl_fault f;
    (void)p;
    (void)valid;
    if (!x->hold)
        return rl_lock_not_held(x->lk);
    int level = x->hold->count - 1;
    rl_counted found = rl_hold_count_down(&c->holds, x->hold, level, now_us);
    if (level == 0)
        rl_owner_self()->holds--;
    if (found == RL_COUNTED_OVER)
        return rl_lock_not_held(x->lk);
    if (found == RL_COUNTED_LOST) {
        rl_release_lost(c, x->hold, level, &f, now_us);
        return rl_lock_fail(x->lk, &f);
    }
    if (x->lapses) /* the call has failed: what it has turned on is off again */
        rl_hold_lapse(&c->holds, x->hold);
    rl_part_release(&x->it, c, x->hold, level, now_us);
    return RLOCK_OK;
}

static void end_release(rl_multi_call *p, rl_multi_part *x, int64_t now_us)
{
    (void)p;
    (void)now_us;
    if (x->it.ok)
        rl_lock_count_release(x->lk);
}

static const rl_multi_verb release_verb = {
    .begin = begin_release, .end = end_release, .event = RLOCK_EVENT_RELEASED};

/* A member's, that is a Red lock. */
static rl_op *let_go_next(rl_multi_call *p);

static rl_op *one_let_go(rl_multi_call *p)
{
    rl_multi_note(&p->worst, p->part[p->at - 1].position, p->alone);
    return let_go_next(p);
}

static rl_op *let_go_next(rl_multi_call *p)
{
    while (p->at < p->n) {
        rl_multi_part *x = &p->part[p->at++];
        rl_job_args unlock = {.verb = RL_JOB_UNLOCK, .lapses = x->lapses};
        bool held = x->held;
        x->held = false;
        x->wanted = held && rl_multi_is_single(x->lk);
        if (held && !x->wanted)
            return rl_multi_ask_alone(p, x->lk, &unlock, one_let_go);
    }
    return rl_multi_ask(p, &release_verb, p->back);
}

rl_op *rl_multi_let_go(rl_multi_call *p, size_t from, rl_multi_step *back)
{
    p->at = from;
    p->back = back;
    return let_go_next(p);
}

/* Without memory for a round, one after the other. */
static rl_op *unlock_next(rl_multi_call *p);

static rl_op *one_unlocked(rl_multi_call *p)
{
    rl_multi_note(&p->worst, p->m->member[p->at - 1].position, p->alone);
    return unlock_next(p);
}

static rl_op *unlock_next(rl_multi_call *p)
{
    static const rl_job_args unlock = {.verb = RL_JOB_UNLOCK};
    if (p->at == p->n)
        return rl_multi_over(p, rl_multi_report(&p->worst));
    rlock *lk = p->m->member[p->at++].lk;
    return rl_multi_ask_alone(p, lk, &unlock, one_unlocked);
}

static rl_op *reported(rl_multi_call *p)
{
    return rl_multi_over(p, rl_multi_report(&p->worst));
}

static rl_op *unlock(rl_job *j)
{
    rl_multi_call *p = RL_CONTAINER(j, rl_multi_call, job);
    p->at = 0;
    if (!p->part)
        return unlock_next(p);
    for (size_t i = 0; i < p->n; i++)
        p->part[i].held = true;
    return rl_multi_let_go(p, 0, reported);
}

/* --- extend --------------------------------------------------------------- */

static rlock_status begin_extend(rl_multi_call *p, rl_multi_part *x, bool valid,
                                 int64_t now_us)
{
    (void)p;
    (void)now_us;
    if (!x->hold)
        return rl_lock_not_held(x->lk);
    if (!valid)
        return rl_lock_lost(x->lk, x->hold);
    x->it.core = rl_lock_core(x->lk);
    x->it.hold = x->hold;
    x->it.heap = false;
    return RLOCK_OK;
}

static const rl_multi_verb extend_verb = {.begin = begin_extend,
                                          .extends = true};

static rl_op *extend_next(rl_multi_call *p);

static rl_op *one_extended(rl_multi_call *p)
{
    rl_multi_note(&p->worst, p->part[p->at - 1].position, p->alone);
    return extend_next(p);
}

static rl_op *extend_next(rl_multi_call *p)
{
    rl_job_args extend = {.verb = RL_JOB_EXTEND, .lease_ms = p->fresh_ms};
    while (p->at < p->n) {
        rl_multi_part *x = &p->part[p->at++];
        if (!x->wanted || rl_multi_is_single(x->lk))
            continue;
        x->wanted = false;
        return rl_multi_ask_alone(p, x->lk, &extend, one_extended);
    }
    return rl_multi_ask(p, &extend_verb, p->back);
}

rl_op *rl_multi_extend_wanted(rl_multi_call *p, rl_multi_step *back)
{
    p->at = 0;
    p->back = back;
    return extend_next(p);
}

static rl_op *extend(rl_job *j)
{
    rl_multi_call *p = RL_CONTAINER(j, rl_multi_call, job);
    if (!p->part)
        return rl_multi_over(p, RLOCK_ENOMEM);
    p->fresh_ms = p->args.lease_ms;
    for (size_t i = 0; i < p->n; i++)
        p->part[i].wanted = true;
    return rl_multi_extend_wanted(p, reported);
}

/* --- force ---------------------------------------------------------------- */

/* The thread's own hold is of no interest. */
static rlock_status begin_force(rl_multi_call *p, rl_multi_part *x, bool valid,
                                int64_t now_us)
{
    rl_core *c = rl_lock_core(x->lk);
    (void)p;
    (void)valid;
    rl_holds_put(&c->holds, x->hold);
    x->hold = NULL;
    if (!rl_lock_start(x->lk))
        return RLOCK_ENOMEM;
    rl_part_force(&x->it, c, &x->lk->target, NULL, now_us);
    return RLOCK_OK;
}

static void end_force(rl_multi_call *p, rl_multi_part *x, int64_t now_us)
{
    (void)p;
    (void)now_us;
    x->held = x->it.ok && x->it.code == 1;
    if (x->it.ok && !x->held) {
        x->it.ok = false;
        rl_fault_set(&x->it.fault, RLOCK_NOT_HELD, 0, "nobody holds it");
    }
}

static const rl_multi_verb force_verb = {.begin = begin_force,
                                         .end = end_force};

/* Without memory for a round, one after the other. */
static rlock_status force_each(const rlock *lk)
{
    const rl_multi *m = (const rl_multi *)lk;
    rlock_error worst = {.status = RLOCK_OK};
    bool freed = false;
    for (size_t i = 0; i < m->n; i++) {
        rlock_status s = rlock_force_unlock(m->member[i].lk);
        freed = freed || s == RLOCK_OK;
        rl_multi_note(&worst, m->member[i].position, s);
    }
    return freed && worst.status == RLOCK_NOT_HELD ? RLOCK_OK
                                                   : rl_multi_report(&worst);
}

static rlock_status ask_the_members(const rlock *lk)
{
    return rl_lock_error(lk, RLOCK_ENOTSUP, "ask the members of a Multi lock");
}

static rlock_status force_all(rlock *lk)
{
    rl_multi_call p;
    bool freed = false;
    if (!rl_multi_begin(&p, lk))
        return force_each(lk);
    for (size_t i = 0; i < p.n; i++) {
        rl_multi_part *x = &p.part[i];
        x->wanted = rl_multi_is_single(x->lk);
        if (x->wanted)
            continue;
        rlock_status s = rlock_force_unlock(x->lk);
        x->held = s == RLOCK_OK;
        rl_multi_note(&p.worst, x->position, s);
    }
    rl_multi_round(&p, &force_verb);
    for (size_t i = 0; i < p.n; i++)
        freed = freed || p.part[i].held;
    rl_multi_end(&p);
    return freed && p.worst.status == RLOCK_NOT_HELD
               ? RLOCK_OK
               : rl_multi_report(&p.worst);
}

/* A member that nobody held leaves its error behind. */
static rlock_status multi_force_unlock(rlock *lk, const char *holder_id)
{
    rlock_error before = *rlock_last_error();
    if (holder_id)
        return ask_the_members(lk);
    rlock_status s = force_all(lk);
    if (s == RLOCK_OK)
        rl_error_put(&before);
    return s;
}

/* --- the rest ------------------------------------------------------------- */

static void multi_cancel(rlock *lk)
{
    const rl_multi *m = (const rl_multi *)lk;
    for (size_t i = 0; i < m->n; i++)
        rlock_cancel(m->member[i].lk);
}

static rl_view multi_view(rlock *lk)
{
    const rl_multi *m = (const rl_multi *)lk;
    rl_view all = rl_lock_view(m->member[0].lk);
    for (size_t i = 1; i < m->n && all.count > 0; i++) {
        rl_view v = rl_lock_view(m->member[i].lk);
        all.count = v.count < all.count ? v.count : all.count;
        all.valid_ms = rl_min(all.valid_ms, v.valid_ms);
        all.token = v.token > all.token ? v.token : all.token;
    }
    return all.count > 0 ? all : (rl_view){0};
}

static rlock_status multi_visit_alarms(rlock *lk, rl_alarm_visit *v)
{
    const rl_multi *m = (const rl_multi *)lk;
    rlock_error worst = {.status = RLOCK_OK};
    for (size_t i = 0; i < m->n; i++)
        rl_multi_note(&worst, m->member[i].position,
                      rl_lock_visit_alarms(m->member[i].lk, v));
    return rl_multi_report(&worst);
}

static rlock_status multi_inspect(rlock *lk, rlock_holder *out)
{
    (void)out;
    return ask_the_members(lk);
}

_Static_assert(sizeof(rl_multi_call) <= RL_JOB_ROOM, "room for a job");

static rl_job *multi_begin(rlock *lk, const rl_job_args *w, void *room)
{
    static rl_op *(*const first[])(rl_job * j) = {[RL_JOB_ACQUIRE] =
                                                      rl_multi_acquire,
                                                  [RL_JOB_UNLOCK] = unlock,
                                                  [RL_JOB_EXTEND] = extend};
    rl_multi_call *p = room;
    rl_multi_begin(p, lk);
    p->job = (rl_job){.next = first[w->verb]};
    p->args = *w;
    return &p->job;
}

const rl_lock_kind rl_multi_kind = {
    .several = true,
    .job_size = sizeof(rl_multi_call),
    .begin = multi_begin,
    .force_unlock = multi_force_unlock,
    .cancel = multi_cancel,
    .view = multi_view,
    .inspect = multi_inspect,
    .visit_alarms = multi_visit_alarms,
    .free = rl_multi_free,
};
