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
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/lock.h"
#include "lock/step.h"

_Static_assert(RLOCK_MULTI_MAX <= RL_QUESTIONS_MAX, "one round trip is enough");

typedef struct member {
    rlock *lk;       /* a handle of our own, so that cancels are ours */
    size_t position; /* in the caller's list, from 1 */
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
    bool wanted;   /* to be done, with the others of its client */
    bool held;     /* taken by this call, or to be released by it */
    bool fresh;    /* and not held before */
    rl_hold *hold; /* referenced, while inside; NULL: the call has none */
    rl_step step;
    rlock_event_type event; /* to be delivered; 0: none */
} part;

typedef struct parts {
    const multi *m;
    int64_t lease_ms;  /* as asked for */
    int64_t until_us;  /* of the call */
    int64_t round_us;  /* of the round that is being prepared */
    rlock_error worst; /* what to report */
    size_t n;
    part part[RLOCK_MULTI_MAX];
} parts;

static bool is_single(const rlock *lk)
{
    return lk->kind == &rl_reentrant;
}

static bool is_mine(const rlock *lk)
{
    return rl_lock_view(lk).count > 0;
}

static void parts_init(parts *p, const rlock *lk)
{
    p->m = (const multi *)lk;
    p->worst.status = RLOCK_OK;
    p->until_us = RL_NEVER;
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

/*
 * One verb for the members of one client. begin() answers whether the member's
 * call is to be made; if so, end() gets the answer. Neither calls back into the
 * program: the events come afterwards.
 */
typedef struct verb {
    bool (*begin)(parts *p, part *x, bool valid);
    void (*end)(parts *p, part *x, rl_answer *a);
} verb;

typedef struct round {
    parts *p;
    const verb *verb;
    size_t n;
    part *part[RLOCK_MULTI_MAX];
} round;

static void call_of(void *arg, size_t i, rl_hold_call *c)
{
    const part *x = ((const round *)arg)->part[i];
    if (x->hold)
        rl_step_call(&x->step, c);
    else
        rl_call_force_release(c, &x->lk->target);
}

static void answer_of(void *arg, size_t i, rl_answer *a)
{
    const round *r = arg;
    r->verb->end(r->p, r->part[i], a);
}

/* Into the client, with the thread's hold. True: its call is to be made. */
static bool come_in(parts *p, part *x, const verb *v)
{
    bool valid;
    rlock_status s = rl_client_begin(x->lk->client, &x->cancel);
    if (s != RLOCK_OK) {
        note(p, x, s);
        return false;
    }
    x->hold = rl_pick_up(rl_engine_of(x->lk), &x->lk->target, &valid);
    if (v->begin(p, x, valid))
        return true;
    rl_client_leave(x->lk->client, x->cancel);
    return false;
}

static void go_out(part *x)
{
    const rl_hold *h = x->hold;
    int64_t since_us =
        x->event == RLOCK_EVENT_RELEASED ? h->began_us : x->step.began_us;
    if (x->event)
        rl_lock_emit(x->lk, x->event, h->token, x->step.level,
                     rl_now_us() - since_us);
    x->event = (rlock_event_type)0;
    rl_put_back(rl_engine_of(x->lk), x->hold);
    rl_client_leave(x->lk->client, x->cancel);
}

static void do_client(parts *p, size_t first, const verb *v)
{
    round r = {.p = p, .verb = v};
    rlock_client *client = p->part[first].lk->client;
    p->round_us = p->until_us;
    for (size_t i = first; i < p->n; i++) {
        part *x = &p->part[i];
        if (!x->wanted || x->lk->client != client)
            continue;
        x->wanted = false;
        if (come_in(p, x, v))
            r.part[r.n++] = x;
    }
    if (r.n == 0)
        return;
    rl_engine *e = &client->engine;
    rl_questions q = {r.n, call_of, answer_of, &r};
    rl_ask_all(e, &q, rl_min(p->round_us, rl_command_deadline(e)));
    for (size_t i = 0; i < r.n; i++)
        go_out(r.part[i]);
}

/* One client after the other, so that each has its own time. */
static void do_wanted(parts *p, const verb *v)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->part[i].wanted)
            do_client(p, i, v);
    }
}

/* --- release ------------------------------------------------------------- */

