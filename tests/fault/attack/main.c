/*
 * attack [--seed N] [--seconds N] [--grants N] [--faults N] [--any] [--gap MS]
 *        [--turn MS] [--kinds PERCENT] [--sentinel | --cluster] [--replicas N]
 *        [--only FAULT]... [--judge] --out DIR
 *
 * Goes on until there were so many grants and faults, all kinds of faults (or
 * those that --only names) among them unless --any will do, and fails when that takes longer than
 * --seconds, or when a judge has found anything. With --judge it only judges
 * what an attack has left in DIR, once more. With --turn the clients have
 * turns, and the threads want few locks, so that these are passed on. Of so many
 * sections, --kinds, the locks are fair, or read-write locks, or semaphores. With
 * --sentinel home is a master with a replica, which Sentinels watch, with
 * --cluster a Redis Cluster, and the faults are those that make sense there: a
 * grant is one there when the replica has it, but not with --replicas 0.
 *
 * The last worker has one thread with an event loop and many owners (loop.c),
 * the others have threads that block; how many of the grants were the loop's is
 * told, too.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "judge.h"
#include "left.h"
#include "metronome.h"
#include "nemesis.h"
#include "report.h"

enum { END_LIMIT_MS = 20000, PROGRESS_MS = 10000 };

static struct {
    const char *dir;
    uint64_t seed;
    int64_t seconds, gap_ms, turn_ms, kinds_percent;
    int home, any_faults;
    unsigned replicas;
    bool only_judge;
    goals goals;
} opt = {.seconds = 300,
         .gap_ms = 200,
         .kinds_percent = 25,
         .replicas = 1,
         .goals = {.grants = 20000, .faults = 64}};

static struct {
    arena *a;
    nemesis nemesis;
    pid_t pids[PROCS];
    int lives[PROCS];
    int died; /* workers that ended when nobody told them to */
    history *machine;
    metronome beat;
} me;

int64_t attack_now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* splitmix64 */
uint64_t attack_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

int attack_pick(uint64_t *state, int n)
{
    return (int)(attack_random(state) % (uint64_t)n);
}

static _Noreturn void die(const char *fmt, va_list ap)
{
    fputs("attack: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    _exit(2);
}

_Noreturn void attack_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    die(fmt, ap);
}

/* What the support for tests calls when something cannot be done. */
_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    die(fmt, ap);
}

_Noreturn void test_skip(const char *reason)
{
    attack_die("%s", reason);
}

/* Workers. */

static void start_worker(int proc)
{
    if (me.a->n_lives == LIVES_MAX)
        attack_die("more than %d workers", LIVES_MAX);
    int n = me.a->n_lives++;
    char proc_arg[16], life_arg[16], parent_arg[16];
    snprintf(parent_arg, sizeof parent_arg, "%d", (int)getpid());
    snprintf(proc_arg, sizeof proc_arg, "%d", proc);
    snprintf(life_arg, sizeof life_arg, "%d", n);
    shim_clear(&me.a->panels[proc]);
    me.lives[proc] = n;
    me.a->lives[n] = (life){.proc = proc, .began_us = attack_now_us()};
    pid_t pid = fork();
    if (pid < 0)
        attack_die("cannot fork: %s", strerror(errno));
    if (pid == 0) {
        execl("/proc/self/exe", "attack", "--worker", opt.dir, proc_arg,
              life_arg, parent_arg, NULL);
        _exit(127);
    }
    me.pids[proc] = pid;
}

static void buried(int proc, bool killed)
{
    life *l = &me.a->lives[me.lives[proc]];
    l->ended_us = attack_now_us();
    l->killed = killed;
    me.pids[proc] = 0;
}

static pid_t pid_of(int proc)
{
    return me.pids[proc];
}

static void complain(int proc, int status)
{
    printf("worker %d has ended with status %x\n", proc, (unsigned)status);
    me.died++;
}

