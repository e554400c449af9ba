/*
 * One try for a majority.
 *
 * Fencing tokens: nodes count by themselves, so the largest token of those that
 * granted is written back to a quorum before it is handed out; any later quorum
 * shares a node with it. Mostly that costs nothing: the acquire tells all nodes
 * the least token that it wants, a little above the fastest server clock as
 * last seen, and when they all give out just that one, it is written already.
 */
#include <stdio.h>
#include <string.h>

#include "lock/red.h"

/* How far above the fastest clock the wanted token is: a command's way. */
#define AHEAD_US 1000

/* What a server's clock can be believed, in the year 2112. */
#define LATEST_CLOCK_US (INT64_C(1) << 52)

#define LIMIT_OF_LEASE    20
#define SHORTEST_LIMIT_US 5000

void rl_red_tell(const rl_nodes *ns, char out[RL_SAYS_MAX])
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < ns->n && used < RL_SAYS_MAX - 1; i++) {
        const rl_node *x = &ns->node[i];
        size_t fair = (RL_SAYS_MAX - used) / (ns->n - i);
        const char *text = x->ok     ? "ok"
                           : x->late ? "no answer so far"
                                     : x->fault.text;
        int n =
            snprintf(out + used, fair, "%s%zu %s", i ? "; " : "", i + 1, text);
        used += n < 0 ? 0 : (size_t)n < fair ? (size_t)n : fair - 1;
    }
}

int64_t rl_red_limit_us(const rl_node *x, int64_t lease_ms)
{
    int64_t us = rl_lease_of(x->e, lease_ms) * 1000 / LIMIT_OF_LEASE;
    return rl_min(rl_max(us, SHORTEST_LIMIT_US),
                  x->e->set.command_timeout_ms * 1000);
}

void rl_red_make_due(rl_node *x, int64_t lease_ms, int64_t until_us)
{
    x->due = true;
    x->until_us = rl_min(
        until_us, rl_after_us(rl_now_us(), rl_red_limit_us(x, lease_ms)));
}

int64_t rl_red_valid_until(int64_t *deadline_us, size_t n, size_t quorum)
{
    if (n < quorum)
        return 0;
    for (size_t i = 0; i < quorum; i++) {
        for (size_t k = i + 1; k < n; k++) {
            if (deadline_us[k] > deadline_us[i]) {
                int64_t swap_us = deadline_us[i];
                deadline_us[i] = deadline_us[k];
                deadline_us[k] = swap_us;
            }
        }
    }
    return deadline_us[quorum - 1];
}

static int64_t longest_lease_us(const rl_red *r)
{
    int64_t ms = r->longest_lease_ms;
    if (ms == 0) {
        ms = atomic_load(&r->used_lease_ms);
        for (size_t i = 0; i < r->n; i++)
            ms = rl_max(ms, r->client[i]->engine.set.watchdog_lease_ms);
    }
    return ms * 1000;
}

void rl_red_remember_lease(rlock *lk, int64_t lease_ms)
{
    rl_red *r = (rl_red *)lk;
    int64_t before = atomic_load(&r->used_lease_ms);
    while (before < lease_ms &&
           !atomic_compare_exchange_weak(&r->used_lease_ms, &before, lease_ms))
        ;
}

/* The node whose server this is among those that vote already, or NULL. */
static const rl_node *find_run(const rl_nodes *ns, const rl_run *run)
{
    for (const rl_node *y = ns->node; y < ns->node + ns->n; y++) {
        if (strcmp(y->run_id, run->id) == 0)
            return y;
    }
    return NULL;
}

/*
 * May the node vote? A server has one vote, as whatever nodes it is reached.
 * One that has come back may have forgotten whom it voted for, until every
 * lease of then has run out.
 */
static bool may_vote(const void *arg, const rl_nodes *ns, rl_node *x)
{
    const rl_red *r = arg;
    rl_run run = rl_identity_run(&x->e->identity);
    const rl_node *twin = find_run(ns, &run);
    int64_t age_us = rl_now_us() - run.started_us;
    int64_t longest_us = longest_lease_us(r);
    if (twin) {
        rl_fault_set(&x->fault, RLOCK_EINVAL, 0, "same server as node %zu",
                     (size_t)(twin - ns->node) + 1);
        return false;
    }
    if ((run.restarted || r->check_uptime) && age_us < longest_us) {
        rl_fault_set(&x->fault, RLOCK_EIO, 0,
                     "restarted %lld s ago, counts again in %lld ms",
                     (long long)(age_us / 1000000),
                     (long long)((longest_us - age_us) / 1000));
        return false;
    }
    memcpy(x->run_id, run.id, sizeof x->run_id);
    return true;
}