static bool begin_release(parts *p, part *x, bool valid)
{
    rl_engine *e = rl_engine_of(x->lk);
    rl_fault f;
    if (!x->hold) {
        note(p, x, rl_lock_not_held(x->lk));
        return false;
    }
    int level = x->hold->count - 1;
    valid = rl_count_down(e, x->hold, level);
    if (level == 0)
        rl_owner_count(-1);
    if (valid) {
        rl_release_begin(&x->step, e, x->hold, level);
        return true;
    }
    rl_release_lost(e, x->hold, level, &f);
    note(p, x, rl_lock_fail(x->lk, &f));
    rl_put_back(e, x->hold);
    return false;
}

static void end_release(parts *p, part *x, rl_answer *a)
{
    rl_fault f;
    bool rung;
    rlock_status s = rl_release_end(&x->step, a, &rung, &f);
    if (rung)
        rl_make_way(x->lk, a->sent_us);
    if (s == RLOCK_OK) {
        x->event = RLOCK_EVENT_RELEASED;
        rl_add(&rl_engine_of(x->lk)->stats.releases, 1);
    } else {
        note(p, x, rl_lock_fail(x->lk, &f));
    }
}

static const verb release_verb = {begin_release, end_release};

/* Releases the members from this one on that are marked as held. */
static void let_go(parts *p, size_t from)
{
    for (size_t i = from; i < p->n; i++) {
        part *x = &p->part[i];
        x->wanted = x->held && is_single(x->lk);
        if (x->held && !x->wanted)
            note(p, x, rlock_unlock(x->lk));
        x->held = false;
    }
    do_wanted(p, &release_verb);
}

static rlock_status multi_unlock(rlock *lk)
{
    parts p;
    parts_init(&p, lk);
    for (size_t i = 0; i < p.n; i++)
        p.part[i].held = true;
    let_go(&p, 0);
    return report(&p);
}

/* --- acquire ------------------------------------------------------------- */

static rlock_status prepare(const parts *p, part *x, bool valid)
{
    rl_engine *e = rl_engine_of(x->lk);
    x->fresh = !x->hold;
    if (x->hold && !valid)
        return rl_lock_lost(x->lk, x->hold);
    if (x->hold)
        return rl_reenter_begin(&x->step, e, x->hold, p->lease_ms)
                   ? RLOCK_OK
                   : rl_lock_error(x->lk, RLOCK_EINVAL,
                                   "the hold count is at its end");
    x->hold = rl_lock_draft(x->lk, p->lease_ms);
    if (!x->hold)
        return RLOCK_ENOMEM;
    rl_acquire_begin(&x->step, e, x->hold, p->lease_ms);
    return RLOCK_OK;
}

static bool begin_acquire(parts *p, part *x, bool valid)
{
    rlock_status s = prepare(p, x, valid);
    if (s == RLOCK_OK)
        return true;
    note(p, x, s);
    rl_put_back(rl_engine_of(x->lk), x->hold);
    return false;
}

static void end_fresh(parts *p, part *x, rl_answer *a)
{
    rl_grant g;
    rl_fault f;
    rl_engine *e = x->step.e;
    rl_verdict v = rl_acquire_end(&x->step, a, &g, &f);
    if (v == RL_ACQUIRED) {
        x->held = true;
        rl_mutex_lock(&e->holds.mutex);
        x->hold->refs++; /* until the event has been delivered */
        rl_mutex_unlock(&e->holds.mutex);
        rl_take_over(&x->step, &g, g.token);
        rl_owner_count(1);
        return;
    }
    note(p, x,
         v == RL_FAILED
             ? rl_lock_fail(x->lk, &f)
             : rl_lock_error(x->lk, RLOCK_BUSY, "another owner holds it"));
    rl_give_up(e, x->hold);
    x->hold = NULL;
}

static void end_acquire(parts *p, part *x, rl_answer *a)
{
    rl_fault f;
    if (x->fresh)
        end_fresh(p, x, a);
    else if (rl_reenter_end(&x->step, a, &f) == RLOCK_OK)
        x->held = true;
    else
        note(p, x, rl_lock_fail(x->lk, &f));
    if (x->held) {
        x->event = RLOCK_EVENT_ACQUIRED;
        rl_add(&x->step.e->stats.acquires, 1);
    }
}

static const verb acquire_verb = {begin_acquire, end_acquire};

/*
 * Is it the turn of others? Then nothing is asked from here on: what is taken
 * behind a gap would only be in their way.
 */
