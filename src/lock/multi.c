/*
 * Multi: several locks, all or nothing.
 *
 * A try asks all members at once, those on one client in one round trip. If
 * some are busy, only those before the first busy one, in the global order,
 * are kept while that one is waited for: whoever waits holds nothing that comes
 * later in the order, so nobody waits in a circle. Nor does he hold another
 * lock of the same name, because the order of those is that of their servers,
 * and a server that restarts is another one.
 *
 * The members are held as by themselves. What makes them one is a group, in
 * which those are that the acquire took anew: its first loss is the loss of the
 * whole, and is reported once. A member that is a Red lock is no single hold,
 * and goes by its own verbs.
 *
 * Called by the owning thread, which enters the members' clients for each round
 * and leaves them before it calls back into the program. Whatever fails, what
 * this call has taken is released before it returns.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/extend.h"
#include "drive/caller.h"
#include "lock/multi.h"

/* What a verb does with one member. */
typedef struct part {
    rlock *lk;
    size_t position;
    int cancel;    /* the thread's state, while inside of the client */
    bool wanted;   /* to be done in the next round */
    bool inside;   /* of the client, for this round */
    bool held;     /* taken by this call, or to be released by it */
    bool fresh;    /* taken by this call, and not held before */
    rl_hold *hold; /* referenced, while inside; NULL: the call has none */
    rl_part it;
} part;

typedef struct parts {
    const rl_multi *m;
    int64_t lease_ms;  /* as asked for */
    int64_t fresh_ms;  /* for now, of what is taken anew */
    int64_t until_us;  /* of the call */
    rlock_error worst; /* what to report */
    size_t n;
    part *part;
    rl_extend op;
} parts;

static bool is_single(const rlock *lk)
{
    return lk->kind == &rl_single;
}

static bool is_mine(const rlock *lk)
{
    return rl_lock_view(lk).count > 0;
}

