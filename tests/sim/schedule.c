/*
 * Who runs, and when. A call costs a little time, by chance, and each call of
 * the seam is a point at which another thread may go on. Who is woken goes on
 * after a latency: mostly short, and with a probability of the seed late by up
 * to seconds. A thread whose time has come is run before time passes, so none
 * is starved by one that calls all the time.
 *
 * In mode 1 each thread has a rank, and latency doubles with it. At some calls,
 * so many in a world, the thread that runs gets another rank and is kept from
 * running: the priority change points of PCT (Burckhardt et al. 2010), in a
 * world that has time, where "last" is "late". Mode 2 is in strict.c.
 *
 * What stays true: one thread runs, all others are ready (with an event),
 * blocked (with an event if there is an end to it), or done.
 */
#include "world.h"

static thread main_thread = {.state = RUNS, .name = "main"};

thread *running = &main_thread;
thread *threads[THREADS_MAX] = {&main_thread};
int threads_n = 1;

void threads_begin(process *p)
{
    main_thread.p = p;
    switch_begin(&main_thread);
    strict_begin();
    w.is_on = true;
}

int64_t latency(const thread *t)
{
    if (is_strict())
        return 0;
    int64_t ns = chance_skewed(&w.dice, cfg.latency_us * US) + 1;
    if (cfg.mode == 1)
        ns <<= t->rank;
    if (!w.is_quiet && chance_ppm(&w.dice, cfg.stall_ppm)) {
        int64_t more = chance_skewed(&w.dice, cfg.stall_us * US);
        ns += more;
        if (more > MS)
            trace("(thread %d, %s, goes on %lld us late)", t->id, t->name,
                  (long long)(more / US));
    }
    return ns;
}

void ready(thread *t, int64_t at)
{
    t->state = READY;
    event_set(&t->wake, at);
}

void schedule(void)
{
    thread *me = running;
    for (;;) {
        event *e = event_next();
        if (e && e->at > w.now)
            w.now = e->at;
        if (!e || w.now > w.until)
            stuck();
        w.steps++;
        if (e->fire) {
            e->fire(e);
            continue;
        }
        thread *t = (thread *)e;
        if (is_strict())
            t = strict_first(t);
        t->state = RUNS;
        history_add((uint64_t)t->id << 48 ^ (uint64_t)w.now);
        if (t == me)
            return;
        w.switches++;
        running = t;
        switch_to(me, t);
        return;
    }
}

static void change_rank(void)
{
    int64_t ns = chance_skewed(&w.dice, cfg.stall_us * US);
    cfg.changes--;
    running->rank = (int)chance_below(&w.dice, 8);
    trace("is kept from running for %lld us", (long long)(ns / US));
    ready(running, w.now + ns);
    schedule();
}

#define CALLS_MAX 30000000
/*
 * Without ever having slept. Who looks out for an answer asks for 0.1 ms at a
 * time, which is thousands of calls where a call is cheap, and goes on when one
 * has come.
 */
#define BUSY_MAX  1000000
#define BUSY_LOOK 10000

/*
 * Who is kept from running with a mutex keeps others from what they were called
 * for: a loop finds that another thread drives, and is called again.
 */
static bool somebody_is_kept(void)
{
    for (int i = 0; i < threads_n; i++)
        if (threads[i]->mutexes > 0 && threads[i]->state == READY)
            return true;
    return false;
}

static void note_busy(void)
{
    if (++w.calls > CALLS_MAX && somebody_is_kept())
        w.calls = 0; /* for whom a loop may turn all the while */
    if (w.calls > CALLS_MAX)
        finding("too many calls: somebody waits busily");
    if (++running->busy % BUSY_LOOK != 0)
        return;
    if (somebody_is_kept())
        running->busy = 0;
    else if (running->busy > BUSY_MAX)
        finding("judge 13: %s calls, and calls, and never sleeps",
                running->name);
}

void step(void)
{
    if (!w.is_on)
        return;
    note_busy();
    w.now += 1 + chance_below(&w.dice, 2 * cfg.call_ns);
    if (is_strict())
        strict_step();
    else if (!w.is_quiet && cfg.changes > 0 &&
             chance_ppm(&w.dice, cfg.change_ppm)) {
        change_rank();
    } else if (chance_ppm(&w.dice, cfg.preempt_ppm)) {
        ready(running, w.now + latency(running));
        schedule();
    } else if (event_is_due()) {
        ready(running, w.now + chance_below(&w.dice, 200));
        schedule();
    }
}

bool block(const void *what, const char *in, int64_t until)
{
    thread *t = running;
    if (!w.is_on)
        die("%s blocks outside of the world", in);
    t->waits_for = what;
    t->waits_in = in;
    t->was_woken = false;
    t->busy = 0;
    t->state = BLOCKED;
    if (until != NEVER)
        event_set(&t->wake, (until > w.now ? until : w.now) + latency(t));
    schedule();
    t->waits_for = NULL;
    return t->was_woken;
}

void wake(thread *t)
{
    t->was_woken = true;
    t->waits_for = NULL;
    ready(t, w.now + latency(t));
}

void wake_waiters(const void *what, bool all)
{
    int n = 0;
    for (int i = 0; i < threads_n; i++)
        n += threads[i]->state == BLOCKED && threads[i]->waits_for == what;
    if (n == 0)
        return;
    int64_t which = all ? -1 : chance_below(&w.dice, n);
    for (int i = 0; i < threads_n; i++) {
        thread *t = threads[i];
        if (t->state == BLOCKED && t->waits_for == what &&
            (all || which-- == 0))
            wake(t);
    }
}

void sleep_for(int64_t ns)
{
    block(&running->state, "sleep", w.now + true_span(ns));
}
