/*
 * Owners with Multi locks. The verbs are the library's own (lock/multi*.c, over
 * lock/single.c), on the owner's stack; here is what the judges keep of them.
 */
#include "lock/multi.h"

#include "core/holder.h"
#include "judge.h"
#include "owner.h"

#define FOR_EACH_NAME(name, names)                                             \
    for (size_t name = 0; name < NAMES_MAX; name++)                            \
        if ((names) >> name & 1)

static chance *dice(const owner *o)
{
    return &o->p->w->chance;
}

static void begin(owner *o, verb what, multi *m)
{
    o->verb = what;
    o->multi_now = m;
    o->names = m->names;
    for (o->name = 0; !(o->names >> o->name & 1);)
        o->name++;
    o->began_us = process_now(o->p);
}

static void tell(owner *o, rlock_status s)
{
    o->multi_over_us = process_now(o->p);
    owner_is_told(o, s);
    o->multi_now = NULL;
}

/* --- handles -------------------------------------------------------------- */

static rlock *new_single(owner *o, size_t name)
{
    const rl_target *what = owner_target(o, name);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    opts.layout = (rlock_layout)what->scope;
    if (rlock_new_ex(&owner_client(o, name)->handle, what->name, what->len,
                     &opts, &lk) != RLOCK_OK)
        die("no handle: %s", rlock_last_error()->message);
    return lk;
}

/* Two names at least, in whatever order. */
static size_t draw_names(owner *o, size_t name[NAMES_MAX])
{
    size_t all = o->p->w->set.names, n = 0;
    size_t wanted = (size_t)chance_between(dice(o), 2, (int64_t)all);
    for (size_t i = 0; i < all; i++)
        name[i] = i;
    for (; n < wanted; n++) {
        size_t k = n + (size_t)chance_below(dice(o), (int64_t)(all - n));
        size_t drawn = name[k];
        name[k] = name[n];
        name[n] = drawn;
    }
    return n;
}

void multi_make(owner *o, multi *m)
{
    size_t name[NAMES_MAX], n = draw_names(o, name);
    rlock *member[NAMES_MAX];
    rlock_free(m->lk);
    *m = (multi){0};
    for (size_t i = 0; i < n; i++) {
        member[i] = new_single(o, name[i]);
        m->names |= 1u << name[i];
    }
    if (rlock_multi_new(member, n, &m->lk) != RLOCK_OK)
        die("no Multi lock: %s", rlock_last_error()->message);
    for (size_t i = 0; i < n; i++)
        rlock_free(member[i]);
}

/* --- acquire -------------------------------------------------------------- */

static rl_hold *pick(owner *o, size_t name)
{
    bool valid;
    return rl_holds_pick(&owner_client(o, name)->e.core.holds,
                         owner_target(o, name), o->self.serial,
                         process_now(o->p), &valid, NULL);
}

static void put(owner *o, size_t name, rl_hold *h)
{
    rl_holds_put(&owner_client(o, name)->e.core.holds, h);
}

/* The loss of one that was taken anew is the loss of all. */
static void note_acquired(owner *o, multi *m)
{
    m->levels++;
    o->unions++;
    FOR_EACH_NAME(name, m->names)
    {
        holding *have = &o->holding[name];
        if (have->hold) {
            have->count++;
            continue;
        }
        have->hold = pick(o, name);
        have->count = 1;
        have->unsure = have->hold && have->hold->unknown;
        judge_grant(o, name);
        if (have->hold)
            o->accounts[have->account].in_union = o->unions;
    }
    judge_union(o, m);
}

static void acquire(owner *o)
{
    multi *m = o->multi_now;
    rlock_status s = rlock_acquire(m->lk, o->wait_ms, o->lease_ms);
    if (s == RLOCK_OK)
        note_acquired(o, m);
    else
        judge_nothing_taken(o, m);
    tell(o, s);
}

void multi_acquire(owner *o, multi *m, int64_t wait_ms, int64_t lease_ms)
{
    begin(o, ACQUIRE, m);
    o->wait_ms = wait_ms;
    o->lease_ms = lease_ms;
    thread_call(o, acquire);
}

/* --- the others ----------------------------------------------------------- */

static void unlock(owner *o)
{
    multi *m = o->multi_now;
    rlock_status s = rlock_unlock(m->lk);
    m->levels -= m->levels > 0;
    FOR_EACH_NAME(name, m->names)
    {
        holding *have = &o->holding[name];
        if (!have->releasing)
            continue;
        judge_end_of_hold(o, name);
        put(o, name, have->hold);
        *have = (holding){0};
    }
    tell(o, s);
}

void multi_unlock(owner *o, multi *m)
{
    begin(o, UNLOCK, m);
    FOR_EACH_NAME(name, m->names)
    {
        holding *have = &o->holding[name];
        have->releasing = have->hold && --have->count == 0;
    }
    thread_call(o, unlock);
}

static void extend(owner *o)
{
    tell(o, rlock_extend(o->multi_now->lk, o->lease_ms));
}

void multi_extend(owner *o, multi *m, int64_t lease_ms)
{
    begin(o, EXTEND, m);
    o->lease_ms = lease_ms;
    thread_call(o, extend);
}

static void force(owner *o)
{
    tell(o, rlock_force_unlock(o->multi_now->lk));
}

void multi_force(owner *o, multi *m)
{
    begin(o, FORCE, m);
    thread_call(o, force);
}

void multi_look(owner *o, const multi *m)
{
    rl_view seen = rl_lock_view(m->lk);
    judge_view(o, m, seen.count);
}

void multi_free(multi *m)
{
    rlock_free(m->lk);
}
