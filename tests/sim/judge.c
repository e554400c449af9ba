/*
 * The judges that look at each step, with the knowledge of all sides.
 *
 *   1  no two owners are told "held" at the same time
 *   2  tokens grow with the grants, re-entry keeps them, counts agree
 *   3  a loss is told once, in time, and none that is not
 *
 * A lock may be lost without anybody's fault: a server loses data, somebody
 * deletes its key or frees it by force (a server's `harm` counts these), a
 * clock breaks its bound. What began before such a thing is excused; then the
 * tokens have to tell.
 */
#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script.h"

/* A thread that is due runs within this, if its process does. */
static int64_t longest_latency_us(const world *w)
{
    return 10 * MS + 2 * rl_max(w->set.stall_us, w->set.latency_us);
}

void judge_fail(world *w, const char *fmt, ...)
{
    va_list args;
    if (w->failed)
        return;
    w->failed = true;
    va_start(args, fmt);
    vsnprintf(w->failure, sizeof w->failure, fmt, args);
    va_end(args);
    trace(w, "%s", w->failure);
}

static const char *name_of(const world *w, size_t name)
{
    return w->lock[name].name;
}

/* --- excuses -------------------------------------------------------------- */

static bool clocks_broke(const owner *o, size_t name)
{
    return o->p->clock_broke || lock_server(o->p->w, name)->clock_broke;
}

/* May it have been lost through nobody's fault since it was granted? */
static bool is_excused(const owner *o, size_t name)
{
    return o->p->is_dead || clocks_broke(o, name) ||
           o->holding[name].harm != lock_server(o->p->w, name)->harm;
}

/* --- 1: who believes ------------------------------------------------------ */

/*
 * While an owner waits for its extend it is told nothing, and has asked for
 * what it then has.
 */
static int64_t belief_end(const owner *o, size_t name)
{
    int64_t us = o->holding[name].hold->deadline_us;
    const rl_core *core =
        &o->p->client[lock_server(o->p->w, name)->index].e.core;
    if (o->verb == EXTEND && o->name == name)
        us = rl_min(
            us, rl_lease_deadline(o->began_us, rl_lease_of(core, o->lease_ms)));
    return us;
}

static bool believes(const owner *o, size_t name)
{
    const holding *have = &o->holding[name];
    return have->hold && !have->releasing && have->hold->state == RL_HELD &&
           process_now(o->p) < belief_end(o, name);
}

static void overlap(world *w, const owner *a, const owner *b, size_t name)
{
    const server *s = lock_server(w, name);
    if (is_excused(a, name) || is_excused(b, name)) {
        if (a->holding[name].hold->token == b->holding[name].hold->token &&
            !(s->data_lost && s->clock_went_back))
            judge_fail(w, "judge 2: owners %u and %u hold %s with one token",
                       a->number, b->number, name_of(w, name));
        return;
    }
    judge_fail(w, "judge 1: owners %u and %u both hold %s", a->number,
               b->number, name_of(w, name));
}

/* --- 3: a deadline that passes in silence --------------------------------- */

/* The process has been running for long enough for its notifier to have run. */
static bool has_run_since(const owner *o, int64_t true_us)
{
    const world *w = o->p->w;
    return w->now_us >
           rl_max(true_us, o->p->resumed_us) + longest_latency_us(w);
}

static void look_at_hold(world *w, owner *o, size_t name)
{
    holding *have = &o->holding[name];
    const rl_hold *h = have->hold;
    bool over = h->state == RL_HELD ? process_now(o->p) >= h->deadline_us
                                    : h->state == RL_LOST;
    if (!over || o->p->is_dead) {
        have->past_us = 0;
        return;
    }
    if (have->past_us == 0)
        have->past_us = w->now_us;
    if (!has_run_since(o, have->past_us))
        return;
    if (h->state == RL_HELD)
        judge_fail(w, "judge 3: owner %u still has %s after its deadline",
                   o->number, name_of(w, name));
    else if (o->accounts[have->account].losses_told == 0)
        judge_fail(w, "judge 3: nobody is told that owner %u lost %s",
                   o->number, name_of(w, name));
}

static void judge_name(world *w, size_t name)
{
    const owner *first = NULL;
    for (size_t p = 0; p < w->processes; p++) {
        for (size_t i = 0; i < w->process[p]->owners; i++) {
            owner *o = w->process[p]->owner[i];
            if (!o->holding[name].hold)
                continue;
            look_at_hold(w, o, name);
            if (!believes(o, name))
                continue;
            if (first)
                overlap(w, first, o, name);
            first = o;
        }
    }
}

void judge_step(world *w)
{
    for (size_t name = 0; name < w->set.names; name++) {
        judge_name(w, name);
        judge_progress(w, name);
    }
}

/* --- grants --------------------------------------------------------------- */

