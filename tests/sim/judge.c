/*
 * The judges that look at each step, with the knowledge of all sides.
 *
 *   1  no two owners are told "held" at the same time
 *   2  tokens grow with the grants, re-entry keeps them, counts agree
 *   3  a loss is told once, in time, and none that is not; what was once not
 *      held never is again
 *
 * A lock may be lost without anybody's fault: a server loses data, somebody
 * deletes its key or frees it by force (a server's `harm` counts these), a
 * clock breaks its bound. What began before such a thing is excused; then the
 * tokens have to tell.
 */
#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t judge_latency_us(const world *w)
{
    return 10 * MS + 2 * rl_max(w->set.stall_us, w->set.latency_us);
}

void judge_fail(world *w, const char *fmt, ...)
{
    va_list args;
    if (w->failed)
        return;
    w->failed = true;
    w->complaint = fmt;
    va_start(args, fmt);
    vsnprintf(w->failure, sizeof w->failure, fmt, args);
    va_end(args);
    trace(w, "%s", w->failure);
}

const char *judge_name_of(const world *w, size_t name)
{
    return w->lock[name].name;
}

/* --- excuses -------------------------------------------------------------- */

/*
 * A Red lock survives the loss of data; what somebody does to several nodes at
 * once it need not.
 */
unsigned judge_harm(const world *w, size_t name)
{
    unsigned n = 0;
    if (!w->set.red)
        return w->server[w->lock[name].server].harm;
    for (size_t i = 0; i < w->set.servers; i++)
        n += w->server[i].misuse;
    return n;
}

static bool any_clock(const world *w, size_t name, bool back)
{
    for (size_t i = 0; i < w->set.servers; i++) {
        const server *s = &w->server[i];
        if (!w->set.red && i != w->lock[name].server)
            continue;
        if (back ? s->clock_went_back && s->data_lost : s->clock_broke)
            return true;
    }
    return false;
}

/* Can tokens begin anew? */
bool judge_excuses_tokens(const world *w, size_t name)
{
    return any_clock(w, name, true);
}

bool judge_excuses(const owner *o, size_t name)
{
    const world *w = o->p->w;
    return o->p->is_dead || judge_excuses_drift(o, name) ||
           any_clock(w, name, false) ||
           o->holding[name].harm != judge_harm(w, name);
}

/* --- 1: who believes ------------------------------------------------------ */

/*
 * While an owner waits for its extend it is told nothing, and has asked for
 * what it then has.
 */
static int64_t belief_end(const owner *o, size_t name)
{
    int64_t us = o->holding[name].hold->expiry.due_us;
    const rl_core *core =
        &o->p->client[lock_server(o->p->w, name)->index].e.core;
    if (o->verb == EXTEND && owner_is_about(o, name))
        us = rl_min(
            us, rl_lease_deadline(o->began_us, rl_lease_of(core, o->lease_ms)));
    return us;
}

bool judge_believes(owner *o, size_t name)
{
    const holding *have = &o->holding[name];
    if (o->p->w->set.red) /* with its home, its group ends */
        return red_believes(o, name);
    if (owner_is_closed(o, name))
        return false;
    return have->hold && !have->releasing && have->hold->state == RL_HELD &&
           process_now(o->p) < belief_end(o, name);
}

/*
 * Tokens differ also when two owners are excused; but not of a Red lock that
 * was forced, so that votes were freed before a quorum knew their token.
 */
static void overlap(world *w, const owner *a, const owner *b, size_t name)
{
    if (judge_excuses(a, name) || judge_excuses(b, name)) {
        if (a->accounts[a->holding[name].account].token ==
                b->accounts[b->holding[name].account].token &&
            !w->set.red && !judge_excuses_tokens(w, name))
            judge_fail(w, "judge 2: owners %u and %u hold %s with one token",
                       a->number, b->number, judge_name_of(w, name));
        return;
    }
    judge_fail(w, "judge 1: owners %u and %u both hold %s", a->number,
               b->number, judge_name_of(w, name));
}

/* --- 3: a deadline that passes in silence --------------------------------- */

