/*
 * The judges that look at what does not happen.
 *
 *   4  nothing remains when all is quiet: no key beyond its time, no entry of a
 *      queue, nothing in a client
 *   5  a lock that is free and waited for is taken within a bound; every call
 *      ends
 *   6  the work that is done for it, calls and messages, does not grow with
 *      those who wait
 */
#include <stdio.h>
#include <string.h>

#include "judge.h"

/* What is documented: a waiter looks by itself this often, at the latest. */
#define FALLBACK_US (2500 * MS)
#define BEHIND_US   (100 * MS)

/* --- 5: progress ---------------------------------------------------------- */

static bool is_held(world *w, size_t name)
{
    server *s = lock_server(w, name);
    const lock_truth *truth = &w->lock[name];
    word key = {truth->name, strlen(truth->name)};
    s->store.now_us = server_now(s);
    const entry *e = store_find(&s->store, &key);
    if (!e || truth->what.layout != &rl_layouts[RLOCK_LAYOUT_TIMESTAMP])
        return e != NULL;
    /* Seconds, and three digits more, as others read it (timestamp/stamp.lua).
     */
    char text[64];
    long long seconds, ms;
    snprintf(text, sizeof text, "%.*s", (int)e->value.len, e->value.at);
    return sscanf(text, "%lld.%3lld", &seconds, &ms) == 2 &&
           seconds * 1000 + ms >= s->store.now_us / 1000;
}

/* Those who could take it: they wait, and their process runs. */
static size_t count_waiters(const world *w, size_t name)
{
    size_t n = 0;
    for (size_t p = 0; p < w->processes; p++) {
        const process *x = w->process[p];
        if (x->is_dead || w->now_us < x->paused_us)
            continue;
        for (size_t i = 0; i < x->owners; i++)
            n += owner_is_waiting(x->owner[i], name);
    }
    return n;
}

/* After a release: a ring, a try and their answers, for dead bells again. */
static int64_t bound_us(const world *w, const lock_truth *truth, size_t waiters)
{
    int64_t way_us = 2 * w->set.delay_us + 2 * w->set.latency_us;
    int64_t us = 12 * way_us + 30 * MS;
    if (!w->set.calm)
        return us + 3 * FALLBACK_US + (int64_t)waiters * BEHIND_US;
    if (!truth->freed_by_call)
        us += FALLBACK_US + (int64_t)waiters * BEHIND_US;
    return us;
}

static void note_freed(lock_truth *truth, bool by_call)
{
    if (!truth->was_held)
        return;
    truth->was_held = false;
    truth->freed_by_call = by_call;
}

void judge_freeing(world *w, size_t name)
{
    lock_truth *truth = &w->lock[name];
    if (w->set.red || is_held(w, name))
        return;
    if (truth->was_held)
        w->figures.hand_overs++;
    note_freed(truth, true);
}

void judge_progress(world *w, size_t name)
{
    lock_truth *truth = &w->lock[name];
    size_t waiters;
    if (w->set.red)
        return;
    if (is_held(w, name)) {
        truth->was_held = true;
        truth->free_us = 0;
        return;
    }
    note_freed(truth, false);
    if ((waiters = count_waiters(w, name)) == 0) {
        truth->free_us = 0;
        return;
    }
    if (truth->free_us == 0) {
        truth->free_us = w->now_us;
        truth->is_late = false;
    }
    int64_t since_us =
        w->set.calm ? truth->free_us : rl_max(truth->free_us, w->settled_us);
    if (w->now_us - since_us <= bound_us(w, truth, waiters))
        return;
    if (w->set.calm || w->is_quiet)
        judge_fail(w, "judge 5: %s is free for %lld us, and %zu wait for it%s",
                   truth->name, (long long)(w->now_us - since_us), waiters,
                   truth->freed_by_call ? " since a release" : "");
    else if (!truth->is_late)
        w->figures.late_wakes++;
    truth->is_late = true;
}

/* --- 4: what remains ------------------------------------------------------ */

void judge_client(client *c)
{
    world *w = c->w;
    rl_core *core = &c->e.core;
    if (w->failed)
        return;
    if (core->holds.map.count > 0 || core->holds.first.work.count > 0 ||
        core->holds.expiry.count > 0 || core->holds.undoing > 0 ||
        core->holds.estates.count > 0)
        judge_fail(w,
                   "judge 4: process %u still has holds: %zu, %zu to renew, "
                   "%zu to undo, %zu estates",
                   c->p->index, core->holds.map.count,
                   core->holds.first.work.count, core->holds.undoing,
                   core->holds.estates.count);
    if (core->rooms.map.count > 0 || core->rooms.listeners.count > 0)
        judge_fail(w, "judge 4: process %u still has rooms", c->p->index);
    if (atomic_load(&core->stats.held_now) != 0 ||
        atomic_load(&core->stats.waiting_now) != 0)
        judge_fail(w, "judge 4: process %u counts holds or waiters",
                   c->p->index);
    if (c->e.node.keeper.in_flight > 0 || c->homes != 0)
        judge_fail(w, "judge 4: process %u has %zu tasks and %d references",
                   c->p->index, c->e.node.keeper.in_flight, c->homes);
}

static bool begins_with(const text *t, const char *prefix)
{
    return t->len >= strlen(prefix) &&
           memcmp(t->at, prefix, strlen(prefix)) == 0;
}

static bool has_ended(const world *w, long tid)
{
    const owner *o = owner_by_serial(w, (uint64_t)tid);
    return o && o->self.tid != tid;
}

