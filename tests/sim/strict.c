/*
 * Mode 2: the first second of a world is scheduled as PCT does it (Burckhardt
 * et al. 2010). Each thread has a place; of those who can run the one with the
 * largest does, strictly, and at depth - 1 calls, which were drawn before,
 * whoever runs becomes the last. So an order of calls that needs `depth` of
 * them to come in turn is met with a probability of at least 1 / (n
 * k^(depth-1)), n threads making k calls.
 *
 * PCT knows no thread that turns until another one has done something. Who has
 * called so often without sleeping becomes the last, too.
 *
 * Called by schedule.c. Events that are no threads come when their time has
 * come.
 */
#include "world.h"

/* Of all threads together: the median of 400 seeds. */
#define CALLS_IN_A_SECOND 28000
#define TURNS             5000
#define DEPTH_MAX         8

static int64_t changes[DEPTH_MAX]; /* calls of the world */
static int64_t last;               /* the place that was given last */

bool is_strict(void)
{
    return cfg.mode == 2 && w.now < BEGIN + S;
}

void strict_begin(void)
{
    for (int i = 0; i < DEPTH_MAX; i++)
        changes[i] =
            i + 1 < cfg.depth ? chance_below(&w.dice, CALLS_IN_A_SECOND) : -1;
}

static bool changes_now(void)
{
    for (int i = 0; i < DEPTH_MAX; i++)
        if (changes[i] == (int64_t)w.calls)
            return true;
    return running->busy % TURNS == TURNS - 1;
}

thread *strict_first(thread *t)
{
    thread *first = t;
    for (int i = 0; i < threads_n; i++)
        if (threads[i]->state == READY && threads[i]->wake.at <= w.now &&
            threads[i]->place > first->place)
            first = threads[i];
    if (first != t) {
        event_clear(&first->wake);
        event_set(&t->wake, t->wake.at);
    }
    return first;
}

void strict_step(void)
{
    if (changes_now()) {
        running->place = --last;
        trace("is the last from now on");
    }
    ready(running, w.now);
    schedule();
}
