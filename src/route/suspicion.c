#include "route/suspicion.h"

#include "base/clock.h"

/* Somebody complains anew of a server by then, if it does not answer. */
#define SUSPICION_US (1500 * 1000)
/* To connect takes no longer, mostly, than it has lately, and this. */
#define SLOW_DIAL_US (250 * 1000)

/* What is wrong with one that has been left is of no interest any more. */
void rl_cluster_suspect(rl_cluster *c, void *server)
{
    rl_mutex_lock(&c->mutex);
    rl_server *s = server ? rl_slotmap_made(c, server) : NULL;
    bool told = c->suspected || (s && s->retired);
    if (s) {
        s->suspect = true;
        c->accused = s;
        c->accused_us = rl_now_us();
    }
    c->suspected = c->suspected || !told;
    rl_mutex_unlock(&c->mutex);
    if (!told)
        c->o.nudge(c->o.arg);
}

void rl_cluster_dials(rl_cluster *c, void *server, bool begins)
{
    rl_mutex_lock(&c->mutex);
    rl_server *s = rl_slotmap_made(c, server);
    if (s && begins && s->dials++ == 0)
        s->dial_us = rl_now_us();
    else if (s && !begins)
        s->dials--;
    rl_mutex_unlock(&c->mutex);
    if (begins)
        c->o.nudge(c->o.arg);
}

/* When somebody who connects to it has waited for too long; RL_NEVER: nobody.
 */
static int64_t slow_from(const rl_server *s)
{
    return s->dials > 0 && !s->retired
               ? s->dial_us + SLOW_DIAL_US + s->cluster->took_us
               : RL_NEVER;
}

/* Whoever connects says nothing, so it is looked at. */
static void accuse_slow_locked(rl_cluster *c, int64_t now_us)
    RL_REQUIRES(&c->mutex)
{
    for (unsigned i = 0; i < c->count; i++) {
        if (slow_from(c->server[i]) > now_us)
            continue;
        c->accused = c->server[i];
        c->accused->suspect = true;
        c->accused_us = now_us;
        c->suspected = true;
    }
}

bool rl_suspicion_is_due(rl_cluster *c, int64_t now_us)
{
    rl_mutex_lock(&c->mutex);
    accuse_slow_locked(c, now_us);
    bool due = now_us >= c->routine_us ||
               (c->suspected && now_us >= c->asked_us + c->gap_us);
    if (due && c->suspected && now_us - c->troubled_us > RL_CALM_US)
        c->trouble_us = now_us;
    if (due && c->suspected)
        c->troubled_us = now_us;
    c->suspected = c->suspected && !due;
    rl_mutex_unlock(&c->mutex);
    return due;
}

int64_t rl_suspicion_next_us(rl_cluster *c)
{
    rl_mutex_lock(&c->mutex);
    int64_t next = c->suspected ? rl_min(c->routine_us, c->asked_us + c->gap_us)
                                : c->routine_us;
    for (unsigned i = 0; i < c->count; i++)
        next = rl_min(next,
                      rl_max(slow_from(c->server[i]), c->asked_us + c->gap_us));
    rl_mutex_unlock(&c->mutex);
    return next;
}

bool rl_suspicion_lasts_locked(const rl_cluster *c, int64_t now_us)
{
    return c->accused && !c->accused->retired &&
           now_us - c->accused_us < SUSPICION_US;
}
