/*
 * Waits that are canceled: all for one lock, once, or all for the locks of a
 * client, for as long as somebody says so. What has been canceled when, judges
 * ask here: an acquire may answer so only if it was, and in a calm world nobody
 * waits on for a client that cancels.
 */
#include "judge.h"

bool was_canceled(const program *g, int lock, int64_t since)
{
    return g->cancelers > 0 || g->canceled_all >= since ||
           g->canceling[lock] > 0 || g->canceled_at[lock] >= since;
}

void act_cancel(owner *o)
{
    int lock = (int)chance_below(&o->dice, locks_n);
    trace("owner %d cancels waits for %s", o->id, locks[lock].name);
    o->g->canceling[lock]++;
    rlock_cancel(o->g->handle[lock]);
    o->g->canceling[lock]--;
    o->g->canceled_at[lock] = w.now;
}

static bool waits_for(const act *a, int client)
{
    const lock *l = &locks[a->lock];
    const thing *t = &things[l->member[0]];
    return a->wait_ms != 0 && !a->is_nested && !a->is_started && l->n == 1 &&
           (t->is_red ? 0 : t->home) == client;
}

static void check_ended(const program *g, int client, int64_t since)
{
    for (int i = 0; i < OWNERS_MAX && cfg.calm; i++) {
        const act *a = owners[i].g == g ? owners[i].waits : NULL;
        if (a && a->began < since && waits_for(a, client))
            finding("judge 6: the client of server %d cancels all waits, and "
                    "owner %d waits on for %s",
                    client, i, locks[a->lock].name);
    }
}

/* Only one at a time for each client: the first to end ends it. */
void act_silence(owner *o)
{
    program *g = o->g;
    int k = (int)chance_below(&o->dice, cfg.servers);
    if (g->is_silent[k] || cfg.close_at_ms > 0)
        return; /* no call with a client that is being closed */
    trace("owner %d cancels all waits of the client of server %d", o->id, k);
    g->is_silent[k] = true;
    g->cancelers++;
    rlock_status s = rlock_client_cancel(g->client[k], true);
    int64_t since = w.now;
    sleep_for(100 * MS + chance_skewed(&o->dice, cfg.think_ms * MS));
    check_ended(g, k, since);
    if (s == RLOCK_OK)
        s = rlock_client_cancel(g->client[k], false);
    if (s)
        finding("a client does not cancel: %s", rlock_status_str(s));
    trace("owner %d lets the client of server %d wait again", o->id, k);
    g->cancelers--;
    g->canceled_all = w.now;
    g->is_silent[k] = false;
}
