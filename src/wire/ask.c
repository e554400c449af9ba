/*
 * Called by whoever drives the line, on its thread. What stays true: done() is
 * called exactly once, because each attempt ends exactly once (the line sees to
 * that) and is then either the last one or RL_ASK_AGAIN; `unknown` is never
 * taken back, as a later no says nothing of an attempt that is still under way.
 */
#include "wire/ask.h"

#include "wire/error.h"

static void finish(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                   int64_t now_us)
{
    a->next = RL_ASK_FINAL;
    a->done(a, outcome, r, now_us);
}

/* An attempt failed, as *fault says; is there to be another one? */
static void attempt_failed(rl_ask *a, rl_outcome outcome, int64_t now_us)
{
    a->unknown = a->unknown || outcome == RL_UNKNOWN;
    if (a->tries > 0)
        a->tries--;
    if (a->tries > 0 && a->fault->transient && !(a->unknown && a->once)) {
        a->next = RL_ASK_AGAIN;
        a->line = NULL; /* it may be gone by then */
        return;
    }
    finish(a, a->unknown ? RL_UNKNOWN : RL_NOT_EXECUTED, NULL, now_us);
}

static void refused(rl_ask *a, const rl_reply *r, int64_t now_us)
{
    const rl_error_kind *kind = rl_error_reply(r, a->fault);
    if (kind->elsewhere)
        a->line->retired = true;
    /*
     * The same attempt goes on: what the server lacks, it did not execute. The
     * script goes whole, unless another call has brought it meanwhile.
     */
    if (rl_error_is_noscript(r) && !a->whole && !a->last) {
        a->whole = a->line->brought[a->script] < a->slot.end;
        rl_ask_push(a, a->line, now_us);
        return;
    }
    attempt_failed(a, kind->definite ? RL_NOT_EXECUTED : RL_UNKNOWN, now_us);
}

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    rl_ask *a = RL_CONTAINER(s, rl_ask, slot);
    if (rl_reply_is(r, REDIS_REPLY_ERROR))
        refused(a, r, now_us);
    else
        finish(a, RL_ANSWERED, r, now_us);
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    rl_ask *a = RL_CONTAINER(s, rl_ask, slot);
    *a->fault = *why;
    attempt_failed(a, whole ? RL_UNKNOWN : RL_NOT_EXECUTED, now_us);
}

void rl_ask_init(rl_ask *a, rl_script_id script, rl_fault *fault)
{
    a->slot.answered = answered;
    a->slot.failed = failed;
    a->slot.line = NULL;
    a->next = RL_ASK_IDLE;
    a->once = a->whole = a->last = a->unknown = false;
    a->tries = RL_ASK_TRIES;
    a->script = script;
    a->line = NULL;
    a->fault = fault;
    a->loads = NULL;
}

void rl_ask_push(rl_ask *a, rl_line *l, int64_t now_us)
{
    a->line = l;
    a->slot.replies = rl_scripts[a->script].replies;
    a->sent_us = now_us;
    a->next = RL_ASK_WAITS;
    if (a->whole && a->loads)
        atomic_fetch_add_explicit(a->loads, 1, memory_order_relaxed);
    a->write(a, rl_line_begin(l));
    if (rl_line_push(l, &a->slot)) {
        if (a->whole)
            l->brought[a->script] = a->slot.end;
        return;
    }
    a->tries = 0;
    if (l->failed)
        *a->fault = l->fault;
    else
        rl_fault_set(a->fault, RLOCK_ENOMEM, 0, "out of memory");
    attempt_failed(a, RL_NOT_EXECUTED, now_us);
}

void rl_ask_miss(rl_ask *a, int64_t now_us)
{
    attempt_failed(a, RL_NOT_EXECUTED, now_us);
}

void rl_ask_give_up(rl_ask *a, int64_t now_us)
{
    finish(a, a->unknown ? RL_UNKNOWN : RL_NOT_EXECUTED, NULL, now_us);
}

void rl_ask_refuse(rl_ask *a, int64_t now_us)
{
    a->tries = 0;
    rl_ask_give_up(a, now_us);
}

bool rl_ask_is_refused(const rl_ask *a, rl_outcome outcome)
{
    if (!a->line || a->line->failed || a->line->retired)
        return false;
    return outcome == RL_ANSWERED ||
           (!a->fault->transient && a->fault->status != RLOCK_ENOMEM);
}
