/*
 * A try for a majority of several servers (Redlock; Redis documentation,
 * "Distributed locks with Redis").
 *
 * All nodes are asked at once, and the round is over with a quorum of grants.
 * Grants that come later join the hold. Without a quorum, what was granted is
 * undone, quietly, before anything else is tried: a vote that is taken back
 * rings nobody, since it was no lock.
 *
 * The token that is handed out has been written to a quorum before
 * (red/token.c).
 *
 * Who waits has queued at every node, and is rung by the releases there. The
 * rings of a quorum say that the lock is free; fewer may be the first of them.
 *
 * The owner drives it. Drafts and parts are its alone until own() puts them
 * into the tables of their clients, each under its own mutex, of which no two
 * are taken together. What stays true: every draft ends in a table, or is
 * undone, or was certainly not granted; and no try begins before the last one's
 * undoing has been sent.
 */
#include <string.h>

#include "hold/step.h"
#include "op/acquire.h"
#include "op/rule.h"
#include "red/attempt_red.h"

/* Contenders that split the votes must not meet again: pauses are random. */
#define FIRST_PAUSE_US (10 * 1000)
#define LAST_PAUSE_US  POLL_US

/* How often a waiter looks by itself, lest it missed rings. */
#define POLL_US (400 * 1000)

/* From the first ring to a try, if those of a quorum do not come. */
#define FEW_RINGS_US (3 * 1000)

/* So many tries after few rings may be in vain before these pauses grow. */
#define FEW_RINGS_TRIES 8
#define FEW_RINGS_TURNS 7 /* how often they double at most */

/* --- asking --------------------------------------------------------------- */

static rl_part *make_part(rl_acquire *a, size_t i, const rl_uuid *id,
                          int64_t now_us)
{
    rl_core *c = a->red->node[i];
    rl_part *x = rl_op_new_part(&a->op, i);
    rl_owner_record *room = x ? rl_holds_make_room(&c->holds, a->owner) : NULL;
    rl_hold *h = room ? rl_draft(c, room, a->what, id, a->lease_ms) : NULL;
    if (!h) {
        a->op.lacking |= 1u << i;
        rl_part_let_go(x);
        a->op.part[i] = NULL;
        return NULL;
    }
    rl_part_acquire(x, c, h, a->lease_ms, now_us);
    x->request.says_least = true;
    x->request.least = rl_vote_wanted_token(a, now_us);
    if (a->waiter.room && !a->last_try) {
        x->request.bell = rl_bell_of(c, a->what);
        x->request.ticket = a->red->ticket[i];
        x->request.says_who = now_us - a->began_us >= RL_LONG_US;
    }
    a->with_bell = a->with_bell || *x->request.bell;
    rl_vote_limit(a, x);
    return x;
}

static bool lacks_memory(rl_acquire *a)
{
    rl_fault_set(&a->fault, RLOCK_ENOMEM, 0, "out of memory or randomness");
    return false;
}

static bool make_parts(rl_acquire *a, const rl_uuid *id, int64_t now_us)
{
    const rl_red_attempt *b = a->red;
    size_t made = 0, open = 0;
    a->op.n = b->n;
    a->op.lacking = 0;
    for (size_t i = 0; i < b->n; i++) {
        a->op.part[i] = NULL;
        a->red->raise[i] = NULL;
        if (!b->node[i]) {
            a->op.closed |= 1u << i;
            continue;
        }
        open++;
        made += make_part(a, i, id, now_us) != NULL;
    }
    return made > 0 || open == 0;
}

/*
 * Before a try queues: once a node's server has been asked, it may ring, and a
 * ring that nobody here listens for is passed on to another client.
 */
static void listen(rl_acquire *a)
{
    for (size_t i = 0; i < a->red->n; i++) {
        rl_core *c = a->red->node[i];
        if (!c)
            continue;
        if (!a->red->listener[i].listens)
            rl_rooms_listen(&c->rooms, &a->red->listener[i]);
        a->listen(c, a->what); /* who waits says so with each try */
    }
}

