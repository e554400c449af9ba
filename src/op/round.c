#include "op/round.h"

#include <errno.h>

#include "op/rule.h"

/* What an answer has at least, of a call that must not be executed twice. */
#define LAST_CHANCE_US (100 * 1000)

/* --- a way ---------------------------------------------------------------- */

/* Has it no command under way? */
static bool is_unasked(const rl_part *x)
{
    return rl_part_is_open(x) && x->ask.next != RL_ASK_WAITS;
}

/* Is it to be asked now? */
static bool is_wanted(const rl_part *x)
{
    return is_unasked(x) && x->ask.next != RL_ASK_RESTS;
}

bool rl_way_is_wanted(const rl_op *op, const rl_way *w)
{
    for (size_t i = 0; i < op->n; i++)
        if (is_wanted(op->part[i]) && op->part[i]->way == w)
            return true;
    return false;
}

void rl_way_fail(rl_op *op, const rl_way *w, const rl_fault *why,
                 void (*how)(rl_ask *a, int64_t now_us), int64_t now_us)
{
    for (size_t i = 0; i < op->n; i++) {
        rl_part *x = op->part[i];
        if (!is_wanted(x) || x->way != w)
            continue;
        x->fault = *why;
        how(&x->ask, now_us);
    }
}

int64_t rl_way_until(const rl_op *op, const rl_way *w)
{
    int64_t until_us = 0;
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *x = op->part[i];
        if (rl_part_is_open(x) && x->way == w)
            until_us = rl_max(until_us, x->until_us);
    }
    return until_us;
}

const rl_line *rl_way_behind(const rl_op *op, const rl_way *w)
{
    const rl_line *line = NULL;
    for (size_t i = 0; i < op->n && !line; i++) {
        const rl_part *x = op->part[i];
        if (!rl_part_is_open(x) || x->way != w)
            continue;
        line = x->behind;
        if (!line && x->hold && x->heap)
            line = rl_hold_line(&x->core->holds, x->hold);
    }
    return line;
}

/* --- asking --------------------------------------------------------------- */

void rl_round_begin(rl_op *op)
{
    op->decided_us = 0;
}

bool rl_round_rests(const rl_op *op)
{
    for (size_t i = 0; i < op->n; i++)
        if (rl_part_is_open(op->part[i]) &&
            op->part[i]->ask.next == RL_ASK_RESTS)
            return true;
    return false;
}

void rl_round_wake(rl_op *op, int64_t now_us)
{
    for (size_t i = 0; i < op->n; i++)
        if (rl_part_is_open(op->part[i]))
            rl_ask_wake(&op->part[i]->ask, now_us);
}

/*
 * Until when it is asked once more. What must not be executed twice, and is not
 * answered in time, may have been executed: better not begun.
 */
static int64_t again_until_us(const rl_part *x)
{
    if (!rl_ask_is_guarded(&x->ask))
        return x->until_us;
    return x->until_us -
           rl_min(LAST_CHANCE_US, (x->until_us - x->began_us) / 10);
}

static void push(rl_op *op, rl_part *x, int64_t now_us)
{
    rl_line *line = x->way->line;
    if (x->ask.next == RL_ASK_AGAIN && now_us >= again_until_us(x))
        rl_ask_give_up(&x->ask, now_us);
    else if (!rl_way_is_good(x->way) || line->retired)
        return;
    else if (rl_part_is_moot(x) || (op->may_ask && !op->may_ask(op, x, now_us)))
        rl_ask_refuse(&x->ask, now_us);
    else
        rl_part_push(x, line, now_us);
}

void rl_round_push(rl_op *op, int64_t now_us)
{
    for (size_t i = 0; i < op->n; i++) {
        rl_part *x = op->part[i];
        if (rl_part_is_open(x) &&
            (x->ask.next == RL_ASK_IDLE || x->ask.next == RL_ASK_AGAIN))
            push(op, x, now_us);
    }
}

bool rl_round_has_work(const rl_op *op)
{
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *x = op->part[i];
        if (is_wanted(x) && !x->way->expecting && !rl_way_is_good(x->way))
            return true;
    }
    return false;
}

/* --- time ----------------------------------------------------------------- */

/* Since when could the server have answered? Not while it was not asked. */
static int64_t since_us(const rl_part *x)
{
    return rl_max(x->began_us, x->way->ready_us);
}

/* Its connection is being made, and nobody says that it cannot be had. */
static bool is_on_its_way(const rl_part *x)
{
    return x->ask.next != RL_ASK_WAITS && x->way->expecting && !x->way->down;
}

/*
 * Among several, their time began with the round's; of who is not connected to
 * yet, with the connection, as to make one takes as long as several answers.
 */
