/*
 * Parts: how one begins, is written, ends, and what becomes of it when nobody
 * waits for it any more.
 *
 * A part is its op's until the op lets it go; from then on it belongs to who
 * reads its connection, has a reference to its hold, and frees itself. What it
 * may no longer use then, it has lost before: the op, the holder to fill, the
 * name of the handle. One that leaves a queue brings a copy of the name, and
 * says to those who have begun to wait meanwhile that it may have taken them
 * out.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "op/handover.h"
#include "op/verb_guard.h"

/* In a cluster another server may have taken over by then, and can be asked:
   at first, and of servers that are far away at the latest. */
#define SUSPICION_US      (250 * 1000)
#define LAST_SUSPICION_US (1000 * 1000)

/* A release that is put off, as its slot moves, drops the lock by then. */
#define LAST_MOMENT_US (500 * 1000)

static rl_next once(rl_op *op, rl_wake why, int64_t now_us)
{
    (void)why;
    (void)now_us;
    if (op->asked) {
        rl_op_leave_late(op);
        return RL_DONE;
    }
    op->asked = true;
    return RL_ASK;
}

void rl_op_init(rl_op *op, rl_part **part)
{
    op->resume = once;
    op->part = part;
    op->lent = NULL;
    op->n = op->quorum = 0;
    op->asked = op->several = op->early = op->insist = false;
    op->sleep_us = RL_NEVER;
    op->rung = op->late = op->closed = op->lacking = 0;
    op->may_ask = NULL;
    op->waker = NULL;
    op->tell = NULL;
}

rl_part *rl_part_new(void)
{
    rl_part *x = calloc(1, sizeof *x);
    if (x)
        x->heap = true;
    return x;
}

rl_part *rl_op_new_part(rl_op *op, size_t i)
{
    rl_part *x = op->part[i] = rl_part_new();
    if (!x) {
        op->lacking |= 1u << i;
        return NULL;
    }
    x->op = op;
    x->position = (unsigned)i + 1;
    return x;
}

static void write_release(const rl_part *x, bool whole, rl_bytes *to)
{
    if (x->drops)
        rl_call_drop(to, whole, x->hold);
    else if (x->heir)
        rl_hand_over_write(x, to);
    else
        rl_call_release(to, whole, x->hold, x->level, x->quiet);
}

void rl_part_write(const rl_ask *a, rl_bytes *to)
{
    const rl_part *x = RL_CONTAINER(a, rl_part, ask);
    if (x->next) {
        rl_bundle_write(x, to);
        return;
    }
    switch (x->verb) {
    case RL_VERB_ACQUIRE:
    case RL_VERB_REENTER:
        rl_call_acquire(to, a->whole, x->hold, &x->request);
        break;
    case RL_VERB_RELEASE:
    case RL_VERB_UNDO:
        write_release(x, a->whole, to);
        break;
    case RL_VERB_EXTEND:
        rl_call_extend(to, a->whole, x->hold, x->request.lease_ms, x->compare);
        break;
    case RL_VERB_GUARD:
        rl_guarded_write(x, to);
        break;
    case RL_VERB_RAISE:
        rl_call_raise(to, a->whole, x->hold, x->request.least);
        break;
    case RL_VERB_LEAVE:
        rl_call_leave(to, a->whole, x->what->name, x->what->len, x->core->bell);
        break;
    case RL_VERB_INSPECT:
        rl_call_inspect(to, a->whole, x->what);
        break;
    case RL_VERB_FORCE:
        rl_call_force_release(to, a->whole, x->what);
        break;
    }
}

/* The part that asked for a hold stays with it, to release it; also if late. */
static bool keep_as_spare(rl_part *x)
{
    rl_holds *t = &x->core->holds;
    if (x->verb != RL_VERB_ACQUIRE)
        return false;
    rl_mutex_lock(&t->mutex);
    bool keeps = x->hold->state == RL_HELD && rl_hold_keep_spare(x->hold, x);
    rl_mutex_unlock(&t->mutex);
    return keeps;
}

/* What ends without an answer has failed, even if nobody has said why. */
static void need_reason(rl_part *x)
{
    if (x->outcome != RL_ANSWERED && x->fault.status == RLOCK_OK)
        rl_fault_set(&x->fault, RLOCK_EIO, 0, "the call was given up");
}

