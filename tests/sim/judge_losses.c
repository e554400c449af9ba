/*
 * Judge 4: a loss is told exactly once, and none that was not; what was told to
 * be lost is not held after that; and it is told no later than the deadline
 * plus what threads may be late. Of the holds that one acquire of a Multi lock
 * has taken the first loss is told for all. A thread that ends, or a client
 * that is closed, may leave losses untold.
 */
#include <string.h>

#include "judge.h"

#define LOSSES_MAX 4096

/* A loss of this bunch was told with its token. */
#define KNOWN (-1)

static struct {
    program *g;
    int thing;
    uint64_t token;
    int64_t at;
    const hold *of; /* whose it was, from the end on */
} losses[LOSSES_MAX];
static int losses_n;

/* Of what has no token it is found at the end, if at all. */
/* Of several, the latest that was granted before: a master that lost the last
   token may give it again. */
static hold *hold_of(const program *g, int thing, uint64_t token, int64_t at)
{
    hold *later = NULL;
    for (hold *h = holds[thing]; h && token; h = h->next) {
        if (h->g != g || h->token != token)
            continue;
        if (h->from <= at)
            return h;
        later = h;
    }
    return later;
}

/* Of one that is being unlocked only the answer tells. */
static void note_loss(hold *h)
{
    h->lost_told = w.now;
    if (cfg.calm && h->is_renewed && !h->ended && !is_shaken(h) &&
        !h->g->closing_at && cfg.max_hold_ms == 0)
        finding("judge 4: in a calm world the loss of %s is told, which is "
                "renewed",
                things[h->thing].name);
    /* What is left is told in whole milliseconds. */
    bool is_given_back = h->unlocking && h->unlocking <= h->deadline + MS;
    /* At the end of a client nobody dispatches: who closes it tells. */
    bool is_left = cfg.dispatch_events && h->g->closing_at;
    if (!h->is_renewed && !h->was_extended && h->deadline && !is_given_back &&
        !is_left &&
        w.now > h->deadline + 20 * MS + judge_slack() + judge_callbacks())
        finding("judge 4: the loss of %s is told %lld ms late",
                things[h->thing].name, (long long)((w.now - h->deadline) / MS));
}

static void note_abandoned(program *g, const rlock_event *e)
{
    hold *h = hold_of(g, thing_of(e->name), e->token, w.now);
    if (h && h->bunch->abandons++ > 0)
        finding("judge 4: that %s, token %llu, is abandoned is told twice",
                e->name, (unsigned long long)e->token);
}

static void told(program *g, const rlock_event *e)
{
    if (strcmp(e->owner, LENT) == 0)
        return; /* nobody relies on what such an owner has */
    if (e->type == RLOCK_EVENT_ABANDONED && thing_of(e->name) >= 0)
        note_abandoned(g, e);
    if (e->type != RLOCK_EVENT_LOST || (cfg.rw && rw_is(e->name)) ||
        (cfg.used && used_is(e->name)))
        return;
    int t = thing_of(e->name);
    if (t < 0)
        finding("judge 4: the loss of \"%s\", which is no lock", e->name);
    for (int i = 0; i < losses_n; i++)
        if (losses[i].g == g && losses[i].thing == t &&
            losses[i].token == e->token && e->token)
            finding("judge 4: the loss of %s, token %llu, is told twice",
                    e->name, (unsigned long long)e->token);
    if (losses_n == LOSSES_MAX)
        finding("the world has too many losses");
    losses[losses_n].g = g;
    losses[losses_n].thing = t;
    losses[losses_n].token = e->token;
    losses[losses_n++].at = w.now;
    hold *h = hold_of(g, t, e->token, w.now);
    if (h)
        note_loss(h);
}

/* A clock that was put back may give a token twice (judge 5): then it does not
   say whose loss it was. */
static bool has_twin(const hold *h)
{
    for (const hold *o = holds[h->thing]; o; o = o->next)
        if (o != h && o->g == h->g && o->token == h->token)
            return true;
    return false;
}

static void looked(hold *h, const look *l)
{
    if (h->lost_told && h->lost_told < l->at && l->is_held && !has_twin(h))
        finding("judge 4: the loss of %s, token %llu, was told, and owner %d "
                "holds it",
                things[h->thing].name, (unsigned long long)h->token, h->o->id);
}

/* --- at the end ----------------------------------------------------------- */

/* Of a loss whose token nobody was told, who was to have it: he may have lost it
   before he could be told; or there is none. */
static bool may_be_of(int i, const hold *h)
{
    return h->g == losses[i].g && !h->token && h->asked <= losses[i].at;
}

/* Somebody has seen that it is lost, or what was taken with it. */
static bool is_seen_gone(const hold *h)
{
    for (int t = 0; t < things_n; t++)
        for (const hold *o = holds[t]; o; o = o->next)
            if (o->bunch == h->bunch && o->is_gone)
                return true;
    return false;
}