static bool is_owed(const part *x)
{
    int cancel;
    if (rl_client_enter(x->lk->client, &cancel) != RLOCK_OK)
        return false;
    bool owed = rl_rooms_is_owed(&rl_engine_of(x->lk)->rooms, &x->lk->target);
    rl_client_leave(x->lk->client, cancel);
    return owed && !is_mine(x->lk);
}

/*
 * One try of the members from this one on. Returns how many are held without a
 * gap; what was taken behind a gap is released again.
 */
static size_t try_from(parts *p, size_t from, bool may_wait)
{
    bool gap = false;
    p->worst.status = RLOCK_OK;
    for (size_t i = from; i < p->n; i++) {
        part *x = &p->part[i];
        gap = gap || (may_wait && is_single(x->lk) && is_owed(x));
        x->wanted = is_single(x->lk) && !gap;
        if (is_single(x->lk) || gap)
            continue;
        x->fresh = false;
        rlock_status s = rlock_acquire(x->lk, 0, p->lease_ms);
        x->held = s == RLOCK_OK;
        gap = !x->held;
        note(p, x, s);
    }
    do_wanted(p, &acquire_verb);
    while (from < p->n && p->part[from].held)
        from++;
    rlock_error first = p->worst;
    let_go(p, from);
    p->worst = first;
    return from;
}

/* Waits for the first member that is missing. */
static rlock_status wait_for(parts *p, part *x, int64_t wait_us,
                             rl_cancel cancel)
{
    int64_t wait_ms = wait_us == RL_NEVER
                          ? RLOCK_FOREVER
                          : rl_max(1, (wait_us - rl_now_us() + 999) / 1000);
    p->worst.status = RLOCK_OK;
    x->fresh = is_single(x->lk) && !is_mine(x->lk);
    rlock_status s = rl_lock_acquire(x->lk, wait_ms, p->lease_ms, cancel);
    x->held = s == RLOCK_OK;
    note(p, x, s);
    return s;
}

static void join(const part *x, rl_group *g)
{
    int cancel;
    if (rl_client_enter(x->lk->client, &cancel) != RLOCK_OK)
        return;
    rl_holds *t = &rl_engine_of(x->lk)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_mine_locked(t, &x->lk->target);
    if (h && h->state == RL_HELD) {
        h->group = g;
        rl_group_ref(g);
    }
    rl_mutex_unlock(&t->mutex);
    rl_client_leave(x->lk->client, cancel);
}

/* A member may have been lost while a later one was waited for. */
static rlock_status find_lost(parts *p)
{
    p->worst.status = RLOCK_OK;
    for (size_t i = 0; i < p->n; i++) {
        const part *x = &p->part[i];
        if (!is_mine(x->lk))
            note(p, x,
                 rl_lock_error(x->lk, RLOCK_LOST,
                               "lost before all members were held"));
    }
    return report(p);
}

/* From here on the loss of a member is the loss of the whole. */
static rlock_status unite(parts *p)
{
    int fresh = 0;
    for (size_t i = 0; i < p->n; i++)
        fresh += p->part[i].fresh;
    rl_group *g = rl_group_new(p->m->base.client, fresh, false);
    if (!g)
        return rl_lock_error(&p->m->base, RLOCK_ENOMEM, "out of memory");
    atomic_store(&g->left, fresh);
    for (size_t i = 0; i < p->n; i++) {
        if (p->part[i].fresh)
            join(&p->part[i], g);
    }
    rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED);
    rlock_status s = find_lost(p);
    /* Lost after it was united, and reported: it is for the owner to find. */
    if (s != RLOCK_OK && !rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_OVER))
        s = RLOCK_OK;
    rl_group_unref(g);
    return s;
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
    p.until_us = rl_after_ms(wait_us, longest_timeout_ms(p.m));
    p.lease_ms = lease_ms;
    size_t n = try_from(&p, 0, wait_ms != 0);
    while (n < p.n && wait_ms != 0 &&
           wait_for(&p, &p.part[n], wait_us, cancel) == RLOCK_OK)
        n = try_from(&p, n + 1, true);
    rlock_status s = n == p.n ? unite(&p) : report(&p);
    if (s == RLOCK_OK)
        return RLOCK_OK;
    rlock_error why = *rlock_last_error();
    let_go(&p, 0);
    return rl_error_set(s, why.sys_errno, "%s", why.message);
}

/* --- the other verbs ----------------------------------------------------- */

