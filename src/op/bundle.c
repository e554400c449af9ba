/*
 * Bundles: parts of one verb, for holds of one client and layout, that go to
 * the server in one call. The first one's ask is about all of them, in their
 * order, and only it is a part of the op's round; what comes of it each of them
 * notes, as if it had asked by itself.
 *
 * Locks are taken all or none: one of the parts is told what is in the way (it
 * is busy), and to the others it is as if they had not been asked. When the
 * server refuses the call as a whole (a right is missing for one of the keys,
 * or they lie in several slots of a cluster), or its answer makes no sense,
 * all become parts of the round, and each asks by itself.
 *
 * What stays true: each part ends once, and what may have been executed for
 * one of them may have been for every one.
 */
#include <string.h>

#include "op/call.h"
#include "op/op.h"

/* What the scripts of single locks say, to the one that is in the way. */
static const rl_reply busy = {.top = {.type = REDIS_REPLY_ARRAY},
                              .count = 5,
                              .item = {{.type = REDIS_REPLY_INTEGER},
                                       {REDIS_REPLY_INTEGER, -1, NULL, 0},
                                       {.type = REDIS_REPLY_INTEGER},
                                       {.type = REDIS_REPLY_INTEGER},
                                       {REDIS_REPLY_INTEGER, -1, NULL, 0}}};
static const rl_reply given_up = {.top = {.type = REDIS_REPLY_ARRAY},
                                  .count = 1,
                                  .item = {{REDIS_REPLY_INTEGER, -2, NULL, 0}}};

/* --- the call ------------------------------------------------------------- */

/* RL_SCRIPT_COUNT: it has to go by itself. */
static rl_script_id script_of(const rl_part *x)
{
    const rl_request *r = &x->request;
    if (x->verb == &rl_verb_acquire && !x->heap && !*r->bell && !r->says_least)
        return rl_hold_layout(x->hold)->take_many;
    if (x->verb == &rl_verb_release && !x->heap && x->level == 0 &&
        !x->hold->unknown)
        return rl_hold_layout(x->hold)->free_many;
    return RL_SCRIPT_COUNT;
}

bool rl_bundle_join(rl_part *first, rl_part *x)
{
    rl_script_id script = script_of(x);
    if (script == RL_SCRIPT_COUNT || first->core != x->core ||
        rl_part_slot(first) != rl_part_slot(x) || script_of(first) != script ||
        first->request.lease_ms != x->request.lease_ms ||
        first->ask.confirm.replicas != x->ask.confirm.replicas)
        return false;
    rl_part *last = first;
    while (last->next)
        last = last->next;
    last->next = x;
    first->ask.script = script;
    first->ask.parts = true;
    return true;
}

void rl_bundle_write(const rl_part *first, rl_bytes *to)
{
    const rl_hold *hold[RL_PARTS_MAX];
    bool whole = first->ask.whole;
    size_t n = 0;
    for (const rl_part *x = first; x; x = x->next)
        hold[n++] = x->hold;
    if (first->verb == &rl_verb_acquire)
        rl_call_take_many(to, whole, hold, n, first->request.lease_ms);
    else
        rl_call_free_many(to, whole, hold, n);
}

/* --- the answer ----------------------------------------------------------- */

/* Is there something in it for each? */
static bool makes_sense(const rl_part *first, const rl_reply *r)
{
    bool takes = first->verb == &rl_verb_acquire;
    long long n = 0, blanks = 0;
    for (const rl_part *x = first; x; x = x->next)
        n++;
    if (rl_reply_is(r, REDIS_REPLY_INTEGER))
        return r->top.integer != 0 && r->top.integer >= -n &&
               r->top.integer <= n;
    for (size_t i = 0; i < r->top.len; i++)
        blanks += r->top.str[i] == ' ';
    return takes ? blanks == n - 1 : (long long)r->top.len == n;
}

