/*
 * A seed is a fork of this process, which has compiled the scripts: its statics
 * are fresh, a crash is a finding with a seed, and nothing leaks from one seed
 * into the next. What came of it is read from shared memory. A run that is
 * interrupted says how far it came.
 */
#include "seeds.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

/* Of true time of ours: who needs more goes round in a loop without calls. */
#define SECONDS_MAX 120

run_outcome *outcome;

static volatile sig_atomic_t interrupted;

static struct {
    uint64_t ran, failed;
    unsigned long calls, switches, scripts, faults, threads;
    unsigned long acquires, losses;
    double simulated;
} sum;

static void interrupt(int sig)
{
    interrupted = sig;
}

/* --- one seed ------------------------------------------------------------- */

/* The kernel starts the world's threads on any processor, and each start would
   wait until that one has woken up: on one, a seed takes half the time. */
static void stay_on_this_processor(void)
{
    cpu_set_t this_one;
    int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return;
    CPU_ZERO(&this_one);
    CPU_SET(cpu, &this_one);
    sched_setaffinity(0, sizeof this_one, &this_one);
}

_Noreturn static void run_world(const config *c, int traces)
{
    alarm(SECONDS_MAX);
    stay_on_this_processor();
    cfg = *c;
    w.traces = traces;
    program_run();
    outcome->hash = w.hash;
    outcome->calls = w.calls;
    outcome->switches = w.switches;
    outcome->scripts = w.scripts;
    outcome->faults = w.faults;
    outcome->threads = (unsigned long)threads_n;
    outcome->is_complete = true;
    fflush(stdout);
    _exit(0); /* exit() would run what the parked threads stand in */
}

static void note_death(int status)
{
    char *to = outcome->finding;
    size_t room = sizeof outcome->finding;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(to, room, "it ran for more than %d s", SECONDS_MAX);
    else if (WIFSIGNALED(status))
        snprintf(to, room, "killed by signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(to, room, "ended with status %d", WEXITSTATUS(status));
    snprintf(outcome->complaint, sizeof outcome->complaint, "%.200s", to);
}

bool seeds_run_one(const config *c, int traces)
{
    int status;
    memset(outcome, 0, sizeof *outcome);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        run_world(c, traces);
    if (child < 0)
        die("cannot fork: %s", strerror(errno));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (interrupted)
        return false;
    if (!outcome->is_complete && !outcome->finding[0])
        note_death(status);
    return true;
}

bool seeds_failed(void)
{
    return outcome->finding[0] != '\0';
}

static void draw(const options *o, uint64_t seed, config *c)
{
    config_draw(c, seed);
    if (o->set)
        config_set(c, o->set);
}

/* --- what is told --------------------------------------------------------- */

static void tell_config(const config *c)
{
    config copy = *c;
    for (int i = 0; i < keys_n; i++)
        printf("%s%s=%lld", i ? "," : "", keys[i].name,
               (long long)*key_value(&copy, i));
    printf("\n");
}

/* And the two commands that show it again, and make it smaller. */
static void tell_finding(const options *o, uint64_t seed)
{
    const char *set = o->set ? " --set " : "", *what = o->set ? o->set : "";
    unsigned long long n = seed;
    printf("seed %llu: %s%s%s\n", n, outcome->finding,
           outcome->where[0] ? " -- at " : "", outcome->where);
    printf("    tests/sim/run.sh --seed %llu%s%s --trace\n", n, set, what);
    printf("    tests/sim/run.sh --seed %llu%s%s --shrink\n", n, set, what);
    fflush(stdout);
}

static void tell_seed(uint64_t seed)
{
    printf("seed %llu: history %016llx, %lu calls, %lu switches, %lu threads, "
           "%lu scripts, %lu faults, %lu acquired, %lu lost, %.3f s\n",
           (unsigned long long)seed, (unsigned long long)outcome->hash,
           outcome->calls, outcome->switches, outcome->threads,
           outcome->scripts, outcome->faults, outcome->acquires,
           outcome->losses, (double)outcome->simulated_ns / 1e9);
}

static void add(void)
{
    sum.calls += outcome->calls;
    sum.switches += outcome->switches;
    sum.scripts += outcome->scripts;
    sum.faults += outcome->faults;
    sum.threads += outcome->threads;
    sum.acquires += outcome->acquires;
    sum.losses += outcome->losses;
    sum.simulated += (double)outcome->simulated_ns / 1e9;
}

static double processor_seconds(void)
{
    struct rusage us, them;
    getrusage(RUSAGE_SELF, &us);
    getrusage(RUSAGE_CHILDREN, &them);
    struct timeval t[] = {us.ru_utime, us.ru_stime, them.ru_utime,
                          them.ru_stime};
    double all = 0;
    for (int i = 0; i < 4; i++)
        all += (double)t[i].tv_sec + (double)t[i].tv_usec / 1e6;
    return all;
}

static void tell_sum(void)
{
    double s = processor_seconds();
    printf("%lu calls, %lu switches, %lu threads, %lu scripts, %lu faults in "
           "%.0f s of theirs; %lu acquired, %lu lost\n",
           sum.calls, sum.switches, sum.threads, sum.scripts, sum.faults,
           sum.simulated, sum.acquires, sum.losses);
    printf("%llu seeds in %.1f s of a processor: %.0f a minute\n",
           (unsigned long long)sum.ran, s,
           s > 0 ? (double)sum.ran / s * 60 : 0);
}

/* --- all of them ---------------------------------------------------------- */

#define TWICE_MAX 100000

static uint64_t histories[TWICE_MAX];

static bool run_seed(const options *o, uint64_t seed)
{
    config c;
    draw(o, seed, &c);
    if (o->traces)
        tell_config(&c);
    if (!seeds_run_one(&c, o->traces))
        return false;
    sum.ran++;
    add();
    if (o->twice && seed - o->from < TWICE_MAX)
        histories[seed - o->from] = outcome->hash;
    if (o->verbose || o->traces)
        tell_seed(seed);
    if (!seeds_failed())
        return true;
    sum.failed++;
    tell_finding(o, seed);
    if (o->shrinks)
        shrink(o, seed);
    return !interrupted;
}

/* In the other order, so that each comes after others than before. */
static void run_again(const options *o)
{
    uint64_t n = o->seeds < TWICE_MAX ? o->seeds : TWICE_MAX;
    while (n-- > 0) {
        config c;
        draw(o, o->from + n, &c);
        if (!seeds_run_one(&c, 0))
            return;
        if (outcome->hash == histories[n])
            continue;
        sum.failed++;
        printf("seed %llu: two runs have two histories\n",
               (unsigned long long)(o->from + n));
    }
}

static void begin(void)
{
    struct sigaction act = {.sa_handler = interrupt};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcome == MAP_FAILED)
        die("out of memory");
    servers_warm();
}

int seeds_run(const options *o)
{
    uint64_t i = 0;
    begin();
    while (i < o->seeds && !(o->first && sum.failed) &&
           run_seed(o, o->from + i))
        i++;
    if (o->twice && !interrupted)
        run_again(o);
    if (interrupted)
        printf("interrupted at seed %llu, %llu of %llu were run\n",
               (unsigned long long)(o->from + i), (unsigned long long)sum.ran,
               (unsigned long long)o->seeds);
    tell_sum();
    printf(
        "%llu passed, %llu failed\n",
        (unsigned long long)(sum.ran > sum.failed ? sum.ran - sum.failed : 0),
        (unsigned long long)(sum.failed + (interrupted != 0)));
    fflush(stdout);
    return sum.failed > 0 || interrupted;
}
