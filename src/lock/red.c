/*
 * Red: one name on several independent servers, held by who holds it on a
 * majority of them (Redlock; Redis documentation, "Distributed locks with
 * Redis").
 *
 * Each node's hold is an ordinary hold of that node's client: renewed by its
 * watchdog, lost at its own deadline. What makes them one is a group that needs
 * a quorum of them; the lock is valid until the deadline of the worst hold in
 * the best quorum. So renewal and loss by majority need no code of their own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "lock/holder.h"
#include "lock/red.h"

/* How long a renewal is waited for that nobody depends on. */
#define LANDING_US 2000

#define FIRST_PAUSE_US (25 * 1000)
#define LAST_PAUSE_US  (250 * 1000)

/* --- messages ------------------------------------------------------------ */

static rlock_status fail_with(const rlock *lk, rlock_status s, const char *what)
{
    char name[41];
    rl_printable(name, sizeof name, lk->target.name, lk->target.len);
    return rl_error_set(s, 0, "lock '%s' on %zu nodes: %s", name,
                        rl_red_of(lk)->n, what);
}

static rlock_status fail(const rlock *lk, rlock_status s, const rl_nodes *ns)
{
    char says[RL_SAYS_MAX];
    rl_red_tell(ns, says);
    return fail_with(lk, s, says);
}

/* --- nodes and their holds ----------------------------------------------- */

static void enter(rl_nodes *ns, const rlock *lk)
{
    rl_nodes_enter(ns, rl_red_of(lk)->client, rl_red_of(lk)->n);
}

/* Without its home it is closed, or we are a forked child. */
static bool is_closed(const rl_nodes *ns)
{
    return !ns->node[0].inside;
}

static rlock_status fail_closed(const rlock *lk, const rl_nodes *ns)
{
    return fail_with(lk, ns->node[0].fault.status, ns->node[0].fault.text);
}

static rlock_status not_held(const rlock *lk)
{
    return fail_with(lk, RLOCK_NOT_HELD, "this thread does not hold it");
}

/*
 * The thread's holds on the nodes, referenced, and their group, or NULL: it has
 * none. A hold whose grant is late is a draft.
 */
static rl_group *pick_up(rl_nodes *ns, const rlock *lk)
{
    rl_group *g = NULL;
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        bool valid;
        if (x->inside)
            x->hold = rl_pick_up(x->e, &lk->target, &valid);
        if (x->hold && !g)
            g = x->hold->group;
    }
    return g;
}

static void put_back(rl_nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++)
        rl_put_back(ns->node[i].e, ns->node[i].hold);
}

static rl_state state_of(const rl_node *x)
{
    rl_holds *t = &x->e->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_is_valid_locked(t, x->hold, rl_now_us());
    rl_state state = x->hold->state;
    rl_mutex_unlock(&t->mutex);
    return state;
}

static bool is_good(const rl_group *g)
{
    return atomic_load(&g->state) == RL_GROUP_OWNED;
}

/* --- the outermost acquire ----------------------------------------------- */

typedef struct attempt {
    rl_vote vote;
    rl_cancel cancel;
    int64_t began_us, wait_until_us;
    bool asked, contended;
} attempt;

static rlock_status try_once(attempt *a)
{
    a->asked = true;
    return rl_vote_try(&a->vote);
}

static void contend(attempt *a)
{
    if (a->contended)
        return;
    rl_stats *stats = &rl_engine_of(a->vote.lk)->stats;
    a->contended = true;
    rl_add(&stats->acquires_contended, 1);
    rl_add(&stats->waiting_now, 1);
    rl_lock_emit(a->vote.lk, RLOCK_EVENT_CONTENDED, 0, 0, 0);
}

/* Is the outage one that a wait does not survive? */
static bool is_hopeless(attempt *a, rl_waiter *w, rlock_status s)
{
    rl_engine *e = rl_engine_of(a->vote.lk);
    if (s == RLOCK_EQUORUM)
        return rl_now_us() - rl_waiter_failed(&e->rooms, w) >
               e->set.watchdog_lease_ms * 1000;
    rl_waiter_answered(&e->rooms, w);
    return s != RLOCK_BUSY;
}

static rlock_status time_is_up(attempt *a, rlock_status last)
{
    if (!a->asked)
        last = try_once(a);
    return last == RLOCK_BUSY ? RLOCK_TIMEOUT : last;
}