/* The holder "pI:I:TID:UUID": its owner. */
static owner *owner_of_holder(world *w, const word *holder)
{
    char text[RL_HOLDER_MAX];
    unsigned p, again;
    long tid;
    snprintf(text, sizeof text, "%.*s", (int)holder->len, holder->at);
    if (sscanf(text, "p%u:%u:%ld:", &p, &again, &tid) != 3)
        return NULL;
    return owner_by_serial(w, (uint64_t)tid);
}

static size_t lock_by_name(const world *w, const word *name)
{
    for (size_t i = 0; i < w->set.names; i++)
        if (word_is(name, w->lock[i].name))
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

static void trace_call(conn *c, int script, const word *argv, size_t n,
                       const char *reply, size_t len)
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
    if (is_acquire(script) && n > 6)
        trace(c->w, "    holder %.*s, lease %.*s, level %.*s, bell %.*s",
              (int)argv[4].len, argv[4].at, (int)argv[5].len, argv[5].at,
              (int)argv[6].len, argv[6].at, (int)argv[7].len, argv[7].at);
}

void judge_call(conn *c, int script, const word *argv, size_t n,
                const char *reply, size_t len)
{
    world *w = c->w;
    trace_call(c, script, argv, n, reply, len);
    w->figures.calls++;
    size_t name = n > 0 ? lock_by_name(w, &argv[0]) : NAMES_MAX;
    if (name == NAMES_MAX)
        return;
    if (is_force(script) && strncmp(reply, ":1", 2) == 0)
        c->s->harm++;
    if (is_acquire(script) && len > 6 && strncmp(reply + 4, ":1", 2) == 0) {
        owner *o = owner_of_holder(w, &argv[4]);
        if (o)
            o->harm[name] = c->s->harm;
    }
    if (is_force(script) || is_release(script))
        judge_freeing(w, name);
}

static size_t open_account(owner *o, size_t name, const rl_hold *h)
{
    if (o->count == o->room) {
        o->room = o->room * 2 + 8;
        o->accounts = realloc(o->accounts, o->room * sizeof *o->accounts);
        if (!o->accounts)
            die("out of memory");
    }
    account *x = &o->accounts[o->count];
    *x = (account){.name = name, .token = h->token};
    strcpy(x->uuid, h->holder + strlen(h->holder) - RL_UUID_LEN);
    return o->count++;
}

static void judge_token(owner *o, size_t name)
{
    world *w = o->p->w;
    const server *s = lock_server(w, name);
    lock_truth *truth = &w->lock[name];
    uint64_t token = o->holding[name].hold->token;
    if (token <= truth->last_token && !is_excused(o, name) &&
        !(s->clock_went_back && s->data_lost))
        judge_fail(w, "judge 2: owner %u got %s with token %llu after %llu",
                   o->number, truth->name, (unsigned long long)token,
                   (unsigned long long)truth->last_token);
    truth->last_token = token;
}

/*
 * Known: an acquire that was granted without its bell, after a try with it,
 * goes on to leave the queue, and waits for that answer; meanwhile its lease
 * may run out, and it still returns RLOCK_OK.
 */
static void told_too_late(owner *o, size_t name)
{
    const rl_acquire *a = &o->acquire;
    o->accounts[o->holding[name].account].losses_told = o->lost_early;
    if (a->phase == RL_PHASE_LEAVE && a->op.n > 0)
        o->p->w->figures.told_too_late++;
    else
        judge_fail(o->p->w,
                   "judge 1: owner %u is told that it has %s, too late",
                   o->number, name_of(o->p->w, name));
}

void judge_grant(owner *o, size_t name)
{
    world *w = o->p->w;
    holding *have = &o->holding[name];
    if (!have->hold) {
        judge_fail(w, "judge 1: owner %u is told that it has %s, and has not",
                   o->number, name_of(w, name));
        return;
    }
    have->harm = o->harm[name];
    have->granted_us = w->now_us;
    have->account = open_account(o, name, have->hold);
    if (!believes(o, name))
        told_too_late(o, name);
    trace(w, "owner %u has %s, token %llu", o->number, name_of(w, name),
          (unsigned long long)have->hold->token);
    judge_token(o, name);
}

/* --- what the server has -------------------------------------------------- */

/* What the server counts for the hold; -1: it does not have it. */
static long long counted(world *w, size_t name, const rl_hold *h)
{
    server *s = lock_server(w, name);
    word key = {w->lock[name].name, strlen(w->lock[name].name)};
    word holder = {h->holder, strlen(h->holder)};
    long long count;
    s->store.now_us = server_now(s);
    const entry *e = store_find(&s->store, &key);
    const item *x = e && e->kind == KIND_HASH ? entry_item(e, &holder) : NULL;
    if (!x)
        return -1;
    word value = {x->value.at, x->value.len};
    return word_number(&value, &count) ? count : -1;
}

/* Has the last token of the name moved on while it is held? */
static bool token_moved(world *w, size_t name, const rl_hold *h)
{
    server *s = lock_server(w, name);
    rl_key key = rl_key_token(w->lock[name].name, strlen(w->lock[name].name));
    word k = {key.text, key.len};
    char digits[24];
    s->store.now_us = server_now(s);
    const entry *e = store_find(&s->store, &k);
    word value = {digits, (size_t)snprintf(digits, sizeof digits, "%llu",
                                           (unsigned long long)h->token)};
    word now = {e ? e->value.at : NULL, e ? e->value.len : 0};
    return e && !word_equal(&now, &value);
}

