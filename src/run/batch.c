/*
 * How a batch is asked, and ends: when its answer has been read, or will never
 * come. What the answer means to a hold its verb knows.
 */
#include "run/batch.h"

/* Before a server is asked to which another one has sent us: they may send us
   to and fro. */
#define REDIRECT_US (10 * 1000)

static void write_call(const rl_ask *a, rl_bytes *to)
{
    const rl_batch *b = RL_CONTAINER(a, rl_batch, ask);
    b->verb->write(b, to);
}

static void done(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    rl_batch *b = RL_CONTAINER(a, rl_batch, ask);
    rl_fault f = {.status = RLOCK_OK};
    if (outcome != RL_ANSWERED)
        f = *a->fault; /* what is asked next may fail for another reason */
    else if (!a->confirm.replicas)
        rl_stats_took(&b->node->e->core.stats, RL_TIME_CALL,
                      now_us - a->sent_us);
    b->verb->note(b, outcome == RL_ANSWERED ? r : NULL, &f, now_us);
    if (b->n > 0)
        rl_batch_await_replicas(b, now_us);
    else
        rl_batch_put(b);
}

/* One that ends notes its fault at once, so one place is enough for all. */
static void begin(rl_batch *b)
{
    rl_core *c = &b->node->e->core;
    rl_ask_init(&b->ask, b->verb->script(b), &b->node->keeper.fault);
    b->ask.tries = 1;
    b->ask.detour = b->detour;
    b->ask.loads = &c->stats.script_loads;
    b->ask.redirects = c->redirects;
    b->ask.confirm.replicas = b->replicas;
    b->ask.confirm.wait_ms = c->set.replica_wait_ms;
    b->ask.write = write_call;
    b->ask.done = done;
}

void rl_batch_push(rl_batch *b, int64_t now_us)
{
    rl_node *node = b->node;
    begin(b);
    b->ask.until_us =
        rl_min(rl_renewal_end(&node->e->core, now_us), node->keeper.end_us);
    b->ask.send_by_us = b->send_by_us;
    rl_ask_push(&b->ask, &node->keeper.conn->line, now_us);
}

void rl_batch_refuse(rl_batch *b, const rl_fault *why, int64_t now_us)
{
    begin(b);
    b->node->keeper.fault = *why;
    rl_ask_refuse(&b->ask, now_us);
}

/*
 * When the connection broke, after the back-off; a failure that is the hold's
 * own must not be repeated at once.
 */
int64_t rl_batch_next_try_us(const rl_batch *b, int64_t now_us)
{
    if (rl_batch_is_sent_on(b))
        return now_us + rl_jitter(REDIRECT_US);
    return rl_batch_has_broken(b)
               ? rl_max(now_us, b->node->keeper.not_before_us)
               : now_us + rl_keeper_longest_pause_us(b->node);
}

void rl_batch_fail_locked(const rl_batch *b, rl_holds *t, const rl_fault *f)
{
    t->failure = *f;
    t->failure.at = b->node->name;
}