static bool begin(rl_acquire *a, int64_t now_us)
{
    const rl_red_attempt *b = a->red;
    rl_uuid id;
    a->with_bell = false;
    a->step = RL_PHASE_VOTE;
    a->op.quorum = b->quorum;
    a->op.several = a->op.early = a->op.insist = true;
    a->op.may_ask = rl_vote_may_ask;
    if (!rl_vote_note_lease(b->node, b->n, a->what, a->lease_ms, now_us) ||
        !rl_uuid_new(&id))
        return lacks_memory(a);
    a->group = rl_group_new(b->home, b->quorum);
    if (a->group && a->joins) {
        a->group->whole = a->joins;
        rl_group_ref(a->joins);
    }
    if (a->waiter.room && !a->last_try)
        listen(a);
    if (a->group && make_parts(a, &id, now_us)) {
        if (a->with_bell)
            rl_room_ticket(&a->home->rooms, &a->waiter);
        return true;
    }
    rl_group_unref(a->group);
    a->group = NULL;
    return lacks_memory(a);
}

/* --- deciding ------------------------------------------------------------- */

static size_t grants(const rl_acquire *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->op.n; i++)
        n += rl_vote_is_granted(a->op.part[i]);
    return n;
}

static int64_t deadline(const rl_part *x)
{
    return rl_lease_deadline(x->grant.sent_us, x->request.lease_ms);
}

/* Is the lease valid on a quorum? */
static bool is_valid(const rl_acquire *a, int64_t now_us)
{
    size_t n = 0;
    for (size_t i = 0; i < a->op.n; i++) {
        const rl_part *x = a->op.part[i];
        n += rl_vote_is_granted(x) && deadline(x) > now_us;
    }
    return n >= a->op.quorum;
}

/* --- owned ---------------------------------------------------------------- */

/* May the node's server have put our bell into its queue, or do so yet? */
static bool may_be_queued(const rl_part *x)
{
    return *x->request.bell && (x->verdict == RL_BUSY || x->ask.unknown ||
                                x->ask.next == RL_ASK_WAITS);
}

/*
 * The holds go into their tables. From the first on one may be lost again, so
 * the group is whole before.
 */
static rl_try own(rl_acquire *a, int64_t now_us)
{
    rl_group *g = a->group;
    g->token = a->token;
    g->longest_us = rl_vote_longest_us(a, now_us);
    g->check_uptime = a->red->check_uptime;
    rl_group_set_renewed(g, a->lease_ms == RLOCK_WATCHDOG);
    rl_group_set_count(g, 1);
    g->began_us = a->tried_us;
    for (size_t i = 0; i < a->op.n; i++)
        if (rl_vote_is_granted(a->op.part[i]))
            rl_group_join(g, (unsigned)i, g->began_us, deadline(a->op.part[i]));
    rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED);
    for (size_t i = 0; i < a->op.n; i++) {
        rl_part *x = a->op.part[i];
        if (!x)
            continue;
        x->hold->group = g;
        x->hold->member = (uint8_t)i;
        rl_group_ref(g);
        if (rl_vote_is_granted(x)) {
            rl_hold_keep_spare(x->hold, x);
            a->op.part[i] = NULL;
            rl_take_over(x, a->token, now_us);
        } else {
            a->red->queued |= (unsigned)may_be_queued(x) << i;
            rl_hold_list_absent(&x->core->holds, x->hold,
                                x->ask.next != RL_ASK_WAITS, now_us);
        }
    }
    rl_op_let_go(&a->op);
    rl_group_unref(g);
    a->group = NULL;
    a->owner->holds++;
    return RL_TRY_OWNED;
}

/* --- not owned ------------------------------------------------------------ */

/*
 * How it failed. Held by others, on so many nodes that those which failed
 * could not have helped: busy. Out of memory here, for so many that the nodes
 * could not have helped, and not only for a moment: not to be tried again.
 */
