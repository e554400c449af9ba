/*
 * Renewals that fall due together go to the server in one call, which costs it
 * half of what a call for each would, and the client less. The answer has a
 * letter for each lock; one that is not told yes is asked about by itself, so a
 * batch can end no hold. When the server refuses the call as a whole, not for
 * the moment only (a right is missing for one of the keys, or they lie in
 * several slots of a cluster), or its answer cannot be understood, all are
 * asked by themselves, and the connection gets no batch again.
 *
 * What stays true: every task of a batch ends once, by its letter, by a call of
 * its own, or with the batch.
 */
#include "run/task.h"

bool rl_batch_may_have(const rl_task *t)
{
    return t->what == RL_RENEW && !t->compare && !t->detour &&
           !t->node->keeper.one_by_one;
}

int64_t rl_batch_send_by(const rl_task *first)
{
    int64_t by_us = first->send_by_us;
    for (const rl_task *t = first->next; t; t = t->next)
        by_us = rl_min(by_us, t->send_by_us);
    return by_us;
}

static void write_batch(const rl_ask *a, rl_bytes *to)
{
    const rl_task *first = RL_CONTAINER(a, rl_task, ask);
    const rl_hold *hold[RL_BATCH_MAX];
    size_t n = 0;
    for (const rl_task *t = first; t; t = t->next)
        hold[n++] = t->hold;
    rl_call_renew_many(to, a->whole, hold, n,
                       first->node->e->core.holds.renewal_ms);
}

static size_t count(const rl_task *first)
{
    size_t n = 0;
    for (const rl_task *t = first; t; t = t->next)
        n++;
    return n;
}

/*
 * Is there still something to renew? Meanwhile the hold may have been lost, or
 * released, or its owner waits for this to end, to extend it.
 */
static bool goes_on(rl_task *t, int64_t now_us)
{
    rl_holds *table = &t->node->e->core.holds;
    rl_hold *h = t->hold;
    rl_mutex_lock(&table->mutex);
    bool renews = rl_hold_renews_locked(table, h, now_us);
    if (renews) {
        t->send_by_us = h->expiry.due_us;
        rl_hold_expect(h, now_us, table->renewal_ms);
    }
    rl_mutex_unlock(&table->mutex);
    return renews;
}

static void end(rl_task *t, char letter, const rl_fault *f, int64_t now_us)
{
    if (letter == '1')
        rl_task_renewed(t, RL_RENEWED, f, now_us);
    else if (goes_on(t, now_us))
        rl_task_push(t, now_us);
    else
        rl_task_renewed(t, RL_NOT_ANSWERED, f, now_us);
}

/* The answer was the first one's; to each it is as if it had asked itself. */
static void done(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    rl_task *first = RL_CONTAINER(a, rl_task, ask), *next;
    const rl_ask asked = *a;
    rl_fault f = *a->fault;
    bool answered = outcome == RL_ANSWERED && r->top.len == count(first);
    bool refused = !answered && rl_ask_is_refused(a, outcome);
    bool apart = refused || a->split;
    if (outcome == RL_ANSWERED)
        rl_fault_set(&f, RLOCK_EIO, 0, "no answer of its own to a renewal");
    if (refused)
        first->node->keeper.one_by_one = true;
    size_t i = 0;
    for (rl_task *t = first; t; t = next, i++) {
        next = t->next;
        t->next = NULL;
        t->ask.line = asked.line;
        t->ask.sent_us = asked.sent_us;
        t->ask.redirected = asked.redirected;
        t->ask.detour = asked.detour;
        if (answered || apart)
            end(t, answered ? r->top.str[i] : 'e', &f, now_us);
        else
            rl_task_renewed(t, RL_NOT_ANSWERED, &f, now_us);
    }
}

void rl_batch_push(rl_task *first, int64_t now_us)
{
    rl_task_begin(first, rl_hold_layout(first->hold)->renew_many);
    first->ask.write = write_batch;
    first->ask.done = done;
    rl_task_put_on_line(first, now_us);
}