static void kill_worker(int proc)
{
    int status;
    kill(me.pids[proc], SIGKILL);
    waitpid(me.pids[proc], &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        complain(proc, status); /* it was dead already */
    buried(proc, true);
    test_pause_ms(50);
    start_worker(proc);
}

/* Has it ended by itself? Then the library has killed it. */
static bool collect(int proc, bool expected)
{
    int status;
    if (!me.pids[proc] || waitpid(me.pids[proc], &status, WNOHANG) == 0)
        return false;
    if (!expected || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        complain(proc, status);
    buried(proc, false);
    return true;
}

static void look_after_workers(void)
{
    for (int i = 0; i < PROCS; i++)
        if (collect(i, false))
            start_worker(i);
}

/* In bounded time, or they are killed and that is a defect. */
static void end_workers(void)
{
    atomic_store(&me.a->stop, true);
    int64_t until_ms = test_now_ms() + END_LIMIT_MS;
    for (int i = 0; i < PROCS; i++) {
        while (!collect(i, true) && test_now_ms() < until_ms)
            test_pause_ms(1);
        if (!me.pids[i])
            continue;
        printf("worker %d does not end\n", i);
        me.died++;
        kill(me.pids[i], SIGKILL);
        waitpid(me.pids[i], NULL, 0);
        buried(i, true);
    }
}

/* Start and end. */

static void start_ways(int server)
{
    nemesis *n = &me.nemesis;
    for (int proc = 0; proc < PROCS; proc++) {
        n->px[proc][server] = proxy_start(n->sv[server]);
        strcpy(me.a->uri[proc][server], proxy_uri(n->px[proc][server]));
    }
}

/* The nodes' clocks are apart, or their tokens would grow in any case. */
static void start_node(int i)
{
    static const int ahead_s[SERVERS] = {0, 480, 1500, 0, 2400, 960};
    nemesis *n = &me.nemesis;
    n->sv[i] = server_start_clocked(
        server_unlocked(SERVER_DURABLE " --lua-time-limit 100"));
    server_set_clock(n->sv[i], ahead_s[i]);
    start_ways(i);
}

/* Who is told addresses by servers goes there without a proxy. */
static void start_home(void)
{
    nemesis *n = &me.nemesis;
    server *masters[MASTERS_MAX];
    n->home = home_start(me.a->home);
    home_masters(n->home, masters);
    n->sv[HOME] = masters[0];
    for (int proc = 0; proc < PROCS; proc++)
        strcpy(me.a->uri[proc][HOME], home_uri(n->home));
    if (me.a->home != ALONE)
        return;
    start_ways(HOME);
    n->cl = server_client(n->sv[HOME], NULL);
}

/* Before they are older than the longest lease they have no vote. */
static void wait_for_nodes(void)
{
    for (int i = 1; i < SERVERS; i++)
        while (server_info(me.nemesis.sv[i], "uptime_in_seconds") <=
               LEASE_MS / 1000)
            test_pause_ms(10);
}

/*
 * A worker may be signalled before it has its handler, soon after another one
 * was killed and started again. What is ignored stays so across fork and exec.
 */
static void spare_workers_that_start(void)
{
    signal(SIGUSR1, SIG_IGN);
}

static void start_all(void)
{
    spare_workers_that_start();
    if (mkdir(opt.dir, 0755) < 0)
        attack_die("cannot make %s: %s", opt.dir, strerror(errno));
    me.a = arena_map(opt.dir, true);
    me.a->seed = opt.seed;
    me.a->turn_ms = opt.turn_ms;
    me.a->kinds_percent = (int)opt.kinds_percent;
    me.a->home = (home_kind)opt.home;
    me.a->min_replicas = opt.home == ALONE ? 0 : opt.replicas;
    me.machine = history_map(opt.dir, MACHINE, true);
    metronome_start(&me.beat, me.machine);
    nemesis *n = &me.nemesis;
    n->a = me.a;
    n->deck_rng = opt.seed;
    n->pid_of = pid_of;
    n->kill_worker = kill_worker;
    start_home();
    for (int i = 1; i < SERVERS; i++)
        start_node(i);
    wait_for_nodes();
    me.a->began_us = attack_now_us();
    for (int i = 0; i < PROCS; i++)
        start_worker(i);
}

static void stop_all(void)
{
    rlock_client_free(me.nemesis.cl);
    for (int i = 0; i < PROCS * SERVERS; i++)
        proxy_stop(me.nemesis.px[i / SERVERS][i % SERVERS]);
    for (int i = 1; i < SERVERS; i++)
        server_stop(me.nemesis.sv[i]);
    home_stop(me.nemesis.home);
    metronome_stop(&me.beat);
    history_unmap(me.machine);
}

static void tell_progress(void)
{
    printf("%4d s: %llu grants, %llu of them on loops, %llu in lines, %d "
           "faults\n",
           (int)((attack_now_us() - me.a->began_us) / 1000000),
           (unsigned long long)arena_grants(me.a),
           (unsigned long long)arena_loop_grants(me.a),
           (unsigned long long)arena_kinds_grants(me.a), me.a->n_faults);
    fflush(stdout);
}

/* That the proxies have counted. */
static void forget_requests(void)
{
    for (int i = 0; i < PROCS * SERVERS; i++)
        if (me.nemesis.px[i / SERVERS][i % SERVERS])
            proxy_forget(me.nemesis.px[i / SERVERS][i % SERVERS]);
}

static void fight(void)
{
    int64_t until_us = me.a->began_us + opt.seconds * 1000000;
    int64_t next_us = me.a->began_us;
    while (attack_now_us() < until_us && !goals_reached(&opt.goals, me.a)) {
        test_pause_ms((int)opt.gap_ms);
        if (me.a->n_faults < FAULTS_MAX)
            nemesis_strike(&me.nemesis);
        look_after_workers();
        forget_requests();
        if (attack_now_us() > next_us) {
            tell_progress();
            next_us += PROGRESS_MS * 1000;
        }
    }
    me.a->ended_us = attack_now_us();
}

static int judge_all(int left_over, int leaked)
{
    verdict *v = judge(opt.dir, me.a);
    v->left_over = left_over;
    v->leaked = leaked;
    v->died = me.died;
    bool good = report(opt.dir, me.a, v, &opt.goals);
    verdict_free(v);
    return good ? 0 : 1;
}

static int fight_and_judge(void)
{
    printf("seed %llu\n", (unsigned long long)opt.seed);
    start_all();
    fight();
    end_workers();
    tell_progress();
    int left_over = keys_left(&me.nemesis);
    int leaked = permits_leaked(&me.nemesis);
    stop_all();
    return judge_all(left_over, leaked);
}

static int64_t number(const char *text)
{
    char *end;
    long long x = strtoll(text, &end, 10);
    if (*end || end == text || x < 0)
        attack_die("\"%s\" is no number", text);
    return x;
}

static void read_goal(int c)
{
    switch (c) {
    case 't':
        opt.seconds = number(optarg);
        break;
    case 'g':
        opt.goals.grants = (uint64_t)number(optarg);
        break;
    case 'f':
        opt.goals.faults = (int)number(optarg);
        break;
    default:
        exit(2);
    }
}

static void read_option(int c)
{
    switch (c) {
    case 0: /* a flag, which is set */
        break;
    case 's':
        opt.seed = (uint64_t)number(optarg);
        break;
    case 'p':
        opt.gap_ms = number(optarg);
        break;
    case 'u':
        opt.turn_ms = number(optarg);
        break;
    case 'i':
        opt.kinds_percent = number(optarg);
        break;
    case 'r':
        opt.replicas = (unsigned)number(optarg);
        break;
    case 'j':
        opt.only_judge = true;
        break;
    case 'k':
        if (!nemesis_choose(&me.nemesis, optarg))
            attack_die("there is no fault \"%s\"", optarg);
        break;
    case 'o':
        opt.dir = optarg;
        break;
    default:
        read_goal(c);
    }
}

static void read_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"seed", required_argument, NULL, 's'},
        {"seconds", required_argument, NULL, 't'},
        {"grants", required_argument, NULL, 'g'},
        {"faults", required_argument, NULL, 'f'},
        {"any", no_argument, &opt.any_faults, true},
        {"gap", required_argument, NULL, 'p'},
        {"turn", required_argument, NULL, 'u'},
        {"kinds", required_argument, NULL, 'i'},
        {"sentinel", no_argument, &opt.home, WATCHED},
        {"cluster", no_argument, &opt.home, CLUSTERED},
        {"replicas", required_argument, NULL, 'r'},
        {"judge", no_argument, NULL, 'j'},
        {"only", required_argument, NULL, 'k'},
        {"out", required_argument, NULL, 'o'},
        {NULL, 0, NULL, 0}};
    opt.seed = (uint64_t)time(NULL);
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        read_option(c);
    if (!opt.dir || optind < argc)
        attack_die("which directory? --out DIR");
    if (me.nemesis.n_kinds == 0)
        nemesis_choose_all(&me.nemesis, (home_kind)opt.home);
    for (int i = 0; i < me.nemesis.n_kinds; i++)
        if (!nemesis_fits(me.nemesis.kinds[i], (home_kind)opt.home))
            attack_die("\"%s\" makes no sense there",
                       nemesis_kinds[me.nemesis.kinds[i]].name);
    opt.goals.kinds = opt.any_faults ? 0 : me.nemesis.n_kinds;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argv[2], atoi(argv[3]), atoi(argv[4]),
                           atoi(argv[5]));
    read_options(argc, argv);
    if (!opt.only_judge)
        return fight_and_judge();
    me.a = arena_map(opt.dir, false);
    return judge_all(0, 0);
}
