/*
 * Judges 1 to 3: no two owners of a thing believe in it at one time; who does
 * is backed by the server, or by most of them; and what was lost stays lost.
 *
 * A hold is believed in from the return of its acquire to the begin of the last
 * call that answered "held": whoever relied on it did so before that. So the
 * judge never says of two that they overlap when one of them was only slow to
 * be told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

/* --- 1: exclusion --------------------------------------------------------- */

static bool overlap(const hold *a, const hold *b)
{
    return a->is_sure && b->is_sure && a->from < b->to && b->from < a->to;
}

static void check_exclusion(const hold *h)
{
    for (const hold *o = holds[h->thing]; o; o = o->next)
        if (o->o != h->o && overlap(o, h) && !is_shaken(o) && !is_shaken(h))
            finding("judge 1: two holders of %s: owner %d from %.6f to %.6f "
                    "(token %llu), owner %d from %.6f to %.6f (token %llu)",
                    things[h->thing].name, h->o->id, seconds(h->from),
                    seconds(h->to), (unsigned long long)h->token, o->o->id,
                    seconds(o->from), seconds(o->to),
                    (unsigned long long)o->token);
}

/* --- 2: belief is backed -------------------------------------------------- */

int holder_prefix(const hold *h, char *at, size_t room)
{
    const process *p = &h->g->p;
    return snprintf(at, room, "%s:%d:%d%s%s:", p->host, p->pid,
                    p->pid + 1000 * h->thread, *h->label ? "/" : "", h->label);
}

bool is_holder(const hold *h, const text *id)
{
    char want[100];
    const process *p = &h->g->p;
    int n = snprintf(want, sizeof want, "%s:%d:", p->host, p->pid);
    if (cfg.turn_ms == 0)
        n = holder_prefix(h, want, sizeof want);
    return id->len > (size_t)n && memcmp(id->at, want, (size_t)n) == 0;
}

bool judge_names_holder(const hold *h)
{
    return cfg.layout != RLOCK_LAYOUT_TIMESTAMP || things[h->thing].is_red;
}

static int64_t said_ms(const store *s, const entry *e)
{
    char at[40];
    snprintf(at, sizeof at, "%.*s", (int)e->value.len, e->value.at);
    return (int64_t)(strtod(at, NULL) * 1000) - s->now_us / 1000;
}

/* The server has it, for this holder, and for so long. */
static bool backs(server *s, const hold *h, int64_t ms)
{
    word key = {things[h->thing].name, strlen(things[h->thing].name)};
    server_set_clock(s);
    const entry *e = store_find(&s->store, &key);
    if (e && !judge_names_holder(h))
        return e->kind == KIND_STRING && said_ms(&s->store, e) + 2 >= ms;
    if (!e || entry_left_ms(&s->store, e) + 2 < ms)
        return false;
    if (e->kind == KIND_STRING)
        return is_holder(h, &e->value);
    return e->kind == KIND_HASH && e->count == 1 &&
           is_holder(h, &e->items[0].name);
}

bool judge_backs(server *s, const hold *h)
{
    return backs(s, h, 0);
}

static void check_backed(const hold *h, const look *l)
{
    const thing *t = &things[h->thing];
    int64_t left = l->valid_ms - (w.now - l->at + MS - 1) / MS;
    int n = 0, need = t->is_red ? (int)cfg.servers / 2 + 1 : 1;
    if (left <= 1 || is_still_shaken(h) || is_thinned(h))
        return;
    for (int i = 0; i < cfg.servers; i++)
        if (t->is_red)
            n += backs(&servers[i], h, left);
        else if (t->home == i)
            n += backs(server_in_office(i, t->name), h, left);
    if (n < need)
        finding("judge 2: owner %d believes in %s for %lld ms more, which %d "
                "of %d servers bear out",
                h->o->id, t->name, (long long)left, n, need);
}

/* What is not renewed ends with the longest lease that was asked for. */
static void check_lease(const hold *h, const look *l)
{
    if (!h->is_renewed && h->ends && l->at + l->valid_ms * MS > h->ends)
        finding("judge 2: owner %d has %s for %lld ms more, and the leases "
                "that it asked for end in %lld ms",
                h->o->id, things[h->thing].name, (long long)l->valid_ms,
                (long long)((h->ends - l->at) / MS));
}

/* --- 3: no return --------------------------------------------------------- */

static void check_no_return(const hold *h, const look *l)
{
    if (h->is_gone && (l->is_held || l->valid_ms > 0))
        finding("judge 3: owner %d has %s again, which it had lost (token "
                "%llu, it was %llu)",
                h->o->id, things[h->thing].name, (unsigned long long)l->token,
                (unsigned long long)h->token);
}

static void looked(hold *h, const look *l)
{
    check_no_return(h, l);
    if (l->valid_ms <= 0)
        return;
    check_exclusion(h);
    check_lease(h, l);
    check_backed(h, l);
}

/* Of several levels, or members, the worst is told: OK says that none is
   gone. */
static void called(const act *a)
{
    const lock *l = &locks[a->lock];
    if (a->status != RLOCK_OK || strcmp(a->verb, "force_unlock") == 0)
        return;
    for (int i = 0; i < l->n; i++) {
        const hold *h = a->o->hold[l->member[i]];
        if (h && h->is_gone)
            finding("judge 3: %s of %s, which was lost, answers ok", a->verb,
                    l->name);
    }
}

const judge judge_holding = {
    .name = "holding", .called = called, .looked = looked};
