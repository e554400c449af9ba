/*
 * Multi: several locks, all or nothing.
 *
 * A try asks all members at once, those on one client in one round trip. If
 * some are busy, only those before the first busy one, in the global order,
 * are kept while that one is waited for: whoever waits holds nothing that comes
 * later in the order, so nobody waits in a circle.
 *
 * The members are held as by themselves. What makes them one is a group, in
 * which those are that the acquire took anew: its first loss is the loss of the
 * whole, and is reported once. A member that is a Red lock is no single hold,
 * and goes by its own verbs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/lock.h"
#include "lock/step.h"

_Static_assert(RLOCK_MULTI_MAX <= RL_QUESTIONS_MAX, "one round trip is enough");

typedef struct member {
    rlock *lk;
    size_t position; /* in the caller's list, from 1 */
    bool ours;       /* a handle of our own, so that cancels are ours */
} member;

typedef struct multi {
    rlock base;
    size_t n;
    member member[RLOCK_MULTI_MAX]; /* in the global order */
} multi;

/* What a verb does with one member. */
typedef struct part {
    rlock *lk;
    size_t position;
    int cancel;    /* the thread's state, while inside of the client */
    bool due;      /* to be asked with the next round */
    bool held;     /* taken by this call, or to be released by it */
    bool fresh;    /* and not held before */
    rl_hold *hold; /* referenced, while inside */
    rl_step step;
} part;

typedef struct parts {
    const multi *m;
    rlock_error worst; /* what to report */
    size_t n;
    part part[RLOCK_MULTI_MAX];
} parts;

static bool is_single(const rlock *lk)
{
    return lk->kind == &rl_reentrant;
}

