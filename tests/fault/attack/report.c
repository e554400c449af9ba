#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "excuse.h"
#include "locks.h"
#include "nemesis.h"

enum { BEFORE_US = 3000000, TOLD_FINDINGS = 5 };

typedef unsigned long long big;

static const char *const homes[HOME_KINDS] = {
    [ALONE] = "one server",
    [WATCHED] = "a master with a replica and Sentinels",
    [CLUSTERED] = "a cluster of three masters with a replica each"};

static const char *const home_options[HOME_KINDS] = {
    [ALONE] = "", [WATCHED] = "--sentinel ", [CLUSTERED] = "--cluster "};

static int injected(const arena *a, int kind)
{
    int n = 0;
    for (int i = 0; i < a->n_faults; i++)
        n += a->faults[i].done && (kind < 0 || a->faults[i].kind == kind);
    return n;
}

static int kinds_injected(const arena *a)
{
    int n = 0;
    for (int kind = 0; kind < nemesis_n_kinds; kind++)
        n += injected(a, kind) > 0;
    return n;
}

bool goals_reached(const goals *g, const arena *a)
{
    return arena_grants(a) >= g->grants && injected(a, -1) >= g->faults &&
           kinds_injected(a) >= g->kinds;
}

static void write_head(FILE *f, const arena *a, const verdict *v, bool good)
{
    fprintf(f,
            "# Attack: %s\n\n"
            "At %s; seed %llu, %d s; %d processes with %d threads, %d with an "
            "event "
            "loop and %d owners; %d single locks "
            "(%d of them at a node), %d Red locks on 3 or %d nodes, %d Multi "
            "locks of these, %d fair and %d read-write locks, %d semaphores; "
            "%d processes were killed or ended.\n\n"
            "![Who held which lock when](timeline.svg)\n\n",
            good ? "withstood" : "FAILED", homes[a->home], (big)a->seed,
            (int)((a->ended_us - a->began_us) / 1000000), PROCS - LOOPS,
            THREADS, LOOPS, OWNERS, HOMES + AWAYS, AWAYS, REDS, NODES, SETS,
            FAIRS, RWS, SEMAPHORES, v->n_histories);
}

static void write_work(FILE *f, const arena *a, const verdict *v,
                       const goals *g)
{
    fprintf(f, "| done | | wanted |\n|---|---|---|\n");
    fprintf(f, "| grants | %llu | %llu |\n", (big)arena_grants(a),
            (big)g->grants);
    fprintf(f,
            "| of these, of fair and read-write locks and semaphores | %llu | "
            "|\n",
            (big)arena_kinds_grants(a));
    fprintf(f, "| waits in lines whose order was judged | %llu | |\n",
            (big)v->waits_judged);
    fprintf(f, "| faults injected | %d | %d |\n", injected(a, -1), g->faults);
    fprintf(f, "| kinds of faults | %d | %d |\n", kinds_injected(a), g->kinds);
    fprintf(f, "| updates of the counters | %llu | |\n", (big)v->writes);
    fprintf(f, "| writes of lost holders refused by their token | %llu | |\n\n",
            (big)a->writes_refused);
}

static void write_row(FILE *f, const char *what,
                      const _Atomic uint64_t figures[LOCK_KINDS])
{
    fprintf(f, "| %s |", what);
    for (int kind = 0; kind < LOCK_KINDS; kind++)
        fprintf(f, " %llu |", (big)figures[kind]);
    fputc('\n', f);
}

static void write_kinds_head(FILE *f, const char *what)
{
    fprintf(f, "| %s |", what);
    for (int kind = 0; kind < LOCK_KINDS; kind++)
        fprintf(f, " %s |", lock_kind_names[kind]);
    fprintf(f, "\n|---|");
    for (int kind = 0; kind < LOCK_KINDS; kind++)
        fprintf(f, "---|");
    fputc('\n', f);
}

static void write_kinds(FILE *f, const arena *a)
{
    write_kinds_head(f, "kind of lock");
    write_row(f, "grants", a->grants);
    write_row(f, "of these, to owners on an event loop", a->loop_grants);
    write_row(f, "re-entries", a->reentries);
    fputc('\n', f);
}

/* What had just been done to the lock, with which one begins to look. */
static void write_faults_before(FILE *f, const arena *a, const finding *x)
{
    char label[FAULT_LABEL_MAX];
    for (int i = 0; i < a->n_faults; i++) {
        const fault *y = &a->faults[i];
        if (y->began_us > x->at_us || y->ended_us < x->at_us - BEFORE_US ||
            !concerns(y, a->lives[x->life].proc, x->lock))
            continue;
        fault_label(y, label);
        fprintf(f, "  - %.3f to %.3f s: %s\n",
                (double)(y->began_us - a->began_us) / 1e6,
                (double)(y->ended_us - a->began_us) / 1e6, label);
    }
}

static void write_finding(FILE *f, const arena *a, const finding *x)
{
    char label[LOCK_LABEL_MAX] = "no lock";
    if (x->lock >= 0)
        lock_label(x->lock, label);
    fprintf(f, "- %.3f s, process %d (worker %d), %s: %s: %s\n",
            (double)(x->at_us - a->began_us) / 1e6, x->life,
            a->lives[x->life].proc, label, offence_names[x->what], x->text);
    write_faults_before(f, a, x);
}