bool judge_has_run_since(const owner *o, int64_t true_us)
{
    const world *w = o->p->w;
    int64_t ran_us = rl_max(o->p->resumed_us, o->p->event_us);
    return w->now_us > rl_max(true_us, ran_us) + judge_latency_us(w);
}

typedef enum end { IT_GOES_ON, ITS_TIME_IS_OVER, IT_IS_LOST } end;

/* Its holds are held until the calls that are inside have left. */
static bool closes_a_client(const process *p)
{
    bool closes = false;
    for (size_t i = 0; i < p->w->set.servers; i++)
        closes = closes || p->client[i].stage == CLIENT_CLOSING;
    return closes;
}

static end end_of(owner *o, size_t name)
{
    const holding *have = &o->holding[name];
    const rl_hold *h = have->hold;
    if (have->group)
        return atomic_load(&have->group->state) == RL_GROUP_LOST ? IT_IS_LOST
               : have->releasing || judge_believes(o, name) ||
                       closes_a_client(o->p)
                   ? IT_GOES_ON
                   : ITS_TIME_IS_OVER;
    if (h->state == RL_HELD)
        return process_now(o->p) >= h->expiry.due_us ? ITS_TIME_IS_OVER
                                                     : IT_GOES_ON;
    return h->state == RL_LOST ? IT_IS_LOST : IT_GOES_ON;
}

/* Those that were taken as one are lost as one. */
static unsigned losses_told(const owner *o, const account *x)
{
    unsigned told = 0;
    for (size_t i = 0; x->in_union && i < o->count; i++)
        if (o->accounts[i].in_union == x->in_union)
            told += o->accounts[i].losses_told;
    return x->in_union ? told : x->losses_told;
}

static bool is_untold(const owner *o, const account *x)
{
    bool untold = x->untold;
    for (size_t i = 0; x->in_union && i < o->count; i++)
        untold = untold || (o->accounts[i].in_union == x->in_union &&
                            o->accounts[i].untold);
    return untold;
}

void judge_untold(client *c, const rl_hold *h)
{
    owner *o = owner_by_serial(c->w, rl_hold_owner(h));
    account *x = o ? judge_account(o, h) : NULL;
    if (x)
        x->untold = true;
}

static void look_at_hold(world *w, owner *o, size_t name)
{
    holding *have = &o->holding[name];
    end is = end_of(o, name);
    if (is == IT_GOES_ON || o->p->is_dead || o->verb == EXTEND ||
        owner_is_closed(o, name)) {
        have->past_us = 0;
        return;
    }
    if (have->past_us == 0)
        have->past_us = w->now_us;
    if (!judge_has_run_since(o, have->past_us))
        return;
    if (is == ITS_TIME_IS_OVER)
        judge_fail(w, "judge 3: owner %u still has %s after its deadline",
                   o->number, judge_name_of(w, name));
    else if (losses_told(o, &o->accounts[have->account]) == 0 &&
             !is_untold(o, &o->accounts[have->account]))
        judge_fail(w, "judge 3: nobody is told that owner %u lost %s",
                   o->number, judge_name_of(w, name));
}

/* While it waits for its extend it believes in what it then has. */
static void look_whether_back(world *w, owner *o, size_t name)
{
    holding *have = &o->holding[name];
    bool believes = judge_believes(o, name);
    if (o->p->is_dead || have->releasing ||
        (o->verb == EXTEND && owner_is_about(o, name)))
        return;
    if (believes && have->over)
        judge_fail(w, "judge 3: owner %u has %s again, which was over",
                   o->number, judge_name_of(w, name));
    have->over = have->over || !believes;
}

static void judge_name(world *w, size_t name)
{
    const owner *first = NULL;
    for (size_t p = 0; p < w->processes; p++) {
        for (size_t i = 0; i < w->process[p]->owners; i++) {
            owner *o = w->process[p]->owner[i];
            judge_handed(o, name);
            if (!o->holding[name].hold)
                continue;
            look_at_hold(w, o, name);
            look_whether_back(w, o, name);
            if (!judge_believes(o, name))
                continue;
            if (first)
                overlap(w, first, o, name);
            first = o;
        }
    }
}