/*
 * Contenders that split the votes must not meet again, so pauses are random
 * all the way.
 */
static rlock_status stand_in_line(attempt *a, rl_waiter *w)
{
    rl_rooms *rooms = &rl_engine_of(a->vote.lk)->rooms;
    rlock_status s = RLOCK_BUSY;
    int64_t pause_us = FIRST_PAUSE_US;
    for (;;) {
        int64_t until_us = a->wait_until_us;
        if (rl_canceled(&a->cancel))
            return RLOCK_CANCELED;
        if (rl_waiter_is_front(rooms, w)) {
            s = try_once(a);
            if (s == RLOCK_OK || is_hopeless(a, w, s))
                return s;
            until_us =
                rl_min(until_us, rl_now_us() + rl_random_below(pause_us));
            pause_us = rl_min(pause_us * 2, LAST_PAUSE_US);
        }
        contend(a);
        rl_wake why = rl_waiter_sleep(rooms, w, until_us);
        if (why == RL_WAKE_CLOSE)
            return RLOCK_ECLOSED;
        if (why == RL_WAKE_CANCEL)
            return RLOCK_CANCELED;
        if (rl_now_us() >= a->wait_until_us)
            return time_is_up(a, s);
    }
}

static rlock_status wait_for_turn(attempt *a)
{
    rl_engine *e = rl_engine_of(a->vote.lk);
    const rl_target *what = &a->vote.lk->target;
    rl_waiter w;
    if (!rl_waiter_enter(&e->rooms, &w, what, a->vote.lk)) {
        snprintf(a->vote.says, sizeof a->vote.says, "out of memory");
        return RLOCK_ENOMEM;
    }
    rlock_status s = stand_in_line(a, &w);
    if (a->contended) {
        rl_add(&e->stats.wait_us_total, (uint64_t)(rl_now_us() - a->began_us));
        rl_sub(&e->stats.waiting_now, 1);
    }
    if (rl_waiter_leave(&e->rooms, &w, false))
        rl_leave_queue(e, what->name, what->len, rl_command_deadline(e));
    return s;
}

static rlock_status acquire_first(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                                  rl_cancel cancel)
{
    int64_t now_us = rl_now_us();
    attempt a = {.vote.lk = lk,
                 .vote.lease_ms = lease_ms,
                 .cancel = cancel,
                 .began_us = now_us,
                 .wait_until_us = rl_after_ms(now_us, wait_ms)};
    a.vote.until_us =
        rl_after_ms(a.wait_until_us, rl_engine_of(lk)->set.command_timeout_ms);
    rlock_status s = wait_ms == 0 ? try_once(&a) : wait_for_turn(&a);
    if (s == RLOCK_CANCELED || s == RLOCK_ECLOSED)
        return fail_with(lk, s, rlock_status_str(s));
    if (s != RLOCK_OK)
        return fail_with(lk, s, a.vote.says);
    rl_lock_emit(lk, RLOCK_EVENT_ACQUIRED, a.vote.token, 1,
                 rl_now_us() - now_us);
    return RLOCK_OK;
}

/* --- re-entry and extend -------------------------------------------------- */

static void got_level(const void *arg, rl_node *x)
{
    (void)arg;
    x->ok = rl_reenter_end(&x->step, &x->answer, &x->fault) == RLOCK_OK;
}

static void got_extension(const void *arg, rl_node *x)
{
    (void)arg;
    x->ok = rl_extend_end(&x->step, &x->answer, &x->fault) == RLOCK_OK;
}

static rlock_status lost(const rlock *lk)
{
    return fail_with(lk, RLOCK_LOST, rl_loss_text(RL_LOSS_GROUP));
}

/* What a majority has to confirm, for a hold that was good before. */
static rlock_status confirmed(const rlock *lk, const rl_nodes *ns,
                              const rl_group *g)
{
    if (!is_good(g))
        return lost(lk);
    return rl_nodes_ok(ns) >= ns->quorum ? RLOCK_OK
                                         : fail(lk, RLOCK_EQUORUM, ns);
}

/*
 * Whether a lock is renewed is the same on all its nodes: those that were not
 * reached do as the others.
 */
