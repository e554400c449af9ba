/*
 * The handles of an owner: of each name one by itself, single or Red, and of
 * Multi locks, which are made anew with other names and in another order.
 */
#include "judge.h"
#include "lock/lock.h"
#include "owner.h"

static chance *dice(const owner *o)
{
    return &o->p->w->chance;
}

client *owner_client(const owner *o, size_t name)
{
    if (o->p->w->set.red)
        return &o->p->client[0];
    return &o->p->client[lock_server(o->p->w, name)->index];
}

const rl_target *owner_target(const owner *o, size_t name)
{
    const lock_truth *truth = &o->p->w->lock[name];
    return o->p->w->set.red ? &truth->red : &truth->what;
}

bool owner_counts_here(const owner *o, size_t name)
{
    return o->one[name].lk->local_levels;
}

/* --- one name ------------------------------------------------------------- */

static rlock *new_single(const owner *o, const rl_target *what, size_t name)
{
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    opts.layout = (rlock_layout)what->scope;
    opts.local_levels = chance_ppm(dice(o), 250000);
    if (rlock_new_ex(&owner_client(o, name)->handle, what->name, what->len,
                     &opts, &lk) != RLOCK_OK)
        die("no handle: %s", rlock_last_error()->message);
    return lk;
}

/* Its scope is a hash of addresses, which are not the seed's. */
static rlock *new_red(const owner *o, const rl_target *what)
{
    const config *set = &o->p->w->set;
    rlock_red_options opts = RLOCK_RED_OPTIONS_INIT;
    rlock_client *node[SERVERS_MAX];
    rlock *lk;
    for (size_t i = 0; i < set->servers; i++)
        node[i] = &o->p->client[i].handle;
    opts.layout = what->layout == &rl_layouts[RLOCK_LAYOUT_HASH]
                      ? RLOCK_LAYOUT_HASH
                      : RLOCK_LAYOUT_STRING;
    opts.check_uptime = true;
    opts.longest_lease_ms = set->watchdog_ms * 5;
    if (rlock_red_new_ex(node, set->servers, what->name, what->len, &opts,
                         &lk) != RLOCK_OK)
        die("no Red lock: %s", rlock_last_error()->message);
    lk->target.scope = what->scope;
    return lk;
}

static rlock *new_one(const owner *o, size_t name)
{
    const rl_target *what = owner_target(o, name);
    return o->p->w->set.red ? new_red(o, what) : new_single(o, what, name);
}

/* --- Multi locks ---------------------------------------------------------- */

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

bool handle_make_multi(owner *o, handle *m)
{
    size_t name[NAMES_MAX], n = draw_names(o, name);
    rlock *member[NAMES_MAX];
    rlock_free(m->lk);
    *m = (handle){.is_multi = true};
    for (size_t i = 0; i < n; i++) {
        member[i] = o->one[name[i]].lk;
        m->names |= 1u << name[i];
    }
    memory_for_world++;
    rlock_status s = rlock_multi_new(member, n, &m->lk);
    if (s != RLOCK_OK && process_is_open(o->p))
        die("no Multi lock: %s", rlock_last_error()->message);
    memory_for_world--;
    return s == RLOCK_OK;
}

/* --- all of them ---------------------------------------------------------- */

void handles_open(owner *o)
{
    for (size_t i = 0; i < o->p->w->set.names; i++)
        o->one[i] = (handle){.lk = new_one(o, i), .names = 1u << i};
}

void handles_close(owner *o)
{
    for (size_t i = 0; i < NAMES_MAX; i++)
        rlock_free(o->one[i].lk);
    for (size_t i = 0; i < MULTIS_MAX; i++)
        rlock_free(o->multi[i].lk);
}