static void done(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    rl_part *x = RL_CONTAINER(a, rl_part, ask);
    x->outcome = outcome;
    need_reason(x);
    x->over = true;
    /* What replicas took, or the program's script, is not the server's pace. */
    if (outcome == RL_ANSWERED && !a->confirm.replicas && !rl_ask_is_guarded(a))
        rl_rtt_note(&x->core->rtt, now_us - a->sent_us);
    if (x->next) {
        rl_bundle_end(x, r, now_us);
        return;
    }
    rl_part_note(x, r, now_us);
    rl_core *c = x->core;
    rl_hold *counted = x->counted ? x->hold : NULL;
    x->counted = false;
    if (!x->op && x->heap && !keep_as_spare(x))
        free(x);
    /* What was kept is the owner's from then on. */
    rl_holds_put(&c->holds, counted);
}

void rl_part_begin_ask(rl_part *x, rl_script_id script)
{
    rl_ask_init(&x->ask, script, &x->fault);
    x->ask.write = rl_part_write;
    x->ask.done = done;
    x->ask.loads = &x->core->stats.script_loads;
    x->ask.redirects = x->core->redirects;
    x->ask.patient = x->core->patient;
    x->fault.status = RLOCK_OK;
    x->fault.at = NULL;
    x->fault.text[0] = '\0';
}

/* Of one in doubt the undoing waits for the lease, which nothing prolongs. */
static bool has_ended(const rl_hold *h)
{
    return h->state == RL_OVER || h->state == RL_UNDOING;
}

bool rl_part_is_moot(rl_part *x)
{
    rl_holds *t = &x->core->holds;
    if (x->verb != RL_VERB_REENTER && x->verb != RL_VERB_EXTEND)
        return false;
    rl_mutex_lock(&t->mutex);
    bool ended = has_ended(x->hold);
    rl_mutex_unlock(&t->mutex);
    return ended;
}

static int64_t suspicion_us(const rl_core *c)
{
    return rl_min(rl_rtt_odd_us(&c->rtt, SUSPICION_US), LAST_SUSPICION_US);
}

static void begin(rl_part *x, rl_core *c, rl_verb verb, rl_script_id script,
                  int64_t now_us)
{
    x->core = c;
    rl_part_begin_ask(x, script);
    x->verb = verb;
    x->began_us = now_us;
    x->until_us = rl_command_end(c, now_us);
    x->before_us = 0;
    x->limit_us = RL_NEVER;
    x->patience_us = c->redirects ? suspicion_us(c) : RL_NEVER;
    x->way_us = 0;
    x->request = (rl_request){.level = 1, .bell = ""};
    x->renewed = x->quiet = x->drops = x->compare = false;
    x->counted = x->moves = false;
    x->level = 0;
    x->heir = NULL;
    x->hold = NULL;
    x->what = NULL;
    x->behind = NULL;
    x->next = NULL;
    x->refused = false;
    x->due = x->awaited = true;
    x->slow = x->silent = x->over = x->ok = false;
    x->way = NULL;
    x->code = 0;
    x->verdict = RL_FAILED;
    x->holder = NULL;
}

static void begin_lease(rl_part *x, rl_hold *h, int64_t lease_ms)
{
    x->hold = h;
    x->request.lease_ms = rl_lease_of(x->core, lease_ms);
    x->renewed = lease_ms == RLOCK_WATCHDOG;
}

/*
 * Its answer may move a deadline: replicas have to have it, too. A lease that
 * has run out meanwhile is worth nothing.
 */
static void confirm(rl_part *x)
{
    int64_t wait_ms = x->core->set.replica_wait_ms;
    if (!x->hold->replicas)
        return;
    x->ask.confirm.replicas = x->hold->replicas;
    x->ask.confirm.wait_ms = rl_min(wait_ms, x->request.lease_ms);
    x->until_us = rl_after_ms(x->until_us, wait_ms);
    x->patience_us = rl_after_ms(x->patience_us, wait_ms);
}

void rl_part_acquire(rl_part *x, rl_core *c, rl_hold *draft, int64_t lease_ms,
                     int64_t now_us)
{
    begin(x, c, RL_VERB_ACQUIRE, rl_hold_layout(draft)->acquire, now_us);
    begin_lease(x, draft, lease_ms);
    confirm(x);
    rl_hold_expect(draft, now_us, x->request.lease_ms);
}

/*
 * What waits for replicas is asked only for more than the hold has, or will get
 * by its renewal.
 */
static bool moves_locked(const rl_part *x, const rl_hold *h, int64_t now_us)
{
    bool by_renewal = x->renewed && h->renewed;
    return !h->replicas ||
           (!by_renewal &&
            rl_lease_deadline(now_us, x->request.lease_ms) > h->expiry.due_us);
}