static rlock_status why_not(rl_acquire *a)
{
    size_t busy = 0, lacking = 0, n = a->op.n;
    char says[RL_SAYS_MAX];
    rl_rule_tell(&a->op, says);
    for (size_t i = 0; i < n; i++) {
        const rl_part *x = a->op.part[i];
        busy += x && x->over && x->verdict == RL_BUSY;
        lacking +=
            x ? !x->ok && x->fault.status == RLOCK_ENOMEM && !x->fault.transient
              : a->red->node[i] != NULL;
    }
    rlock_status s = n - busy < a->red->quorum      ? RLOCK_BUSY
                     : n - lacking < a->red->quorum ? RLOCK_ENOMEM
                                                    : RLOCK_EQUORUM;
    rl_fault_set(&a->fault, s, 0, "%s", says);
    a->fault.transient = s == RLOCK_EQUORUM;
    return s;
}

/* When a busy lock is looked at again: at once if votes were split, else after
   rings. After a failure, the longer that lasts the later (op/acquire.c). */
static int64_t look_at(rl_acquire *a, int64_t now_us)
{
    bool split = grants(a) > 0;
    int64_t span_us = a->pause_us ? a->pause_us : FIRST_PAUSE_US;
    if (!split) {
        a->pause_us = 0;
        return now_us + rl_jitter(POLL_US);
    }
    a->pause_us = rl_min(span_us * 2, LAST_PAUSE_US);
    return now_us + rl_random_below(span_us);
}

/* Undoes what may have been granted; without memory, the keeper does. */
static void add_undo(rl_acquire *a, size_t i, rl_core *c, rl_hold *h, bool late,
                     int64_t now_us)
{
    rl_part *x = rl_op_new_part(&a->op, i);
    if (!x || late)
        h->unknown = true;
    if (!x) {
        rl_give_up(c, h, now_us);
        return;
    }
    rl_part_undo(x, c, h, now_us);
    x->quiet = true;
    x->awaited = !late;
    rl_vote_limit(a, x);
}

static void undo_vote(rl_acquire *a, size_t i, int64_t now_us)
{
    rl_part *vote = a->op.part[i];
    rl_core *c = vote->core;
    rl_hold *h = vote->hold;
    bool late = vote->ask.next == RL_ASK_WAITS,
         granted = rl_vote_is_granted(vote);
    if (vote->over && vote->verdict == RL_BUSY)
        a->red->ticket[i] = vote->grant.ticket;
    a->ticket = a->red->ticket[0];
    a->red->asked_on[i] = late ? rl_hold_line(&c->holds, h) : NULL;
    rl_part_let_go(vote);
    a->op.part[i] = NULL;
    if (late || granted)
        add_undo(a, i, c, h, late, now_us);
    else
        rl_give_up(c, h, now_us);
}

/*
 * Each node is told, before the next try, and before the caller is. The round
 * does not wait for those that are slow to answer the vote.
 */
static void undo(rl_acquire *a, int64_t now_us)
{
    a->step = RL_PHASE_UNDO;
    a->op.early = a->op.insist = false;
    a->op.quorum = 0;
    for (size_t i = 0; i < a->op.n; i++)
        if (a->op.part[i])
            undo_vote(a, i, now_us);
    rl_group_unref(a->group);
    a->group = NULL;
}

static rl_try fail(rl_acquire *a, int64_t now_us)
{
    if (why_not(a) == RLOCK_BUSY)
        a->again_us = look_at(a, now_us);
    undo(a, now_us);
    return RL_TRY_MORE;
}

static rl_try fail_because(rl_acquire *a, const char *what, int64_t now_us)
{
    undo(a, now_us);
    rl_fault_set(&a->fault, RLOCK_EQUORUM, 0, "%s", what);
    a->fault.transient = true;
    return RL_TRY_MORE;
}

/* A quorum has granted it, and knows the token. */
static rl_try accept(rl_acquire *a, int64_t now_us)
{
    if (!is_valid(a, now_us))
        return fail_because(a, "granted, but too late for its lease", now_us);
    return own(a, now_us);
}

static rl_try undone(rl_acquire *a)
{
    rl_op_let_go(&a->op);
    return a->fault.status == RLOCK_BUSY ? RL_TRY_BUSY : RL_TRY_FAILED;
}