/* "a" and "{a}" have one token key. */
static bool shares_token(const world *w, size_t name)
{
    return w->set.names > 1 && name < 2;
}

static bool is_hash(const world *w, size_t name)
{
    return w->lock[name].what.layout == &rl_layouts[RLOCK_LAYOUT_HASH];
}

/* A hold that is held, and of which nothing is under way. */
static void judge_hold(owner *o, size_t name)
{
    world *w = o->p->w;
    const holding *have = &o->holding[name];
    const rl_hold *h = have->hold;
    if (!h || !believes(o, name) || is_excused(o, name))
        return;
    if (h->count != have->count)
        judge_fail(w, "judge 2: owner %u has %s %d times, and is told %d",
                   o->number, name_of(w, name), have->count, h->count);
    if (h->token != o->accounts[have->account].token)
        judge_fail(w, "judge 2: the token of owner %u for %s has changed",
                   o->number, name_of(w, name));
    if (!shares_token(w, name) && token_moved(w, name, h))
        judge_fail(w, "judge 2: while owner %u has %s, there is a new token",
                   o->number, name_of(w, name));
    if (is_hash(w, name) && !have->unsure && !h->unknown &&
        !lock_server(w, name)->lacked_memory && counted(w, name, h) != h->count)
        judge_fail(w, "judge 2: owner %u has %s %d times, the server says %lld",
                   o->number, name_of(w, name), h->count, counted(w, name, h));
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
    if (took_us > most_us + 20 * longest_latency_us(w) &&
        has_run_since(o, w->now_us - took_us + most_us))
        judge_fail(w, "judge 5: a call of owner %u took %lld us, not %lld",
                   o->number, (long long)took_us, (long long)most_us);
}

void judge_told(owner *o, rlock_status s)
{
    world *w = o->p->w;
    count_told(w, o, s);
    if (o->p->is_dead)
        return;
    if (!w->set.red)
        judge_hold(o, o->name);
    judge_duration(o);
}

/* --- losses --------------------------------------------------------------- */

void judge_end_of_hold(owner *o, size_t name)
{
    const holding *have = &o->holding[name];
    account *x = &o->accounts[have->account];
    x->why = have->hold->loss;
    x->lost = x->why != RL_LOSS_NONE;
}

static account *find_account(owner *o, const rl_hold *h)
{
    const char *uuid = h->holder + strlen(h->holder) - RL_UUID_LEN;
    for (size_t i = o->count; i > 0; i--)
        if (strcmp(o->accounts[i - 1].uuid, uuid) == 0)
            return &o->accounts[i - 1];
    return NULL;
}

/* Nothing is told lost that is not. */
static void judge_cause(owner *o, size_t name, const rl_hold *h)
{
    world *w = o->p->w;
    if (o->p->is_dead || is_excused(o, name))
        return;
    if (h->loss == RL_LOSS_EXPIRED && process_now(o->p) < h->deadline_us)
        judge_fail(w, "judge 3: owner %u is told that %s ran out, too early",
                   o->number, name_of(w, name));
    if (h->loss == RL_LOSS_GONE && !h->unknown &&
        (h->state == RL_LOST || (is_hash(w, name) && counted(w, name, h) > 0)))
        judge_fail(w,
                   "judge 3: owner %u is told that %s is gone, without cause",
                   o->number, name_of(w, name));
}

void judge_loss(client *c, const rl_hold *h)
{
    world *w = c->w;
    owner *o = owner_by_serial(w, h->owner);
    word name = {rl_hold_name(h), h->name_len};
    size_t lock = lock_by_name(w, &name);
    account *x = o && lock != NAMES_MAX ? find_account(o, h) : NULL;
    trace(w, "process %u is told that %s is lost: %s", c->p->index,
          rl_hold_name(h), rl_loss_text(h->loss));
    w->figures.losses++;
    if (!x && o &&
        o->verb == ACQUIRE) { /* it has not been told that it has it */
        o->lost_early++;
        return;
    }
    if (!x) {
        judge_fail(w, "judge 3: what is lost was never had");
        return;
    }
    if (++x->losses_told > 1)
        judge_fail(w, "judge 3: owner %u is told twice that it lost %s",
                   o->number, name_of(w, lock));
    if (!w->set.red)
        judge_cause(o, lock, h);
}

void judge_accounts(owner *o)
{
    for (size_t i = 0; i < o->count; i++) {
        const account *x = &o->accounts[i];
        if (x->losses_told != x->lost && !o->p->is_dead)
            judge_fail(o->p->w,
                       "judge 3: owner %u was told %u times of the loss of %s, "
                       "which was %s",
                       o->number, x->losses_told, name_of(o->p->w, x->name),
                       x->lost ? rl_loss_text(x->why) : "not lost");
    }
}
