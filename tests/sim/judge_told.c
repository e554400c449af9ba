/*
 * The judge of what is told: tokens grow with the grants and are kept by
 * re-entries, counts agree with the server's, and every call ends in time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

/* --- grants --------------------------------------------------------------- */

static uint64_t token_of(const holding *have)
{
    return have->group ? have->group->token : have->hold->token;
}

static size_t open_account(owner *o, size_t name)
{
    const holding *have = &o->holding[name];
    const rl_hold *h = have->hold;
    if (o->count == o->room) {
        o->room = o->room * 2 + 8;
        o->accounts = need_more(o->accounts, o->room * sizeof *o->accounts);
    }
    account *x = &o->accounts[o->count];
    *x = (account){.name = name, .token = token_of(have), .harm = have->harm};
    rl_uuid_write(&h->id, x->uuid);
    return o->count++;
}

static void judge_token(owner *o, size_t name)
{
    world *w = o->p->w;
    lock_truth *truth = &w->lock[name];
    uint64_t token = token_of(&o->holding[name]);
    /* Data that was restored may have it from before. */
    bool restored = o->token_harm[name] != judge_harm(w, name);
    if (token <= truth->last_token && !judge_excuses(o, name) && !restored &&
        !judge_excuses_tokens(w, name))
        judge_fail(w, "judge 2: owner %u got %s with token %llu after %llu",
                   o->number, truth->name, (unsigned long long)token,
                   (unsigned long long)truth->last_token);
    /* Somebody deleted a vote before the token was written to a quorum. */
    if ((!w->set.red || !judge_excuses(o, name)) &&
        (!restored || token > truth->last_token))
        truth->last_token = token;
}

/* What was passed on was granted when its turn began. */
static unsigned harm_at_grant(const owner *o, size_t name)
{
    const rl_hold *h = o->holding[name].hold;
    char uuid[RL_UUID_LEN + 1];
    if (!h->turn)
        return o->harm[name];
    const owner *starter = owner_by_serial(o->p->w, h->turn->starter->owner);
    rl_uuid_write(&h->id, uuid);
    for (size_t i = 0; i < starter->count; i++)
        if (strcmp(starter->accounts[i].uuid, uuid) == 0)
            return starter->accounts[i].harm;
    return o->harm[name];
}

void judge_grant(owner *o, size_t name)
{
    world *w = o->p->w;
    holding *have = &o->holding[name];
    if (!have->hold) {
        judge_fail(w, "judge 1: owner %u is told that it has %s, and has not",
                   o->number, judge_name_of(w, name));
        return;
    }
    have->harm = harm_at_grant(o, name);
    have->granted_us = w->now_us;
    have->account = open_account(o, name);
    w->figures.passes +=
        have->hold->turn && have->hold->turn->starter->owner != o->self.serial;
    /* Closed meanwhile, it or a node of it: that is told from now on. */
    if (owner_is_closed(o, name) || (w->set.red && !process_is_open(o->p)))
        return;
    if (!judge_believes(o, name)) {
        judge_fail(w, "judge 1: owner %u is told that it has %s, too late",
                   o->number, judge_name_of(w, name));
        return;
    }
    trace(w, "owner %u has %s, token %llu", o->number, judge_name_of(w, name),
          (unsigned long long)token_of(have));
    judge_token(o, name);
}

/* --- what the server has -------------------------------------------------- */

/* What the server counts for the hold; -1: it does not have it. */
long long judge_counted(world *w, size_t name, const rl_hold *h)
{
    server *s = lock_server(w, name);
    word key = {w->lock[name].name, strlen(w->lock[name].name)};
    char id[RL_HOLDER_MAX];
    word holder = {id, rl_hold_id_len(h)};
    rl_hold_write_id(h, id);
    long long count;
    s->store.now_us = server_now(s);
    const entry *e = store_find(&s->store, &key);
    const item *x = e && e->kind == KIND_HASH ? entry_item(e, &holder) : NULL;
    if (!x)
        return -1;
    word value = {x->value.at, x->value.len};
    return word_number(&value, &count) ? count : -1;
}

/* So many may be reserved behind a hold's own: see lua/README.md. */
#define MOST_KEPT 63

/* Has the last token of the name moved on while it is held? */
static bool token_moved(world *w, size_t name, const rl_hold *h)
{
    server *s = lock_server(w, name);
    rl_key key = rl_key_token(w->lock[name].name, strlen(w->lock[name].name));
    word k = {key.text, key.len};
    long long last;
    s->store.now_us = server_now(s);
    const entry *e = store_find(&s->store, &k);
    if (!e)
        return false;
    word value = {e->value.at, e->value.len};
    if (h->turn)
        return !word_number(&value, &last) || (uint64_t)last != h->turn->last;
    unsigned kept = w->set.turn_ms ? MOST_KEPT : 0;
    return !word_number(&value, &last) || (uint64_t)last < h->token ||
           (uint64_t)last > h->token + kept;
}