/* By whomever it was passed on to: the server names another one. */
static bool was_abandoned(const process *p, const text *holder)
{
    for (size_t i = 0; i < p->owners; i++)
        for (size_t k = 0; k < p->owner[i]->count; k++) {
            const account *x = &p->owner[i]->accounts[k];
            if (x->abandoned && holder->len > RL_UUID_LEN &&
                memcmp(holder->at + holder->len - RL_UUID_LEN, x->uuid,
                       RL_UUID_LEN) == 0)
                return true;
        }
    return false;
}

/*
 * Where the clock was put back a lease means nothing: what a thread that has
 * ended left to it is there for as long, and so is what has run out for its
 * owner, if the one release that is tried then was refused. What else was
 * unlocked is not there.
 */
static bool is_kept_by_clock(const server *s, bool ended)
{
    return s->clock_went_back && (ended || s->has_refused);
}

static bool is_left_by(const world *w, const server *s, const entry *e,
                       bool ended)
{
    if (s->data_lost || s->clock_broke || is_kept_by_clock(s, ended))
        return false;
    for (size_t i = 0; i < w->set.names; i++) {
        const lock_truth *truth = &w->lock[i];
        if (e->key.len != strlen(truth->name) ||
            memcmp(e->key.at, truth->name, e->key.len) != 0)
            continue;
        unsigned p, again;
        long tid;
        char holder[RL_HOLDER_MAX];
        const text *t = e->kind == KIND_HASH ? &e->items[0].name : &e->value;
        snprintf(holder, sizeof holder, "%.*s", (int)t->len, t->at);
        return sscanf(holder, "p%u:%u:%ld:", &p, &again, &tid) == 3 &&
               p < w->processes && !w->process[p]->is_dead &&
               (ended ||
                (!w->process[p]->clock_broke &&
                 client_is_open(&w->process[p]->client[s->index]) &&
                 !has_ended(w, tid) && !was_abandoned(w->process[p], t)));
    }
    return false;
}

/* Is it of a lock that a process which lives has let go of? */
static bool is_left(const world *w, const server *s, const entry *e)
{
    return is_left_by(w, s, e, false);
}

/* Or that a thread of it left to its lease? */
static bool is_left_too_long(const world *w, const server *s, const entry *e)
{
    return is_left_by(w, s, e, true);
}

static void look_at_keys(world *w, server *s,
                         bool (*wrong)(const world *, const server *,
                                       const entry *),
                         const char *what)
{
    for (size_t i = 0; i < STORE_BUCKETS; i++)
        for (const entry *e = s->store.bucket[i]; e; e = e->next)
            if (wrong(w, s, e))
                judge_fail(w, "judge 4: server %u has %.*s, %s", s->index,
                           (int)e->key.len, e->key.at, what);
}

static bool is_no_token(const world *w, const server *s, const entry *e)
{
    (void)w;
    (void)s;
    return !begins_with(&e->key, "rlock_token:");
}

static bool is_any(const world *w, const server *s, const entry *e)
{
    (void)w;
    (void)s;
    (void)e;
    return true;
}

/* Keys live as long as lua/README.md says. */
static void judge_server(world *w, server *s)
{
    int64_t lease_us = w->set.watchdog_ms * 5 * MS;
    int64_t longest_us =
        rl_max(60 * S, lease_us) + 70 * S + w->set.steps_back_us;
    /* What has run out for its owner has so here when the margin is over. */
    s->store.now_us = server_now(s) + lease_us / 100 + 2 * MS;
    store_count(&s->store);
    look_at_keys(w, s, is_left, "whose owner has let go of it");
    s->store.now_us = server_now(s) + lease_us;
    store_count(&s->store);
    look_at_keys(w, s, is_left_too_long, "whose thread has ended");
    s->store.now_us = server_now(s) + longest_us;
    store_count(&s->store);
    look_at_keys(w, s, is_no_token, "which nobody needs any more");
    s->store.now_us = server_now(s) + longest_us + 3700 * S;
    store_count(&s->store);
    look_at_keys(w, s, is_any, "for ever");
}

/* --- 6: work -------------------------------------------------------------- */

/* In a calm world: so many calls a verb, and those that come with time. */
static void judge_work(world *w)
{
    const figures *f = &w->figures;
    unsigned long long verbs =
        f->acquires + f->busy + f->timeouts + f->canceled + f->reentries +
        f->extends + f->releases + f->releases_lost + f->losses + f->inspects;
    unsigned long long seconds = (unsigned long long)(f->simulated_us / S) + 1;
    unsigned long long per_second =
        w->set.processes * (w->set.names + w->set.owners) *
        (1 + 4000 / (unsigned long long)w->set.watchdog_ms);
    /* Who listens on Redisson's channel is woken by every release. */
    if (w->set.redisson)
        verbs += f->hand_overs * w->set.processes;
    /* Red: of each node, votes and their undoing, before the votes agree. */
    if (w->set.red) {
        verbs *= 2 * w->set.servers;
        per_second *= 4 * w->set.servers;
    }
    if (!w->set.calm)
        return;
    if (f->calls > 4 * verbs + seconds * per_second + 50)
        judge_fail(w, "judge 6: %llu calls for %llu verbs in %llu s", f->calls,
                   verbs, seconds);
    /* A release rings one of those who wait, however many they are; so do votes
       that are given back, of waiters who look by themselves now and then. */
    unsigned long long rings = 2 * verbs + 50;
    if (w->set.red)
        rings += seconds * per_second / 4;
    if (w->set.red && w->set.redisson)
        rings += f->releases * w->set.servers * w->set.processes;
    if (f->rings > rings)
        judge_fail(w, "judge 6: %llu rings for %llu verbs", f->rings, verbs);
}

void judge_end(world *w)
{
    if (w->failed)
        return;
    for (size_t i = 0; i < w->set.servers; i++)
        judge_server(w, &w->server[i]);
    judge_work(w);
}