/* False: out of memory, and the thread's error is set. */
static bool parts_init(parts *p, const rlock *lk)
{
    p->m = (const rl_multi *)lk;
    p->worst.status = RLOCK_OK;
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

static void parts_fini(parts *p)
{
    free(p->part);
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
static void note(rlock_error *worst, size_t position, rlock_status s)
{
    const rlock_error *e = rlock_last_error();
    if (badness(s) <= badness(worst->status))
        return;
    worst->status = s;
    worst->sys_errno = e->sys_errno;
    snprintf(worst->message, sizeof worst->message, "member %zu: %.*s",
             position, (int)sizeof e->message - 24, e->message);
}

static rlock_status report(const rlock_error *worst)
{
    return worst->status == RLOCK_OK
               ? RLOCK_OK
               : rl_error_set(worst->status, worst->sys_errno, "%s",
                              worst->message);
}

/* --- rounds --------------------------------------------------------------- */

/*
 * One verb for the members that are wanted. begin() makes the member's part;
 * otherwise it sets the thread's error and answers a status. end() says what
 * came of it. Neither calls back into the program: events come afterwards.
 */
typedef struct verb {
    rlock_status (*begin)(parts *p, part *x, bool valid, int64_t now_us);
    void (*end)(parts *p, part *x, int64_t now_us);
    rlock_event_type event; /* of a member that is ok; 0: none */
    bool extends;
} verb;

/* Into the client, with the thread's hold. */
static void come_in(parts *p, part *x, const verb *v, int64_t now_us)
{
    bool valid;
    x->wanted = false;
    rlock_status s = rl_client_begin(x->lk->client, &x->cancel);
    if (s != RLOCK_OK) {
        note(&p->worst, x->position, s);
        return;
    }
    rl_core *c = rl_lock_core(x->lk);
    x->hold = rl_holds_pick(&c->holds, &x->lk->target, rl_owner_self()->serial,
                            now_us, &valid, NULL);
    s = v->begin(p, x, valid, now_us);
    x->inside = s == RLOCK_OK;
    if (x->inside)
        return;
    note(&p->worst, x->position, s);
    rl_holds_put(&c->holds, x->hold);
    rl_client_leave(x->lk->client, x->cancel);
}

static void go_out(part *x, const verb *v, int64_t now_us)
{
    const rl_hold *h = x->hold;
    if (x->it.ok && v->event == RLOCK_EVENT_RELEASED)
        rl_lock_emit(x->lk, v->event, h->token, x->it.level,
                     now_us - h->began_us);
    else if (x->it.ok && v->event)
        rl_lock_emit(x->lk, v->event, h->token, x->it.request.level,
                     now_us - x->it.began_us);
    rl_holds_put(&rl_lock_core(x->lk)->holds, x->hold);
    rl_client_leave(x->lk->client, x->cancel);
    x->inside = false;
}

static void run(parts *p, const verb *v, int64_t until_us)
{
    rl_op *op = &p->op.op;
    for (size_t i = 0; i < p->n; i++) {
        part *x = &p->part[i];
        if (!x->inside)
            continue;
        x->it.op = op;
        x->it.until_us = rl_min(x->it.until_us, p->until_us);
        op->part[op->n++] = &x->it;
    }
    if (op->n == 0)
        return;
    op->quorum = op->n;
    if (v->extends)
        rl_extend_init(&p->op, p->fresh_ms, rl_min(until_us, p->until_us));
    rl_drive(op);
}

/* Is there more than one client among those that are inside? */
static bool are_several(const parts *p)
{
    const rlock_client *first = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const part *x = &p->part[i];
        if (!x->inside)
            continue;
        if (first && first != x->lk->client)
            return true;
        first = x->lk->client;
    }
    return false;
}

static void do_wanted(parts *p, const verb *v)
{
    int64_t now_us = rl_now_us(), until_us = 0;
    rl_op_init(&p->op.op);
    for (size_t i = 0; i < p->n; i++) {
        part *x = &p->part[i];
        if (x->wanted)
            come_in(p, x, v, now_us);
        if (x->inside)
            until_us =
                rl_max(until_us, rl_command_end(rl_lock_core(x->lk), now_us));
    }
    p->op.op.several = are_several(p);
    run(p, v, until_us);
    now_us = rl_now_us();
    for (size_t i = 0; i < p->n; i++) {
        part *x = &p->part[i];
        if (!x->inside)
            continue;
        v->end(p, x, now_us);
        if (!x->it.ok)
            note(&p->worst, x->position, rl_lock_fail(x->lk, &x->it.fault));
    }
    for (size_t i = 0; i < p->n; i++)
        if (p->part[i].inside)
            go_out(&p->part[i], v, now_us);
}

static void end_nothing(parts *p, part *x, int64_t now_us)
{
    (void)p;
    (void)x;
    (void)now_us;
}

/* --- release -------------------------------------------------------------- */

static rlock_status begin_release(parts *p, part *x, bool valid, int64_t now_us)
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

static void end_release(parts *p, part *x, int64_t now_us)
{
    (void)p;
    (void)now_us;
    if (x->it.ok)
        rl_add(&rl_lock_core(x->lk)->stats.releases, 1);
}

static const verb release_verb = {
    .begin = begin_release, .end = end_release, .event = RLOCK_EVENT_RELEASED};

/* Releases the members from this one on that are marked as held. */
static void let_go(parts *p, size_t from)
{
    for (size_t i = from; i < p->n; i++) {
        part *x = &p->part[i];
        x->wanted = x->held && is_single(x->lk);
        if (x->held && !x->wanted)
            note(&p->worst, x->position, rlock_unlock(x->lk));
        x->held = false;
    }
    do_wanted(p, &release_verb);
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
        note(&worst, m->member[i].position, s);
    }
    return report(&worst);
}

static rlock_status multi_unlock(rlock *lk)
{
    parts p;
    size_t ok;
    if (!parts_init(&p, lk))
        return for_each(lk, rlock_unlock, &ok);
    for (size_t i = 0; i < p.n; i++)
        p.part[i].held = true;
    let_go(&p, 0);
    parts_fini(&p);
    return report(&p.worst);
}

/* --- acquire -------------------------------------------------------------- */

