#include "run/desk.h"

#include <stdlib.h>

#include "run/async.h"

/* Of several servers. NULL: out of memory, and others have the spare ones. */
static rl_leg *take_legs(rl_async *a)
{
    rl_leg *legs = malloc(RL_PARTS_MAX * sizeof *legs);
    if (!legs) {
        legs = a->spare;
        a->spare = NULL;
    }
    return legs;
}

static void put_legs(rl_async *a, rl_leg *legs)
{
    if (a->spare)
        free(legs);
    else
        a->spare = legs;
}

bool rl_desk_get_ready(rl_desk *d, rl_op *op, rl_async *a)
{
    if (d->op == op)
        return true;
    if (op->several)
        d->several = take_legs(a);
    if (op->several && !d->several)
        return false;
    d->op = op;
    rl_legs_init(&d->legs, op, op->several ? d->several : &d->leg, &a->trunks);
    return true;
}

void rl_desk_put_away(rl_desk *d, rl_async *a)
{
    if (d->op)
        rl_legs_close(&d->legs);
    d->op = NULL;
    if (d->several)
        put_legs(a, d->several);
    d->several = NULL;
}

bool rl_desk_go_round(rl_desk *d, int64_t now_us)
{
    while (!rl_legs_ask(&d->legs, &now_us)) {
        if (!rl_round_has_work(d->op)) {
            d->until_us = rl_round_wait_end(d->op);
            return false;
        }
        rl_legs_look(&d->legs, now_us);
    }
    return true;
}

/* NULL: no answer is to come on a connection of its own. */
static rl_conn *conn_of(const rl_leg *l)
{
    return rl_way_is_good(&l->way) && l->way.line->pending > 0 ? rl_leg_conn(l)
                                                               : NULL;
}

struct pollfd rl_desk_poll(rl_desk *d, size_t i)
{
    const rl_conn *c = conn_of(&d->legs.leg[i]);
    d->polled = d->polled || c;
    return (struct pollfd){.fd = c ? c->io.fd : -1,
                           .events = c ? rl_conn_events(c) : 0};
}

bool rl_desk_is_expecting(const rl_desk *d)
{
    bool expecting = false;
    for (size_t i = 0; i < d->legs.n; i++)
        expecting = expecting || d->legs.leg[i].way.expecting;
    return expecting;
}

bool rl_desk_is_unseen(const rl_desk *d)
{
    bool own = false;
    for (size_t i = 0; i < d->legs.n; i++)
        own = own || conn_of(&d->legs.leg[i]);
    return own && !d->polled;
}

/*
 * Has its only part, which asks on a trunk, been answered, or has to be asked
 * anew? Who drives may have found that the trunk has broken after it was looked
 * at last: then it rests for less than the desk was to be left.
 */
static bool is_told(const rl_desk *d)
{
    const rl_part *x = d->op->part[0];
    if (rl_part_is_open(x) && x->ask.next == RL_ASK_RESTS)
        return x->ask.rest_until_us < d->until_us;
    return !rl_part_is_open(x) || x->ask.next != RL_ASK_WAITS;
}

/* What has come on a leg of its own is read. False: nothing has. */
static bool look_at_leg(const rl_desk *d, rl_leg *l, const struct pollfd *p)
{
    rl_conn *c = conn_of(l);
    if (l->trunk)
        return is_told(d);
    if (!c || !p || p->fd != c->io.fd || !p->revents)
        return l->way.expecting;
    if (rl_conn_send(c))
        rl_conn_receive(c);
    return true;
}

bool rl_desk_look(rl_desk *d, const struct pollfd *p, size_t n, int64_t now_us)
{
    bool news = now_us >= d->until_us;
    for (size_t i = 0; i < d->legs.n; i++)
        news = look_at_leg(d, &d->legs.leg[i], i < n ? &p[i] : NULL) || news;
    if (!news)
        return false;
    rl_legs_look(&d->legs, now_us);
    return true;
}