/* The next of the tokens, as a reply of its own. */
static const rl_reply *next_token(const char **at, rl_reply *own)
{
    size_t len = strcspn(*at, " ");
    memcpy(own->text, *at, len);
    own->text[len] = '\0';
    own->count = 0;
    own->top = (rl_item){REDIS_REPLY_STRING, 0, own->text, len};
    *at += (*at)[len] ? len + 1 : len;
    return own;
}

/* What to take many says to the i-th of them; NULL: it was not asked. */
static const rl_reply *taken(const rl_reply *r, long long i, const char **at,
                             rl_reply *own)
{
    long long code = r->top.integer;
    if (rl_reply_is(r, REDIS_REPLY_STRING))
        return next_token(at, own);
    return code == i + 1 ? &busy : code == -i - 1 ? &given_up : NULL;
}

/* What to free many says of it; NULL: it is to ask by itself. */
static const rl_reply *freed(char letter, rl_reply *own)
{
    if (letter < '0' || letter > '2')
        return NULL;
    own->count = 0;
    own->top = (rl_item){REDIS_REPLY_INTEGER, letter - '0', NULL, 0};
    return own;
}

/* --- the end -------------------------------------------------------------- */

static void ask_alone(rl_part *x, const rl_part *first)
{
    rl_op *op = first->op;
    bool unknown = x->ask.unknown;
    rl_confirm confirm = x->ask.confirm;
    const rl_layout *l = rl_hold_layout(x->hold);
    rl_part_begin_ask(x, x->verb == &rl_verb_acquire ? l->acquire : l->release);
    x->ask.unknown = unknown;
    x->ask.confirm = confirm;
    x->over = false;
    if (x == first)
        return;
    x->way = first->way;
    op->part[op->n++] = x;
    op->quorum++;
}

/* for_good: the next time as well. */
static void end_apart(rl_part *first, bool for_good)
{
    for (rl_part *x = first, *next; x; x = next) {
        next = x->next;
        x->next = NULL;
        ask_alone(x, first);
    }
    first->refused = for_good;
}

static void end_each(rl_part *first, const rl_reply *r, int64_t now_us)
{
    rl_reply own;
    const char *at = r ? r->top.str : NULL;
    long long i = 0;
    for (rl_part *x = first, *next; x; x = next, i++) {
        const rl_reply *answer = NULL;
        next = x->next;
        x->next = NULL;
        if (r && x->verb == &rl_verb_acquire)
            answer = taken(r, i, &at, &own);
        else if (r)
            answer = freed(at[i], &own);
        if (answer || !r || x->verb == &rl_verb_acquire)
            rl_part_note(x, answer, now_us);
        else
            ask_alone(x, first);
    }
}

void rl_bundle_end(rl_part *first, const rl_reply *r, int64_t now_us)
{
    const rl_ask *a = &first->ask;
    bool sound = r && makes_sense(first, r);
    bool split = a->split;
    bool apart = !sound && (split || rl_ask_is_refused(a, first->outcome));
    if (r && !sound)
        rl_fault_set(&first->fault, RLOCK_EIO, 0,
                     "an answer to several locks that makes no sense");
    if (r && !sound && a->line)
        a->line->odd = true;
    first->ask.unknown = a->unknown || (r && !sound);
    /* That replicas lack it concerns what was granted only. */
    if (sound && (rl_ask_is_durable(a) || rl_reply_is(r, REDIS_REPLY_INTEGER)))
        first->fault = (rl_fault){.status = RLOCK_OK};
    for (rl_part *x = first->next; x; x = x->next) {
        x->outcome = first->outcome;
        x->over = true;
        x->fault = first->fault;
        x->ask.unknown = a->unknown;
        x->ask.sent_us = a->sent_us;
        x->ask.confirm.acked = a->confirm.acked;
    }
    if (apart)
        end_apart(first, !split);
    else
        end_each(first, sound ? r : NULL, now_us);
}