static rl_hold *new_draft(const parts *p, const part *x)
{
    rl_core *c = rl_lock_core(x->lk);
    char holder[RL_HOLDER_MAX];
    rl_hold *h = NULL;
    if (!rl_lock_start(x->lk))
        return NULL;
    rl_estate *room = rl_holds_make_room(&c->holds, rl_owner_self()->serial);
    if (room && rl_holder_id(holder, c, rl_owner_self()))
        h = rl_draft(c, room, &x->lk->target, holder, p->fresh_ms);
    else
        rl_holds_give_up_room(&c->holds, room);
    if (!h)
        rl_lock_error(x->lk, RLOCK_ENOMEM, "out of memory or randomness");
    return h;
}

/* A hold that was there before keeps what the caller gave it. */
static int64_t lease_of(const parts *p, const part *x)
{
    return x->fresh ? p->fresh_ms : p->lease_ms;
}

static rlock_status begin_acquire(parts *p, part *x, bool valid, int64_t now_us)
{
    rl_core *c = rl_lock_core(x->lk);
    x->fresh = !x->hold;
    if (x->hold && !valid)
        return rl_lock_lost(x->lk, x->hold);
    if (x->hold)
        return rl_part_reenter(&x->it, c, x->hold, lease_of(p, x), now_us)
                   ? RLOCK_OK
                   : rl_lock_error(x->lk, RLOCK_EINVAL,
                                   "the hold count is at its end");
    x->hold = new_draft(p, x);
    if (!x->hold)
        return RLOCK_ENOMEM;
    rl_part_acquire(&x->it, c, x->hold, p->fresh_ms, now_us);
    return RLOCK_OK;
}

/* A draft that was granted is the table's; one reference stays for the event.
 */
static void end_fresh(part *x, int64_t now_us)
{
    rl_core *c = rl_lock_core(x->lk);
    if (!x->it.ok) {
        rl_give_up(c, x->hold, now_us);
        x->hold = NULL;
        return;
    }
    rl_mutex_lock(&c->holds.mutex);
    x->hold->refs++;
    rl_mutex_unlock(&c->holds.mutex);
    rl_take_over(&x->it, x->it.grant.token, now_us);
    rl_owner_self()->holds++;
}

static void end_acquire(parts *p, part *x, int64_t now_us)
{
    (void)p;
    if (x->fresh)
        end_fresh(x, now_us);
    x->held = x->it.ok;
    if (x->held)
        rl_add(&rl_lock_core(x->lk)->stats.acquires, 1);
    else if (x->fresh && x->it.verdict == RL_BUSY)
        rl_fault_set(&x->it.fault, RLOCK_BUSY, 0, "another owner holds it");
}

static const verb acquire_verb = {
    .begin = begin_acquire, .end = end_acquire, .event = RLOCK_EVENT_ACQUIRED};

/*
 * Is it the turn of others? Then nothing is asked from here on: what is taken
 * behind a gap would only be in their way.
 */
static bool is_owed(const part *x)
{
    int cancel;
    if (rl_client_enter(x->lk->client, &cancel) != RLOCK_OK)
        return false;
    bool owed = rl_rooms_is_owed(&rl_lock_core(x->lk)->rooms, &x->lk->target,
                                 rl_now_us());
    rl_client_leave(x->lk->client, cancel);
    return owed && !is_mine(x->lk);
}

/* One try of the members from this one on that are missing. */
static void try_missing(parts *p, size_t from, bool may_wait)
{
    bool gap = false;
    p->worst.status = RLOCK_OK;
    for (size_t i = from; i < p->n; i++) {
        part *x = &p->part[i];
        if (x->held)
            continue;
        gap = gap || (may_wait && is_single(x->lk) && is_owed(x));
        x->wanted = is_single(x->lk) && !gap;
        if (is_single(x->lk) || gap)
            continue;
        x->fresh = !is_mine(x->lk);
        rlock_status s = rlock_acquire(x->lk, 0, lease_of(p, x));
        x->held = s == RLOCK_OK;
        gap = !x->held;
        note(&p->worst, x->position, s);
    }
    do_wanted(p, &acquire_verb);
}