/* No later than the hold itself could still be believed in. */
bool rl_part_reenter(rl_part *x, rl_core *c, rl_hold *h, int64_t lease_ms,
                     int64_t now_us)
{
    if (h->count == INT_MAX)
        return false;
    begin(x, c, RL_VERB_REENTER, rl_hold_layout(h)->acquire, now_us);
    begin_lease(x, h, lease_ms);
    x->request.level = h->count + 1;
    rl_mutex_lock(&c->holds.mutex);
    x->moves = moves_locked(x, h, now_us);
    if (x->moves)
        confirm(x);
    x->until_us = rl_min(h->expiry.due_us, x->until_us);
    rl_hold_expect(h, x->until_us, x->request.lease_ms);
    rl_mutex_unlock(&c->holds.mutex);
    return true;
}

void rl_part_release(rl_part *x, rl_core *c, rl_hold *h, int level,
                     int64_t now_us)
{
    begin(x, c, RL_VERB_RELEASE, rl_hold_layout(h)->release, now_us);
    x->hold = h;
    x->level = level;
}

void rl_part_undo(rl_part *x, rl_core *c, rl_hold *draft, int64_t now_us)
{
    begin(x, c, RL_VERB_UNDO, rl_hold_layout(draft)->release, now_us);
    x->hold = draft;
}

/*
 * As long as renewal may have to go on afterwards, asking does not take long.
 */
void rl_part_extend(rl_part *x, rl_core *c, rl_hold *h, int64_t lease_ms,
                    int64_t until_us, int64_t now_us)
{
    begin(x, c, RL_VERB_EXTEND, rl_hold_layout(h)->extend, now_us);
    begin_lease(x, h, lease_ms);
    confirm(x);
    rl_mutex_lock(&c->holds.mutex);
    x->until_us = rl_min(h->expiry.due_us, rl_min(until_us, x->until_us));
    if (h->renewed)
        x->until_us = rl_min(x->until_us, rl_renewal_end(c, now_us));
    x->compare = rl_hold_compares_locked(h);
    rl_hold_expect(h, x->until_us, x->request.lease_ms);
    rl_mutex_unlock(&c->holds.mutex);
}

void rl_part_guard(rl_part *x, rl_core *c, rl_hold *h, rl_guarded *g,
                   int64_t now_us)
{
    begin(x, c, RL_VERB_GUARD, RL_SCRIPT_COUNT, now_us);
    x->hold = h;
    x->guarded = g;
    x->ask.single = g->single;
    x->ask.slot.raw = &g->reply;
    rl_mutex_lock(&c->holds.mutex);
    g->compare = rl_hold_compares_locked(h);
    rl_mutex_unlock(&c->holds.mutex);
    rl_guarded_begin(x);
}

void rl_part_raise(rl_part *x, rl_core *c, rl_hold *h, uint64_t token,
                   int64_t now_us)
{
    begin(x, c, RL_VERB_RAISE, RL_SCRIPT_RAISE, now_us);
    x->hold = h;
    x->request.least = token;
}

void rl_part_leave(rl_part *x, rl_core *c, const rl_target *what,
                   int64_t now_us)
{
    begin(x, c, RL_VERB_LEAVE, RL_SCRIPT_LEAVE, now_us);
    x->what = what;
}

typedef struct named_part {
    rl_part part;
    rl_target what;
    char name[];
} named_part;

rl_part *rl_part_new_leave(rl_core *c, const rl_target *what, int64_t now_us)
{
    named_part *n = malloc(sizeof *n + what->len + 1);
    if (!n)
        return NULL;
    n->part = (rl_part){.heap = true};
    n->what = *what;
    n->what.name = memcpy(n->name, what->name, what->len);
    n->name[what->len] = '\0';
    rl_part_leave(&n->part, c, &n->what, now_us);
    return &n->part;
}

void rl_part_inspect(rl_part *x, rl_core *c, const rl_target *what,
                     rlock_holder *out, int64_t now_us)
{
    begin(x, c, RL_VERB_INSPECT, what->layout->inspect, now_us);
    x->what = what;
    x->holder = out;
}

/* Asked twice, it could free the lock of whoever was woken by the first. */
void rl_part_force(rl_part *x, rl_core *c, const rl_target *what,
                   int64_t now_us)
{
    begin(x, c, RL_VERB_FORCE, what->layout->force_release, now_us);
    x->ask.once = true;
    x->what = what;
}

/* Those who wait are not rung, so only when nothing else will do in time. */
static void drop_if_late(rl_part *x, int64_t now_us)
{
    if (!x->ask.split || x->verb != RL_VERB_RELEASE || x->level > 0 ||
        x->next || x->hold->unknown || now_us < x->until_us - LAST_MOMENT_US)
        return;
    if (x->heir && x->ask.unknown)
        return; /* it may have got the lock */
    if (x->heir)
        rl_part_take_back(x);
    x->drops = true;
    x->ask.script = rl_hold_layout(x->hold)->drop;
    x->ask.whole = false;
}