static bool begin_extend(parts *p, part *x, bool valid)
{
    rl_engine *e = rl_engine_of(x->lk);
    rl_fault f;
    if (!x->hold) {
        note(p, x, rl_lock_not_held(x->lk));
    } else if (!valid) {
        note(p, x, rl_lock_lost(x->lk, x->hold));
    } else if (rl_extend_begin(&x->step, e, x->hold, p->lease_ms,
                               rl_command_deadline(e))) {
        p->round_us = rl_min(p->round_us, x->step.until_us);
        return true;
    } else {
        rl_extend_fail(&x->step, &f);
        note(p, x, rl_lock_fail(x->lk, &f));
    }
    rl_put_back(e, x->hold);
    return false;
}

static void end_extend(parts *p, part *x, rl_answer *a)
{
    rl_fault f;
    if (rl_extend_end(&x->step, a, &f) != RLOCK_OK)
        note(p, x, rl_lock_fail(x->lk, &f));
}

static rlock_status multi_extend(rlock *lk, int64_t lease_ms)
{
    static const verb extend_verb = {begin_extend, end_extend};
    parts p;
    parts_init(&p, lk);
    p.lease_ms = lease_ms;
    for (size_t i = 0; i < p.n; i++) {
        part *x = &p.part[i];
        x->wanted = is_single(x->lk);
        if (!x->wanted)
            note(&p, x, rlock_extend(x->lk, lease_ms));
    }
    do_wanted(&p, &extend_verb);
    return report(&p);
}

/* The thread's own hold is of no interest. */
static bool begin_force(parts *p, part *x, bool valid)
{
    (void)p;
    (void)valid;
    rl_put_back(rl_engine_of(x->lk), x->hold);
    x->hold = NULL;
    return true;
}

static void end_force(parts *p, part *x, rl_answer *a)
{
    x->held = a->outcome == RL_ANSWERED && a->reply.top.integer == 1;
    if (a->outcome != RL_ANSWERED)
        note(p, x, rl_lock_fail(x->lk, &a->fault));
    else if (!x->held)
        note(p, x, rl_lock_error(x->lk, RLOCK_NOT_HELD, "nobody holds it"));
}

static rlock_status multi_force_unlock(rlock *lk)
{
    static const verb force_verb = {begin_force, end_force};
    parts p;
    bool freed = false;
    parts_init(&p, lk);
    for (size_t i = 0; i < p.n; i++) {
        part *x = &p.part[i];
        x->wanted = is_single(x->lk);
        if (x->wanted)
            continue;
        rlock_status s = rlock_force_unlock(x->lk);
        x->held = s == RLOCK_OK;
        note(&p, x, s);
    }
    do_wanted(&p, &force_verb);
    for (size_t i = 0; i < p.n; i++)
        freed = freed || p.part[i].held;
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
    for (size_t i = 0; i < m->n; i++)
        rlock_free(m->member[i].lk);
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

static rlock_status add_member(multi *m, const rlock *lk, size_t position)
{
    for (size_t i = 0; i < m->n; i++) {
        if (is_same(m->member[i].lk, lk))
            return refuse(position, "is the same lock as an earlier one");
    }
    if (m->n == RLOCK_MULTI_MAX)
        return refuse(position, "is one too many");
    rlock *ours = lk->kind->copy(lk);
    if (!ours)
        return RLOCK_ENOMEM;
    m->member[m->n++] = (member){ours, position};
    return RLOCK_OK;
}

/* Adds a member, and stays inside of its client, if RLOCK_OK. */
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
    if (s != RLOCK_OK)
        rl_client_leave(lk->client, cancel);
    return s;
}

/* Comparing servers needs their clients open. */
static rlock_status add_all(multi *m, rlock *const locks[], size_t n)
{
    int cancel;
    rlock_status s = RLOCK_OK;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    for (size_t i = 0; i < n && s == RLOCK_OK; i++)
        s = add(m, locks[i], i + 1);
    if (s == RLOCK_OK)
        qsort(m->member, m->n, sizeof *m->member, compare);
    for (size_t i = 0; i < m->n; i++)
        rl_client_leave(m->member[i].lk->client, PTHREAD_CANCEL_DISABLE);
    pthread_setcancelstate(cancel, NULL);
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
    rlock_status s = add_all(m, locks, n);
    if (s == RLOCK_OK)
        *out = &m->base;
    else
        rlock_free(&m->base);
    return s;
}
