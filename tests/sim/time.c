/*
 * Timers, clocks and tasks. What plays a thread never waits: it runs, says
 * until when it sleeps, and is run again then, or some time after it was woken.
 * How long after is the scheduler's mood, which is the seed's.
 */
#include "world.h"

void timer_init(world *w, timer *a, void (*ring)(timer *a))
{
    *a = (timer){.ring = ring};
    memory_for_world++;
    if (!rl_heap_reserve(&w->heap))
        die("out of memory");
    memory_for_world--;
}

void timer_fini(world *w, timer *a)
{
    rl_heap_remove(&w->heap, &a->node);
    rl_heap_unreserve(&w->heap);
}

void timer_set(world *w, timer *a, int64_t at_us)
{
    rl_heap_set(&w->heap, &a->node, rl_max(at_us, w->now_us));
}

void timer_clear(world *w, timer *a)
{
    rl_heap_remove(&w->heap, &a->node);
}

/* --- clocks --------------------------------------------------------------- */

int64_t clock_at(const sim_clock *c, int64_t true_us)
{
    int64_t since_us = true_us - c->since_us;
    return c->base_us + since_us + since_us * c->drift_ppm / 1000000;
}

int64_t clock_true(const sim_clock *c, int64_t local_us)
{
    if (local_us >= RL_NEVER / 4)
        return RL_NEVER;
    int64_t us = c->since_us +
                 (local_us - c->base_us) * 1000000 / (1000000 + c->drift_ppm);
    while (clock_at(c, us) < local_us)
        us++;
    return us;
}

void clock_step(sim_clock *c, int64_t true_us, int64_t by_us)
{
    c->base_us = clock_at(c, true_us) + by_us;
    c->since_us = true_us;
}

/* --- tasks ---------------------------------------------------------------- */

/* How long it takes until a thread that may run does. */
static int64_t latency_us(task *t)
{
    world *w = t->p->w;
    const config *set = &w->set;
    if (w->is_quiet)
        return 1 + chance_below(&w->chance, 50);
    if (t->p->is_victim || chance_ppm(&w->chance, set->stall_ppm))
        return 1 + chance_skewed(&w->chance, set->stall_us);
    return 1 + chance_below(&w->chance, set->latency_us);
}

static void ring(timer *a)
{
    task *t = RL_CONTAINER(a, task, timer);
    world *w = t->p->w;
    if (w->now_us < t->p->paused_us) {
        timer_set(w, a, t->p->paused_us + latency_us(t));
        return;
    }
    t->running = true;
    t->woken = false;
    memory_is_of(t->p);
    t->run(t);
    memory_is_of(NULL);
    t->running = false;
    if (t->woken)
        timer_set(w, a, w->now_us + latency_us(t));
}

void task_init(task *t, process *p, void (*run)(task *t), const char *what)
{
    *t = (task){.p = p, .run = run, .what = what};
    timer_init(p->w, &t->timer, ring);
}

void task_fini(task *t)
{
    timer_fini(t->p->w, &t->timer);
}

void task_wake(task *t)
{
    world *w = t->p->w;
    if (t->running) {
        t->woken = true;
        return;
    }
    int64_t at_us = w->now_us + latency_us(t);
    if (t->timer.node.at == 0 || t->timer.node.due_us > at_us)
        timer_set(w, &t->timer, at_us);
}

void task_sleep(task *t, int64_t local_us)
{
    world *w = t->p->w;
    if (local_us == RL_NEVER) {
        timer_clear(w, &t->timer);
        return;
    }
    /* poll() and its like never wake too early, and mostly a little late. */
    int64_t at_us = clock_true(&t->p->clock, local_us);
    timer_set(w, &t->timer, rl_max(at_us, w->now_us) + latency_us(t));
}