static void touch(const rl_ask *a, rl_bytes *to)
{
    rl_call_touch(to, true, RL_CONTAINER(a, rl_part, ask)->hold);
}

/*
 * A grant without doubt was made by its call, and the script for hashes counts
 * in any case; the others may find all as an earlier try has left it.
 */
static bool surely_writes(const rl_part *x)
{
    return x->verb == RL_VERB_EXTEND ||
           x->ask.script == RL_SCRIPT_HASH_ACQUIRE ||
           (x->verb == RL_VERB_ACQUIRE && !x->ask.unknown && !x->hold->unknown);
}

static void push_ask(rl_part *x, rl_line *l, int64_t now_us)
{
    x->ask.until_us = x->until_us;
    if (x->ask.confirm.replicas)
        x->ask.confirm.touch = surely_writes(x) ? NULL : touch;
    rl_ask_push(&x->ask, l, now_us);
}

void rl_part_push(rl_part *x, rl_line *l, int64_t now_us)
{
    drop_if_late(x, now_us);
    bool lowers = x->verb == RL_VERB_EXTEND && x->before_us == 0;
    if (x->limit_us == RL_NEVER)
        x->silent = false;
    if (x->hold && (x->heap || lowers)) {
        rl_holds *t = &x->core->holds;
        rl_mutex_lock(&t->mutex);
        if (x->heap)
            x->hold->asked_on = l;
        if (lowers)
            x->before_us =
                rl_hold_lower_locked(t, x->hold, now_us, x->request.lease_ms);
        rl_mutex_unlock(&t->mutex);
    }
    push_ask(x, l, now_us);
}

#define PATIENCE_OF_LEASE    20
#define WAY_OF_LEASE         3
#define SHORTEST_PATIENCE_US 5000

void rl_part_limit(rl_part *x, int64_t lease_ms)
{
    const rl_core *c = x->core;
    x->ask.patient = false; /* a quorum does without it meanwhile */
    int64_t us = rl_lease_of(c, lease_ms) * 1000 / PATIENCE_OF_LEASE;
    x->patience_us = rl_min(rl_max(us, SHORTEST_PATIENCE_US),
                            c->set.command_timeout_ms * 1000);
    x->limit_us = rl_rtt_limit_us(&c->rtt, x->patience_us);
    x->way_us = rl_min(rl_lease_of(c, lease_ms) * 1000 / WAY_OF_LEASE,
                       c->set.connect_timeout_ms * 1000);
    if (x->ask.confirm.replicas) {
        x->limit_us = rl_after_ms(x->limit_us, x->ask.confirm.wait_ms);
        x->patience_us = rl_after_ms(x->patience_us, x->ask.confirm.wait_ms);
    }
}

/* A release and an undo have their hold's reference to themselves. */
static bool shares_its_hold(const rl_part *x)
{
    return x->hold && x->verb != RL_VERB_UNDO &&
           !(x->verb == RL_VERB_RELEASE && x->level == 0);
}

void rl_part_let_go(rl_part *x)
{
    if (!x)
        return;
    x->op = NULL;
    if (x->ask.next != RL_ASK_WAITS) {
        free(x);
        return;
    }
    x->holder = NULL;
    /* Nobody would ask again; nor could he, if what it is about goes with its
       caller. A leave has brought that. */
    x->ask.tries = 0;
    x->ask.last = !x->hold && x->verb != RL_VERB_LEAVE;
    if (!shares_its_hold(x))
        return;
    rl_holds *t = &x->core->holds;
    rl_mutex_lock(&t->mutex);
    x->hold->refs++;
    x->counted = true;
    if (x->verb == RL_VERB_EXTEND)
        rl_hold_owe_extend_locked(t, x->hold, x->began_us, x->request.lease_ms);
    rl_mutex_unlock(&t->mutex);
}

void rl_op_let_go(rl_op *op)
{
    for (size_t i = 0; i < op->n; i++)
        rl_part_let_go(op->part[i]);
    op->n = 0;
}

void rl_op_leave_late(rl_op *op)
{
    for (size_t i = 0; i < op->n; i++) {
        rl_part *x = op->part[i];
        if (!x || !x->heap || x->ask.next != RL_ASK_WAITS)
            continue;
        rl_part_let_go(x);
        op->part[i] = NULL;
        op->late |= 1u << i;
    }
}
