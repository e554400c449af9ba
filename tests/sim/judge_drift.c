/*
 * Processes whose clocks drift beyond the margin of a lease (12 to 300 in a
 * thousand). Such an owner may believe in a lease that has run out, and is
 * excused from when it has on the server until it stops to believe; not before.
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

static bool names_no_holder(const world *w, size_t name)
{
    const rl_target *what =
        w->set.red ? &w->lock[name].red : &w->lock[name].what;
    return what->layout == &rl_layouts[RLOCK_LAYOUT_TIMESTAMP];
}

/* Theirs have run out, and do not run again when the server's clock goes back.
 */
static void end_others(world *w, const owner *o, size_t server, size_t name)
{
    for (size_t i = 0; i < w->processes; i++) {
        process *p = w->process[i];
        for (size_t k = 0; p->clock_broke && k < p->owners; k++)
            if (p->owner[k] != o)
                p->owner[k]->lease[server][name].until_ms = 0;
    }
}

/* Whose it is on the server now, and how long. */
void judge_note_lease(world *w, server *s, size_t name)
{
    word key = {w->lock[name].name, strlen(w->lock[name].name)};
    const entry *e = store_find(&s->store, &key);
    const text *t = !e                     ? NULL
                    : e->kind == KIND_HASH ? &e->items[0].name
                                           : &e->value;
    word holder = {t ? t->at : NULL, t ? t->len : 0};
    owner *o = t ? judge_owner_of(w, &holder) : NULL;
    end_others(w, o, s->index, name);
    if (!o || !o->p->clock_broke || t->len < RL_UUID_LEN)
        return;
    lease *x = &o->lease[s->index][name];
    memcpy(x->uuid, t->at + t->len - RL_UUID_LEN, RL_UUID_LEN);
    x->until_ms = e->expires_ms;
}

/* Does its lease run there, as far as the server was ever told? */
static bool runs(const owner *o, size_t name, const server *s)
{
    char uuid[RL_UUID_LEN + 1];
    const lease *x = &o->lease[s->index][name];
    rl_uuid_write(&o->holding[name].hold->id, uuid);
    return memcmp(uuid, x->uuid, RL_UUID_LEN) == 0 &&
           server_now(s) / MS < x->until_ms;
}

bool judge_excuses_drift(const owner *o, size_t name)
{
    world *w = o->p->w;
    size_t running = 0;
    if (!o->p->clock_broke || !o->holding[name].hold)
        return false;
    if (names_no_holder(w, name)) /* nor is it known whose lease it is */
        return true;
    if (!w->set.red)
        return !runs(o, name, lock_server(w, name));
    for (size_t i = 0; i < w->set.servers; i++)
        running += runs(o, name, &w->server[i]);
    return running < w->set.servers / 2 + 1;
}
