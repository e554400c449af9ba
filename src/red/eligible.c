/*
 * Who may vote. A server has one vote, as whatever nodes it is reached; and one
 * that restarted, and may have lost what it granted, has none until every lease
 * from before has run out (Redis documentation, "Distributed locks with Redis":
 * delayed restarts).
 *
 * The owner's thread calls it just before a vote is sent, for only then is it
 * known which server that connection leads to; the keeper before it asks a node
 * that is back.
 */
#include "red/attempt_red.h"

#include <string.h>

static bool is_known(const rl_run *run, rl_fault *f)
{
    if (*run->id)
        return true;
    rl_fault_set(f, RLOCK_EIO, 0, "not identified yet");
    return false;
}

/* Is it all the same how long the run has lasted? Mostly it is. */
static bool has_kept_all(const rl_run *run, bool check_uptime)
{
    return !run->restarted && !check_uptime;
}

static bool is_old_enough(const rl_run *run, int64_t longest_us, int64_t now_us,
                          rl_fault *f)
{
    int64_t age_us = now_us - run->started_us;
    if (age_us < longest_us) {
        rl_fault_set(f, RLOCK_EIO, 0,
                     "restarted %lld s ago, counts again in %lld ms",
                     (long long)(age_us / 1000000),
                     (long long)((longest_us - age_us) / 1000));
        return false;
    }
    return true;
}

bool rl_may_vote(rl_core *c, int64_t longest_us, bool check_uptime,
                 int64_t now_us, rl_fault *f)
{
    rl_run run = rl_server_run_read(&c->server_run);
    return is_known(&run, f) && (has_kept_all(&run, check_uptime) ||
                                 is_old_enough(&run, longest_us, now_us, f));
}

/*
 * Handles of one lock may have its nodes in any order, and share only some: so
 * each node's client knows the leases, and the largest counts.
 */
bool rl_vote_note_lease(rl_core *const node[], size_t n, const rl_target *what,
                        int64_t lease_ms, int64_t now_us)
{
    bool ok = true;
    for (size_t i = 0; i < n; i++) {
        rl_core *c = node[i];
        if (c)
            ok = rl_longest_note(&c->longest, what->name, what->len,
                                 rl_lease_of(c, lease_ms), now_us) &&
                 ok;
    }
    return ok;
}

int64_t rl_vote_longest_us(const rl_acquire *a, int64_t now_us)
{
    const rl_red_attempt *b = a->red;
    const rl_target *what = a->what;
    int64_t ms = b->longest_lease_ms;
    for (size_t i = 0; b->longest_lease_ms == 0 && i < b->n; i++) {
        rl_core *c = b->node[i];
        if (!c)
            continue;
        ms = rl_max(ms, c->set.watchdog_lease_ms);
        ms = rl_max(ms,
                    rl_longest_ms(&c->longest, what->name, what->len, now_us));
    }
    return rl_after_ms(0, ms);
}

/* Has another part asked this run of a server already? Then *f says which. */
static bool is_asked_twice(const rl_op *op, const rl_part *x, const rl_run *run,
                           rl_fault *f)
{
    for (size_t i = 0; i < op->n; i++) {
        const rl_part *y = op->part[i];
        if (!y || y == x || y->ask.next == RL_ASK_IDLE)
            continue;
        rl_run other = rl_server_run_read(&y->core->server_run);
        if (strcmp(run->id, other.id) == 0) {
            rl_fault_set(f, RLOCK_EINVAL, 0, "same server as node %u",
                         y->position);
            return true;
        }
    }
    return false;
}

/*
 * All is decided from one reading of the run, which another connection may
 * replace meanwhile. The leases are looked up in the clients of all nodes, so
 * only when they matter.
 */
bool rl_vote_may_ask(rl_op *op, rl_part *x, int64_t now_us)
{
    rl_acquire *a = RL_CONTAINER(op, rl_acquire, op);
    rl_fault *f = &x->fault;
    if (x->verb != &rl_verb_acquire)
        return true;
    rl_run run = rl_server_run_read(&x->core->server_run);
    if (!is_known(&run, f) || is_asked_twice(op, x, &run, f))
        return false;
    return has_kept_all(&run, a->red->check_uptime) ||
           is_old_enough(&run, rl_vote_longest_us(a, now_us), now_us, f);
}
