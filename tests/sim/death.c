/*
 * A process that dies while others go on: its threads run no more, the kernel
 * closes its connections, and nobody undoes, leaves or releases anything.
 *
 * All processes of a world share the library's statics, so it dies when none of
 * its threads has a mutex, or waits for one. What it had of memory and of
 * descriptors is left.
 */
#include <string.h>

#include "judge.h"

#define AGAIN (20 * US)

static program *who;
static int64_t died_at;

static bool is_at_a_mutex(const thread *t)
{
    bool wants = t->waits_in && strcmp(t->waits_in, "mutex") == 0;
    return t->p == &who->p && t->state != DONE && (t->mutexes > 0 || wants);
}

static bool may_die(void)
{
    for (int i = 1; i < threads_n; i++)
        if (is_at_a_mutex(threads[i]))
            return false;
    return true;
}

static void end_thread(thread *t)
{
    event_clear(&t->wake);
    t->state = DONE;
    t->waits_for = NULL;
    t->polls = NULL;
    t->polls_n = 0;
}

static void end_process(event *e)
{
    if (!may_die()) {
        event_set(e, w.now + AGAIN);
        return;
    }
    trace("-- process %d dies", who->p.index);
    died_at = who->closing_at = w.now;
    who->is_closed = who->is_dead = true;
    for (int i = 1; i < threads_n; i++)
        if (threads[i]->p == &who->p)
            end_thread(threads[i]);
    descriptors_die(&who->p);
    rw_died(who);
    semaphore_died(who);
    owners_died(who);
    loops_died();
}

void death_begin(void)
{
    static event due = {.fire = end_process};
    if (cfg.kill_at_ms == 0 || cfg.processes < 2)
        return;
    who = &programs[cfg.processes - 1];
    event_set(&due, w.now + cfg.kill_at_ms * MS);
}

bool death_leaves_leases(void)
{
    return cfg.close_at_ms > 0 || cfg.kill_at_ms > 0;
}

bool death_has_been(void)
{
    return died_at > 0;
}

bool death_was_since(int64_t when)
{
    return died_at > 0 && died_at >= when;
}