static void follow_policy(const rl_nodes *ns, bool renewed)
{
    for (size_t i = 0; i < ns->n; i++) {
        const rl_node *x = &ns->node[i];
        rl_hold *h = x->hold;
        if (!h || x->ok)
            continue;
        rl_holds *t = &x->e->holds;
        rl_mutex_lock(&t->mutex);
        if (h->state == RL_HELD && renewed && !h->renewed)
            rl_hold_start_renewal_locked(t, h, 0);
        else if (h->state == RL_HELD && !renewed && h->renewed)
            rl_hold_stop_renewal_locked(t, h);
        rl_mutex_unlock(&t->mutex);
    }
}

static rlock_status reenter(rlock *lk, rl_nodes *ns, rl_group *g,
                            int64_t lease_ms)
{
    static const rl_round round = {.got = got_level, .insist = true};
    int level = atomic_load(&g->count) + 1;
    int64_t began_us = rl_now_us();
    if (!is_good(g))
        return lost(lk);
    rl_red_remember_lease(lk, rl_lease_of(rl_engine_of(lk), lease_ms));
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (!x->hold || state_of(x) != RL_HELD)
            continue;
        if (!rl_reenter_begin(&x->step, x->e, x->hold, lease_ms))
            return fail_with(lk, RLOCK_EINVAL, "the hold count is at its end");
        x->step.level = level;
        rl_red_make_due(x, lease_ms, x->step.until_us);
    }
    rl_nodes_ask(ns, &round);
    rlock_status s = confirmed(lk, ns, g);
    if (s != RLOCK_OK)
        return s;
    atomic_store(&g->count, level);
    if (lease_ms == RLOCK_WATCHDOG) {
        atomic_store(&g->renewed, true);
        follow_policy(ns, true);
    }
    rl_lock_emit(lk, RLOCK_EVENT_ACQUIRED, g->token, level,
                 rl_now_us() - began_us);
    return RLOCK_OK;
}

static rlock_status red_acquire(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                                rl_cancel cancel)
{
    rl_nodes ns;
    int state;
    rlock_status s = rl_client_begin(lk->client, &state);
    if (s != RLOCK_OK)
        return s;
    enter(&ns, lk);
    rl_group *g = pick_up(&ns, lk);
    if (g)
        s = reenter(lk, &ns, g, lease_ms);
    put_back(&ns);
    rl_nodes_leave(&ns);
    if (!g)
        s = acquire_first(lk, wait_ms, lease_ms, cancel);
    rl_stats *stats = &rl_engine_of(lk)->stats;
    rl_add(s == RLOCK_OK ? &stats->acquires : &stats->acquires_failed, 1);
    rl_client_leave(lk->client, state);
    return s;
}

/*
 * Lets renewals that are under way land, on all nodes at once: as long as it
 * takes for a quorum, and for the others only a moment.
 */
static void land(rl_nodes *ns, int64_t until_us)
{
    size_t landed = 0;
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->node[i].hold)
            rl_extend_pause(ns->node[i].e, ns->node[i].hold);
    }
    do {
        int64_t soon_us = rl_min(until_us, rl_now_us() + LANDING_US);
        landed = 0;
        for (size_t i = 0; i < ns->n; i++) {
            rl_node *x = &ns->node[i];
            landed += x->hold && rl_extend_wait(x->e, x->hold, soon_us);
        }
    } while (landed < ns->quorum && rl_now_us() < until_us);
}

static void begin_extend(rl_node *x, int64_t lease_ms)
{
    if (rl_extend_begin(&x->step, x->e, x->hold, lease_ms, 0))
        rl_red_make_due(x, x->hold->lease_ms, x->step.until_us);
    else
        rl_extend_fail(&x->step, &x->fault);
}

static rlock_status extend(rlock *lk, rl_nodes *ns, rl_group *g,
                           int64_t lease_ms)
{
    static const rl_round round = {.got = got_extension, .insist = true};
    if (!is_good(g))
        return lost(lk);
    rl_red_remember_lease(lk, rl_lease_of(rl_engine_of(lk), lease_ms));
    atomic_store(&g->renewed, lease_ms == RLOCK_WATCHDOG);
    for (size_t i = 0; i < ns->n; i++) {
        rl_node *x = &ns->node[i];
        if (x->hold && state_of(x) != RL_HELD) {
            rl_put_back(x->e, x->hold);
            x->hold = NULL;
        }
    }
    land(ns, rl_now_us() + rl_red_limit_us(&ns->node[0], lease_ms));
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->node[i].hold)
            begin_extend(&ns->node[i], lease_ms);
    }
    rl_nodes_ask(ns, &round);
    follow_policy(ns, lease_ms == RLOCK_WATCHDOG);
    return confirmed(lk, ns, g);
}

