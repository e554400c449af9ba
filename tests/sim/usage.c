/*
 * Judge 13 for what several may have at a time, which a server's store does not
 * show at a glance: while somebody waits for it, it is not left to nobody for
 * long. Who has it is what its owners were told.
 *
 * A client that is closed, or dies, leaves its leases behind: nobody has it from
 * their end on, and who waits may take until he has looked. And who stood in line
 * when it died stands there until he is taken for dead, and may be granted it.
 */
#include "judge.h"

#define IDLE  (500 * MS)
#define LOOKS (3 * S)

void usage_asks(usage *u, const owner *o, int64_t lease_ms)
{
    if (u->lease_ms[o->id] < lease_ms)
        u->lease_ms[o->id] = lease_ms;
}

static void use_until(usage *u, int64_t until)
{
    if (u->until < until)
        u->until = until;
}

/* Nobody else knows, so it is over when its lease is. */
static void leave(usage *u, const owner *o)
{
    use_until(u, w.now + u->lease_ms[o->id] * MS + LOOKS);
}

static void check_idle(const usage *u, const owner *o, int64_t began)
{
    int64_t since = u->until > began ? u->until : began;
    if (!cfg.calm || o->g->closing_at || u->holds_n > 0)
        return;
    if (w.now - since > IDLE + judge_slack())
        finding("judge 13: nobody has had %s for %lld ms while owner %d waited",
                u->name, (long long)((w.now - since) / MS), o->id);
}

void usage_answered(usage *u, const owner *o, int64_t began, rlock_status s)
{
    check_idle(u, o, began);
    if (s == RLOCK_OK) {
        u->holds[o->id]++;
        u->holds_n++;
    } else if (u->holds[o->id] == 0) {
        u->lease_ms[o->id] = 0;
    }
}

void usage_ends(usage *u, const owner *o, rlock_status s)
{
    if (s != RLOCK_OK && s != RLOCK_LOST)
        leave(u, o);
    else
        use_until(u, w.now);
    u->holds_n--;
    if (--u->holds[o->id] == 0)
        u->lease_ms[o->id] = 0;
}

void usage_died(usage *u, const program *g)
{
    for (int i = 0; i < OWNERS_MAX; i++) {
        if (owners[i].g != g || u->lease_ms[i] == 0)
            continue;
        leave(u, &owners[i]);
        use_until(u, w.now + DEAD_STANDS);
        u->holds_n -= u->holds[i];
        u->holds[i] = 0;
        u->lease_ms[i] = 0;
    }
}