/* The order is looked at whenever somebody may have begun to wait. */
static void judge_order(world *w)
{
    const owner *o = w->contends;
    w->contends = NULL;
    if (o)
        judge_circles(w, o);
}

void judge_step(world *w)
{
    judge_order(w);
    judge_leftovers(w);
    judge_watch(w);
    for (size_t name = 0; name < w->set.names; name++) {
        judge_name(w, name);
        judge_progress(w, name);
    }
}

/* --- losses --------------------------------------------------------------- */

void judge_end_of_hold(owner *o, size_t name)
{
    const holding *have = &o->holding[name];
    account *x = &o->accounts[have->account];
    x->why = have->hold->loss;
    x->lost = have->group ? atomic_load(&have->group->state) == RL_GROUP_LOST
                          : x->why != RL_LOSS_NONE;
}

account *judge_account(owner *o, const rl_hold *h)
{
    char uuid[RL_UUID_LEN + 1];
    rl_uuid_write(&h->id, uuid);
    for (size_t i = o->count; i > 0; i--)
        if (strcmp(o->accounts[i - 1].uuid, uuid) == 0 &&
            (!h->turn || o->accounts[i - 1].token == h->token))
            return &o->accounts[i - 1];
    return NULL;
}

/* Nothing is told lost that is not. */
static void judge_cause(owner *o, size_t name, const rl_hold *h)
{
    world *w = o->p->w;
    if (o->p->is_dead || judge_excuses(o, name))
        return;
    if (h->loss == RL_LOSS_EXPIRED && process_now(o->p) < h->expiry.due_us)
        judge_fail(w, "judge 3: owner %u is told that %s ran out, too early",
                   o->number, judge_name_of(w, name));
    if (h->loss == RL_LOSS_GONE && !h->unknown &&
        (h->state == RL_LOST ||
         (judge_is_hash(w, name) && judge_counted(w, name, h) > 0)))
        judge_fail(w,
                   "judge 3: owner %u is told that %s is gone, without cause",
                   o->number, judge_name_of(w, name));
}

void judge_loss(client *c, const rl_hold *h)
{
    world *w = c->w;
    owner *o = owner_by_serial(w, rl_hold_owner(h));
    word name = {rl_hold_name(h), h->name_len};
    size_t lock = judge_find_name(w, c->s, &name);
    account *x = o && lock != NAMES_MAX ? judge_account(o, h) : NULL;
    trace(w, "process %u is told that %s is lost: %s", c->p->index,
          rl_hold_name(h), rl_loss_text(h->loss));
    w->figures.losses++;
    /* It has not been told yet that it has it. */
    if (!x && o && o->verb == ACQUIRE && o->now && !o->now->is_multi)
        return;
    if (!x) {
        judge_fail(w, "judge 3: what is lost was never had");
        return;
    }
    x->losses_told++;
    if (losses_told(o, x) > 1)
        judge_fail(w, "judge 3: owner %u is told twice that it lost %s",
                   o->number, judge_name_of(w, lock));
    if (!w->set.red && rl_hold_owner(h) == o->self.serial)
        judge_cause(o, lock, h);
}

/* It, or one of those that were taken as one with it. */
static bool was_lost(const owner *o, const account *x)
{
    bool lost = x->lost;
    for (size_t i = 0; x->in_union && i < o->count; i++)
        lost = lost ||
               (o->accounts[i].in_union == x->in_union && o->accounts[i].lost);
    return lost;
}

void judge_accounts(owner *o)
{
    for (size_t i = 0; i < o->count && !o->p->is_dead; i++) {
        const account *x = &o->accounts[i];
        judge_abandons(o, x, was_lost(o, x));
        if (losses_told(o, x) != was_lost(o, x) && !is_untold(o, x))
            judge_fail(o->p->w,
                       "judge 3: owner %u was told %u times of the loss of %s, "
                       "which was %s",
                       o->number, losses_told(o, x),
                       judge_name_of(o->p->w, x->name),
                       x->lost ? rl_loss_text(x->why) : "not lost");
    }
}