static int64_t silent_from(const rl_part *x)
{
    bool alone = x->limit_us == RL_NEVER;
    if (alone && x->ask.next != RL_ASK_WAITS)
        return RL_NEVER;
    if (!alone && is_on_its_way(x))
        return rl_after_us(since_us(x), rl_max(x->patience_us, x->way_us));
    return rl_after_us(alone ? x->ask.sent_us : since_us(x), x->patience_us);
}

/*
 * From when on the round does without this part. One that could not be asked
 * yet, for lack of a connection, has until its patience is over.
 */
static int64_t slow_from(const rl_part *x)
{
    return x->ask.next == RL_ASK_WAITS
               ? rl_after_us(x->ask.sent_us, x->limit_us)
               : silent_from(x);
}

static void note_silence(rl_part *x, int64_t now_us,
                         void (*suspect)(rl_way *w, const rl_fault *why))
{
    if (!x->slow && now_us >= slow_from(x)) {
        x->slow = true;
        rl_fault_set(&x->fault, RLOCK_EIO, ETIMEDOUT, "no answer in time");
    }
    if (!x->silent && now_us >= silent_from(x)) {
        rl_fault f;
        x->silent = true;
        rl_fault_set(&f, RLOCK_EIO, ETIMEDOUT, "no answer in time");
        if (x->ask.next == RL_ASK_WAITS)
            suspect(x->way, &f);
    }
}

/* No time is left for it. */
static void end_part(rl_part *x, int64_t now_us)
{
    if (x->ask.next == RL_ASK_WAITS && x->way->shared)
        rl_line_abandon(x->way->line, &x->ask.slot, now_us);
    else if (x->ask.next == RL_ASK_WAITS && x->way->line)
        rl_line_time_out(x->way->line, now_us);
    if (x->over || x->ask.next == RL_ASK_WAITS)
        return;
    if (x->fault.status == RLOCK_OK)
        rl_fault_set(&x->fault, RLOCK_EIO, ETIMEDOUT, "no time is left");
    rl_ask_give_up(&x->ask, now_us);
}

void rl_round_expire(rl_op *op, int64_t now_us,
                     void (*suspect)(rl_way *w, const rl_fault *why))
{
    for (size_t i = 0; i < op->n; i++) {
        rl_part *x = op->part[i];
        if (rl_part_is_open(x))
            note_silence(x, now_us, suspect);
        if (rl_part_is_open(x) && now_us >= x->until_us)
            end_part(x, now_us);
    }
}

/* Is its connection about to come, and until when can that be hoped? */
static bool is_about_to_ask(const rl_part *x, int64_t *until_us)
{
    const rl_way *w = x->way;
    *until_us = rl_after_us(w->ready_us, RL_GRACE_US);
    return x->ask.next != RL_ASK_WAITS && w->expecting && !w->down && !w->slow;
}

/*
 * Until when could a moment more be of use? With a quorum: for nodes that have
 * not even been asked. Without one: for what the others have to say. 0: for
 * nothing.
 */
static int64_t worth_until(const rl_op *op)
{
    bool quorum = rl_rule_ok(op) >= op->quorum;
    int64_t last_us = 0, us;
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *x = op->part[i];
        if (!rl_part_is_open(x))
            continue;
        if (quorum && is_about_to_ask(x, &us))
            last_us = rl_max(last_us, us);
        else if (!quorum && !x->slow)
            return RL_NEVER;
    }
    return last_us;
}

static int64_t grace_end(const rl_op *op)
{
    return rl_min(op->decided_us + RL_GRACE_US, worth_until(op));
}

int64_t rl_round_wait_end(const rl_op *op)
{
    int64_t us = op->decided_us ? grace_end(op) : RL_NEVER;
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *x = op->part[i];
        if (!rl_part_is_open(x))
            continue;
        us = rl_min(us, x->until_us);
        if (x->ask.next == RL_ASK_RESTS)
            us = rl_min(us, x->ask.rest_until_us);
        if (!x->slow)
            us = rl_min(us, slow_from(x));
        if (!x->silent)
            us = rl_min(us, silent_from(x));
    }
    return us;
}

/* --- the end -------------------------------------------------------------- */

/* Who was silent, and had decided it, may have answered all the same. */
bool rl_round_is_over(rl_op *op, int64_t now_us)
{
    if (!rl_rule_is_decided(op)) {
        op->decided_us = 0;
        return false;
    }
    if (!op->early || now_us >= worth_until(op))
        return true;
    if (op->decided_us == 0)
        op->decided_us = now_us;
    return now_us >= grace_end(op);
}

void rl_round_end(rl_op *op, int64_t now_us)
{
    for (size_t i = 0; i < op->n; i++) {
        rl_part *x = op->part[i];
        if (!is_unasked(x))
            continue;
        rl_fault_set(&x->fault, RLOCK_EIO, 0, "no connection so far");
        rl_ask_refuse(&x->ask, now_us);
    }
}
