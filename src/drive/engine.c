#include "drive/engine.h"

#define ATTEMPTS 3

bool rl_engine_start(rl_engine *e)
{
    if (atomic_load(&e->started))
        return true;
    rl_mutex_lock(&e->starting);
    bool ok = rl_notifier_start(e) && rl_watchdog_start(e);
    atomic_store(&e->started, ok);
    rl_mutex_unlock(&e->starting);
    return ok;
}

void rl_ask(rl_engine *e, const rl_call *c, int64_t deadline_us, rl_answer *a)
{
    bool open = false;
    for (int i = 1;; i++) {
        int64_t now_us = rl_now_us();
        int64_t until_us =
            rl_min(deadline_us, rl_after_ms(now_us, e->set.command_timeout_ms));
        rl_script_call(e->source, c, until_us, &e->stats.script_loads, a);
        open = open || a->outcome == RL_UNKNOWN;
        a->open = open;
        if (a->outcome == RL_ANSWERED || !a->fault.transient || i == ATTEMPTS ||
            (open && c->only_once) || rl_now_us() >= deadline_us)
            return;
    }
}

/* Questions on their way. */
typedef struct pipeline {
    const rl_questions *q;
    rl_script_id script[RL_QUESTIONS_MAX];
    bool done[RL_QUESTIONS_MAX];
    bool open[RL_QUESTIONS_MAX]; /* may have been executed */
    bool sent;
    rl_fault fault; /* the latest */
} pipeline;

static bool append_all(pipeline *p, rl_conn *conn)
{
    for (size_t i = 0; i < p->q->n; i++) {
        rl_hold_call c;
        p->q->call(p->q->arg, i, &c);
        p->script[i] = c.call.script;
        if (!rl_script_append(conn, &c.call, false)) {
            rl_conn_discard(conn);
            return false;
        }
    }
    return true;
}

static void read_all(pipeline *p, rl_conn *conn, int64_t sent_us,
                     int64_t deadline_us)
{
    for (size_t i = 0; i < p->q->n && !conn->broken; i++) {
        rl_answer a = {.sent_us = sent_us};
        rl_answer_read(conn, p->script[i], deadline_us, &a);
        a.open = p->open[i] = a.outcome == RL_UNKNOWN;
        p->done[i] = a.outcome == RL_ANSWERED ||
                     !(a.fault.transient || rl_answer_is_noscript(&a));
        if (p->done[i])
            p->q->got(p->q->arg, i, &a);
        else
            p->fault = a.fault;
    }
}

static void converse(pipeline *p, rl_engine *e, int64_t deadline_us)
{
    rl_conn *conn;
    if (rl_source_borrow(e->source, deadline_us, &conn, &p->fault) != RLOCK_OK)
        return;
    int64_t sent_us = rl_now_us();
    if (append_all(p, conn)) {
        p->sent = true;
        bool whole = rl_conn_flush(conn, deadline_us, &p->fault) == RLOCK_OK;
        /* When it fails, all but the last may have arrived. */
        for (size_t i = 0; i < p->q->n; i++)
            p->open[i] = whole || i + 1 < p->q->n;
        if (whole)
            read_all(p, conn, sent_us, deadline_us);
    }
    rl_source_give_back(e->source, conn);
}

/* What has no answer yet, by itself. */
static void ask_again(const pipeline *p, rl_engine *e, size_t i,
                      int64_t deadline_us)
{
    rl_hold_call c;
    rl_answer a = {.outcome = RL_UNKNOWN, .fault = p->fault};
    p->q->call(p->q->arg, i, &c);
    bool may_not = p->open[i] && c.call.only_once;
    if (!may_not && !(p->sent && rl_now_us() >= deadline_us))
        rl_ask(e, &c.call, deadline_us, &a);
    a.open = a.open || p->open[i];
    p->q->got(p->q->arg, i, &a);
}

void rl_ask_all(rl_engine *e, const rl_questions *q, int64_t deadline_us)
{
    pipeline p = {.q = q};
    if (q->n > 1)
        converse(&p, e, deadline_us);
    for (size_t i = 0; i < q->n; i++) {
        if (!p.done[i])
            ask_again(&p, e, i, deadline_us);
    }
}

void rl_leave_queue(rl_engine *e, const void *name, size_t len,
                    int64_t deadline_us)
{
    rl_key queue = rl_key_queue(name, len);
    rl_call c;
    rl_call_init(&c, RL_SCRIPT_LEAVE, 2);
    rl_call_bytes(&c, name, len);
    rl_call_bytes(&c, queue.text, queue.len);
    rl_call_text(&c, e->doorbell.channel);
    rl_call_bytes(&c, name, len);
    rl_answer a;
    rl_ask(e, &c, deadline_us, &a);
    /* Somebody may have queued meanwhile, and this has taken him out again. */
    rl_rooms_wake(&e->rooms, name, len, RL_WAKE_LOOK);
}