static void got_vote(const void *arg, rl_node *x)
{
    (void)arg;
    x->verdict = rl_acquire_end(&x->step, &x->answer, &x->grant, &x->fault);
    x->ok = x->verdict == RL_ACQUIRED;
    if (x->verdict == RL_BUSY)
        rl_fault_set(&x->fault, RLOCK_BUSY, 0, "held by another");
}

static void got_undone(const void *arg, rl_node *x)
{
    rl_node_got(arg, x);
    rl_undo_end(&x->step, &x->answer);
    x->hold = NULL;
}

static uint64_t wanted_token(const rl_red *r)
{
    int64_t ahead_us = atomic_load(&r->clock_ahead_us);
    return ahead_us ? (uint64_t)(rl_now_us() + ahead_us + AHEAD_US) : 0;
}

static void note_clocks(rl_red *r, const rl_nodes *ns)
{
    int64_t ahead_us = INT64_MIN;
    for (size_t i = 0; i < ns->n; i++) {
        const rl_node *x = &ns->node[i];
        if (x->ok && x->grant.clock_us > 0 &&
            x->grant.clock_us < LATEST_CLOCK_US)
            ahead_us = rl_max(ahead_us, x->grant.clock_us - x->grant.sent_us);
    }
    if (ahead_us != INT64_MIN)
        atomic_store(&r->clock_ahead_us, ahead_us);
}

static void begin_vote(const rl_red *r, rl_vote *v, rl_nodes *ns,
                       const char *holder)
{
    uint64_t token = wanted_token(r);
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (!x->inside)
            continue;
        if (rl_engine_start(x->e))
            x->hold = rl_draft(x->e, &v->lk->target, holder, v->lease_ms);
        if (!x->hold) {
            rl_fault_set(&x->fault, RLOCK_ENOMEM, 0, "out of memory");
            continue;
        }
        rl_acquire_begin(&x->step, x->e, x->hold, v->lease_ms);
        x->step.minds_token = true;
        x->step.token = token;
        rl_red_make_due(x, v->lease_ms, v->until_us);
    }
}

static void call_raise(const void *token, const rl_node *x, rl_hold_call *c)
{
    rl_call_raise(c, x->hold, *(const uint64_t *)token);
}

static bool granted(const rl_node *x)
{
    return x->hold && x->verdict == RL_ACQUIRED;
}

/*
 * The largest token of those that granted, once a quorum has it written down.
 * 0: too few could be told.
 */
static uint64_t agree_on_token(const rl_vote *v, rl_nodes *ns)
{
    uint64_t token = 0;
    size_t have = 0;
    const rl_round round = {
        .call = call_raise, .got = rl_node_got, .arg = &token};
    for (size_t i = 0; i < ns->n; i++) {
        if (granted(&ns->node[i]) && ns->node[i].grant.token > token)
            token = ns->node[i].grant.token;
    }
    for (size_t i = 0; i < ns->n; i++)
        have += granted(&ns->node[i]) && ns->node[i].grant.token == token;
    if (have >= ns->quorum)
        return token;
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (granted(x) && x->grant.token < token)
            rl_red_make_due(x, v->lease_ms, v->until_us);
    }
    rl_nodes_ask(ns, &round);
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        x->ok = x->ok || (granted(x) && x->grant.token == token);
    }
    return rl_nodes_ok(ns) >= ns->quorum ? token : 0;
}

static rl_round vote_round(const rlock *lk)
{
    return (rl_round){.may_ask = may_vote,
                      .got = got_vote,
                      .early = true,
                      .insist = true,
                      .arg = lk};
}

/* A node that is late is not waited for any longer. */
static void drop(const rl_vote *v, rl_node *x)
{
    rl_round round = vote_round(v->lk);
    rl_node_drop(&round, x);
}

/* What undoes a grant that is still on its way follows it. */
static bool recall(rl_node *x)
{
    rl_holds *t = &x->e->holds;
    if (!x->late || !x->asked || !rl_node_chain(x))
        return false;
    rl_mutex_lock(&t->mutex);
    x->hold->refs++;
    rl_hold_end_locked(t, x->hold, rl_now_us());
    rl_mutex_unlock(&t->mutex);
    return true;
}

/*
 * Each node is told, before the next try, and before the caller is. The round
 * does not wait for those that are slow to answer the vote: they are told on
 * the same connection, where the next try will follow as well.
 */
static void undo(const rl_vote *v, rl_nodes *ns)
{
    static const rl_round round = {.got = got_undone};
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        bool recalled = recall(x);
        if (x->late)
            drop(v, x);
        if (recalled || granted(x)) {
            rl_undo_begin(&x->step, x->e, x->hold);
            rl_red_make_due(x, v->lease_ms, v->until_us);
        } else if (x->hold) {
            rl_give_up(x->e, x->hold);
            x->hold = NULL;
        }
    }
    rl_nodes_ask(ns, &round);
    rl_nodes_leave_late(ns, &round);
}

