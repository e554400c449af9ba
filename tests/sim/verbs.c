/*
 * The verbs of all kinds of locks. They are the library's own (src/lock), on
 * the owner's stack; here is what the judges keep of them. Of the names of a
 * Multi lock each is a holding of its own, as if it were locked by itself.
 */
#include "core/holder.h"
#include "judge.h"
#include "owner.h"

#define FOR_EACH_NAME(name, mask)                                              \
    for (size_t name = 0; name < NAMES_MAX; name++)                            \
        if ((mask) >> name & 1)

static void begin(owner *o, verb what, handle *of)
{
    o->verb = what;
    o->now = of;
    o->names = of->names;
    for (o->name = 0; !(o->names >> o->name & 1);)
        o->name++;
    o->began_us = process_now(o->p);
}

static void tell(owner *o, rlock_status s)
{
    if (o->now->is_multi)
        o->multi_over_us = process_now(o->p);
    owner_is_told(o, s);
    o->now = NULL;
}

/* --- acquire -------------------------------------------------------------- */

static void keep_single(owner *o, size_t name)
{
    bool valid;
    holding *have = &o->holding[name];
    have->at = lock_server(o->p->w, name)->index;
    have->hold = rl_holds_pick(&owner_client(o, name)->e.core.holds,
                               owner_target(o, name), &o->self,
                               process_now(o->p), &valid, NULL);
    have->unsure = have->hold && have->hold->unknown;
}

/* Of a Multi lock, the loss of one that was taken anew is that of all. */
static void note_grant(owner *o, size_t name)
{
    holding *have = &o->holding[name];
    if (have->hold) {
        have->count++;
        return;
    }
    if (o->p->w->set.red)
        red_keep(o, name);
    else
        keep_single(o, name);
    have->count = 1;
    judge_grant(o, name);
    if (have->hold && o->now->is_multi)
        o->accounts[have->account].in_union = o->unions;
}

static void acquire(owner *o)
{
    rlock_status s = rlock_acquire(o->now->lk, o->wait_ms, o->lease_ms);
    if (s == RLOCK_OK) {
        o->now->levels++;
        o->unions += o->now->is_multi;
        FOR_EACH_NAME(name, o->names)
        note_grant(o, name);
    }
    judge_lost(o, s);
    if (o->now->is_multi && s == RLOCK_OK)
        judge_union(o, o->now);
    else if (o->now->is_multi)
        judge_nothing_taken(o, o->now);
    tell(o, s);
}

void verb_acquire(owner *o, handle *of, int64_t wait_ms, int64_t lease_ms)
{
    begin(o, ACQUIRE, of);
    if (!of->is_multi && o->holding[o->name].hold)
        o->verb = REENTER;
    o->wait_ms = wait_ms;
    o->lease_ms = lease_ms;
    thread_call(o, acquire);
}

/* --- unlock and extend ---------------------------------------------------- */

static void unlock(owner *o)
{
    rlock_status s = rlock_unlock(o->now->lk);
    o->now->levels -= o->now->levels > 0;
    FOR_EACH_NAME(name, o->names)
    {
        if (o->holding[name].releasing)
            owner_forgets(o, name);
    }
    tell(o, s);
}

/* Whatever comes of it, it is not believed in any more. */
void verb_unlock(owner *o, handle *of)
{
    begin(o, UNLOCK, of);
    FOR_EACH_NAME(name, o->names)
    {
        holding *have = &o->holding[name];
        have->releasing = have->hold && --have->count == 0;
    }
    thread_call(o, unlock);
}

static void extend(owner *o)
{
    tell(o, rlock_extend(o->now->lk, o->lease_ms));
}

void verb_extend(owner *o, handle *of, int64_t lease_ms)
{
    begin(o, EXTEND, of);
    o->lease_ms = lease_ms;
    thread_call(o, extend);
}

/* --- what needs no hold --------------------------------------------------- */

static void force(owner *o)
{
    tell(o, rlock_force_unlock(o->now->lk));
}

void verb_force(owner *o, handle *of)
{
    begin(o, FORCE, of);
    thread_call(o, force);
}

static void inspect(owner *o)
{
    rlock_holder holder;
    rlock_status s = rlock_holder_info(o->now->lk, &holder, sizeof holder);
    if (s == RLOCK_OK)
        judge_holder(o, &holder);
    tell(o, s);
}

void verb_inspect(owner *o, handle *of)
{
    begin(o, INSPECT, of);
    thread_call(o, inspect);
}

/* rlock_is_held() and its like, at any time. */
void verb_look(owner *o, const handle *of)
{
    judge_view(o, of, rlock_hold_count(of->lk));
}

/* By anybody. */
void owner_cancel(owner *o, size_t name)
{
    rlock_cancel(o->one[name].lk);
    if (o->now && o->now->is_multi && owner_is_about(o, name))
        rlock_cancel(o->now->lk);
}
