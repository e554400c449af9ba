/* What the judges keep of a Red lock that an owner holds. */
#include "judge.h"
#include "owner.h"

static rl_core *node(owner *o, size_t i)
{
    return &o->p->client[i].e.core;
}

static rl_hold *find(owner *o, size_t i, size_t name)
{
    return client_find(&o->p->client[i], owner_target(o, name), o->self.serial);
}

/* The group, and the first of its holds. */
void red_keep(owner *o, size_t name)
{
    holding *have = &o->holding[name];
    for (size_t i = 0; i < o->p->w->set.servers && !have->hold; i++) {
        have->at = i;
        have->hold = find(o, i, name);
    }
    if (!have->hold)
        return;
    have->hold->refs++;
    have->group = have->hold->group;
    rl_group_ref(have->group);
}

bool red_believes(owner *o, size_t name)
{
    const world *w = o->p->w;
    const holding *have = &o->holding[name];
    int64_t now_us = process_now(o->p);
    size_t n = 0;
    if (!have->group || have->releasing || !rl_group_is_owned(have->group))
        return false;
    for (size_t i = 0; i < w->set.servers; i++) {
        const rl_hold *h = find(o, i, name);
        n += h && client_is_open(&o->p->client[i]) && h->group == have->group &&
             h->state == RL_HELD && now_us < h->expiry.due_us;
    }
    if (o->verb == EXTEND && owner_is_about(o, name) &&
        now_us >= rl_lease_deadline(o->began_us,
                                    rl_lease_of(node(o, 0), o->lease_ms)))
        return false;
    return n >= w->set.servers / 2 + 1;
}