static bool is_valid(const rl_nodes *ns)
{
    int64_t deadline_us[RLOCK_RED_MAX];
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++) {
        const rl_node *x = &ns->node[i];
        if (granted(x))
            deadline_us[n++] =
                rl_lease_deadline(x->grant.sent_us, x->step.lease_ms);
    }
    return rl_red_valid_until(deadline_us, n, ns->quorum) > rl_now_us();
}

/* A grant that is late joins the group when it comes. */
static void leave_to_agent(const rl_vote *v, rl_node *x)
{
    rl_holds *t = &x->e->holds;
    rl_mutex_lock(&t->mutex);
    x->hold->refs++;
    rl_hold_list_locked(t, x->hold);
    rl_mutex_unlock(&t->mutex);
    if (rl_node_hand_over(x))
        return;
    rl_mutex_lock(&t->mutex);
    rl_hold_end_locked(t, x->hold, rl_now_us());
    rl_hold_unref_locked(t, x->hold);
    rl_mutex_unlock(&t->mutex);
    drop(v, x);
    rl_give_up(x->e, x->hold);
}

static size_t votes(const rl_nodes *ns)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += granted(&ns->node[i]);
    return n;
}

/*
 * The holds go into their tables. From the first on one may be lost again, so
 * the group is whole before.
 */
static void take_over(rl_vote *v, rl_nodes *ns, rl_group *g)
{
    g->token = v->token;
    atomic_store(&g->renewed, v->lease_ms == RLOCK_WATCHDOG);
    atomic_store(&g->count, 1);
    atomic_store(&g->left, (int)votes(ns));
    rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED);
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (!x->hold)
            continue;
        if (!granted(x) && !(x->late && x->asked)) {
            if (x->late)
                drop(v, x);
            rl_give_up(x->e, x->hold);
            continue;
        }
        x->hold->group = g;
        rl_group_ref(g);
        if (granted(x))
            rl_take_over(&x->step, &x->grant, v->token);
        else
            leave_to_agent(v, x);
    }
    rl_owner_count(1);
}

/*
 * How it failed. Held by others, on so many nodes that those which failed
 * could not have helped: busy. Out of memory here, for so many that the nodes
 * could not have helped, and not only for a moment: not to be tried again.
 */
static rlock_status why_not(rl_vote *v, const rl_nodes *ns)
{
    size_t busy = 0, lacking = 0;
    rl_red_tell(ns, v->says);
    for (size_t i = 0; i < ns->n; i++) {
        const rl_node *x = &ns->node[i];
        busy += x->hold && x->verdict == RL_BUSY;
        lacking +=
            !x->ok && x->fault.status == RLOCK_ENOMEM && !x->fault.transient;
    }
    if (ns->n - busy < ns->quorum)
        return RLOCK_BUSY;
    return ns->n - lacking < ns->quorum ? RLOCK_ENOMEM : RLOCK_EQUORUM;
}

static rlock_status decide(rl_red *r, rl_vote *v, rl_nodes *ns)
{
    size_t yes = rl_nodes_ok(ns);
    note_clocks(r, ns);
    if (yes < ns->quorum)
        return why_not(v, ns);
    v->token = agree_on_token(v, ns);
    if (!v->token)
        return why_not(v, ns);
    rl_group *g = rl_group_new(r->client[0], (int)ns->quorum, true);
    if (!g || !is_valid(ns)) {
        snprintf(v->says, sizeof v->says, "%s",
                 g ? "granted, but too late for its lease" : "out of memory");
        rl_group_unref(g);
        return g ? RLOCK_EQUORUM : RLOCK_ENOMEM;
    }
    take_over(v, ns, g);
    rl_group_unref(g);
    return RLOCK_OK;
}

rlock_status rl_vote_try(rl_vote *v)
{
    rl_nodes ns;
    rl_red *r = (rl_red *)v->lk;
    char holder[RL_HOLDER_MAX];
    rl_round round = vote_round(v->lk);
    if (!rl_owner_watch() ||
        !rl_holder_id(holder, rl_engine_of(v->lk)->set.process)) {
        snprintf(v->says, sizeof v->says, "out of memory or randomness");
        return RLOCK_ENOMEM;
    }
    rl_nodes_enter(&ns, r->client, r->n);
    for (size_t i = 0; i < ns.n; i++)
        rl_red_remember_lease(v->lk, rl_lease_of(ns.node[i].e, v->lease_ms));
    begin_vote(r, v, &ns, holder);
    rl_nodes_ask(&ns, &round);
    rlock_status s = decide(r, v, &ns);
    if (s != RLOCK_OK)
        undo(v, &ns);
    rl_nodes_leave(&ns);
    return s;
}
