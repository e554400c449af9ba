/*
 * How much the server has to do for each critical section when many want one
 * lock: processes of one thread, without a pause between a process's sections,
 * and with a short one, so that nearly every release hands over to another
 * process; and threads of one process, or of several, which do most of it
 * among themselves. And whether processes get as many sections each, also when
 * those of one of them take longer.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "servers.h"

#define WORKERS  32 /* at most */
#define RUN_NS   INT64_C(3000000000)
#define THINK_US 1000
#define SLOW_US  100
#define TURNS    3

typedef struct shared {
    atomic_int ready;
    _Atomic int64_t end_ns; /* 0: not begun */
    atomic_int inside;
    long long sections[WORKERS];
} shared;

typedef struct crowd {
    const char *uri;
    int processes, threads; /* of each */
    int64_t think_us, turn_ms;
    bool fair, grants;
    int64_t slow_us; /* so long take the sections of the first process */
    shared *sh;
} crowd;

typedef struct worker {
    const crowd *c;
    rlock *lk;
    int64_t section_us;
    long long *sections;
    pthread_t thread;
} worker;

typedef struct result {
    long long least, most; /* of a thread */
    double calls, per_second, unlike;
} result;

/* Without sleeping, or the processor would go to others meanwhile. */
static void be_busy(int64_t us)
{
    int64_t end = bench_now_ns() + us * 1000;
    while (us > 0 && bench_now_ns() < end)
        ;
}

static void section(const worker *w)
{
    shared *sh = w->c->sh;
    bench_ok(rlock_lock(w->lk));
    bench_check(atomic_fetch_add(&sh->inside, 1) == 0, "two owners at a time");
    be_busy(w->section_us);
    atomic_fetch_sub(&sh->inside, 1);
    bench_ok(rlock_unlock(w->lk));
}

static void *work(void *arg)
{
    worker *w = arg;
    shared *sh = w->c->sh;
    int64_t end;
    atomic_fetch_add(&sh->ready, 1);
    while ((end = atomic_load(&sh->end_ns)) == 0)
        bench_pause_us(1000);
    while (bench_now_ns() < end) {
        section(w);
        ++*w->sections;
        if (w->c->think_us)
            bench_pause_us(w->c->think_us);
    }
    return NULL;
}

static rlock_client *client_of(const crowd *c)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = c->uri;
    o.turn_ms = c->turn_ms;
    o.grants = c->grants;
    bench_ok(rlock_client_new(&o, &cl));
    return cl;
}

static void contend(const crowd *c, int process)
{
    worker w[WORKERS];
    rlock_client *cl = client_of(c);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    o.fair = c->fair;
    bench_ok(rlock_new_ex(cl, "bench", 5, &o, &lk));
    for (int i = 0; i < c->threads; i++) {
        w[i] = (worker){.c = c,
                        .lk = lk,
                        .section_us = process == 0 ? c->slow_us : 0,
                        .sections = &c->sh->sections[process * c->threads + i]};
        bench_check(pthread_create(&w[i].thread, NULL, work, &w[i]) == 0,
                    "no thread");
    }
    for (int i = 0; i < c->threads; i++)
        pthread_join(w[i].thread, NULL);
    rlock_free(lk);
    rlock_client_free(cl);
}

static void fork_contenders(const crowd *c)
{
    for (int i = 0; i < c->processes; i++) {
        if (bench_fork()) {
            contend(c, i);
            exit(0);
        }
    }
    while (atomic_load(&c->sh->ready) < c->processes * c->threads)
        bench_pause_us(1000);
}