static void parts_init(parts *p, const rlock *lk)
{
    p->m = (const multi *)lk;
    p->worst.status = RLOCK_OK;
    p->n = p->m->n;
    for (size_t i = 0; i < p->n; i++)
        p->part[i] = (part){.lk = p->m->member[i].lk,
                            .position = p->m->member[i].position};
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

/* A member's status; the thread's error is about it. */
static void note(parts *p, const part *x, rlock_status s)
{
    const rlock_error *e = rlock_last_error();
    if (badness(s) <= badness(p->worst.status))
        return;
    p->worst.status = s;
    p->worst.sys_errno = e->sys_errno;
    snprintf(p->worst.message, sizeof p->worst.message, "member %zu: %.*s",
             x->position, (int)sizeof e->message - 24, e->message);
}

static rlock_status report(const parts *p)
{
    const rlock_error *e = &p->worst;
    return e->status == RLOCK_OK
               ? RLOCK_OK
               : rl_error_set(e->status, e->sys_errno, "%s", e->message);
}

/* --- rounds -------------------------------------------------------------- */

/* Into the member's client, with the thread's hold of it. */
static bool come_in(parts *p, part *x, bool *valid)
{
    rlock_status s = rl_client_begin(x->lk->client, &x->cancel);
    if (s != RLOCK_OK) {
        note(p, x, s);
        return false;
    }
    x->hold = rl_pick_up(rl_engine_of(x->lk), &x->lk->target, valid);
    return true;
}

static void go_out(part *x)
{
    rl_client_leave(x->lk->client, x->cancel);
}

/* Of those that are due, the ones of one client. */
typedef struct round {
    parts *p;
    void (*end)(parts *p, part *x, rl_answer *a);
    size_t n;
    part *part[RLOCK_MULTI_MAX];
} round;

static void call_of(void *arg, size_t i, rl_hold_call *c)
{
    const round *r = arg;
    rl_step_call(&r->part[i]->step, c);
}

static void answer_of(void *arg, size_t i, rl_answer *a)
{
    const round *r = arg;
    part *x = r->part[i];
    r->end(r->p, x, a);
    go_out(x);
}

/* Asks for all that are due, one client after the other, and ends them. */
static void ask_due(parts *p, void (*end)(parts *p, part *x, rl_answer *a))
{
    for (size_t i = 0; i < p->n; i++) {
        round r = {.p = p, .end = end};
        int64_t until_us = RL_NEVER;
        for (size_t k = i; k < p->n; k++) {
            part *x = &p->part[k];
            if (!x->due || x->lk->client != p->part[i].lk->client)
                continue;
            x->due = false;
            until_us = rl_min(until_us, x->step.until_us);
            r.part[r.n++] = x;
        }
        rl_questions q = {r.n, call_of, answer_of, &r};
        if (r.n > 0)
            rl_ask_all(r.part[0]->step.e, &q, until_us);
    }
}

/* --- release ------------------------------------------------------------- */

static void begin_release(parts *p, part *x, int64_t until_us)
{
    rl_fault f;
    bool valid;
    if (!come_in(p, x, &valid))
        return;
    rl_engine *e = rl_engine_of(x->lk);
    if (!x->hold) {
        note(p, x, rl_lock_not_held(x->lk));
        go_out(x);
        return;
    }
    int level = x->hold->count - 1;
    x->due = rl_count_down(e, x->hold, level);
    if (level == 0)
        rl_owner_count(-1);
    if (x->due) {
        rl_release_begin(&x->step, e, x->hold, level);
        x->step.until_us = rl_min(x->step.until_us, until_us);
        return;
    }
    rl_release_lost(e, x->hold, level, &f);
    note(p, x, rl_lock_fail(x->lk, &f));
    rl_put_back(e, x->hold);
    go_out(x);
}

static void end_release(parts *p, part *x, rl_answer *a)
{
    rl_engine *e = rl_engine_of(x->lk);
    rl_hold *h = x->hold;
    rl_fault f;
    bool rung;
    rlock_status s = rl_release_end(&x->step, a, &rung, &f);
    if (rung)
        rl_make_way(x->lk, a->sent_us);
    if (s == RLOCK_OK) {
        rl_lock_emit(x->lk, RLOCK_EVENT_RELEASED, h->token, x->step.level,
                     rl_now_us() - h->began_us);
        rl_add(&e->stats.releases, 1);
    } else {
        note(p, x, rl_lock_fail(x->lk, &f));
    }
    rl_put_back(e, h);
}

/* Releases the members from this one on that are marked as held. */
static void let_go(parts *p, size_t from, int64_t until_us)
{
    for (size_t i = from; i < p->n; i++) {
        part *x = &p->part[i];
        if (!x->held)
            continue;
        x->held = false;
        if (is_single(x->lk))
            begin_release(p, x, until_us);
        else
            note(p, x, rlock_unlock(x->lk));
    }
    ask_due(p, end_release);
}

static rlock_status multi_unlock(rlock *lk)
{
    parts p;
    parts_init(&p, lk);
    for (size_t i = 0; i < p.n; i++)
        p.part[i].held = true;
    let_go(&p, 0, RL_NEVER);
    return report(&p);
}

/* --- acquire ------------------------------------------------------------- */

static rlock_status begin_acquire_of(part *x, bool valid, int64_t lease_ms)
{
    rl_engine *e = rl_engine_of(x->lk);
    x->fresh = !x->hold;
    if (x->hold && !valid)
        return rl_lock_error(x->lk, RLOCK_LOST, rl_loss_text(x->hold->loss));
    if (x->hold)
        return rl_reenter_begin(&x->step, e, x->hold, lease_ms)
                   ? RLOCK_OK
                   : rl_lock_error(x->lk, RLOCK_EINVAL,
                                   "the hold count is at its end");
    if (!rl_engine_start(e))
        return rl_lock_error(x->lk, RLOCK_ENOMEM,
                             "the watchdog thread cannot be started");
    x->hold = rl_draft(e, &x->lk->target, NULL, lease_ms);
    if (!x->hold)
        return rl_lock_error(x->lk, RLOCK_ENOMEM,
                             "out of memory or randomness");
    rl_acquire_begin(&x->step, e, x->hold, lease_ms);
    return RLOCK_OK;
}

static void begin_acquire(parts *p, part *x, int64_t lease_ms, int64_t until_us)
{
    bool valid;
    if (!come_in(p, x, &valid))
        return;
    rlock_status s = begin_acquire_of(x, valid, lease_ms);
    x->due = s == RLOCK_OK;
    if (x->due) {
        x->step.until_us = rl_min(x->step.until_us, until_us);
        return;
    }
    note(p, x, s);
    rl_put_back(rl_engine_of(x->lk), x->hold);
    go_out(x);
}

static void taken(part *x)
{
    const rl_hold *h = x->hold;
    x->held = true;
    rl_add(&x->step.e->stats.acquires, 1);
    rl_lock_emit(x->lk, RLOCK_EVENT_ACQUIRED, h->token, h->count,
                 rl_now_us() - x->step.began_us);
}

static void end_fresh(parts *p, part *x, rl_answer *a)
{
    rl_grant g;
    rl_fault f;
    switch (rl_acquire_end(&x->step, a, &g, &f)) {
    case RL_ACQUIRED:
        rl_take_over(&x->step, &g, g.token);
        rl_owner_count(1);
        taken(x);
        return;
    case RL_BUSY:
    case RL_GONE:
        note(p, x, rl_lock_error(x->lk, RLOCK_BUSY, "another owner holds it"));
        break;
    case RL_FAILED:
        note(p, x, rl_lock_fail(x->lk, &f));
        break;
    }
    rl_give_up(x->step.e, x->hold);
}

static void end_acquire(parts *p, part *x, rl_answer *a)
{
    rl_fault f;
    if (x->fresh) {
        end_fresh(p, x, a);
        return;
    }
    if (rl_reenter_end(&x->step, a, &f) == RLOCK_OK)
        taken(x);
    else
        note(p, x, rl_lock_fail(x->lk, &f));
    rl_put_back(x->step.e, x->hold);
}

/*
 * One try of the members from this one on. Returns how many are held without a
 * gap; what was taken behind a gap is released again.
 */
static size_t try_from(parts *p, size_t from, int64_t lease_ms,
                       int64_t until_us)
{
    p->worst.status = RLOCK_OK;
    for (size_t i = from; i < p->n; i++) {
        part *x = &p->part[i];
        if (is_single(x->lk)) {
            begin_acquire(p, x, lease_ms, until_us);
            continue;
        }
        x->fresh = false;
        rlock_status s = rlock_acquire(x->lk, 0, lease_ms);
        x->held = s == RLOCK_OK;
        note(p, x, s);
    }
    ask_due(p, end_acquire);
    while (from < p->n && p->part[from].held)
        from++;
    rlock_error first = p->worst;
    let_go(p, from, until_us);
    p->worst = first;
    return from;
}

/* Waits for the first member that is missing. */
static rlock_status wait_for(parts *p, part *x, int64_t wait_us,
                             int64_t lease_ms, rl_cancel cancel)
{
    int64_t wait_ms = wait_us == RL_NEVER
                          ? RLOCK_FOREVER
                          : rl_max(1, (wait_us - rl_now_us() + 999) / 1000);
    p->worst.status = RLOCK_OK;
    rlock_status s = rl_lock_acquire(x->lk, wait_ms, lease_ms, cancel);
    x->held = s == RLOCK_OK;
    x->fresh = is_single(x->lk);
    note(p, x, s);
    return s;
}

static bool join(part *x, rl_group *g)
{
    int cancel;
    if (rl_client_enter(x->lk->client, &cancel) != RLOCK_OK)
        return false;
    rl_holds *t = &rl_engine_of(x->lk)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_mine_locked(t, &x->lk->target);
    bool held = h && h->state == RL_HELD;
    if (held) {
        h->group = g;
        rl_group_ref(g);
    }
    rl_mutex_unlock(&t->mutex);
    rl_client_leave(x->lk->client, cancel);
    return held;
}

/* All are held: from here on the loss of one is the loss of the whole. */
static rlock_status unite(parts *p)
{
    int fresh = 0;
    const part *missing = NULL;
    for (size_t i = 0; i < p->n; i++)
        fresh += p->part[i].fresh;
    if (fresh == 0)
        return RLOCK_OK;
    rl_group *g = rl_group_new(p->m->base.client, fresh, false);
    if (!g)
        return rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    atomic_store(&g->left, fresh);
    for (size_t i = 0; i < p->n; i++) {
        part *x = &p->part[i];
        if (x->fresh && !join(x, g))
            missing = x;
    }
    rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED);
    bool lost = (missing || atomic_load(&g->left) < fresh) &&
                rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_OVER);
    rl_group_unref(g);
    return lost ? rl_error_set(RLOCK_LOST, 0,
                               "a member was lost before all were held")
                : RLOCK_OK;
}

