/*
 * What an owner may do next. Each verb is a few calls of the public API, and
 * what they answer is told to the judges: calls that ask a server as acts, the
 * others as looks. A verb is a function and a line of the table at the end.
 *
 * What stays true: levels, holds and taken[] of an owner are what the calls
 * have answered, so what the library counts can be compared with them.
 */
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "outcome.h"

rlock *owner_handle(const owner *o, int lock)
{
    return o->own[lock] ? o->own[lock] : o->g->handle[lock];
}

static int64_t skewed(owner *o, int64_t limit)
{
    return chance_skewed(&o->dice, limit);
}

static bool in_hundred(owner *o, int64_t pct)
{
    return chance_below(&o->dice, 100) < pct;
}

static bool holds_any(const owner *o, int lock)
{
    for (int i = 0; i < locks[lock].n; i++)
        if (o->hold[locks[lock].member[i]])
            return true;
    return false;
}

bool holds_all(const owner *o, int lock)
{
    for (int i = 0; i < locks[lock].n; i++)
        if (!o->hold[locks[lock].member[i]])
            return false;
    return true;
}

/* --- acts ----------------------------------------------------------------- */

act act_begin(owner *o, const char *verb, int lock)
{
    trace("owner %d: %s of %s", o->id, verb, locks[lock].name);
    running->told_ns = 0;
    return (act){.verb = verb, .o = o, .lock = lock, .began = w.now};
}

void act_end(act *a, rlock_status s)
{
    a->status = s;
    a->lasted = w.now - a->began;
    a->took = a->lasted - running->told_ns;
    trace("owner %d: %s of %s: %s%s%s, after %lld us", a->o->id, a->verb,
          locks[a->lock].name, rlock_status_str(s), s ? ": " : "",
          s ? rlock_last_error()->message : "", (long long)(a->took / US));
    judge_called(a);
}

/* --- looks ---------------------------------------------------------------- */

/* Of one thing; its own handle is asked, also if a Multi lock took it. */
static bool look_at(owner *o, int t)
{
    hold *h = o->hold[t];
    rlock *lk = owner_handle(o, t);
    if (!h)
        return false;
    look l = {.at = w.now};
    l.valid_ms = rlock_valid_ms(lk);
    int64_t after = w.now;
    l.is_held = rlock_is_held(lk);
    l.token = rlock_token(lk);
    l.count = rlock_hold_count(lk);
    if (o->g->closing_at)
        return false;
    if (l.valid_ms > 0) {
        h->is_sure = true;
        h->to = l.at;
        if (after + l.valid_ms * MS > h->deadline)
            h->deadline = after + l.valid_ms * MS;
    }
    if (w.traces > 1)
        trace("    owner %d: %s is valid for %lld ms, count %d, token %llu",
              o->id, things[t].name, (long long)l.valid_ms, l.count,
              (unsigned long long)l.token);
    judge_looked(h, &l);
    if (!l.is_held && !h->is_gone) {
        h->is_gone = true;
        trace("owner %d has lost %s", o->id, things[t].name);
    }
    return l.is_held;
}

/* A Multi lock is held while every member is: so what it says before and after
   they are asked is theirs as well. */
static void look_at_whole(owner *o, int lock)
{
    const rlock *lk = owner_handle(o, lock);
    if (!locks[lock].is_multi || !holds_all(o, lock) || !rlock_is_held(lk))
        return;
    int lost = -1;
    for (int i = 0; i < locks[lock].n; i++)
        if (!look_at(o, locks[lock].member[i]))
            lost = locks[lock].member[i];
    if (rlock_is_held(lk) && lost >= 0 && !o->g->closing_at)
        finding("judge 3: owner %d has %s, but not %s", o->id, locks[lock].name,
                things[lost].name);
}

void look_at_all(owner *o)
{
    for (int t = 0; t < things_n; t++)
        look_at(o, t);
    for (int i = things_n; i < locks_n; i++)
        look_at_whole(o, i);
}

/* As long as an acquire of a Multi lock is under way, what its owner has of it
   already may get another lease. */
