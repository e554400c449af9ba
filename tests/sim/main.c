/*
 * rlock_sim [--from N] [--seeds M] [--seed N [--trace]] [--twice]
 *           [--first] [--set NAME=VALUE,...] [--shrink]
 *
 * Runs M seeds from N on, each a world of its own, and tells which failed and
 * why; with --first, only up to the first that fails; with --shrink, how to
 * make one that fails smaller. --set changes what the seed draws. Closes with a
 * line of figures and "N passed, N failed", by seeds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "script.h"
#include "shrink.h"
#include "world.h"

typedef struct options {
    uint64_t from, seeds;
    bool traces, twice, verbose, first, shrinks;
    const char *set;
} options;

static void usage(void)
{
    die("usage: rlock_sim [--from N] [--seeds M] [--seed N] [--trace] "
        "[--twice] [--verbose] [--first] [--set NAME=VALUE,...] [--shrink]");
}

static void read_options(options *o, int argc, char **argv)
{
    *o = (options){.from = 1, .seeds = 1000};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--trace") == 0) {
            o->traces = true;
        } else if (strcmp(argv[i], "--twice") == 0) {
            o->twice = true;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            o->verbose = true;
        } else if (strcmp(argv[i], "--first") == 0) {
            o->first = true;
        } else if (strcmp(argv[i], "--shrink") == 0) {
            o->shrinks = true;
        } else if (!value) {
            usage();
        } else if (strcmp(argv[i], "--set") == 0) {
            o->set = argv[++i];
        } else {
            uint64_t n = strtoull(value, NULL, 10);
            if (strcmp(argv[i], "--from") == 0)
                o->from = n;
            else if (strcmp(argv[i], "--seeds") == 0)
                o->seeds = n;
            else if (strcmp(argv[i], "--seed") == 0)
                o->from = n, o->seeds = 1;
            else
                usage();
            i++;
        }
    }
}

static void tell_config(const config *c)
{
    printf(
        "%s, %s: %zu processes of %zu owners, %zu names, %zu servers; watchdog "
        "%lld ms, timeout %lld ms, delay %lld us\n",
        c->calm ? "calm" : "mad",
        c->red     ? "Red"
        : c->multi ? "single and Multi"
                   : "single",
        c->processes, c->owners, c->names, c->servers,
        (long long)c->watchdog_ms, (long long)c->timeout_ms,
        (long long)c->delay_us);
    for (int i = 0; i < FAULTS; i++)
        if (c->fault_ppm[i] > 0)
            printf("%s %lld, ", fault_names[i], (long long)c->fault_ppm[i]);
    printf("tails %lld, stalls %lld in a million\n", (long long)c->tail_ppm,
           (long long)c->stall_ppm);
}

void run_world(uint64_t dice, const config *set, bool traces, outcome *out)
{
    static world w;
    world_open(&w, dice, set, traces);
    while (world_step(&w))
        ;
    world_close(&w);
    out->failed = w.failed;
    out->history = w.history;
    out->complaint = w.complaint;
    out->figures = w.figures;
    memcpy(out->failure, w.failure, sizeof out->failure);
}

static void run_seed(const options *o, uint64_t seed, bool traces, outcome *out)
{
    config set;
    uint64_t dice = seed;
    config_draw(&set, seed);
    if (o->set && !config_set(&set, &dice, o->set))
        usage();
    if (traces)
        tell_config(&set);
    run_world(dice, &set, traces, out);
    if (out->failed && o->shrinks)
        shrink(seed, &set);
}

static void add(figures *all, const figures *f)
{
    unsigned long long *to = &all->steps;
    const unsigned long long *from = &f->steps;
    size_t n = offsetof(figures, simulated_us) / sizeof *to;
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
    all->handed_over += f->handed_over;
    all->passes += f->passes;
    all->simulated_us += f->simulated_us;
}

static void tell_figures(const figures *f, uint64_t seeds, double seconds)
{
    unsigned long long faults = 0;
    for (int i = 0; i < FAULTS; i++)
        faults += f->faults[i];
    printf(
        "%llu steps, %llu calls of scripts, %llu faults in %lld s of theirs; "
        "%llu acquired, %llu busy, %llu timed out, %llu canceled, %llu "
        "failed, %llu lost, %llu hand-overs, %llu of them late; %llu inside a "
        "process, %llu passed on\n",
        f->steps, f->calls, faults, (long long)(f->simulated_us / S),
        f->acquires, f->busy, f->timeouts, f->canceled, f->failed, f->losses,
        f->hand_overs, f->late_wakes, f->handed_over, f->passes);
    printf("%llu seeds in %.1f s: %.0f a minute, %.0f steps a seed\n",
           (unsigned long long)seeds, seconds, (double)seeds / seconds * 60,
           (double)f->steps / (double)seeds);
}

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Runs it, and perhaps once more: it has to be the same. */
static void try_seed(const options *o, uint64_t seed, outcome *out)
{
    outcome again;
    run_seed(o, seed, o->traces, out);
    if (!o->twice)
        return;
    run_seed(o, seed, false, &again);
    if (again.history != out->history && !out->failed) {
        out->failed = true;
        strcpy(out->failure, "two runs have two histories");
    }
}

int main(int argc, char **argv)
{
    options o;
    figures all = {0};
    unsigned long long failed = 0, ran = 0;
    read_options(&o, argc, argv);
    setvbuf(stdout, NULL, o.traces ? _IOFBF : _IOLBF, 1 << 16);
    double began = cpu_seconds();
    for (uint64_t seed = o.from;
         seed < o.from + o.seeds && !(o.first && failed); seed++) {
        outcome out;
        try_seed(&o, seed, &out);
        add(&all, &out.figures);
        failed += out.failed;
        ran++;
        if (out.failed)
            printf("seed %llu: %s\n", (unsigned long long)seed, out.failure);
        if (o.verbose || o.traces)
            printf("seed %llu: history %016llx, %llu steps\n",
                   (unsigned long long)seed, (unsigned long long)out.history,
                   out.figures.steps);
    }
    script_end();
    tell_figures(&all, ran, cpu_seconds() - began);
    printf("%llu passed, %llu failed\n", ran - failed, failed);
    return failed > 0;
}