/*
 * The first member that is missing; n: none is. What is behind it, and what has
 * its name, is released again.
 */
static size_t settle(parts *p)
{
    size_t missing = 0, first;
    while (missing < p->n && p->part[missing].held)
        missing++;
    if (missing == p->n)
        return missing;
    for (first = missing; first > 0 && rl_multi_same_name(p->part[first - 1].lk,
                                                          p->part[missing].lk);)
        first--;
    rlock_error why = p->worst;
    let_go(p, first);
    p->worst = why;
    return missing;
}

static rlock_status begin_extend(parts *p, part *x, bool valid, int64_t now_us)
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

static const verb extend_verb = {
    .begin = begin_extend, .end = end_nothing, .extends = true};

static void extend_wanted(parts *p)
{
    for (size_t i = 0; i < p->n; i++) {
        part *x = &p->part[i];
        if (x->wanted && !is_single(x->lk)) {
            x->wanted = false;
            note(&p->worst, x->position, rlock_extend(x->lk, p->fresh_ms));
        }
    }
    do_wanted(p, &extend_verb);
}

/* The lease of what this call has taken anew. */
static rlock_status set_lease(parts *p, int64_t lease_ms)
{
    rlock_error before = p->worst;
    p->worst.status = RLOCK_OK;
    p->fresh_ms = lease_ms;
    for (size_t i = 0; i < p->n; i++)
        p->part[i].wanted = p->part[i].held && p->part[i].fresh;
    extend_wanted(p);
    if (p->worst.status != RLOCK_OK)
        return report(&p->worst);
    p->worst = before;
    return RLOCK_OK;
}

/* Waits for a member that is missing. */
static rlock_status wait_for(parts *p, part *x, int64_t wait_us,
                             rl_cancel cancel)
{
    int64_t wait_ms = wait_us == RL_NEVER
                          ? RLOCK_FOREVER
                          : rl_max(1, (wait_us - rl_now_us() + 999) / 1000);
    p->worst.status = RLOCK_OK;
    x->fresh = !is_mine(x->lk);
    rlock_status s =
        rl_now_us() < wait_us
            ? rl_lock_acquire(x->lk, wait_ms, lease_of(p, x), cancel)
            : rl_lock_error(x->lk, RLOCK_TIMEOUT, "the wait ran out");
    x->held = s == RLOCK_OK;
    note(&p->worst, x->position, s);
    return s;
}

/* A Red member is a group of its own already. */
static bool may_join(const part *x)
{
    return x->fresh && is_single(x->lk);
}

static void join(const part *x, rl_group *g)
{
    int cancel;
    if (rl_client_enter(x->lk->client, &cancel) != RLOCK_OK)
        return;
    rl_holds *t = &rl_lock_core(x->lk)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold *h =
        rl_holds_find_locked(t, &x->lk->target, rl_owner_self()->serial);
    if (h && rl_hold_is_valid_locked(t, h, rl_now_us())) {
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
            note(&p->worst, x->position,
                 rl_lock_error(x->lk, RLOCK_LOST,
                               "lost before all members were held"));
    }
    return report(&p->worst);
}