void expect_nested(const act *a)
{
    const lock *l = &locks[a->lock];
    for (int i = 0; i < l->n && l->is_multi; i++)
        if (a->o->hold[l->member[i]])
            a->o->hold[l->member[i]]->was_extended = true;
}

/* --- a call, during which its handle may be freed -------------------------- */

static rlock *begin_call(owner *o, int lock)
{
    o->through = lock;
    o->calls = running;
    return owner_handle(o, lock);
}

static rlock_status end_call(owner *o, rlock_status s)
{
    o->calls = NULL;
    return s;
}

void owner_frees_handle(void)
{
    for (int i = 0; i < OWNERS_MAX; i++) {
        owner *o = &owners[i];
        rlock *lk = o->own[o->through];
        if (o->calls != running || !lk || cfg.close_at_ms > 0 ||
            chance_below(&w.dice, 4))
            continue;
        trace("owner %d frees the handle of its call", i);
        o->own[o->through] = NULL;
        rlock_free(lk);
    }
}

/* --- taking --------------------------------------------------------------- */

static void begin_hold(owner *o, int t, bunch *b, const act *a)
{
    hold *h = need_memory(sizeof *h);
    h->next = holds[t];
    h->bunch = b;
    h->o = o;
    h->g = o->g;
    h->thing = t;
    h->thread = o->is_task ? o->made_by : running->id;
    memcpy(h->label, o->label, sizeof h->label);
    h->asked = a->began;
    h->from = h->to = w.now;
    h->is_renewed = a->lease_ms == 0;
    holds[t] = h;
    o->hold[t] = h;
    b->holds++;
    h->token = rlock_token(owner_handle(o, t));
}

/* Also of what failed in the end. After an extend that has failed the watchdog
   may renew it, as before; after a level more, as it had asked for. */
void note_lease(const act *a)
{
    int64_t ms = a->lease_ms ? a->lease_ms : cfg.watchdog_ms;
    int64_t ends = w.now + ms * MS / 100 * 101 + 2 * MS;
    if (a->status != RLOCK_OK &&
        (a->lease_ms == 0 || strcmp(a->verb, "extend") == 0))
        ends = NEVER;
    for (int i = 0; i < locks[a->lock].n; i++) {
        hold *h = a->o->hold[locks[a->lock].member[i]];
        if (h && ends > h->ends)
            h->ends = ends;
    }
}

void note_taken(owner *o, const act *a)
{
    const lock *l = &locks[a->lock];
    bunch *b = need_memory(sizeof *b);
    bool is_new[THINGS_MAX] = {false};
    for (int i = 0; i < l->n; i++) {
        int t = l->member[i];
        is_new[t] = !o->hold[t];
        if (is_new[t] && things[t].is_red) /* tells its loss by itself */
            begin_hold(o, t, need_memory(sizeof *b), a);
        else if (is_new[t])
            begin_hold(o, t, b, a);
        else if (a->lease_ms == 0)
            o->hold[t]->is_renewed = true;
        if (!is_new[t])
            o->hold[t]->was_extended = true;
        o->hold[t]->levels++;
    }
    outcome->acquires++;
    o->taken[o->taken_n++] = a->lock;
    for (int i = 0; i < l->n; i++)
        if (is_new[l->member[i]])
            judge_taken(o->hold[l->member[i]]);
}

/* The short forms are the same calls. */
static rlock_status take(rlock *lk, const act *a)
{
    if (a->lease_ms == RLOCK_WATCHDOG && a->wait_ms == RLOCK_FOREVER)
        return rlock_lock(lk);
    if (a->lease_ms == RLOCK_WATCHDOG && a->wait_ms == 0)
        return rlock_trylock(lk);
    return rlock_acquire(lk, a->wait_ms, a->lease_ms);
}

static void acquire(owner *o, int lock, int64_t wait_ms)
{
    if (o->taken_n == DEPTH_MAX)
        return;
    bool own = in_hundred(o, cfg.lease_pct);
    act a = act_begin(o, "acquire", lock);
    a.is_nested = holds_all(o, lock);
    a.wait_ms = wait_ms;
    a.lease_ms = own ? 50 + skewed(o, cfg.lease_ms) : RLOCK_WATCHDOG;
    trace("owner %d: wait %lld ms, lease %lld ms%s", o->id,
          (long long)a.wait_ms, (long long)a.lease_ms,
          holds_any(o, lock) ? ", nested" : "");
    o->waits = &a;
    expect_nested(&a);
    rlock_status s = end_call(o, take(begin_call(o, lock), &a));
    o->waits = NULL;
    act_end(&a, s);
    if (s == RLOCK_OK)
        note_taken(o, &a);
    note_lease(&a);
    look_at_all(o);
}

