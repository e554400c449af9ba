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

#include "lock/multi.h"

/* --- release -------------------------------------------------------------- */

static rlock_status begin_release(rl_multi_call *p, rl_multi_part *x,
                                  bool valid, int64_t now_us)
{
    rl_core *c = rl_lock_core(x->lk);
    rl_fault f;
    (void)p;
    if (!x->hold)
        return rl_lock_not_held(x->lk);
    int level = x->hold->count - 1;
    valid = rl_count_down(c, x->hold, level, now_us);
    if (level == 0)
        rl_owner_self()->holds--;
    if (!valid) {
        rl_release_lost(c, x->hold, level, &f, now_us);
        return rl_lock_fail(x->lk, &f);
    }
    rl_part_release(&x->it, c, x->hold, level, now_us);
    return RLOCK_OK;
}

static void end_release(rl_multi_call *p, rl_multi_part *x, int64_t now_us)
{
    (void)p;
    (void)now_us;
    if (x->it.ok)
        rl_add(&rl_lock_core(x->lk)->stats.releases, 1);
}

static const rl_multi_verb release_verb = {
    .begin = begin_release, .end = end_release, .event = RLOCK_EVENT_RELEASED};

void rl_multi_let_go(rl_multi_call *p, size_t from)
{
    for (size_t i = from; i < p->n; i++) {
        rl_multi_part *x = &p->part[i];
        x->wanted = x->held && rl_multi_is_single(x->lk);
        if (x->held && !x->wanted)
            rl_multi_note(&p->worst, x->position, rlock_unlock(x->lk));
        x->held = false;
    }
    rl_multi_round(p, &release_verb);
}

/* Without memory for a round, one after the other. *ok: how many are. */
static rlock_status for_each(const rlock *lk, rlock_status (*fn)(rlock *lk),
                             size_t *ok)
{
    const rl_multi *m = (const rl_multi *)lk;
    rlock_error worst = {.status = RLOCK_OK};
    *ok = 0;
    for (size_t i = 0; i < m->n; i++) {
        rlock_status s = fn(m->member[i].lk);
        *ok += s == RLOCK_OK;
        rl_multi_note(&worst, m->member[i].position, s);
    }
    return rl_multi_report(&worst);
}

static rlock_status multi_unlock(rlock *lk)
{
    rl_multi_call p;
    size_t ok;
    if (!rl_multi_begin(&p, lk))
        return for_each(lk, rlock_unlock, &ok);
    for (size_t i = 0; i < p.n; i++)
        p.part[i].held = true;
    rl_multi_let_go(&p, 0);
    rl_multi_end(&p);
    return rl_multi_report(&p.worst);
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

void rl_multi_extend_wanted(rl_multi_call *p)
{
    for (size_t i = 0; i < p->n; i++) {
        rl_multi_part *x = &p->part[i];
        if (x->wanted && !rl_multi_is_single(x->lk)) {
            x->wanted = false;
            rl_multi_note(&p->worst, x->position,
                          rlock_extend(x->lk, p->fresh_ms));
        }
    }
    rl_multi_round(p, &extend_verb);
}

static rlock_status multi_extend(rlock *lk, int64_t lease_ms)
{
    rl_multi_call p;
    if (!rl_multi_begin(&p, lk))
        return RLOCK_ENOMEM;
    p.fresh_ms = lease_ms;
    for (size_t i = 0; i < p.n; i++)
        p.part[i].wanted = true;
    rl_multi_extend_wanted(&p);
    rl_multi_end(&p);
    return rl_multi_report(&p.worst);
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
    rl_part_force(&x->it, c, &x->lk->target, now_us);
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

static rlock_status multi_force_unlock(rlock *lk)
{
    rl_multi_call p;
    bool freed = false;
    if (!rl_multi_begin(&p, lk)) {
        size_t ok;
        rlock_status s = for_each(lk, rlock_force_unlock, &ok);
        return s == RLOCK_NOT_HELD && ok > 0 ? RLOCK_OK : s;
    }
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

static rlock_status multi_inspect(rlock *lk, rlock_holder *out)
{
    (void)out;
    return rl_lock_error(lk, RLOCK_ENOTSUP, "ask the members of a Multi lock");
}

const rl_lock_kind rl_multi_kind = {
    .several = true,
    .acquire = rl_multi_acquire,
    .unlock = multi_unlock,
    .extend = multi_extend,
    .force_unlock = multi_force_unlock,
    .cancel = multi_cancel,
    .view = multi_view,
    .inspect = multi_inspect,
    .free = rl_multi_free,
};