static rlock_status red_extend(rlock *lk, int64_t lease_ms)
{
    rl_nodes ns;
    enter(&ns, lk);
    rl_group *g = pick_up(&ns, lk);
    rlock_status s = is_closed(&ns) ? fail_closed(lk, &ns)
                     : g            ? extend(lk, &ns, g, lease_ms)
                                    : not_held(lk);
    put_back(&ns);
    rl_nodes_leave(&ns);
    return s;
}

/* --- unlock --------------------------------------------------------------- */

static void got_release(const void *arg, rl_node *x)
{
    bool rung;
    (void)arg;
    if (x->step.verb == RL_VERB_UNDO) {
        rl_node_got(arg, x);
        rl_undo_end(&x->step, &x->answer);
        return;
    }
    x->ok = rl_release_end(&x->step, &x->answer, &rung, &x->fault) == RLOCK_OK;
}

/*
 * An acquire that is still on its way: what undoes it follows it on the same
 * connection, or, if somebody is just reading its answer, the watchdog does.
 * Returns the state that the hold had: the answer may have come meanwhile.
 */
static rl_state recall(rl_node *x)
{
    rl_holds *t = &x->e->holds;
    bool taken_back = rl_node_follow(x, RL_VERB_UNDO);
    rl_mutex_lock(&t->mutex);
    rl_state state = x->hold->state;
    if (state == RL_DRAFT) {
        x->hold->doubtful = !taken_back;
        rl_hold_end_locked(t, x->hold, rl_now_us());
        if (!taken_back)
            rl_hold_undo_locked(t, x->hold, rl_now_us());
    }
    rl_mutex_unlock(&t->mutex);
    if (taken_back) {
        rl_undo_begin(&x->step, x->e, x->hold);
        rl_red_make_due(x, x->hold->lease_ms, RL_NEVER);
    }
    return state;
}

static void begin_release(rl_node *x, int level)
{
    rl_state state = state_of(x);
    if (state == RL_DRAFT && level == 0)
        state = recall(x);
    if (state != RL_HELD && state != RL_LOST)
        return; /* it is being undone, or was refused */
    if (!rl_count_down(x->e, x->hold, level)) {
        rl_release_lost(x->e, x->hold, level, &x->fault);
        return;
    }
    rl_release_begin(&x->step, x->e, x->hold, level);
    rl_red_make_due(x, x->hold->lease_ms, RL_NEVER);
}

static rlock_status unlock(rlock *lk, rl_nodes *ns, rl_group *g)
{
    int level = atomic_load(&g->count) - 1;
    const rl_round round = {.got = got_release, .early = level == 0};
    atomic_store(&g->count, level);
    if (level == 0)
        rl_owner_count(-1);
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->node[i].hold)
            begin_release(&ns->node[i], level);
    }
    rl_nodes_ask(ns, &round);
    rl_nodes_leave_late(ns, &round);
    if (level > 0)
        return confirmed(lk, ns, g);
    if (!rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_OVER))
        return lost(lk);
    return rl_nodes_ok(ns) >= ns->quorum ? RLOCK_OK
                                         : fail(lk, RLOCK_EQUORUM, ns);
}

/* The home's events and statistics, as long as it is open. */
static void note_release(rlock *lk, const rl_nodes *ns, const rl_group *g,
                         int64_t began_us)
{
    if (!ns->node[0].inside)
        return;
    rl_add(&rl_engine_of(lk)->stats.releases, 1);
    rl_lock_emit(lk, RLOCK_EVENT_RELEASED, g->token, atomic_load(&g->count),
                 rl_now_us() - began_us);
}

static int64_t first_grant_us(const rl_nodes *ns)
{
    int64_t us = RL_NEVER;
    for (size_t i = 0; i < ns->n; i++) {
        const rl_node *x = &ns->node[i];
        if (!x->hold)
            continue;
        rl_mutex_lock(&x->e->holds.mutex);
        if (x->hold->state != RL_DRAFT)
            us = rl_min(us, x->hold->began_us);
        rl_mutex_unlock(&x->e->holds.mutex);
    }
    return us;
}