/* Who waits for ever holds nothing: so no circle of processes lasts. */
static void act_acquire(owner *o)
{
    int64_t wait_ms = skewed(o, 5000);
    if (in_hundred(o, cfg.forever_pct))
        wait_ms = RLOCK_FOREVER;
    else if (chance_below(&o->dice, 3) == 0)
        wait_ms = 0;
    acquire(o, (int)chance_below(&o->dice, locks_n), wait_ms);
}

static void act_nest(owner *o)
{
    acquire(o, o->taken[chance_below(&o->dice, o->taken_n)], skewed(o, 1000));
}

static void act_more(owner *o)
{
    acquire(o, (int)chance_below(&o->dice, locks_n),
            chance_below(&o->dice, 2) ? 0 : skewed(o, 1000));
}

/* --- giving --------------------------------------------------------------- */

void drop_level(owner *o, int t, rlock_status s)
{
    hold *h = o->hold[t];
    if (s == RLOCK_LOST && h->levels == 1 && !h->is_gone)
        h->is_gone = true;
    if (--h->levels > 0)
        return;
    h->ended = w.now;
    o->hold[t] = NULL;
}

static void unlock(owner *o, int i)
{
    int lock = o->taken[i];
    look_at_all(o);
    act a = act_begin(o, "unlock", lock);
    a.is_nested = true;
    for (int k = 0; k < locks[lock].n; k++)
        if (o->hold[locks[lock].member[k]]->levels == 1)
            o->hold[locks[lock].member[k]]->unlocking = w.now;
    rlock_status s = end_call(o, rlock_unlock(begin_call(o, lock)));
    act_end(&a, s);
    o->taken[i] = o->taken[--o->taken_n];
    /* Of several it is not known which was lost. */
    rlock_status each = locks[lock].n > 1 ? RLOCK_OK : s;
    for (int k = 0; k < locks[lock].n; k++)
        drop_level(o, locks[lock].member[k], each);
}

static void act_unlock(owner *o)
{
    unlock(o, (int)chance_below(&o->dice, o->taken_n));
}

/* Short sections, one after the other: so locks are handed from thread to
   thread, and other clients want their turn. */
static void act_burst(owner *o)
{
    int lock = (int)chance_below(&o->dice, locks_n);
    int64_t n = chance_between(&o->dice, 5, 60);
    while (n-- > 0 && !o->g->closing_at) {
        acquire(o, lock, 1000);
        if (o->taken_n > 0)
            unlock(o, 0);
    }
}

void owner_unlock_all(owner *o)
{
    while (o->taken_n > 0 && !o->g->closing_at)
        unlock(o, o->taken_n - 1);
}

void owner_abandon(owner *o)
{
    for (int t = 0; t < things_n; t++) {
        if (!o->hold[t])
            continue;
        trace("owner %d ends, and holds %s", o->id, things[t].name);
        o->hold[t]->ended = w.now;
        o->hold[t]->is_abandoned = true;
        o->hold[t] = NULL;
    }
    o->taken_n = 0;
}

/* --- the others ----------------------------------------------------------- */

/* Holds, and looks now and then; an idle one does not look. */
static void act_hold(owner *o)
{
    int64_t ends = w.now + skewed(o, cfg.hold_ms * MS);
    bool idles = in_hundred(o, cfg.idle_pct);
    while (w.now < ends && !o->g->closing_at) {
        int64_t nap = idles ? ends - w.now : 1 + skewed(o, ends - w.now);
        sleep_for(nap);
        look_at_all(o);
    }
}

static void act_think(owner *o)
{
    sleep_for(skewed(o, cfg.think_ms * MS));
}

