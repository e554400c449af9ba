/* What the servers execute, as the judges and the trace see it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "judge.h"
#include "script.h"
#include "wire/script.h"

/* The holder "pI:I:TID:UUID": its owner, if that thread still runs. */
owner *judge_owner_of(world *w, const word *holder)
{
    char text[RL_HOLDER_MAX];
    unsigned p, again;
    long tid;
    snprintf(text, sizeof text, "%.*s", (int)holder->len, holder->at);
    if (sscanf(text, "p%u:%u:%ld:", &p, &again, &tid) != 3)
        return NULL;
    owner *o = owner_by_serial(w, (uint64_t)tid);
    return o && o->self.tid == tid ? o : NULL;
}

size_t judge_find_name(const world *w, const server *s, const word *name)
{
    for (size_t i = 0; i < w->set.names; i++)
        if (word_is(name, w->lock[i].name) &&
            (w->set.red || w->lock[i].server == s->index))
            return i;
    return NAMES_MAX;
}

static bool is_acquire(int script)
{
    for (size_t i = 0; i < RL_SINGLE_SCOPES; i++)
        if (script == (int)rl_layouts[i].acquire)
            return true;
    return false;
}

static bool is_release(int script)
{
    for (size_t i = 0; i < RL_SINGLE_SCOPES; i++)
        if (script == (int)rl_layouts[i].release)
            return true;
    return false;
}

static bool is_force(int script)
{
    for (size_t i = 0; i < RL_SINGLE_SCOPES; i++)
        if (script == (int)rl_layouts[i].force_release)
            return true;
    return false;
}

static void trace_call(conn *c, int script, size_t keys, const word *argv,
                       size_t n, const char *reply, size_t len)
{
    char said[120];
    size_t used = 0;
    if (!c->w->traces)
        return;
    for (size_t i = 0; i < len && used < sizeof said - 1; i++)
        if (reply[i] != '\r')
            said[used++] = reply[i] == '\n' ? ' ' : reply[i];
    said[used] = '\0';
    trace(c->w, "server %u: %s %.*s for process %u on connection %u: %s",
          c->s->index, rl_scripts[script].name, n > 0 ? (int)argv[0].len : 0,
          n > 0 ? argv[0].at : "", c->of->p->index, c->number, said);
    if (!is_acquire(script))
        return;
    const word *arg = argv + keys;
    trace(c->w, "    holder %.*s, lease %.*s", (int)arg[0].len, arg[0].at,
          (int)arg[1].len, arg[1].at);
    if (n - keys > 3)
        trace(c->w, "    level %.*s, bell %.*s", (int)arg[2].len, arg[2].at,
              (int)arg[3].len, arg[3].at);
}

/*
 * A Red lock is had by several grants to one holder id: what is done to a node
 * from the first of them on is harm. A single lock that is asked for again, and
 * is there, has the token of the first.
 */
static void note_grant(owner *o, size_t name, const word *holder)
{
    uint64_t try = rl_hash(holder->at, holder->len, 0);
    bool first = o->tried[name] != try;
    unsigned harm = judge_harm(o->p->w, name);
    o->tried[name] = try;
    if (first)
        o->token_harm[name] = harm;
    if (first || !o->p->w->set.red)
        o->harm[name] = harm;
}

/* A token, or an array that begins with 1. */
static bool is_grant(const char *reply, size_t len)
{
    return *reply == '$' || (len > 6 && strncmp(reply + 4, ":1", 2) == 0);
}

/* The lock goes to the next holder, or is freed: see lua/hash/handover.lua. */
static void note_hand_over(server *s, size_t name, const word *next,
                           const char *reply)
{
    owner *o = judge_owner_of(s->w, next);
    if (*reply != '$' && strncmp(reply, "*2\r\n:3", 6) != 0) {
        if (strncmp(reply, "*1\r\n:0", 6) != 0)
            judge_freeing(s->w, name);
        return;
    }
    if (!o || o->tried[name] == rl_hash(next->at, next->len, 0))
        return; /* it was asked again */
    s->w->figures.handed_over++;
    note_grant(o, name, next);
    judge_handing_over(o, name, next);
}

void judge_call(conn *c, int script, size_t keys, const word *argv, size_t n,
                const char *reply, size_t len)
{
    world *w = c->w;
    trace_call(c, script, keys, argv, n, reply, len);
    w->figures.calls++;
    size_t name = n > 0 ? judge_find_name(w, c->s, &argv[0]) : NAMES_MAX;
    if (name == NAMES_MAX)
        return;
    if (w->set.wild_ppm > 0)
        judge_note_lease(w, c->s, name);
    if (is_force(script) && strncmp(reply, ":1", 2) == 0)
        server_is_misused(c->s);
    if (is_acquire(script) && is_grant(reply, len)) {
        owner *o = judge_owner_of(w, &argv[keys]);
        w->lock[name].handed_over = 0;
        if (o)
            note_grant(o, name, &argv[keys]);
    }
    if (script == RL_SCRIPT_HASH_HANDOVER && *reply != '-')
        note_hand_over(c->s, name, &argv[keys + 1], reply);
    if ((is_force(script) || is_release(script)) &&
        strtoll(reply + 1, NULL, 10) % RL_UNBURIED > 0)
        judge_freeing(w, name);
}
