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

#include "hold/step.h"
#include "op/call.h"
#include "op/verb.h"

/* In a cluster another server may have taken over by then, and can be asked:
   at first, and of servers that are far away at the latest. */
#define SUSPICION_US      (250 * 1000)
#define LAST_SUSPICION_US (1000 * 1000)

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
    op->settles = NULL;
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

void rl_part_write(const rl_ask *a, rl_bytes *to)
{
    const rl_part *x = RL_CONTAINER(a, rl_part, ask);
    if (x->next) {
        rl_bundle_write(x, to);
        return;
    }
    x->verb->write(x, to);
}

void rl_part_note(rl_part *x, const rl_reply *r, int64_t now_us)
{
    if (x->heap && x->hold)
        rl_hold_set_line(&x->core->holds, x->hold, NULL);
    if (x->hold && x->ask.unknown && !x->verb->grants)
        rl_hold_go_astray(&x->core->holds, x->hold);
    x->verb->note(x, r, now_us);
}

static void note_pace(rl_core *c, int64_t round_trip_us)
{
    rl_rtt_note(&c->rtt, round_trip_us);
    rl_stats_took(&c->stats, RL_TIME_CALL, round_trip_us);
}

/* The part that asked for a hold stays with it, to release it; also if late. */
static bool keep_as_spare(rl_part *x)
{
    return x->verb->grants &&
           rl_hold_keep_late_spare(&x->core->holds, x->hold, x);
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
        note_pace(x->core, now_us - a->sent_us);
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

bool rl_part_is_moot(rl_part *x)
{
    return x->verb->for_owner && rl_hold_has_ended(&x->core->holds, x->hold);
}

static int64_t suspicion_us(const rl_core *c)
{
    return rl_min(rl_rtt_odd_us(&c->rtt, SUSPICION_US), LAST_SUSPICION_US);
}

void rl_part_begin(rl_part *x, rl_core *c, const rl_verb *verb,
                   rl_script_id script, int64_t now_us)
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

void rl_part_begin_lease(rl_part *x, rl_hold *h, int64_t lease_ms)
{
    x->hold = h;
    x->request.lease_ms = rl_lease_of(x->core, lease_ms);
    x->renewed = lease_ms == RLOCK_WATCHDOG;
}

/*
 * Its answer may move a deadline: replicas have to have it, too. A lease that
 * has run out meanwhile is worth nothing.
 */
void rl_part_confirm(rl_part *x)
{
    int64_t wait_ms = x->core->set.replica_wait_ms;
    if (!x->hold->replicas)
        return;
    x->ask.confirm.replicas = x->hold->replicas;
    x->ask.confirm.wait_ms = rl_min(wait_ms, x->request.lease_ms);
    x->until_us = rl_after_ms(x->until_us, wait_ms);
    x->patience_us = rl_after_ms(x->patience_us, wait_ms);
}

static void touch(const rl_slot *call, rl_bytes *to)
{
    rl_call_touch(to, true, RL_CONTAINER(call, rl_part, ask.slot)->hold);
}

/*
 * A grant without doubt was made by its call, and the script for hashes counts
 * in any case; the others may find all as an earlier try has left it.
 */
static bool surely_writes(const rl_part *x)
{
    return x->verb->writes_anew || x->ask.script == RL_SCRIPT_HASH_ACQUIRE ||
           x->ask.script == RL_SCRIPT_FAIR_ACQUIRE ||
           (x->verb->grants && !x->ask.unknown && !x->hold->unknown);
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
    if (x->limit_us == RL_NEVER)
        x->silent = false;
    if (x->verb->ready)
        x->verb->ready(x, now_us);
    if (x->hold && x->heap)
        rl_hold_set_line(&x->core->holds, x->hold, l);
    push_ask(x, l, now_us);
}

#define PATIENCE_OF_LEASE    20
#define WAY_OF_LEASE         3
#define SHORTEST_PATIENCE_US 5000

void rl_part_limit(rl_part *x, int64_t lease_ms, int64_t until_us)
{
    const rl_core *c = x->core;
    x->ask.patient = false; /* a quorum does without it meanwhile */
    x->until_us = rl_min(x->until_us, until_us);
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

/* Who ends a hold has its reference to himself. */
static bool shares_its_hold(const rl_part *x)
{
    return x->hold && !(x->verb->ends_hold && x->level == 0);
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
    x->ask.last = !x->hold && !x->verb->has_name;
    if (!shares_its_hold(x))
        return;
    rl_holds *t = &x->core->holds;
    rl_mutex_lock(&t->mutex);
    x->hold->refs++;
    x->counted = true;
    if (x->verb->is_late_locked)
        x->verb->is_late_locked(x, t);
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
