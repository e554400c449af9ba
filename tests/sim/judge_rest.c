/*
 * Judge 12: when its clients are freed, no thread of the library is left, no
 * descriptor and no block of memory; when leases and tokens have run out, no
 * key. And what a client was to release with its close, it has released.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

static const text *holder_of(const entry *e)
{
    if (e->kind == KIND_STRING)
        return &e->value;
    return e->kind == KIND_HASH && e->count > 0 ? &e->items[0].name : NULL;
}

static bool begins(const text *id, const char *with, int n)
{
    return id->len > (size_t)n && memcmp(id->at, with, (size_t)n) == 0;
}

static bool is_lent(const text *id)
{
    return memmem(id->at, id->len, "/" LENT ":", strlen("/" LENT ":")) != NULL;
}

/* What a thread, or an owner, that has ended has left runs out by itself. */
static bool is_held_by(const program *g, int t, const entry *e)
{
    char of[100];
    const text *id = holder_of(e);
    int n = snprintf(of, sizeof of, "%s:%d:", g->p.host, g->p.pid);
    if (!id || !begins(id, of, n) || is_lent(id))
        return false;
    for (const hold *h = holds[t]; h; h = h->next)
        if (h->is_abandoned && is_holder(h, id))
            return false;
    return true;
}

/* The longest lease of most worlds. */
#define LEASE_MS 30000

/* For the client it may have run out: their two clocks drift apart. */
static bool may_be_over(const server *s, const entry *e)
{
    int64_t left_ms = entry_left_ms(&s->store, e);
    return left_ms >= 0 &&
           left_ms <= 1 + 2 * LEASE_MS * cfg.drift_ppm / 1000000;
}

/*
 * A Red lock is released with a quorum, and what the other nodes are asked may
 * be under way when the client is closed. That is known, and not judged. Nor is
 * what a turn has passed on to an owner that was freed: it has another one's id.
 */
static void closed(program *g, int client, rlock_status status)
{
    if (!cfg.release_held || status != RLOCK_OK ||
        (cfg.lend > 0 && cfg.turn_ms > 0))
        return;
    for (int t = 0; t < things_n; t++) {
        server *s = server_in_office(client, things[t].name);
        server_set_clock(s);
        word key = {things[t].name, strlen(things[t].name)};
        const entry *e = store_find(&s->store, &key);
        /* What was released may come back with a replica. */
        if (e && !things[t].is_red && is_held_by(g, t, e) &&
            !may_be_over(s, e) && !was_shaken(t, w.now - 10 * S) &&
            !judge_was_replaced(t, w.now - 10 * S))
            finding("judge 12: %s is still held at server %d by a client that "
                    "was closed, and has released all",
                    things[t].name, client);
    }
}

/* --- what was unlocked ---------------------------------------------------- */

typedef struct leftover {
    event due; /* the first member */
    const owner *o;
    server *s;
    int thing, thread;
    int64_t since;
    char label[24], holder[128];
} leftover;

static const text *holder_at(server *s, int t)
{
    word key = {things[t].name, strlen(things[t].name)};
    server_set_clock(s);
    const entry *e = store_find(&s->store, &key);
    return e ? holder_of(e) : NULL;
}

static bool is_the_same(const leftover *l)
{
    const text *id = holder_at(l->s, l->thing);
    return id && id->len == strlen(l->holder) &&
           memcmp(id->at, l->holder, id->len) == 0;
}

static void look_again(event *e)
{
    leftover *l = (leftover *)e;
    if (is_the_same(l) && !l->o->g->closing_at)
        finding("judge 12: owner %d has unlocked %s, and a second later the "
                "server still has it",
                l->o->id, things[l->thing].name);
    free(l);
}

static void look_later(const hold *h)
{
    server *s = &servers[things[h->thing].home];
    const text *id = holder_at(s, h->thing);
    leftover *l = need_memory(sizeof *l);
    if (!judge_names_holder(h) || !judge_backs(s, h) ||
        id->len >= sizeof l->holder) {
        free(l);
        return;
    }
    l->o = h->o;
    l->s = s;
    l->thing = h->thing;
    memcpy(l->holder, id->at, id->len);
    l->due.fire = look_again;
    event_set(&l->due, w.now + S + judge_slack() + judge_callbacks());
}