/* One of those that may be, none for two losses: who has one already may be the
   loser of the other one. gone: only of those who have seen that they lost it. */
static bool find_loser(int i, bool gone, int turn)
{
    for (hold *h = holds[losses[i].thing]; h; h = h->next) {
        bunch *b = h->bunch;
        if (!may_be_of(i, h) || b->looked_at == turn ||
            (gone && !is_seen_gone(h)))
            continue;
        b->looked_at = turn;
        if (b->loss == KNOWN ||
            (b->loss && !find_loser(b->loss - 1, gone, turn)))
            continue;
        b->loss = i + 1;
        losses[i].of = h;
        return true;
    }
    return false;
}

/* Nobody is left: then it is nobody's, or told twice. */
static const hold *any_loser(int i)
{
    for (const hold *h = holds[losses[i].thing]; h; h = h->next)
        if (may_be_of(i, h))
            return h;
    return NULL;
}

static void find_losers(void)
{
    for (int i = 0; i < losses_n; i++) {
        hold *h = hold_of(losses[i].g, losses[i].thing, losses[i].token,
                          losses[i].at);
        losses[i].of = h;
        if (h)
            h->bunch->loss = KNOWN;
    }
    for (int i = 0; i < losses_n; i++)
        if (!losses[i].of)
            find_loser(i, true, i + 1);
    for (int i = 0; i < losses_n; i++)
        if (!losses[i].of && !find_loser(i, false, losses_n + i + 1))
            losses[i].of = any_loser(i);
}

/* A Red lock tells its loss also while the rest of a Multi lock is waited for. */
static bool was_held(int i)
{
    for (int k = things_n; k < locks_n && things[losses[i].thing].is_red; k++)
        if (locks[k].has_red)
            return true;
    return losses[i].of != NULL;
}

/* What was taken together is lost together, and told once. */
static int times_told(const bunch *b)
{
    int n = 0;
    for (int i = 0; i < losses_n; i++) {
        const hold *h = losses[i].of ? losses[i].of
                                     : hold_of(losses[i].g, losses[i].thing,
                                               losses[i].token, losses[i].at);
        n += h && h->bunch == b;
    }
    return n;
}

/* By a loss without token, of which only the end says whose it is. */
static bool may_have_been_told(const bunch *b)
{
    for (int i = 0; i < losses_n; i++)
        for (const hold *h = losses[i].token ? NULL : holds[losses[i].thing]; h;
             h = h->next)
            if (h->bunch == b)
                return true;
    return false;
}

bool judge_was_told(const hold *h)
{
    return times_told(h->bunch) > 0 || may_have_been_told(h->bunch);
}

bool judge_is_heard(const hold *h)
{
    const thing *t = &things[h->thing];
    return cfg.unheard == 0 ||
           (h->bunch->holds == 1 && !t->is_red && client_is_heard(t->home));
}

/* Events that are dispatched are told but for those for which there was no
   memory when the loss was noticed: client.h. */
static bool may_lack_memory(const hold *h)
{
    bool is_posted = cfg.dispatch_events || h->o->is_task;
    return is_posted &&
           memory_was_short(&h->g->p, h->to, h->ended + S + judge_slack());
}

static void check_told(const hold *h)
{
    int n = times_told(h->bunch);
    if (n > 1)
        finding("judge 4: the loss of %s, token %llu, and what was taken with "
                "it, is told %d times",
                things[h->thing].name, (unsigned long long)h->token, n);
    /* A client that is closed soon after it may not be told. */
    if (n == 0 && h->is_gone && (h->token || judge_is_tokenless(h->thing)) &&
        h->ended && h->g->closing_at - h->ended > 5 * S &&
        !may_lack_memory(h) && judge_is_heard(h))
        finding("judge 4: the loss of %s, token %llu, was never told",
                things[h->thing].name, (unsigned long long)h->token);
}

/* Its owner ended while it was there, for all that anybody knows. */
static void check_abandoned(const hold *h)
{
    if (cfg.calm && h->is_abandoned && h->is_renewed && !h->is_gone &&
        h->token && h->bunch->holds == 1 && h->bunch->abandons == 0 &&
        cfg.max_hold_ms == 0 && !h->lost_told && !is_shaken(h) &&
        !h->unlocking && h->g->closing_at - h->ended > 5 * S &&
        judge_is_heard(h))
        finding("judge 4: that %s, token %llu, is abandoned was never told",
                things[h->thing].name, (unsigned long long)h->token);
}

static void ended(void)
{
    find_losers();
    for (int i = 0; i < losses_n; i++)
        if (!was_held(i))
            finding("judge 4: the loss of %s, token %llu, which nobody held",
                    things[losses[i].thing].name,
                    (unsigned long long)losses[i].token);
    for (int t = 0; t < things_n; t++)
        for (const hold *h = holds[t]; h; h = h->next)
            check_told(h), check_abandoned(h);
}

const judge judge_losses = {
    .name = "losses", .looked = looked, .told = told, .ended = ended};