static void write_findings(FILE *f, const arena *a, const verdict *v)
{
    fprintf(f, "| found | | excused, in documented windows |\n|---|---|---|\n");
    for (int i = 0; i < OFFENCES; i++)
        fprintf(f, "| %s | %llu | %llu |\n", offence_names[i], (big)v->found[i],
                (big)v->excused[i]);
    fprintf(f, "| keys left in Redis | %d | |\n", v->left_over);
    fprintf(f, "| permits leaked | %d | |\n", v->leaked);
    fprintf(f, "| workers that ended by themselves, or did not | %d | |\n\n",
            v->died);
    fprintf(
        f,
        "The longest overrun of a call was %.1f ms, without the time in which "
        "its process or thread waited for a processor; the longest stall of a "
        "thread that does nothing but "
        "wake up, %.1f ms (processes that were stopped among them).\n\n",
        (double)v->longest_overrun_us / 1000,
        (double)v->longest_stall_us / 1000);
    for (size_t i = 0; i < v->n_kept; i++)
        write_finding(f, a, &v->kept[i]);
}

static void write_ends(FILE *f, const verdict *v)
{
    static const char *const ends[] = {
        [HOLD_OPEN] = "killed with its process",
        [HOLD_RELEASED] = "released",
        [HOLD_LOST] = "lost, and told so",
        [HOLD_UNKNOWN] = "released without an answer",
        [HOLD_ABANDONED] = "abandoned by its thread or owner",
        [HOLD_CLOSED] = "ended with its client"};
    fputc('\n', f);
    write_kinds_head(f, "how holds ended");
    for (int i = 0; i < HOLD_ENDS; i++) {
        fprintf(f, "| %s |", ends[i]);
        for (int kind = 0; kind < LOCK_KINDS; kind++)
            fprintf(f, " %llu |", (big)v->ends[kind][i]);
        fputc('\n', f);
    }
}

typedef const _Atomic uint64_t answers[LOCK_KINDS][STATUSES];

static void write_answers(FILE *f, const char *to, answers got)
{
    fputc('\n', f);
    write_kinds_head(f, to);
    for (int s = 0; s < STATUSES; s++) {
        uint64_t sum = 0;
        for (int kind = 0; kind < LOCK_KINDS; kind++)
            sum += got[kind][s];
        if (sum == 0)
            continue;
        fprintf(f, "| %s |", rlock_status_str((rlock_status)s));
        for (int kind = 0; kind < LOCK_KINDS; kind++)
            fprintf(f, " %llu |", (big)got[kind][s]);
        fputc('\n', f);
    }
}

static void write_faults(FILE *f, const arena *a, const verdict *v)
{
    fprintf(f, "\n| fault | row of the catalogue | injected | overlaps that it "
               "excuses |\n|---|---|---|---|\n");
    for (int kind = 0; kind < nemesis_n_kinds; kind++)
        if (nemesis_fits(kind, a->home))
            fprintf(f, "| %s | %d | %d | %llu |\n", nemesis_kinds[kind].name,
                    nemesis_kinds[kind].row, injected(a, kind),
                    (big)v->overlaps_by[kind]);
    fprintf(f,
            "\nTo attack in the same way again: `tests/fault/attack.sh "
            "%s--seed %llu`.\n",
            home_options[a->home], (big)a->seed);
}

/* What is printed may be all that is left of a run on another machine. */
static void tell(const arena *a, const verdict *v, bool good)
{
    for (size_t i = 0; i < v->n_kept && i < TOLD_FINDINGS; i++)
        write_finding(stdout, a, &v->kept[i]);
    for (int i = 0; i < OFFENCES; i++)
        if (v->found[i])
            printf("%s: %llu\n", offence_names[i], (big)v->found[i]);
    if (v->left_over)
        printf("keys left in Redis: %d\n", v->left_over);
    if (v->leaked)
        printf("permits leaked: %d\n", v->leaked);
    if (a->home != ALONE)
        printf("overlaps by failovers: %llu, with %u replicas that "
               "acknowledge\n",
               (big)v->excused[OVERLAP], a->min_replicas);
    printf(
        "%s: %llu grants, %llu of them on loops, %d faults of %d kinds, seed "
        "%llu\n",
        good ? "withstood" : "FAILED", (big)arena_grants(a),
        (big)arena_loop_grants(a), injected(a, -1), kinds_injected(a),
        (big)a->seed);
}

bool report(const char *dir, const arena *a, const verdict *v, const goals *g)
{
    char path[512];
    snprintf(path, sizeof path, "%s/timeline.svg", dir);
    timeline(path, a, v);
    snprintf(path, sizeof path, "%s/report.md", dir);
    FILE *f = fopen(path, "w");
    if (!f)
        attack_die("%s: %s", path, strerror(errno));
    bool good = verdict_is_clean(v) && goals_reached(g, a);
    write_head(f, a, v, good);
    write_work(f, a, v, g);
    write_kinds(f, a);
    write_findings(f, a, v);
    write_ends(f, v);
    write_answers(f, "answers to acquires", a->acquired);
    write_answers(f, "answers to unlocks", a->released);
    write_faults(f, a, v);
    fclose(f);
    tell(a, v, good);
    return good;
}
