/*
 * The judge of Multi locks: all members or none, nothing left behind by a try
 * that failed, and nobody who waits in a circle.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

static bool is_of(const handle *m, size_t name)
{
    return m->names >> name & 1;
}

/*
 * The lease of what was taken anew is the one that was asked for, and begins
 * when all are held, however long that took.
 */
static void judge_lease(owner *o, size_t name)
{
    const world *w = o->p->w;
    const rl_hold *h = o->holding[name].hold;
    bool renewed = o->lease_ms == RLOCK_WATCHDOG;
    int64_t lease_us = o->lease_ms * MS;
    int64_t left_us = h->expiry.due_us - process_now(o->p);
    int64_t least_us = lease_us - lease_us / 100 - 2 * MS -
                       12 * (w->set.delay_us + w->set.latency_us) - 30 * MS;
    if (h->renewed != renewed)
        judge_fail(o->p->w, "judge 5: owner %u has %s, which is %srenewed",
                   o->number, judge_name_of(w, name), renewed ? "not " : "");
    else if (!renewed &&
             (left_us > lease_us || (w->set.calm && left_us < least_us)))
        judge_fail(o->p->w,
                   "judge 5: owner %u has %s for %lld us of a lease of %lld ms",
                   o->number, judge_name_of(w, name), (long long)left_us,
                   (long long)o->lease_ms);
}

/* Who is told that he holds it, holds every member. */
void judge_union(owner *o, const handle *m)
{
    for (size_t name = 0; name < o->p->w->set.names; name++) {
        if (!is_of(m, name) || owner_is_closed(o, name))
            continue;
        if (!judge_believes(o, name))
            judge_fail(o->p->w,
                       "judge 1: owner %u is told that it has all of %s, and "
                       "has not got %s",
                       o->number, owner_names(o, m->names),
                       judge_name_of(o->p->w, name));
        else if (o->accounts[o->holding[name].account].in_union == o->unions)
            judge_lease(o, name);
    }
}

/* Who is told that he has lost something, had it before he asked for more. */
void judge_lost(const owner *o, rlock_status status)
{
    if (status != RLOCK_LOST)
        return;
    for (size_t name = 0; name < o->p->w->set.names; name++)
        if (o->names >> name & 1 && o->holding[name].hold)
            return;
    judge_fail(o->p->w,
               "judge 3: owner %u is told that it lost what it never had",
               o->number);
}

/* As often as the member that it holds the least often. */
void judge_view(owner *o, const handle *m, int count)
{
    int least = -1;
    for (size_t name = 0; name < o->p->w->set.names; name++) {
        if (!is_of(m, name))
            continue;
        int n = judge_believes(o, name) ? o->holding[name].count : 0;
        least = least < 0 || n < least ? n : least;
    }
    if (count != least)
        judge_fail(o->p->w,
                   "judge 1: owner %u is told that it has %s %d times, not %d",
                   o->number, owner_names(o, m->names), count, least);
}

/* Nodes that restarted do not vote, but tell whom they have in their old data.
 */
static bool most_remember_others(const world *w)
{
    size_t n = 0;
    for (size_t i = 0; i < w->set.servers; i++)
        n += w->server[i].data_lost;
    return w->set.red && n > w->set.servers / 2;
}

/* Whom the server names: the owner, or who began the turn. */
static long named_tid(const owner *o, size_t name)
{
    const rl_hold *h = o->holding[name].hold;
    const owner *starter =
        h && h->turn ? owner_by_serial(o->p->w, h->turn->starter->owner) : o;
    return starter->self.tid;
}

/*
 * The holder that is named is the one that believes it, if any does. A lock in
 * the timestamp layout names none.
 */
void judge_holder(owner *o, const rlock_holder *holder)
{
    world *w = o->p->w;
    if (owner_target(o, o->name)->layout !=
            &rl_layouts[RLOCK_LAYOUT_TIMESTAMP] &&
        judge_believes(o, o->name) && !judge_excuses(o, o->name) &&
        !most_remember_others(w) && holder->tid != named_tid(o, o->name))
        judge_fail(w, "judge 1: owner %u has %s, and is told that %s has it",
                   o->number, judge_name_of(w, o->name), holder->raw);
}