bool judge_is_hash(const world *w, size_t name)
{
    return w->lock[name].what.layout == &rl_layouts[RLOCK_LAYOUT_HASH];
}

/* Levels that are counted in the process only may be more or fewer. */
static bool counts_agree(const owner *o, size_t name, const rl_hold *h)
{
    long long n = judge_counted(o->p->w, name, h);
    return owner_counts_here(o, name) ? n >= 1 : n == h->count;
}

/* A hold that is held, and of which nothing is under way. */
static void judge_hold(owner *o, size_t name)
{
    world *w = o->p->w;
    const holding *have = &o->holding[name];
    const rl_hold *h = have->hold;
    if (!h || !judge_believes(o, name) || judge_excuses(o, name))
        return;
    if (w->set.red) {
        if (rl_group_count(have->group) != have->count ||
            have->group->token != o->accounts[have->account].token)
            judge_fail(w, "judge 2: owner %u has another count or token of %s",
                       o->number, judge_name_of(w, name));
        return;
    }
    if (h->count != have->count)
        judge_fail(w, "judge 2: owner %u has %s %d times, and is told %d",
                   o->number, judge_name_of(w, name), have->count, h->count);
    if (h->token != o->accounts[have->account].token)
        judge_fail(w, "judge 2: the token of owner %u for %s has changed",
                   o->number, judge_name_of(w, name));
    if (!w->lock[name].shares_token && token_moved(w, name, h))
        judge_fail(w, "judge 2: while owner %u has %s, there is a new token",
                   o->number, judge_name_of(w, name));
    if (judge_is_hash(w, name) && !have->unsure && !h->unknown &&
        !lock_server(w, name)->lacked_memory && !counts_agree(o, name, h))
        judge_fail(w, "judge 2: owner %u has %s %d times, the server says %lld",
                   o->number, judge_name_of(w, name), h->count,
                   judge_counted(w, name, h));
}

/* Does the server still have it for this holder? */
static bool has_it(world *w, size_t name, const rl_hold *h)
{
    server *s = lock_server(w, name);
    word key = {w->lock[name].name, strlen(w->lock[name].name)};
    char id[RL_HOLDER_MAX];
    word holder = {id, rl_hold_id_len(h)};
    rl_hold_write_id(h, id);
    s->store.now_us = server_now(s);
    const entry *e = store_find(&s->store, &key);
    word value = {e ? e->value.at : NULL, e ? e->value.len : 0};
    return e && (e->kind == KIND_HASH ? entry_item(e, &holder) != NULL
                                      : word_equal(&value, &holder));
}

/* The last unlock has been confirmed. */
void judge_release(owner *o, size_t name)
{
    world *w = o->p->w;
    const rl_hold *h = o->holding[name].hold;
    if (!judge_excuses(o, name) && !lock_server(w, name)->lacked_memory &&
        has_it(w, name, h))
        judge_fail(w,
                   "judge 4: owner %u has released %s, and the server still "
                   "has it",
                   o->number, judge_name_of(w, name));
}

/* --- what verbs come to --------------------------------------------------- */

static void count_told(world *w, const owner *o, rlock_status s)
{
    figures *f = &w->figures;
    bool ok = s == RLOCK_OK;
    if (o->verb == ACQUIRE) {
        f->acquires += ok;
        f->busy += s == RLOCK_BUSY;
        f->timeouts += s == RLOCK_TIMEOUT;
        f->canceled += s == RLOCK_CANCELED;
        f->failed += s == RLOCK_EIO || s == RLOCK_EQUORUM;
    }
    f->reentries += ok && o->verb == REENTER;
    f->extends += ok && o->verb == EXTEND;
    f->inspects += o->verb == INSPECT || o->verb == FORCE;
    f->releases += ok && o->verb == UNLOCK;
    f->releases_lost += s == RLOCK_LOST && o->verb == UNLOCK;
}

/* A call ends in its time: the wait, a command, and the last of each. */
static void judge_duration(owner *o)
{
    world *w = o->p->w;
    int64_t took_us = process_now(o->p) - o->began_us;
    int64_t most_us = w->set.timeout_ms * MS * 2;
    if (o->verb == ACQUIRE && o->wait_ms == RLOCK_FOREVER)
        return;
    if (o->verb == ACQUIRE)
        most_us += o->wait_ms * MS;
    if (took_us > most_us + 20 * judge_latency_us(w) &&
        judge_has_run_since(o, w->now_us - took_us + most_us))
        judge_fail(w, "judge 5: a call of owner %u took %lld us, not %lld",
                   o->number, (long long)took_us, (long long)most_us);
}

void judge_told(owner *o, rlock_status s)
{
    world *w = o->p->w;
    count_told(w, o, s);
    if (o->p->is_dead)
        return;
    for (size_t name = 0; name < w->set.names; name++)
        if (owner_is_about(o, name))
            judge_hold(o, name);
    judge_duration(o);
}