/* Also of a lock that is closed: the nodes that are left are told. */
static rlock_status red_unlock(rlock *lk)
{
    rl_nodes ns;
    enter(&ns, lk);
    rl_group *g = pick_up(&ns, lk);
    rlock_status s = not_held(lk);
    if (g) {
        int64_t began_us = first_grant_us(&ns);
        rl_group_ref(g);
        s = unlock(lk, &ns, g);
        if (s == RLOCK_OK)
            note_release(lk, &ns, g, began_us);
        rl_group_unref(g);
    }
    if (is_closed(&ns))
        s = fail_closed(lk, &ns);
    put_back(&ns);
    rl_nodes_leave(&ns);
    return s;
}

/* --- what needs no hold --------------------------------------------------- */

static void call_force(const void *lk, const rl_node *x, rl_hold_call *c)
{
    (void)x;
    rl_call_force_release(c, &((const rlock *)lk)->target);
}

static void call_inspect(const void *lk, const rl_node *x, rl_hold_call *c)
{
    (void)x;
    rl_call_inspect(c, &((const rlock *)lk)->target);
}

/* All nodes, also those that have no hold. */
static void ask_everybody(rl_nodes *ns, const rl_round *round)
{
    for (size_t i = 0; i < ns->n; i++) {
        if (ns->node[i].inside)
            rl_red_make_due(&ns->node[i], RLOCK_WATCHDOG, RL_NEVER);
    }
    rl_nodes_ask(ns, round);
}

static rlock_status red_force_unlock(rlock *lk)
{
    rl_nodes ns;
    const rl_round round = {
        .call = call_force, .got = rl_node_got, .insist = true, .arg = lk};
    bool freed = false;
    enter(&ns, lk);
    ask_everybody(&ns, &round);
    for (size_t i = 0; i < ns.n; i++)
        freed = freed ||
                (ns.node[i].ok && ns.node[i].answer.reply.top.integer == 1);
    rlock_status s = RLOCK_OK;
    if (is_closed(&ns))
        s = fail_closed(lk, &ns);
    else if (rl_nodes_ok(&ns) < ns.quorum)
        s = fail(lk, RLOCK_EQUORUM, &ns);
    else if (!freed)
        s = fail_with(lk, RLOCK_NOT_HELD, "nobody holds it");
    rl_nodes_leave(&ns);
    return s;
}

/* Who holds it on one node, if anybody does. */
static bool read_holder(rl_node *x, rlock_holder *out)
{
    memset(out, 0, sizeof *out);
    return x->ok && rl_read_holder(&x->answer, out, &x->fault) == RLOCK_OK;
}

/*
 * The holder of a quorum, with what is left of its lease there; the count is
 * that of the node asked first. *held: on how many nodes anybody holds it.
 */
static bool find_holder(rl_nodes *ns, rlock_holder *out, size_t *held)
{
    int64_t ttl[RLOCK_RED_MAX];
    *held = 0;
    for (size_t i = 0; i < ns->n; i++) {
        size_t n = 0;
        if (!read_holder(&ns->node[i], out))
            continue;
        ++*held;
        for (size_t k = 0; k < ns->n; k++) {
            rlock_holder same;
            if (read_holder(&ns->node[k], &same) &&
                strcmp(same.raw, out->raw) == 0)
                ttl[n++] = same.ttl_ms < 0 ? INT64_MAX : same.ttl_ms;
        }
        if (n < ns->quorum)
            continue;
        int64_t ms = rl_red_valid_until(ttl, n, ns->quorum);
        out->ttl_ms = ms == INT64_MAX ? -1 : ms;
        return true;
    }
    memset(out, 0, sizeof *out);
    return false;
}