static rl_try judge(rl_acquire *a, int64_t now_us)
{
    char says[RL_SAYS_MAX];
    if (a->step == RL_PHASE_UNDO)
        return undone(a);
    if (a->step == RL_PHASE_RAISE)
        return rl_vote_raised(a, says, now_us) ? accept(a, now_us)
                                               : fail_because(a, says, now_us);
    rl_vote_note_clocks(a);
    if (grants(a) < a->op.quorum)
        return fail(a, now_us);
    return rl_vote_agree_on_token(a, now_us) ? accept(a, now_us) : RL_TRY_MORE;
}

/* --- waiting -------------------------------------------------------------- */

static void attend(rl_acquire *a)
{
    for (size_t i = 0; i < a->red->n; i++) {
        rl_core *c = a->red->node[i];
        rl_listener *l = &a->red->listener[i];
        *l = (rl_listener){
            .what = a->what, .waker = a->op.waker, .index = (unsigned)i};
        if (c)
            rl_rooms_attend(&c->rooms, l);
    }
}

/* A node whose client is freed is left; who frees it waits for that. */
static void drop_closed(rl_acquire *a)
{
    rl_red_attempt *b = a->red;
    for (size_t i = 0; i < b->n; i++) {
        rl_core *c = b->node[i];
        if (!c || c == a->home || !rl_rooms_is_closed(&c->rooms))
            continue;
        rl_rooms_unlisten(&c->rooms, &a->red->listener[i]);
        a->red->asked_on[i] = NULL;
        a->op.rung &= ~(1u << i);
        b->node[i] = NULL;
        b->drop(b, i);
    }
}

/*
 * When a quorum holds the lock, those who wait could wake each other for ever
 * at the nodes that are left: a vote there ends with a release, and Redisson's
 * channel, if we listen to it, tells everybody of each.
 */
static int64_t pause_after_few(const rl_acquire *a)
{
    int64_t turns = (int64_t)a->red->few_rings - FEW_RINGS_TRIES;
    return rl_jitter(FEW_RINGS_US << rl_min(rl_max(turns, 0), FEW_RINGS_TURNS));
}

static int64_t rung(rl_acquire *a, int64_t now_us)
{
    if (a->rung_us == 0)
        a->rung_us = now_us;
    int64_t try_us = a->rung_us + pause_after_few(a);
    size_t rings = 0;
    for (size_t i = 0; i < a->red->n; i++)
        rings += a->op.rung >> i & 1;
    if (rings < a->red->quorum && now_us < try_us)
        return try_us;
    a->red->few_rings = rings < a->red->quorum ? a->red->few_rings + 1 : 0;
    a->rung_us = 0;
    a->op.rung = 0;
    return now_us;
}

/*
 * Out of a node's queue, behind the try that may put us there. For an owner it
 * is not waited for.
 */
static void add_leave(rl_acquire *a, size_t i, int64_t now_us)
{
    rl_part *x = rl_part_new_leave(a->red->node[i], a->what, now_us);
    a->op.part[i] = x;
    if (!x)
        return;
    x->op = &a->op;
    x->position = (unsigned)i + 1;
    x->behind = a->red->asked_on[i];
    x->awaited = a->status != RLOCK_OK;
    rl_vote_limit(a, x);
}

/*
 * Who owns it now leaves the queues of nodes that have not granted it, unless
 * somebody waits behind it here, by the same bell.
 */
static bool leave(rl_acquire *a, bool queued, int64_t now_us)
{
    const rl_red_attempt *b = a->red;
    if (a->red->queued && rl_rooms_have(&a->home->rooms, a->what))
        a->red->queued = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->node[i])
            rl_rooms_unlisten(&b->node[i]->rooms, &a->red->listener[i]);
    if (!queued && !a->red->queued)
        return false;
    a->op.n = b->n;
    a->op.quorum = 0;
    a->op.early = a->op.insist = false;
    for (size_t i = 0; i < b->n; i++) {
        a->op.part[i] = NULL;
        if (b->node[i] && (queued || a->red->queued >> i & 1))
            add_leave(a, i, now_us);
    }
    return true;
}

const rl_attempt rl_attempt_vote = {.begin = begin,
                                    .judge = judge,
                                    .attend = attend,
                                    .look = drop_closed,
                                    .rung = rung,
                                    .leave = leave};