/* From the call on it may have an end of its own. */
void expect_extended(const act *a)
{
    const lock *l = &locks[a->lock];
    for (int i = 0; i < l->n; i++) {
        hold *h = a->o->hold[l->member[i]];
        if (!h)
            continue;
        h->was_extended = true;
        h->is_renewed = h->is_renewed && a->lease_ms == 0;
    }
}

void note_extended(const act *a)
{
    const lock *l = &locks[a->lock];
    for (int i = 0; i < l->n; i++)
        if (a->o->hold[l->member[i]] && a->status == RLOCK_OK)
            a->o->hold[l->member[i]]->is_renewed = a->lease_ms == 0;
}

static void act_extend(owner *o)
{
    int lock = o->taken[chance_below(&o->dice, o->taken_n)];
    act a = act_begin(o, "extend", lock);
    a.is_nested = true;
    a.lease_ms =
        chance_below(&o->dice, 3) == 0 ? RLOCK_WATCHDOG : 50 + skewed(o, 1500);
    expect_extended(&a);
    rlock_status s = rlock_extend(owner_handle(o, lock), a.lease_ms);
    act_end(&a, s);
    note_extended(&a);
    note_lease(&a);
    look_at_all(o);
}

/* A handle of its own; a hold goes on without that it was taken through. */
static void act_remake(owner *o)
{
    int lock = (int)chance_below(&o->dice, locks_n);
    if (cfg.close_at_ms > 0)
        return; /* no call with a client that is being closed */
    rlock_free(o->own[lock]);
    o->own[lock] = NULL;
    if (chance_below(&o->dice, 4))
        o->own[lock] = program_make_handle(o->g, lock);
    look_at_all(o);
}

/* Whosever it is, or the hold that was seen, if that still has it. */
static rlock_status force(owner *o, int lock)
{
    rlock_holder h;
    rlock *lk = owner_handle(o, lock);
    if (locks[lock].n > 1 || locks[lock].is_multi || chance_below(&o->dice, 2))
        return rlock_force_unlock(lk);
    rlock_status s = rlock_holder_info(lk, &h, sizeof h);
    return s == RLOCK_OK ? rlock_force_unlock_hold(lk, h.raw) : s;
}

/*
 * A script of it may be under way for long after the call. Red locks are left
 * out: a vote that is freed while the others are still asked counts all the
 * same, and its node may give its token to the next hold. That is known
 * (raise.lua does not look whose the lock is).
 */
static void act_force(owner *o)
{
    int lock = (int)chance_below(&o->dice, locks_n);
    unsigned which = 0;
    for (int i = 0; i < locks[lock].n; i++) {
        which |= 1u << locks[lock].member[i];
        if (things[locks[lock].member[i]].is_red)
            return;
    }
    act a = act_begin(o, "force_unlock", lock);
    judge_shake(which, w.now, w.now + (cfg.calm ? 1 : 300) * S);
    rlock_status s = force(o, lock);
    act_end(&a, s);
    look_at_all(o);
}

/* --- all of them ---------------------------------------------------------- */

const verb verbs[] = {
    {"acquire", NULL, false, true, act_acquire},
    {"think", NULL, false, true, act_think},
    {"hold", NULL, true, false, act_hold},
    {"unlock", NULL, true, false, act_unlock},
    {"nest", &cfg.nest, true, false, act_nest},
    {"extend", &cfg.extend, true, false, act_extend},
    {"more", &cfg.more, true, false, act_more},
    {"ask", &cfg.ask, false, false, act_ask},
    {"guard", &cfg.guard, true, false, act_guard},
    {"burst", &cfg.burst, false, true, act_burst},
    {"remake", &cfg.remake, false, false, act_remake},
    {"cancel", &cfg.cancel, false, false, act_cancel},
    {"silence", &cfg.silence, false, false, act_silence},
    {"mind", &cfg.mind, true, false, act_mind},
    {"force", &cfg.force, false, false, act_force},
    {"latch", &cfg.latch, false, true, act_latch},
    {"rw", &cfg.rw, false, true, act_rw},
    {"permits", &cfg.permits, false, true, act_permits},
    {"lend", &cfg.lend, false, true, act_lend},
};

const int verbs_n = sizeof verbs / sizeof *verbs;
