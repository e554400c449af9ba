/*
 * What an owner does: it takes locks, once or nested, tries them or waits for
 * them, extends, unlocks, thinks in between for shorter or longer than a lease,
 * and forgets nothing: at the end it unlocks what it has.
 */
#include "owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

#define MOST_LEVELS 4

static const char *const verb_names[] = {
    "nothing", "acquire", "re-entry", "extend", "unlock", "force", "inspect"};

static chance *dice(const owner *o)
{
    return &o->p->w->chance;
}

static void think(owner *o, int64_t most_us)
{
    o->next_us = process_now(o->p) + 1 + chance_skewed(dice(o), most_us);
}

static const char *name_of(const owner *o, size_t name)
{
    return o->p->w->lock[name].name;
}

/* --- what it chooses ------------------------------------------------------ */

static int64_t some_lease(const owner *o)
{
    const config *set = &o->p->w->set;
    if (chance_ppm(dice(o), 600000))
        return RLOCK_WATCHDOG;
    return 50 + chance_skewed(dice(o), set->watchdog_ms * 4);
}

static int64_t some_wait(const owner *o)
{
    const config *set = &o->p->w->set;
    if (chance_ppm(dice(o), 250000))
        return 0;
    if (chance_ppm(dice(o), 300000))
        return RLOCK_FOREVER;
    return 1 + chance_skewed(dice(o), set->watchdog_ms * 10);
}

static void say(const owner *o, const char *what, size_t name, int64_t wait_ms,
                int64_t lease_ms)
{
    trace(o->p->w, "owner %u: %s %s, wait %lld, lease %lld", o->number, what,
          name_of(o, name), (long long)wait_ms, (long long)lease_ms);
}

static void acquire(owner *o, size_t name)
{
    int64_t wait_ms = some_wait(o), lease_ms = some_lease(o);
    say(o, o->holding[name].hold ? "re-enters" : "acquires", name, wait_ms,
        lease_ms);
    (o->p->w->set.red ? red_acquire : verb_acquire)(o, name, wait_ms, lease_ms);
}

static void extend(owner *o, size_t name)
{
    int64_t lease_ms = some_lease(o);
    say(o, "extends", name, 0, lease_ms);
    (o->p->w->set.red ? red_extend : verb_extend)(o, name, lease_ms);
}

static void unlock(owner *o, size_t name)
{
    say(o, "unlocks", name, 0, 0);
    (o->p->w->set.red ? red_unlock : verb_unlock)(o, name);
}

/* The last that it has taken; NAMES_MAX: none. */
static size_t last_held(const owner *o)
{
    size_t name = o->p->w->set.names;
    while (name > 0)
        if (o->holding[--name].hold)
            return name;
    return NAMES_MAX;
}

static void choose_holding(owner *o, size_t name)
{
    int64_t dice_shows = chance_below(dice(o), 100);
    if (dice_shows < 45)
        unlock(o, name);
    else if (dice_shows < 60 && o->holding[name].count < MOST_LEVELS)
        acquire(o, name);
    else if (dice_shows < 75)
        extend(o, name);
    else if (dice_shows < 80 && !o->p->w->set.red)
        verb_inspect(o, name);
    else if (dice_shows < 85 && name + 1 < o->p->w->set.names)
        acquire(o, name + 1);
    else
        think(o, o->p->w->set.think_us * 10);
}

static void choose_free(owner *o)
{
    world *w = o->p->w;
    size_t name = (size_t)chance_below(dice(o), (int64_t)w->set.names);
    int64_t dice_shows = chance_below(dice(o), 100);
    if (dice_shows < 85)
        acquire(o, name);
    else if (dice_shows < 90 && !w->set.red)
        verb_inspect(o, name);
    else if (!w->set.red &&
             chance_ppm(dice(o), w->set.fault_ppm[FAULT_FORCE] * 100))
        verb_force(o, name);
    else
        think(o, w->set.think_us * 10);
}

static void choose(owner *o)
{
    size_t held = last_held(o);
    if (o->p->w->is_ending || o->p->is_dead) {
        if (held != NAMES_MAX)
            unlock(o, held);
        else
            o->is_done = true;
    } else if (held != NAMES_MAX) {
        choose_holding(o, held);
    } else {
        choose_free(o);
    }
}

/* --- its life ------------------------------------------------------------- */

/* rlock_is_held(), at any time. */
static void look(owner *o)
{
    world *w = o->p->w;
    size_t name = last_held(o);
    if (name == NAMES_MAX || w->set.red)
        return;
    const holding *have = &o->holding[name];
    rl_holds *t = &owner_client(o, name)->e.core.holds;
    int64_t now_us = process_now(o->p);
    if (rl_hold_is_valid_locked(t, have->hold, now_us) &&
        now_us >= have->hold->deadline_us)
        judge_fail(w,
                   "judge 1: owner %u is told that it holds %s after its "
                   "deadline",
                   o->number, name_of(o, name));
}

void owner_is_told(owner *o, rlock_status status)
{
    world *w = o->p->w;
    o->status = status;
    trace(w, "owner %u: %s of %s: %s", o->number, verb_names[o->verb],
          name_of(o, o->name), rlock_status_str(status));
    history_add(w, (uint64_t)status * 64 + o->verb);
    judge_told(o, status);
    o->verb = NOTHING;
    think(o, w->is_ending ? 1000 : w->set.think_us);
}

static void run(task *t)
{
    owner *o = RL_CONTAINER(RL_CONTAINER(t, runner, task), owner, runner);
    if (o->runner.op && runner_go_on(&o->runner))
        return;
    if (o->is_done)
        return;
    if (process_now(o->p) >= o->next_us) {
        look(o);
        choose(o);
        if (o->runner.op && runner_go_on(&o->runner))
            return;
    }
    if (!o->is_done)
        task_sleep(t, o->next_us);
    else
        task_sleep(t, RL_NEVER);
}

void owner_dies(owner *o)
{
    for (size_t i = 0; i < o->p->w->set.names; i++)
        owner_cancel(o, i);
    task_wake(&o->runner.task);
}

owner *owner_open(process *p, unsigned index)
{
    owner *o = need_memory(sizeof *o);
    world *w = p->w;
    o->p = p;
    o->number = p->index * OWNERS_MAX + index;
    o->self = (rl_owner){.serial = o->number + 1, .tid = (long)o->number + 1};
    runner_init(&o->runner, p, run, "owner");
    think(o, w->set.think_us);
    timer_set(w, &o->runner.task.timer, w->now_us + 1);
    return o;
}

void owner_close(owner *o)
{
    judge_accounts(o);
    task_fini(&o->runner.task);
    free(o->accounts);
    free(o);
}

owner *owner_by_serial(world *w, uint64_t serial)
{
    size_t number = (size_t)serial - 1;
    size_t p = number / OWNERS_MAX, i = number % OWNERS_MAX;
    if (serial == 0 || p >= w->processes || i >= w->process[p]->owners)
        return NULL;
    return w->process[p]->owner[i];
}

bool owner_is_waiting(const owner *o, size_t name)
{
    return o->verb == ACQUIRE && o->name == name && o->acquire.contended;
}