static int64_t longest_timeout_ms(const multi *m)
{
    int64_t ms = 0;
    for (size_t i = 0; i < m->n; i++)
        ms = rl_max(ms, m->member[i].lk->client->engine.set.command_timeout_ms);
    return ms;
}

static rlock_status multi_acquire(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                                  rl_cancel cancel)
{
    parts p;
    parts_init(&p, lk);
    int64_t wait_us = rl_after_ms(rl_now_us(), wait_ms);
    int64_t until_us = rl_after_ms(wait_us, longest_timeout_ms(p.m));
    size_t n = try_from(&p, 0, lease_ms, until_us);
    while (n < p.n && wait_ms != 0 &&
           wait_for(&p, &p.part[n], wait_us, lease_ms, cancel) == RLOCK_OK)
        n = try_from(&p, n + 1, lease_ms, until_us);
    rlock_status s = n == p.n ? unite(&p) : report(&p);
    if (s == RLOCK_OK)
        return RLOCK_OK;
    rlock_error why = *rlock_last_error();
    let_go(&p, 0, until_us);
    return rl_error_set(s, why.sys_errno, "%s", why.message);
}

/* --- the other verbs ----------------------------------------------------- */

static void end_extend(parts *p, part *x, rl_answer *a)
{
    rl_fault f;
    if (rl_extend_end(&x->step, a, &f) != RLOCK_OK)
        note(p, x, rl_lock_fail(x->lk, &f));
    rl_put_back(x->step.e, x->hold);
}

