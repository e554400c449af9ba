/*
 * Judge 13 for what several may have at a time, which a server's store does not
 * show at a glance: while somebody waits for it, it is not left to nobody for
 * long. Who has it is what its owners were told.
 *
 * A client that is closed, as one that dies, leaves its leases behind: nobody
 * has it from their end on, and who waits may take until he has looked.
 */
#include "judge.h"

#define IDLE  (500 * MS)
#define LOOKS (3 * S)

void usage_begin(usage *u, const owner *o, int64_t lease_ms)
{
    u->holds[o->id]++;
    u->holds_n++;
    if (u->lease_ms[o->id] < lease_ms)
        u->lease_ms[o->id] = lease_ms;
}

void usage_end(usage *u, const owner *o, rlock_status s)
{
    bool is_left = s != RLOCK_OK && s != RLOCK_LOST;
    int64_t until = w.now;
    if (is_left)
        until += u->lease_ms[o->id] * MS + LOOKS;
    if (u->until < until)
        u->until = until;
    u->holds_n--;
    if (--u->holds[o->id] == 0)
        u->lease_ms[o->id] = 0;
}

void usage_waited(const usage *u, const owner *o, int64_t began)
{
    int64_t since = u->until > began ? u->until : began;
    if (!cfg.calm || o->g->closing_at || u->holds_n > 0)
        return;
    if (w.now - since > IDLE + judge_slack())
        finding("judge 13: nobody has had %s for %lld ms while owner %d waited",
                u->name, (long long)((w.now - since) / MS), o->id);
}
