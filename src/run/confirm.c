/*
 * Renewals, and votes, that replicas have to have (min_replicas). What the
 * server has answered yes is not believed yet: it is kept, and the replicas are
 * asked once for all that has come, by a touch of one of these locks and a WAIT
 * behind it (wire/replicas.h). Whatever is answered before that WAIT is, was
 * executed before it, so one is enough for all calls that are in flight
 * together; what comes later asks again.
 *
 * What stays true: while tasks are kept, the replicas are being asked, on the
 * line that these came over; so they end with the answer, or with the line.
 */
#include "run/task.h"

static void ask(rl_task *first, int64_t now_us);

/* What the touch of a lock has come to. */
typedef enum touching { BROKE, GONE, TOUCHED } touching;

/* They have not said of so many what this hold wants; or they were not asked,
   as it was another lock that has gone: by its owner's unlock, say. */
static bool is_asked_again(const rl_task *t, const rl_task *by, touching how)
{
    return how == TOUCHED ? t->hold->replicas > by->ask.confirm.replicas
                          : how == GONE && t->hold != by->hold;
}

static void settle(rl_task *t, const rl_task *by, touching how,
                   const rl_fault *f, int64_t now_us)
{
    bool has = how == TOUCHED && by->ask.confirm.acked >= t->hold->replicas;
    if (is_asked_again(t, by, how) && rl_task_awaits_replicas(t, now_us))
        return;
    if (!has)
        rl_add(&t->node->e->core.stats.replica_shortfalls, 1);
    rl_task_confirmed(t, has ? NULL : f, now_us);
}

static void done(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                 int64_t now_us)
{
    rl_task *t = RL_CONTAINER(a, rl_task, ask);
    rl_keeper *k = &t->node->keeper;
    rl_task *each = k->unconfirmed, *next;
    touching how = outcome != RL_ANSWERED ? BROKE
                   : r->top.integer == 1  ? TOUCHED
                                          : GONE;
    rl_fault f = *a->fault;
    if (how == GONE)
        rl_fault_set(&f, RLOCK_EQUORUM, 0,
                     "replicas not known to have it: the lock has gone");
    k->unconfirmed = NULL;
    k->confirming = false;
    for (; each; each = next) {
        next = each->next;
        each->next = NULL;
        settle(each, t, how, &f, now_us);
    }
    rl_holds_put(&t->node->e->core.holds, t->hold);
    rl_task_put(t);
}

/* No replica is asked: out of memory. */
static void give_up(rl_task *each, int64_t now_us)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_ENOMEM, 0, "replicas not asked: out of memory");
    each->node->keeper.unconfirmed = NULL;
    rl_task_confirmed(each, &f, now_us);
}

/* It has just been answered, so its lock is there. */
static void ask(rl_task *first, int64_t now_us)
{
    rl_node *node = first->node;
    rl_hold *h = first->hold;
    rl_task *t = rl_task_take(node);
    if (!t) {
        give_up(first, now_us);
        return;
    }
    t->what = RL_CONFIRM;
    t->hold = h;
    t->compare = false;
    t->detour = first->detour;
    t->send_by_us = RL_NEVER;
    rl_mutex_lock(&node->e->core.holds.mutex);
    h->refs++;
    rl_mutex_unlock(&node->e->core.holds.mutex);
    rl_task_begin(t, RL_SCRIPT_TOUCH);
    t->ask.done = done;
    t->ask.confirm.replicas = h->replicas;
    t->ask.confirm.wait_ms = node->e->core.set.replica_wait_ms;
    node->keeper.confirming = true;
    rl_task_put_on_line(t, now_us);
}

bool rl_task_awaits_replicas(rl_task *t, int64_t now_us)
{
    rl_keeper *k = &t->node->keeper;
    if (!t->hold->replicas)
        return false;
    t->next = k->unconfirmed;
    k->unconfirmed = t;
    if (!k->confirming)
        ask(t, now_us);
    return true;
}
