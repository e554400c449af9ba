/*
 * The judge of what is noticed: a server has lost its data, and somebody who
 * holds something there does nothing. In a world where nothing else goes wrong
 * (config.wiped) he has to be told within a second, or to have been granted it
 * anew.
 */
#include "judge.h"

/* As client.h says. */
#define NOTICED_US (1 * S)

/* A node that has restarted votes for nobody until such a lease is over. */
static bool is_safe(const rl_hold *h)
{
    return h->group && h->group->quorum && !h->renewed;
}

static void judge_holds(client *c, int64_t lost_us)
{
    const rl_heap *h = &c->e.core.holds.expiry;
    int64_t now_us = client_now(c);
    for (size_t i = 0; i < h->count; i++) {
        rl_hold *x = RL_CONTAINER(h->nodes[i], rl_hold, expiry);
        if (x->confirmed_us >= lost_us || x->expiry.due_us <= now_us ||
            is_safe(x))
            continue;
        judge_fail(c->w,
                   "judge 3: process %u holds %s, which server %u lost %lld us "
                   "ago",
                   c->p->index, rl_hold_name(x), c->s->index,
                   (long long)(c->w->now_us - c->s->lost_us));
        return;
    }
}

void judge_watch(world *w)
{
    for (size_t i = 0; w->set.wiped && i < w->processes; i++) {
        process *p = w->process[i];
        for (size_t k = 0; k < w->set.servers; k++) {
            const server *s = &w->server[k];
            if (s->lost_us > 0 && w->now_us > s->lost_us + NOTICED_US &&
                client_is_open(&p->client[k]))
                judge_holds(&p->client[k], clock_at(&p->clock, s->lost_us));
        }
    }
}
