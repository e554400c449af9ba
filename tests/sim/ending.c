/*
 * A thread that ends while it holds locks, as drive/owner.c notices it, and
 * the one that the program starts in its place: it has the same handles, and
 * none of the holds. What is judged of them:
 *
 *   4  nothing of what the thread held stays in its clients, and the servers
 *      have it no longer than its lease, which nobody renews
 *   3  each lock is told abandoned once, if it had not been lost
 */
#include "judge.h"
#include "owner.h"

#include <string.h>

/* --- what the servers have ------------------------------------------------ */

static const text *holder_in(const entry *e)
{
    return e->kind == KIND_HASH ? &e->items[0].name : &e->value;
}

static entry *find_key(world *w, server *s, size_t name)
{
    word key = {w->lock[name].name, strlen(w->lock[name].name)};
    s->store.now_us = server_now(s);
    return store_find(&s->store, &key);
}

static bool has(const entry *e, const leftover *x)
{
    const text *t = e ? holder_in(e) : NULL;
    return t && t->len > RL_UUID_LEN &&
           memcmp(t->at + t->len - RL_UUID_LEN, x->uuid, RL_UUID_LEN) == 0;
}

/* A renewal may be under way, and is the last. */
static int64_t end_of_lease_ms(const world *w, const server *s, const entry *e)
{
    int64_t way_us = 12 * (w->set.delay_us + w->set.latency_us) + 30 * MS;
    return rl_max(e->expires_ms, s->store.now_us / MS + w->set.watchdog_ms) +
           way_us / MS;
}

/* In a calm world it is known when its lease is over. */
void ending_leaves(client *c, size_t name, const rl_hold *h)
{
    world *w = c->w;
    leftover *x = &w->left[c->s->index][name];
    if (!w->set.calm)
        return;
    rl_uuid_write(&h->id, x->uuid);
    entry *e = find_key(w, c->s, name);
    x->until_ms = has(e, x) ? end_of_lease_ms(w, c->s, e) : 0;
}

static void look_at(world *w, server *s, size_t name)
{
    leftover *x = &w->left[s->index][name];
    if (x->until_ms == 0 || server_now(s) / MS <= x->until_ms)
        return;
    if (has(find_key(w, s, name), x))
        judge_fail(w,
                   "judge 4: server %u still has %s for a thread that has "
                   "ended, after its lease",
                   s->index, judge_name_of(w, name));
    x->until_ms = 0;
}

void judge_leftovers(world *w)
{
    if (!w->set.calm)
        return;
    for (size_t i = 0; i < w->set.servers; i++)
        for (size_t name = 0; name < w->set.names; name++)
            look_at(w, &w->server[i], name);
}

/* --- the thread's end ----------------------------------------------------- */

static void leave_keys(owner *o)
{
    const world *w = o->p->w;
    for (size_t i = 0; i < w->set.servers; i++) {
        client *c = &o->p->client[i];
        for (size_t name = 0; name < w->set.names; name++) {
            const rl_hold *h =
                client_find(c, owner_target(o, name), o->self.serial);
            if (h)
                ending_leaves(c, name, h);
        }
    }
}

static void abandon(owner *o)
{
    const world *w = o->p->w;
    if (o->self.holds == 0) /* drive/owner.c does not look for any */
        return;
    for (size_t i = 0; i < w->set.servers; i++)
        rl_holds_abandon(&o->p->client[i].e.core.holds, o->self.serial,
                         process_now(o->p));
    o->self.holds = 0;
}

static void judge_heirs(owner *o)
{
    const world *w = o->p->w;
    for (size_t i = 0; i < w->set.servers; i++)
        for (size_t name = 0; name < w->set.names; name++)
            if (rl_holds_find_locked(&o->p->client[i].e.core.holds,
                                     owner_target(o, name), o->self.serial))
                judge_fail(o->p->w,
                           "judge 4: a thread of process %u has ended, and "
                           "still has %s",
                           o->p->index, judge_name_of(w, name));
}

void owner_forgets(owner *o, size_t name)
{
    holding *have = &o->holding[name];
    judge_end_of_hold(o, name);
    if (owner_is_closed(o, name)) /* until it stops, a loss may be told */
        o->accounts[have->account].untold = true;
    rl_holds_put(&o->p->client[have->at].e.core.holds, have->hold);
    rl_group_unref(have->group);
    *have = (holding){0};
}

/* The one that takes its place is another to the library. */
static void start_next(owner *o)
{
    o->self.serial += THREADS_MAX;
    o->self.tid = (long)o->self.serial;
    for (size_t i = 0; i < NAMES_MAX; i++)
        o->one[i].levels = 0;
    for (size_t i = 0; i < MULTIS_MAX; i++)
        o->multi[i].levels = 0;
}

void owner_ends(owner *o)
{
    trace(o->p->w, "owner %u: its thread ends, and another begins", o->number);
    o->ends = false;
    leave_keys(o);
    abandon(o);
    judge_heirs(o);
    for (size_t name = 0; name < o->p->w->set.names; name++) {
        if (!o->holding[name].hold)
            continue;
        o->accounts[o->holding[name].account].abandoned = true;
        owner_forgets(o, name);
    }
    start_next(o);
}

/* --- who is told ---------------------------------------------------------- */

void judge_abandoned(client *c, const rl_hold *h)
{
    owner *o = owner_by_serial(c->w, rl_hold_owner(h));
    account *x = o ? judge_account(o, h) : NULL;
    trace(c->w, "process %u is told that %s is abandoned", c->p->index,
          rl_hold_name(h));
    if (x && x->abandoned)
        x->abandons_told++;
    else
        judge_fail(c->w, "judge 3: %s is told abandoned, and its thread lives",
                   rl_hold_name(h));
}

/* Those that were taken as one are told as one. */
void judge_abandons(const owner *o, const account *x, bool was_lost)
{
    unsigned told = x->abandons_told;
    for (size_t i = 0; x->in_union && i < o->count; i++)
        if (o->accounts[i].in_union == x->in_union && &o->accounts[i] != x)
            told += o->accounts[i].abandons_told;
    if (x->abandoned && told != !was_lost)
        judge_fail(o->p->w,
                   "judge 3: %s was told %u times that its thread has ended "
                   "(owner %u), and was %slost",
                   judge_name_of(o->p->w, x->name), told, o->number,
                   was_lost ? "" : "not ");
}
