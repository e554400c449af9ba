/* Plays the notifier's thread (drive/notifier.c): deadlines, and who is told.
 */
#include "core/op.h"
#include "judge.h"
#include "world.h"

/* Whose loss is its client's end, the home is told, if it is not closed. */
static bool is_told(const rl_hold *h)
{
    return h->loss != RL_LOSS_CLOSED || !h->group ||
           client_is_open(RL_CONTAINER(h->group->home, client, handle.home));
}

/* False: there was nothing to tell. */
static bool deliver(client *c)
{
    rl_holds *t = &c->e.core.holds;
    rl_hold *h = rl_holds_first_report_locked(t);
    if (!h)
        return false;
    unsigned type = 0;
    while (!(h->reports & 1u << type))
        type++;
    h->reports &= ~(1u << type);
    if (type == RLOCK_EVENT_LOST && !is_told(h))
        judge_untold(c, h);
    else if (type == RLOCK_EVENT_LOST)
        judge_loss(c, h);
    else if (type == RLOCK_EVENT_ABANDONED)
        judge_abandoned(c, h);
    if (h->reports)
        return true;
    rl_hold_unref_locked(t, rl_holds_unqueue_locked(t));
    return true;
}

/* Now and then on_event takes long, and whoever it is called by is late. */
static void linger(client *c)
{
    world *w = c->w;
    if (w->is_quiet || !chance_ppm(&w->chance, w->set.event_ppm))
        return;
    c->event_us =
        client_now(c) + 1 + chance_skewed(&w->chance, w->set.event_us);
    c->p->event_us =
        rl_max(c->p->event_us, clock_true(&c->p->clock, c->event_us));
}

static void run(task *task)
{
    client *c = RL_CONTAINER(task, client, notifier);
    rl_holds *t = &c->e.core.holds;
    while (client_now(c) >= c->event_us) {
        rl_holds_expire_locked(t, client_now(c));
        if (!deliver(c))
            break;
        linger(c);
    }
    if (client_now(c) < c->event_us) {
        task_sleep(task, c->event_us);
        return;
    }
    rl_heap_node *first = rl_heap_first(&t->expiry);
    int64_t until_us = first ? first->due_us : RL_NEVER;
    t->sleeps_us = until_us;
    task_sleep(task, until_us);
}

static void wake(rl_holds *t)
{
    rl_core *core = RL_CONTAINER(t, rl_core, holds);
    task_wake(&client_of(core)->notifier);
}

void notifier_open(client *c)
{
    task_init(&c->notifier, c->p, run, "notifier");
    c->e.core.holds.wake = wake;
}

void notifier_finish(client *c)
{
    do {
        rl_holds_expire_locked(&c->e.core.holds, client_now(c));
    } while (deliver(c));
}

void notifier_close(client *c)
{
    task_fini(&c->notifier);
}