/* From here on the loss of a member is the loss of the whole. */
static rlock_status unite(parts *p)
{
    int fresh = 0;
    rlock *lk = (rlock *)&p->m->base;
    for (size_t i = 0; i < p->n; i++)
        fresh += may_join(&p->part[i]);
    rl_group *g = rl_group_new(&lk->client->home, fresh, false);
    if (!g)
        return rl_lock_error(lk, RLOCK_ENOMEM, "out of memory");
    rl_group_expect(g, fresh);
    for (size_t i = 0; i < p->n; i++) {
        if (may_join(&p->part[i]))
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

static int64_t longest_timeout_ms(const rl_multi *m)
{
    int64_t ms = 0;
    for (size_t i = 0; i < m->n; i++)
        ms = rl_max(ms, rl_lock_core(m->member[i].lk)->set.command_timeout_ms);
    return ms;
}

/*
 * Waits for one member after the other. Meanwhile those that are held are
 * renewed, whatever lease was asked for: it begins when all are.
 */
static rlock_status take_all(parts *p, int64_t wait_ms, int64_t wait_us,
                             rl_cancel cancel)
{
    bool waited = false, renewed = p->lease_ms == RLOCK_WATCHDOG;
    size_t missing, first;
    try_missing(p, 0, wait_ms != 0);
    while ((missing = settle(p)) < p->n) {
        if (wait_ms == 0)
            return report(&p->worst);
        if (!waited && !renewed && missing > 0 &&
            set_lease(p, RLOCK_WATCHDOG) != RLOCK_OK)
            return report(&p->worst);
        waited = true;
        p->fresh_ms = RLOCK_WATCHDOG;
        if (wait_for(p, &p->part[missing], wait_us, cancel) != RLOCK_OK)
            return report(&p->worst);
        for (first = missing;
             first > 0 &&
             rl_multi_same_name(p->part[first - 1].lk, p->part[missing].lk);)
            first--;
        try_missing(p, first, true);
    }
    return waited && !renewed ? set_lease(p, p->lease_ms) : RLOCK_OK;
}

static rlock_status multi_acquire(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                                  rl_cancel cancel)
{
    parts p;
    if (!parts_init(&p, lk))
        return RLOCK_ENOMEM;
    int64_t wait_us = rl_after_ms(rl_now_us(), wait_ms);
    p.until_us = rl_after_ms(wait_us, longest_timeout_ms(p.m));
    p.lease_ms = p.fresh_ms = lease_ms;
    rlock_status s = take_all(&p, wait_ms, wait_us, cancel);
    if (s == RLOCK_OK)
        s = unite(&p);
    if (s != RLOCK_OK) {
        rlock_error why = *rlock_last_error();
        let_go(&p, 0);
        s = rl_error_set(s, why.sys_errno, "%s", why.message);
    }
    parts_fini(&p);
    return s;
}

/* --- the other verbs ------------------------------------------------------ */

static rlock_status multi_extend(rlock *lk, int64_t lease_ms)
{
    parts p;
    if (!parts_init(&p, lk))
        return RLOCK_ENOMEM;
    p.fresh_ms = lease_ms;
    for (size_t i = 0; i < p.n; i++)
        p.part[i].wanted = true;
    extend_wanted(&p);
    parts_fini(&p);
    return report(&p.worst);
}

/* The thread's own hold is of no interest. */
static rlock_status begin_force(parts *p, part *x, bool valid, int64_t now_us)
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

static void end_force(parts *p, part *x, int64_t now_us)
{
    (void)p;
    (void)now_us;
    x->held = x->it.ok && x->it.code == 1;
    if (x->it.ok && !x->held) {
        x->it.ok = false;
        rl_fault_set(&x->it.fault, RLOCK_NOT_HELD, 0, "nobody holds it");
    }
}

static const verb force_verb = {.begin = begin_force, .end = end_force};

static rlock_status multi_force_unlock(rlock *lk)
{
    parts p;
    bool freed = false;
    if (!parts_init(&p, lk)) {
        size_t ok;
        rlock_status s = for_each(lk, rlock_force_unlock, &ok);
        return s == RLOCK_NOT_HELD && ok > 0 ? RLOCK_OK : s;
    }
    for (size_t i = 0; i < p.n; i++) {
        part *x = &p.part[i];
        x->wanted = is_single(x->lk);
        if (x->wanted)
            continue;
        rlock_status s = rlock_force_unlock(x->lk);
        x->held = s == RLOCK_OK;
        note(&p.worst, x->position, s);
    }
    do_wanted(&p, &force_verb);
    for (size_t i = 0; i < p.n; i++)
        freed = freed || p.part[i].held;
    parts_fini(&p);
    return freed && p.worst.status == RLOCK_NOT_HELD ? RLOCK_OK
                                                     : report(&p.worst);
}

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
    .acquire = multi_acquire,
    .unlock = multi_unlock,
    .extend = multi_extend,
    .force_unlock = multi_force_unlock,
    .cancel = multi_cancel,
    .view = multi_view,
    .inspect = multi_inspect,
    .free = rl_multi_free,
};