static void unlocked(const act *a)
{
    const lock *l = &locks[a->lock];
    if (a->status != RLOCK_OK && a->status != RLOCK_LOST)
        return;
    for (int i = 0; i < l->n; i++) {
        const hold *h = a->o->hold[l->member[i]];
        if (h && h->levels == 1 && !things[h->thing].is_red)
            look_later(h);
    }
}

/* --- what was not had ----------------------------------------------------- */

/* Of an owner that has nothing of a Red lock, and asks for nothing, a vote. */
static const text *vote_of(const leftover *l)
{
    const owner *o = l->o;
    const text *id = holder_at(l->s, l->thing);
    hold h = {.g = o->g, .thread = l->thread};
    memcpy(h.label, l->label, sizeof h.label);
    if (!id || o->hold[l->thing] || o->waits || o->g->closing_at ||
        id->len >= sizeof l->holder || !is_holder(&h, id))
        return NULL;
    return id;
}

static void look_whether_it_stays(event *e)
{
    leftover *l = (leftover *)e;
    if (vote_of(l) && is_the_same(l) && !judge_trouble_since(l->since))
        finding("judge 12: owner %d could not have %s, and server %d still "
                "has his vote",
                l->o->id, things[l->thing].name, l->s->index);
    free(l);
}

static void look_for_vote(event *e)
{
    leftover *l = (leftover *)e;
    const text *id = vote_of(l);
    if (!id || judge_trouble_since(l->since)) {
        free(l);
        return;
    }
    memcpy(l->holder, id->at, id->len);
    l->due.fire = look_whether_it_stays;
    event_set(&l->due, w.now + S);
}

/* An answer may be late; then it is undone when it comes. */
static void failed(const act *a)
{
    int t = locks[a->lock].member[0];
    for (int i = 0; i < cfg.servers; i++) {
        leftover *l = need_memory(sizeof *l);
        l->o = a->o;
        l->s = &servers[i];
        l->thing = t;
        l->since = w.now;
        l->thread = a->o->is_task ? a->o->made_by : running->id;
        memcpy(l->label, a->o->label, sizeof l->label);
        l->due.fire = look_for_vote;
        event_set(&l->due, w.now + S + 2 * cfg.tail_us * US + judge_slack());
    }
}

/*
 * Where connections are sound, what was unlocked is soon gone at its server,
 * also if its lease had run out for its owner and not yet there; and so are the
 * votes of an acquire that has failed, also where some answers are late.
 */
static void called(const act *a)
{
    const lock *l = &locks[a->lock];
    if (cfg.cluster || cfg.sentinel || cfg.turn_ms > 0 || a->o->g->closing_at)
        return;
    if (strcmp(a->verb, "unlock") == 0 && judge_is_sound() && cfg.tail_ppm == 0)
        unlocked(a);
    if (strcmp(a->verb, "acquire") == 0 && judge_is_sound() && a->status &&
        cfg.end_pct == 0 && l->n == 1 && l->has_red)
        failed(a);
}

/* --- the end -------------------------------------------------------------- */

static void ended(void)
{
    for (int i = 1; i < threads_n; i++)
        if (threads[i]->state != DONE)
            finding("judge 12: the thread %s is left", threads[i]->name);
    descriptors_tell();
    if (descriptors_open() > 0 && !death_has_been())
        finding("judge 12: %d descriptors are left open", descriptors_open());
    for (int i = 0; i < servers_n; i++)
        if (server_keys(&servers[i]) > semaphore_keys(i))
            finding("judge 12: %zu keys are left at server %d",
                    server_keys(&servers[i]), i);
    if (memory_blocks() != 0 && !death_has_been())
        finding("judge 12: the library has %lld blocks of memory",
                (long long)memory_blocks());
}

const judge judge_rest = {
    .name = "rest", .called = called, .closed = closed, .ended = ended};
