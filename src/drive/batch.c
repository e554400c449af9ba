/*
 * Renewals that fall due together go to the server in one call, which costs it
 * half of what a call for each would, and the client less. Each lock keeps an
 * answer of its own: one that is lost, or that is no lock any more, takes no
 * other with it. When the call as a whole is refused (a right is missing for
 * one of the keys, or they lie in several slots of a cluster), or its answer
 * cannot be understood, each is asked by itself, and the connection gets no
 * batch again.
 *
 * What stays true: every task of a batch ends once, by its letter, by a call of
 * its own, or with the connection.
 */
#include "drive/task.h"

#include <string.h>

bool rl_batch_may_have(const rl_task *t)
{
    return t->what == RL_RENEW && !t->compare && !t->e->keeper.one_by_one;
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
    rl_call_renew_many(to, a->whole, hold, n, first->e->core.holds.renewal_ms);
}

static size_t count(const rl_task *first)
{
    size_t n = 0;
    for (const rl_task *t = first; t; t = t->next)
        n++;
    return n;
}

/* After its deadline nothing is sent for a hold. */
static void ask_singly(rl_task *t, const rl_fault *f, int64_t now_us)
{
    if (now_us < t->send_by_us)
        rl_task_push(t, now_us);
    else
        rl_task_renewed(t, RL_NOT_ANSWERED, f, now_us);
}

static void end(rl_task *t, char letter, const rl_fault *f, int64_t now_us)
{
    if (letter == '1')
        rl_task_renewed(t, RL_RENEWED, f, now_us);
    else if (letter == '0')
        rl_task_renewed(t, RL_NOT_HELD, f, now_us);
    else
        ask_singly(t, f, now_us);
}

/* The answer was the first one's; to each it is as if it had asked itself. */
static void done(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    rl_task *first = RL_CONTAINER(a, rl_task, ask), *next;
    rl_keeper *k = &first->e->keeper;
    const rl_ask asked = *a;
    const rl_fault f = *a->fault;
    char letter[RL_BATCH_MAX] = {0};
    bool answered = outcome == RL_ANSWERED && r->top.len == count(first);
    if (answered)
        memcpy(letter, r->top.str, r->top.len);
    else if (!asked.line->failed)
        k->one_by_one = true;
    size_t i = 0;
    for (rl_task *t = first; t; t = next, i++) {
        next = t->next;
        t->next = NULL;
        t->ask.line = asked.line;
        t->ask.sent_us = asked.sent_us;
        if (asked.line->failed)
            rl_task_renewed(t, RL_NOT_ANSWERED, &f, now_us);
        else
            end(t, letter[i], &f, now_us);
    }
}

void rl_batch_push(rl_task *first, int64_t now_us)
{
    rl_task_begin(first, first->hold->layout->renew_many);
    first->ask.write = write_batch;
    first->ask.done = done;
    rl_task_put_on_line(first, now_us);
}
