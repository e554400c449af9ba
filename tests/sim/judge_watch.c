/*
 * Judge 14: who has a hold at a server that was replaced, or has lost its data,
 * learns of it within the time that client.h promises, without a call of his.
 * What the server in office does not have as it takes office has to be told
 * to be lost a second later, and what threads and callbacks may be late.
 *
 * Only where connections are sound, nobody forces locks open, and nothing else
 * has gone wrong since.
 */
#include <stdlib.h>
#include <string.h>

#include "judge.h"

static int64_t last_trouble;
static int64_t replaced_at[THINGS_MAX]; /* who had it, or will be */

void judge_trouble(void)
{
    judge_trouble_until(w.now);
}

void judge_trouble_until(int64_t when)
{
    if (when > last_trouble && when != NEVER)
        last_trouble = when;
}

unsigned judge_things_at(int server)
{
    unsigned which = 0;
    for (int t = 0; t < things_n; t++)
        if (!things[t].is_red &&
            server_in_office(things[t].home, things[t].name)->index == server)
            which |= 1u << t;
    return which;
}

bool judge_is_sound(void)
{
    return cfg.stall_ppm == 0 && cfg.change_ppm == 0 && cfg.cut_ppm == 0 &&
           cfg.freeze_ppm == 0 && cfg.trickle_ppm == 0 &&
           cfg.silence_ppm == 0 && cfg.refuse_ppm == 0 && cfg.names_ppm == 0 &&
           cfg.pause_ppm == 0 && cfg.unserved_ppm == 0 && cfg.loading_us == 0 &&
           cfg.scarce_ppm == 0 && cfg.force == 0;
}

bool judge_trouble_since(int64_t when)
{
    return last_trouble >= when;
}

/* A Red lock is backed by a majority of its nodes, whichever. */
static bool is_backed(const hold *h)
{
    const thing *t = &things[h->thing];
    int votes = 0;
    if (!t->is_red)
        return judge_backs(server_in_office(t->home, t->name), h);
    for (int i = 0; i < cfg.servers; i++)
        votes += judge_backs(&servers[i], h);
    return votes > cfg.servers / 2;
}

/* A Red lock with a lease of its own is not asked about (client.h). */
static bool is_watched(const hold *h)
{
    return h->is_renewed || !things[h->thing].is_red;
}

/* The client believes in it, as far as it has said, and the server does not. */
static bool is_believed_in_vain(const hold *h)
{
    return is_watched(h) && h->token && !h->ended && !h->is_gone &&
           !h->unlocking && !h->lost_told && !h->g->closing_at &&
           !judge_was_told(h) && judge_is_heard(h) && !is_backed(h);
}

/* --- what is to be told --------------------------------------------------- */

typedef struct debt {
    event due; /* the first member */
    hold *h;
    int64_t since, grace;
} debt;

static int64_t due_of(const debt *d)
{
    return d->since + S + d->grace + 100 * MS + judge_slack() +
           judge_callbacks();
}

/* What runs out by itself in these moments is told a little later. */
static bool has_just_ended(const hold *h)
{
    return !h->is_renewed && h->deadline < w.now &&
           w.now - h->deadline < judge_slack();
}

/* What a server lacks that is replaced itself is the next one's debt. */
static void collect(event *e)
{
    debt *d = (debt *)e;
    bool is_owed = is_believed_in_vain(d->h) && !has_just_ended(d->h) &&
                   replaced_at[d->h->thing] <= d->since;
    if (is_owed && last_trouble >= d->since) {
        d->since = last_trouble + 1;
        event_set(e, due_of(d));
        return;
    }
    if (is_owed)
        finding("judge 14: owner %d is not told that %s, token %llu, which the "
                "server lacks since %.6f, is lost",
                d->h->o->id, things[d->h->thing].name,
                (unsigned long long)d->h->token, seconds(d->since));
    free(d);
}

static void owe(hold *h, int64_t grace)
{
    debt *d = need_memory(sizeof *d);
    d->h = h;
    d->since = w.now;
    d->grace = grace;
    d->due.fire = collect;
    event_set(&d->due, due_of(d));
}

/* --- servers that take office --------------------------------------------- */

typedef struct office {
    event begins; /* the first member */
    unsigned things;
    int64_t grace;
} office;

static office last; /* for who is told of a grant of the one before */
static int64_t last_began;

static void begin_office(event *e)
{
    office *o = (office *)e;
    last = *o;
    last_began = w.now;
    for (int t = 0; t < things_n; t++)
        for (hold *h = holds[t]; h && o->things >> t & 1; h = h->next)
            if (is_believed_in_vain(h))
                owe(h, o->grace);
    free(o);
}

void judge_replaced(unsigned which, int64_t since, int64_t grace)
{
    for (int t = 0; t < things_n; t++)
        if (which >> t & 1)
            replaced_at[t] = since;
    if (!judge_is_sound() || cfg.tail_ppm > 0)
        return;
    office *o = need_memory(sizeof *o);
    o->things = which;
    o->grace = grace;
    o->begins.fire = begin_office;
    event_set(&o->begins, since);
}

bool judge_was_replaced(int thing, int64_t since)
{
    return replaced_at[thing] >= since && replaced_at[thing] > 0;
}

static void taken(hold *h)
{
    if (last_began > 0 && w.now - last_began < 2 * S &&
        last.things >> h->thing & 1 && is_believed_in_vain(h))
        owe(h, last.grace);
}

const judge judge_watch = {.name = "watch", .taken = taken};