static rlock_status red_inspect(rlock *lk, rlock_holder *out)
{
    rl_nodes ns;
    const rl_round round = {
        .call = call_inspect, .got = rl_node_got, .insist = true, .arg = lk};
    size_t held;
    enter(&ns, lk);
    ask_everybody(&ns, &round);
    size_t silent = ns.n - rl_nodes_ok(&ns);
    rlock_status s = RLOCK_NOT_HELD;
    if (is_closed(&ns))
        s = fail_closed(lk, &ns);
    else if (find_holder(&ns, out, &held))
        s = RLOCK_OK;
    else if (silent > ns.n - ns.quorum ||
             (silent > 0 && silent + held >= ns.quorum))
        s = fail(lk, RLOCK_EQUORUM, &ns);
    rl_nodes_leave(&ns);
    return s;
}

static void red_cancel(rlock *lk)
{
    int cancel;
    if (rl_client_enter(lk->client, &cancel) != RLOCK_OK)
        return;
    rl_rooms_cancel(&rl_engine_of(lk)->rooms, &lk->target, lk);
    rl_client_leave(lk->client, cancel);
}

static rl_view red_view(rlock *lk)
{
    const rl_red *r = rl_red_of(lk);
    int64_t deadline_us[RLOCK_RED_MAX];
    size_t n = 0;
    rl_view v = {0};
    for (size_t i = 0; i < r->n; i++) {
        int cancel;
        if (rl_client_enter(r->client[i], &cancel) != RLOCK_OK)
            continue;
        rl_holds *t = &r->client[i]->engine.holds;
        rl_mutex_lock(&t->mutex);
        rl_hold *h = rl_holds_mine_locked(t, &lk->target);
        if (h && h->state == RL_HELD && is_good(h->group)) {
            deadline_us[n++] = h->deadline_us;
            v.count = atomic_load(&h->group->count);
            v.token = h->group->token;
        }
        rl_mutex_unlock(&t->mutex);
        rl_client_leave(r->client[i], cancel);
    }
    v.valid_ms =
        (rl_red_valid_until(deadline_us, n, r->n / 2 + 1) - rl_now_us()) / 1000;
    return n > r->n / 2 ? v : (rl_view){0};
}

static void red_free(rlock *lk)
{
    rl_red *r = (rl_red *)lk;
    for (size_t i = 0; i < r->n; i++)
        rl_client_unref(r->client[i]);
}

static rlock *red_copy(const rlock *lk)
{
    const rl_red *from = rl_red_of(lk);
    rl_red *r = rl_lock_new(sizeof *r, lk->kind, lk->client, lk->target.name,
                            lk->target.len, RLOCK_LAYOUT_HASH);
    if (!r)
        return NULL;
    r->base.target.scope = lk->target.scope;
    r->base.target.layout = lk->target.layout;
    r->longest_lease_ms = from->longest_lease_ms;
    r->check_uptime = from->check_uptime;
    for (r->n = 0; r->n < from->n; r->n++) {
        r->client[r->n] = from->client[r->n];
        rl_client_ref(r->client[r->n]);
    }
    return &r->base;
}

static const rl_lock_kind red_kind = {
    .several = true,
    .acquire = red_acquire,
    .unlock = red_unlock,
    .extend = red_extend,
    .force_unlock = red_force_unlock,
    .cancel = red_cancel,
    .view = red_view,
    .inspect = red_inspect,
    .copy = red_copy,
    .free = red_free,
};

/* --- making one ----------------------------------------------------------- */

static rlock_status refuse(rlock_status s, size_t position, const char *why)
{
    return rl_error_set(s, 0, "client %zu %s", position, why);
}

static rlock_status read_options(rlock_red_options *to,
                                 const rlock_red_options *from)
{
    if (!rl_options_read(to, sizeof *to, from))
        return rl_error_set(RLOCK_EINVAL, 0,
                            "bad option: size (use RLOCK_RED_OPTIONS_INIT)");
    if ((unsigned)to->layout > RLOCK_LAYOUT_TIMESTAMP)
        return rl_error_set(RLOCK_EINVAL, 0, "bad option: layout");
    if (to->layout == RLOCK_LAYOUT_TIMESTAMP)
        return rl_error_set(RLOCK_ENOTSUP, 0,
                            "a Red lock has no timestamp layout: nobody would "
                            "share it");
    if (to->longest_lease_ms < 0 || to->longest_lease_ms > RLOCK_LEASE_MAX_MS)
        return rl_error_set(RLOCK_EINVAL, 0, "bad option: longest_lease_ms");
    return RLOCK_OK;
}