/* The fewest sections of a process to the most. */
static double unlike(const crowd *c)
{
    long long least = INT64_MAX, most = 1;
    for (int i = 0; i < c->processes; i++) {
        long long n = 0;
        for (int k = 0; k < c->threads; k++)
            n += c->sh->sections[i * c->threads + k];
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    return (double)least / (double)most;
}

static result run(crowd c)
{
    int processes = c.processes, threads = c.threads;
    c.sh = bench_share(sizeof *c.sh);
    fork_contenders(&c);
    long long before = bench_script_calls(c.uri), sections = 0;
    int64_t began = bench_now_ns();
    atomic_store(&c.sh->end_ns, began + RUN_NS);
    for (int i = 0; i < processes; i++)
        bench_join();
    double seconds = (double)(bench_now_ns() - began) / 1e9;

    result r = {.least = c.sh->sections[0], .unlike = unlike(&c)};
    for (int i = 0; i < processes * threads; i++) {
        long long n = c.sh->sections[i];
        sections += n;
        r.least = n < r.least ? n : r.least;
        r.most = n > r.most ? n : r.most;
    }
    r.calls = (double)(bench_script_calls(c.uri) - before) / (double)sections;
    r.per_second = (double)sections / seconds;
    return r;
}

static void note(const char *what, const result *r)
{
    bench_note(what, "%.2f; %.0f sections a second, %lld to %lld a client",
               r->calls, r->per_second, r->least, r->most);
}

static void row(const char *uri, int processes, int threads, int64_t turn_ms,
                double limit)
{
    char what[120];
    crowd c = {.uri = uri,
               .processes = processes,
               .threads = threads,
               .turn_ms = turn_ms};
    result r = run(c);
    snprintf(what, sizeof what,
             "- the same, %d process%s of %d thread%s, in a tight loop%s",
             c.processes, c.processes > 1 ? "es" : "", c.threads,
             c.threads > 1 ? "s" : "", c.turn_ms ? ", with turns of 1 ms" : "");
    bench_row(what, limit, r.calls, "",
              "%.0f sections a second, %lld to %lld a thread; process with the "
              "fewest to that with the most %.2f",
              r.per_second, r.least, r.most, r.unlike);
}

/* By how much the process that gets the most has more sections than that with the
   fewest. */
static void share(crowd c)
{
    char what[160];
    double unlike[TURNS], calls[TURNS];
    for (int i = 0; i < TURNS; i++) {
        result r = run(c);
        unlike[i] = 1 / r.unlike;
        calls[i] = r.calls;
    }
    snprintf(what, sizeof what,
             "- sections of one of %d processes of %d threads to those of "
             "another%s%s",
             c.processes, c.threads,
             c.slow_us ? ", whose sections take 100 µs more" : "",
             c.turn_ms ? ", with turns of 1 ms" : "");
    double most = bench_median(unlike, TURNS);
    bench_row(what, 1.25, most, "",
              "the more to the fewer, of %d runs at best %.2f, at worst %.2f; "
              "%.2f calls a section",
              TURNS, unlike[0], unlike[TURNS - 1], bench_median(calls, TURNS));
}

static void special(crowd c, const char *what, double limit)
{
    result r = run(c);
    bench_row(what, limit, r.calls, "",
              "%.0f sections a second, %lld to %lld a client", r.per_second,
              r.least, r.most);
}

/* Two that lock again at once: one that is granted it is not overtaken. */
static void compare_two(const char *uri)
{
    double share[TURNS];
    for (int i = 0; i < TURNS; i++) {
        crowd c = {.uri = uri, .processes = 2, .threads = 1};
        result rung = run(c);
        c.grants = true;
        share[i] = run(c).per_second / rung.per_second;
    }
    double median = bench_median(share, TURNS);
    bench_note("- sections a second of 2 processes, with `grants` to without",
               "%.2f; of %d runs %.2f to %.2f", median, TURNS, share[0],
               share[TURNS - 1]);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    crowd wide = {.uri = uri, .processes = 32, .threads = 1};
    result tight = run(wide);
    wide.think_us = THINK_US;
    result thinking = run(wide);
    double worse = tight.calls > thinking.calls ? tight.calls : thinking.calls;
    bench_row("script calls per critical section, 32 processes contending for "
              "one lock",
              4.0, worse, "", "the worse of the next two");
    note("- in a tight loop", &tight);
    note("- with 1 ms between a process's sections", &thinking);
    row(uri, 8, 1, 0, 2.6);
    row(uri, 1, 16, 0, 1.1);
    row(uri, 2, 8, 0, 1.3);
    row(uri, 4, 4, 0, 1.5);
    row(uri, 1, 16, 1, 0.1);
    row(uri, 2, 8, 1, 0.1);
    crowd two = {.uri = uri, .processes = 2, .threads = 8};
    share(two);
    two.slow_us = SLOW_US;
    share(two);
    two.turn_ms = 1;
    two.slow_us = 0;
    share(two);
    two.slow_us = SLOW_US;
    share(two);
    crowd fair = {.uri = uri, .processes = 8, .threads = 1, .fair = true};
    special(fair,
            "script calls per critical section of a fair lock, 8 processes",
            2.5);
    crowd granted = {.uri = uri, .processes = 8, .threads = 1, .grants = true};
    special(granted,
            "script calls per critical section with `grants`, 8 processes",
            2.1);
    compare_two(uri);
    share((crowd){.uri = uri, .processes = 4, .threads = 4});
    return 0;
}
