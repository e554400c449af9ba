#include "run/inquiry.h"

#include "run/engine.h"

static void done(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    rl_inquiry *q = RL_CONTAINER(a, rl_inquiry, ask);
    (void)now_us;
    q->outcome = outcome;
    if (r)
        rl_reply_copy(&q->reply, r);
    q->over = true;
}

bool rl_inquire(rl_conn *c, rl_inquiry *q, rl_script_id script,
                void (*write)(const rl_ask *a, rl_bytes *to),
                atomic_uint_fast64_t *loads, int64_t deadline_us)
{
    rl_ask_init(&q->ask, script, &q->fault);
    q->ask.write = write;
    q->ask.done = done;
    q->ask.loads = loads;
    q->ask.tries = 1;
    q->over = false;
    rl_ask_push(&q->ask, &c->line, rl_now_us());
    while (!q->over)
        rl_conn_step(c, deadline_us);
    return q->outcome == RL_ANSWERED;
}

static void write_identify(const rl_ask *a, rl_bytes *to)
{
    rl_put_call(to, RL_SCRIPT_IDENTIFY, a->whole, 0, 0);
}

bool rl_identify(rl_engine *e, rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    rl_inquiry q;
    if (!rl_inquire(c, &q, RL_SCRIPT_IDENTIFY, write_identify, NULL,
                    deadline_us)) {
        *f = q.fault;
        return false;
    }
    rl_rtt_note(&e->core.rtt, rl_now_us() - q.ask.sent_us);
    c->known =
        q.reply.count == 2 &&
        rl_server_run_note(&e->core.server_run, q.reply.item, rl_now_us());
    if (!c->known)
        rl_fault_set(f, RLOCK_EIO, 0, "the server does not tell its run_id");
    return c->known;
}