/*
 * Is the name held by the owner on the server, in whatever layout? What clocks
 * that drift apart still see there, for a moment, has run out for its owner.
 */
static bool is_on_server(owner *o, size_t name)
{
    world *w = o->p->w;
    server *s = lock_server(w, name);
    char mine[64];
    word key = {w->lock[name].name, strlen(w->lock[name].name)};
    s->store.now_us = server_now(s);
    const entry *e = store_find(&s->store, &key);
    if (!e || (e->expires_ms >= 0 &&
               e->expires_ms - s->store.now_us / MS < w->set.watchdog_ms / 20))
        return false;
    const text *t = e->kind == KIND_HASH ? &e->items[0].name : &e->value;
    int len = snprintf(mine, sizeof mine, "p%u:%u:%ld:", o->p->index,
                       o->p->index, o->self.tid);
    return t->len > (size_t)len && memcmp(t->at, mine, (size_t)len) == 0;
}

/*
 * What the call had taken is released when it returns; the server has it no
 * more either, if nothing goes wrong on the way. What was lost while another
 * member was waited for, the keeper undoes.
 */
void judge_nothing_taken(owner *o, const handle *m)
{
    world *w = o->p->w;
    for (size_t name = 0; name < w->set.names; name++) {
        rl_holds *t = &owner_client(o, name)->e.core.holds;
        if (!is_of(m, name) || o->holding[name].hold)
            continue;
        if (owner_is_closed(o, name))
            continue;
        if (rl_holds_find_locked(t, owner_target(o, name), o->self.serial))
            judge_fail(
                w, "judge 4: owner %u has not got all of %s, and keeps %s",
                o->number, owner_names(o, m->names), judge_name_of(w, name));
        else if (w->set.calm && t->undoing == 0 && is_on_server(o, name) &&
                 !w->set.turn_ms) /* it may be another's, in this one's name */
            judge_fail(w,
                       "judge 4: owner %u has not got all of %s, and the "
                       "server still has %s for it",
                       o->number, owner_names(o, m->names),
                       judge_name_of(w, name));
    }
}

/* --- circles -------------------------------------------------------------- */

/*
 * Also during the call that takes it. What it has by a client that is being
 * closed it cannot give back, and so it ends with its lease.
 */
static bool has(owner *o, size_t name)
{
    const rl_hold *h = client_find(owner_client(o, name), owner_target(o, name),
                                   o->self.serial);
    return h && !owner_is_closed(o, name) && h->state == RL_HELD &&
           process_now(o->p) < h->expiry.due_us;
}

/* What it waits for, if it keeps to the order; NAMES_MAX: for nothing. */
static size_t awaited(const owner *o)
{
    const world *w = o->p->w;
    if (o->is_disordered || o->p->is_dead)
        return NAMES_MAX;
    for (size_t name = 0; name < w->set.names; name++)
        if (owner_is_waiting(o, name))
            return name;
    return NAMES_MAX;
}

static owner *holder_of(world *w, size_t name, const owner *waiter)
{
    for (size_t p = 0; p < w->processes; p++)
        for (size_t i = 0; i < w->process[p]->owners; i++)
            if (w->process[p]->owner[i] != waiter &&
                has(w->process[p]->owner[i], name))
                return w->process[p]->owner[i];
    return NULL;
}

/* Whoever waits holds nothing that comes later in the order. */
void judge_circles(world *w, const owner *from)
{
    const owner *at = from;
    for (size_t steps = 0; steps <= w->set.names; steps++) {
        size_t name = awaited(at);
        const owner *next = name == NAMES_MAX ? NULL : holder_of(w, name, at);
        if (!next)
            return;
        if (next == from) {
            judge_fail(w, "judge 5: owners %u and %u wait in a circle, for %s",
                       at->number, from->number, judge_name_of(w, name));
            return;
        }
        at = next;
    }
}