static void begin_extend(parts *p, part *x, int64_t lease_ms)
{
    bool valid;
    if (!come_in(p, x, &valid))
        return;
    rl_engine *e = rl_engine_of(x->lk);
    if (x->hold && valid) {
        x->due = rl_extend_begin(&x->step, e, x->hold, lease_ms,
                                 rl_command_deadline(e));
        if (x->due)
            return;
        rl_answer a = {.outcome = RL_NOT_EXECUTED};
        rl_fault_set(&a.fault, RLOCK_EIO, 0, "a renewal does not end");
        end_extend(p, x, &a);
    } else {
        note(p, x,
             x->hold
                 ? rl_lock_error(x->lk, RLOCK_LOST, rl_loss_text(x->hold->loss))
                 : rl_lock_not_held(x->lk));
        rl_put_back(e, x->hold);
    }
    go_out(x);
}

static rlock_status multi_extend(rlock *lk, int64_t lease_ms)
{
    parts p;
    parts_init(&p, lk);
    for (size_t i = 0; i < p.n; i++) {
        part *x = &p.part[i];
        if (is_single(x->lk))
            begin_extend(&p, x, lease_ms);
        else
            note(&p, x, rlock_extend(x->lk, lease_ms));
    }
    ask_due(&p, end_extend);
    return report(&p);
}

static rlock_status multi_force_unlock(rlock *lk)
{
    parts p;
    parts_init(&p, lk);
    bool freed = false;
    for (size_t i = 0; i < p.n; i++) {
        rlock_status s = rlock_force_unlock(p.part[i].lk);
        freed = freed || s == RLOCK_OK;
        note(&p, &p.part[i], s);
    }
    return freed && p.worst.status == RLOCK_NOT_HELD ? RLOCK_OK : report(&p);
}

static void multi_cancel(rlock *lk)
{
    const multi *m = (const multi *)lk;
    for (size_t i = 0; i < m->n; i++)
        rlock_cancel(m->member[i].lk);
}