/* Inside the client, and those that were added before. */
static rlock_status check_server(const rl_red *r, rlock_client *cl,
                                 size_t position)
{
    rl_run run = rl_identity_run(&cl->engine.identity);
    if (!*run.id)
        return refuse(RLOCK_ENOTSUP, position,
                      "does not know its server's run_id: its user needs the "
                      "right to INFO");
    for (size_t i = 0; i < r->n; i++) {
        char why[64];
        rl_run other = rl_identity_run(&r->client[i]->engine.identity);
        snprintf(why, sizeof why, "leads to the same server as client %zu",
                 i + 1);
        if (strcmp(other.id, run.id) == 0)
            return refuse(RLOCK_EINVAL, position, why);
    }
    if (!rl_agent_start(&cl->engine))
        return rl_error_set(RLOCK_ENOMEM, 0,
                            "the agent thread of client %zu cannot be started",
                            position);
    atomic_store(&cl->engine.identity.wanted, true);
    return RLOCK_OK;
}

/* Adds a node, and stays inside of its client, if RLOCK_OK. */
static rlock_status add(rl_red *r, rlock_client *cl, size_t position)
{
    int cancel;
    if (!cl)
        return refuse(RLOCK_EINVAL, position, "is NULL");
    for (size_t i = 0; i < r->n; i++) {
        if (r->client[i] == cl)
            return refuse(RLOCK_EINVAL, position, "is listed twice");
    }
    rlock_status s = rl_client_enter(cl, &cancel);
    if (s == RLOCK_ECLOSED)
        return refuse(RLOCK_EINVAL, position, "is closed");
    if (s == RLOCK_EFORKED)
        return refuse(s, position, "was made before fork()");
    s = check_server(r, cl, position);
    if (s != RLOCK_OK) {
        rl_client_leave(cl, cancel);
        return s;
    }
    rl_client_ref(cl);
    r->client[r->n++] = cl;
    return RLOCK_OK;
}

static rlock_status add_all(rl_red *r, rlock_client *const clients[], size_t n)
{
    int cancel;
    rlock_status s = RLOCK_OK;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    for (size_t i = 0; i < n && s == RLOCK_OK; i++)
        s = add(r, clients[i], i + 1);
    for (size_t i = 0; i < r->n; i++)
        rl_client_leave(r->client[i], PTHREAD_CANCEL_DISABLE);
    pthread_setcancelstate(cancel, NULL);
    return s;
}

/* Holds of this lock, and of no other, whatever the order of its clients. */
static uint64_t scope_of(const rl_red *r, rlock_layout layout)
{
    uint64_t sum = 0, seed = r->n * 4 + layout;
    for (size_t i = 0; i < r->n; i++)
        sum += rl_hash(&r->client[i], sizeof r->client[i], seed);
    return sum | UINT64_C(1) << 63;
}

rlock_status rlock_red_new_ex(rlock_client *const clients[], size_t n,
                              const void *name, size_t len,
                              const rlock_red_options *opts, rlock **out)
{
    rlock_red_options o;
    if (!out)
        return rl_error_set(RLOCK_EINVAL, 0, "out is NULL");
    *out = NULL;
    if (!clients || n == 0 || n > RLOCK_RED_MAX)
        return rl_error_set(RLOCK_EINVAL, 0, "a Red lock has 1 to %d clients",
                            RLOCK_RED_MAX);
    if (!clients[0])
        return refuse(RLOCK_EINVAL, 1, "is NULL");
    rlock_status s = rl_lock_check_name(name, len);
    if (s == RLOCK_OK)
        s = read_options(&o, opts);
    if (s != RLOCK_OK)
        return s;
    rl_red *r =
        rl_lock_new(sizeof *r, &red_kind, clients[0], name, len, o.layout);
    if (!r)
        return RLOCK_ENOMEM;
    r->longest_lease_ms = o.longest_lease_ms;
    r->check_uptime = o.check_uptime;
    s = add_all(r, clients, n);
    if (s != RLOCK_OK) {
        rlock_free(&r->base);
        return s;
    }
    r->base.target.scope = scope_of(r, o.layout);
    *out = &r->base;
    return RLOCK_OK;
}

rlock_status rlock_red_new(rlock_client *const clients[], size_t n,
                           const char *name, rlock **out)
{
    return rlock_red_new_ex(clients, n, name, name ? strlen(name) : 0, NULL,
                            out);
}
