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
    verb_acquire(o, &o->one[name], wait_ms, lease_ms);
}

static void extend(owner *o, size_t name)
{
    int64_t lease_ms = some_lease(o);
    say(o, "extends", name, 0, lease_ms);
    verb_extend(o, &o->one[name], lease_ms);
}

static void unlock(owner *o, size_t name)
{
    say(o, "unlocks", name, 0, 0);
    verb_unlock(o, &o->one[name]);
}

const char *owner_names(const owner *o, unsigned names)
{
    static char said[80];
    size_t used = 0;
    for (size_t i = 0; i < o->p->w->set.names; i++)
        if (names >> i & 1)
            used += (size_t)snprintf(said + used, sizeof said - used, "%s%s",
                                     used > 0 ? " and " : "", name_of(o, i));
    return said;
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

/* --- Multi locks ---------------------------------------------------------- */

/* Who wants what comes earlier than what he has, must not wait for ever. */
static bool is_in_order(const owner *o, unsigned names)
{
    size_t held = last_held(o);
    for (size_t i = 0; held != NAMES_MAX && i < held; i++)
        if (names >> i & 1 && !o->holding[i].hold)
            return false;
    return true;
}

static void acquire_multi(owner *o, handle *m)
{
    if (m->levels == 0 && !handle_make_multi(o, m)) {
        think(o, o->p->w->set.think_us);
        return;
    }
    o->is_disordered = !is_in_order(o, m->names);
    int64_t wait_ms = some_wait(o), lease_ms = some_lease(o);
    if (o->is_disordered && wait_ms == RLOCK_FOREVER)
        wait_ms = o->p->w->set.watchdog_ms;
    trace(o->p->w, "owner %u: acquires %s, wait %lld, lease %lld", o->number,
          owner_names(o, m->names), (long long)wait_ms, (long long)lease_ms);
    verb_acquire(o, m, wait_ms, lease_ms);
    o->is_disordered = o->is_disordered && o->verb == ACQUIRE;
}

static void unlock_multi(owner *o, handle *m)
{
    trace(o->p->w, "owner %u: unlocks %s", o->number, owner_names(o, m->names));
    verb_unlock(o, m);
}

static void extend_multi(owner *o, handle *m)
{
    int64_t lease_ms = some_lease(o);
    trace(o->p->w, "owner %u: extends %s, lease %lld", o->number,
          owner_names(o, m->names), (long long)lease_ms);
    verb_extend(o, m, lease_ms);
}

/* One that it has acquired, or NULL. */
static handle *held_multi(owner *o)
{
    for (size_t i = MULTIS_MAX; i > 0; i--)
        if (o->multi[i - 1].levels > 0)
            return &o->multi[i - 1];
    return NULL;
}

static void choose_multi(owner *o)
{
    handle *m = held_multi(o);
    int64_t dice_shows = chance_below(dice(o), 100);
    if (m)
        verb_look(o, m);
    if (!m || dice_shows < 15)
        acquire_multi(o, &o->multi[chance_below(dice(o), MULTIS_MAX)]);
    else if (dice_shows < 70)
        unlock_multi(o, m);
    else if (dice_shows < 90)
        extend_multi(o, m);
    else if (chance_ppm(dice(o), o->p->w->set.fault_ppm[FAULT_FORCE] * 100))
        verb_force(o, m);
    else
        think(o, o->p->w->set.think_us * 10);
}

static void choose_holding(owner *o, size_t name)
{
    int64_t dice_shows = chance_below(dice(o), 100);
    if (dice_shows < 45 || o->p->w->set.is_quick)
        unlock(o, name);
    else if (dice_shows < 60 && o->holding[name].count < MOST_LEVELS)
        acquire(o, name);
    else if (dice_shows < 75)
        extend(o, name);
    else if (dice_shows < 80)
        verb_inspect(o, &o->one[name]);
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
    if (dice_shows < 85 || w->set.is_quick)
        acquire(o, name);
    else if (dice_shows < 90)
        verb_inspect(o, &o->one[name]);
    else if (chance_ppm(dice(o), w->set.fault_ppm[FAULT_FORCE] * 100))
        verb_force(o, &o->one[name]);
    else
        think(o, w->set.think_us * 10);
}

/* All that it can do is to give back what it has. */
static bool is_shut_out(const owner *o)
{
    for (size_t i = 0; i < o->p->w->set.names; i++)
        if (!owner_is_closed(o, i))
            return false;
    return true;
}

static void choose(owner *o)
{
    size_t held = last_held(o);
    if (o->p->w->is_ending || o->p->is_dead || is_shut_out(o)) {
        if (held_multi(o))
            unlock_multi(o, held_multi(o));
        else if (held != NAMES_MAX)
            unlock(o, held);
        else
            o->is_done = true;
    } else if (o->p->w->set.multi && chance_ppm(dice(o), 400000)) {
        choose_multi(o);
    } else if (held != NAMES_MAX) {
        choose_holding(o, held);
    } else {
        choose_free(o);
    }
}

/* --- its life ------------------------------------------------------------- */

static void look(owner *o)
{
    size_t name = last_held(o);
    if (name != NAMES_MAX)
        verb_look(o, &o->one[name]);
}

void owner_is_told(owner *o, rlock_status status)
{
    world *w = o->p->w;
    o->status = status;
    trace(w, "owner %u: %s of %s: %s", o->number, verb_names[o->verb],
          owner_names(o, o->names), rlock_status_str(status));
    history_add(w, (uint64_t)status * 64 + o->verb);
    judge_told(o, status);
    o->verb = NOTHING;
    o->is_disordered = false;
    think(o, w->is_ending ? 1000 : w->set.think_us);
}

static void go_on(owner *o)
{
    task *t = &o->runner.task;
    if (o->runner.op && runner_go_on(&o->runner))
        return;
    if (o->is_done)
        return;
    if (process_now(o->p) >= o->next_us) {
        if (o->ends && last_held(o) != NAMES_MAX && process_is_open(o->p))
            owner_ends(o);
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

static void run(task *t)
{
    owner *o = RL_CONTAINER(RL_CONTAINER(t, runner, task), owner, runner);
    thread_is(o);
    go_on(o);
    thread_is(NULL);
}

void owner_dies(owner *o)
{
    for (size_t i = 0; i < o->p->w->set.names; i++)
        owner_cancel(o, i);
    for (size_t i = 0; i < MULTIS_MAX; i++)
        rlock_cancel(o->multi[i].lk);
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
    handles_open(o);
    think(o, w->set.think_us);
    timer_set(w, &o->runner.task.timer, w->now_us + 1);
    return o;
}

void owner_close(owner *o)
{
    judge_accounts(o);
    task_fini(&o->runner.task);
    handles_close(o);
    thread_free(&o->thread);
    free(o->accounts);
    free(o);
}

owner *owner_by_serial(const world *w, uint64_t serial)
{
    size_t number = (size_t)(serial - 1) % THREADS_MAX;
    size_t p = number / OWNERS_MAX, i = number % OWNERS_MAX;
    if (serial == 0 || p >= w->processes || i >= w->process[p]->owners)
        return NULL;
    return w->process[p]->owner[i];
}

bool owner_is_waiting(const owner *o, size_t name)
{
    const rl_acquire *a = o->acquiring;
    const rl_target *what = owner_target(o, name);
    return a && a->contended && a->home == &owner_client(o, name)->e.core &&
           a->what->len == what->len &&
           memcmp(a->what->name, what->name, what->len) == 0;
}

void owner_contends(client *c)
{
    owner *o = thread_self();
    if (!o)
        return;
    o->acquiring = RL_CONTAINER(o->runner.op, rl_acquire, op);
    c->w->contends = o;
}

/* --- what a verb of the library's own does -------------------------------- */

static size_t name_of_part(const owner *o, const rl_part *x)
{
    const world *w = o->p->w;
    /* Of a Red lock, what one node says is nothing by itself. */
    if (!x || !x->hold || w->set.red)
        return NAMES_MAX;
    word name = {rl_hold_name(x->hold), x->hold->name_len};
    return judge_find_name(w, client_of(x->core)->s, &name);
}

/* An acquire makes its parts later. */
void owner_note_deeds(const owner *o, const rl_op *op, deeds *d)
{
    for (d->n = 0; d->n < op->n; d->n++) {
        const rl_part *x = op->part[d->n];
        d->of[d->n].name = name_of_part(o, x);
        d->of[d->n].verb = x ? x->verb : RL_VERB_LEAVE;
        d->of[d->n].level = x ? x->level : 0;
    }
}

/* A level that is not confirmed is one that the server may count or not. */
void owner_judge_deeds(owner *o, const rl_op *op, const deeds *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const rl_part *x = op->part[i];
        const struct deed *was = &d->of[i];
        bool frees = was->verb == RL_VERB_RELEASE && was->level == 0;
        bool counts =
            was->verb == RL_VERB_REENTER || was->verb == RL_VERB_RELEASE;
        if (was->name == NAMES_MAX || !x)
            continue;
        holding *have = &o->holding[was->name];
        if (counts && (!x->ok || x->ask.unknown))
            have->unsure = true;
        if (frees && x->ok && have->releasing)
            judge_release(o, was->name);
    }
}