static rl_view multi_view(rlock *lk)
{
    const multi *m = (const multi *)lk;
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

static void multi_free(rlock *lk)
{
    multi *m = (multi *)lk;
    for (size_t i = 0; i < m->n; i++) {
        if (m->member[i].ours)
            rlock_free(m->member[i].lk);
    }
}

static const rl_lock_kind rl_multi = {
    .several = true,
    .acquire = multi_acquire,
    .unlock = multi_unlock,
    .extend = multi_extend,
    .force_unlock = multi_force_unlock,
    .cancel = multi_cancel,
    .view = multi_view,
    .inspect = multi_inspect,
    .free = multi_free,
};

/* --- making one ---------------------------------------------------------- */

static int compare_names(const rl_target *a, const rl_target *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int c = memcmp(a->name, b->name, len);
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static int compare_servers(rlock_client *a, rlock_client *b)
{
    int c = strcmp(a->engine.source->server, b->engine.source->server);
    if (c || a == b)
        return c;
    rl_run x = rl_identity_run(&a->engine.identity);
    rl_run y = rl_identity_run(&b->engine.identity);
    return strcmp(x.id, y.id);
}

/* The global order. Every program has to come to the same one. */
static int compare(const void *left, const void *right)
{
    const rlock *a = ((const member *)left)->lk;
    const rlock *b = ((const member *)right)->lk;
    int c = compare_names(&a->target, &b->target);
    return c ? c : compare_servers(a->client, b->client);
}

static bool is_same(const rlock *a, const rlock *b)
{
    return a->client == b->client && compare_names(&a->target, &b->target) == 0;
}

static rlock_status refuse(size_t position, const char *why)
{
    return rl_error_set(RLOCK_EINVAL, 0, "member %zu %s", position, why);
}

static rlock_status add_member(multi *m, rlock *lk, size_t position)
{
    bool ours = is_single(lk);
    for (size_t i = 0; i < m->n; i++) {
        if (is_same(m->member[i].lk, lk))
            return refuse(position, "is the same lock as an earlier one");
    }
    if (m->n == RLOCK_MULTI_MAX)
        return refuse(position, "is one too many");
    if (ours)
        lk = rl_lock_new(sizeof *lk, &rl_reentrant, lk->client, lk->target.name,
                         lk->target.len, (rlock_layout)lk->target.scope);
    if (!lk)
        return RLOCK_ENOMEM;
    m->member[m->n++] = (member){lk, position, ours};
    return RLOCK_OK;
}

static rlock_status add(multi *m, rlock *lk, size_t position)
{
    int cancel;
    if (!lk)
        return refuse(position, "is NULL");
    if (lk->kind == &rl_multi) {
        const multi *inner = (const multi *)lk;
        rlock_status s = RLOCK_OK;
        for (size_t i = 0; i < inner->n && s == RLOCK_OK; i++)
            s = add(m, inner->member[i].lk, position);
        return s;
    }
    rlock_status s = rl_client_enter(lk->client, &cancel);
    if (s == RLOCK_ECLOSED)
        return refuse(position, "belongs to a closed client");
    if (s == RLOCK_EFORKED)
        return rl_error_set(s, 0, "member %zu was made before fork()",
                            position);
    s = add_member(m, lk, position);
    rl_client_leave(lk->client, cancel);
    return s;
}

rlock_status rlock_multi_new(rlock *const locks[], size_t n, rlock **out)
{
    static const char name[] = "a Multi lock";
    if (!out)
        return rl_error_set(RLOCK_EINVAL, 0, "out is NULL");
    *out = NULL;
    if (!locks || n == 0)
        return rl_error_set(RLOCK_EINVAL, 0, "a Multi lock needs members");
    if (!locks[0])
        return refuse(1, "is NULL");
    multi *m = rl_lock_new(sizeof *m, &rl_multi, locks[0]->client, name,
                           strlen(name), RLOCK_LAYOUT_HASH);
    if (!m)
        return RLOCK_ENOMEM;
    rlock_status s = RLOCK_OK;
    for (size_t i = 0; i < n && s == RLOCK_OK; i++)
        s = add(m, locks[i], i + 1);
    if (s != RLOCK_OK) {
        rlock_free(&m->base);
        return s;
    }
    qsort(m->member, m->n, sizeof *m->member, compare);
    *out = &m->base;
    return RLOCK_OK;
}
