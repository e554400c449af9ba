/*
 * A runner for tests, for where Criterion cannot be: each test runs in a
 * process of its own, as many at a time as there are processors, and must
 * return from its function within its limit to have passed.
 *
 *   --filter=<suite>/<name>   only these; a pattern as for file names
 *   --list                    says their names, and runs none
 *   --tap=<file>              also writes the results there
 *   --jobs=<n>                so many at a time
 *
 * The runner itself has one thread: ThreadSanitizer does not let a process
 * start threads that was forked from one that had several.
 */
#ifdef RLOCK_TEST_PLAIN

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "remains.h"
#include "test.h"

#ifndef FNM_EXTMATCH
#define FNM_EXTMATCH 0 /* musl knows the plain patterns only */
#endif

/* What the test's process tells the runner; shared memory. */
typedef struct result {
    atomic_int failed, skipped, returned;
    char text[2048]; /* of the failure, or why it was skipped */
} result;

typedef enum state { WAITING, RUNNING, PASSED, FAILED, SKIPPED } state;

typedef struct test {
    const char *suite, *name;
    test_fn *fn;
    state state;
    pid_t pid;
    int output; /* a file: what the test prints is shown if it fails */
    int64_t began_ms;
    bool killed, crashed;
    double took_s;
    result *result;
} test;

/* It grows seldom: AddressSanitizer keeps each block that was given up, and all
   that the runner has is copied for each test. */
static test *tests;
static int tests_len;
static result *own_result; /* in the test's process */
static pid_t own_pid;

/* The test's side. */

void test_register(const char *suite, const char *name, test_fn *fn)
{
    bool full = (tests_len & (tests_len - 1)) == 0; /* 0, 1, 2, 4, 8 */
    if (full)
        tests = realloc(tests, (size_t)(2 * tests_len + 1) * sizeof *tests);
    if (!tests)
        abort();
    tests[tests_len++] =
        (test){.suite = suite, .name = name, .fn = fn, .output = -1};
}

/* Only the first failure is told; other threads wait for the end. */
_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
{
    char text[sizeof own_result->text];
    va_list ap;
    int n = snprintf(text, sizeof text, "%s:%d: ", file, line);
    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    if (getpid() != own_pid) {
        fprintf(stderr, "%s\n", text);
        _exit(1);
    }
    while (atomic_exchange(&own_result->failed, 1))
        pause();
    test_failed();
    memcpy(own_result->text, text, sizeof text);
    /* Past the sanitizers, which would ask for the threads that are left. */
    syscall(SYS_exit_group, 1);
    abort(); /* not reached */
}

_Noreturn void test_skip(const char *reason)
{
    if (getpid() == own_pid) {
        snprintf(own_result->text, sizeof own_result->text, "%s", reason);
        atomic_store(&own_result->skipped, 1);
    }
    _exit(0);
}

static remains remains_of_now(void)
{
    return remains_now ? remains_now() : (remains){.blocks = 0};
}

/* What the test has had the library make is to be freed again; and no mutex is to
   be ended that was never begun. */
static void expect_no_more_than(remains before)
{
    remains now = remains_of_now();
    if (now.blocks > before.blocks || now.objects != before.objects ||
        now.descriptors > before.descriptors)
        FAIL("left behind: %ld blocks of memory (the last of %zu bytes), %ld "
             "mutexes or conditions, %ld descriptors",
             now.blocks - before.blocks, now.last, now.objects - before.objects,
             now.descriptors - before.descriptors);
}

/*
 * exit(), not _exit(): the sanitizers look for leaks and set the status then.
 * A process group of its own, so that what the test forked can be killed too.
 */
static _Noreturn void run_here(test *t, pid_t runner, const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != runner)
        _exit(1);
    setpgid(0, 0);
    dup2(t->output, 1);
    dup2(t->output, 2);
    setvbuf(stdout, NULL, _IOLBF, 0); /* test_fail() does not flush */
    sigprocmask(SIG_SETMASK, mask, NULL);
    own_result = t->result;
    own_pid = getpid();
    test_begin(t->suite, t->name);
    remains before = remains_of_now();
    t->fn();
    expect_no_more_than(before);
    atomic_store(&own_result->returned, 1);
    exit(0);
}

/* The runner's side. */

static void start(test *t, const sigset_t *mask)
{
    t->output = memfd_create("output", MFD_CLOEXEC);
    t->result = mmap(NULL, sizeof *t->result, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t->output < 0 || t->result == MAP_FAILED) {
        perror("cannot start a test");
        exit(2);
    }
    fflush(NULL);
    t->began_ms = test_now_ms();
    pid_t runner = getpid();
    t->pid = fork();
    if (t->pid == 0)
        run_here(t, runner, mask);
    if (t->pid < 0) {
        perror("fork");
        exit(2);
    }
    setpgid(t->pid, t->pid); /* both do it: whoever comes first */
    t->state = RUNNING;
}

/* The reason of a failure; NULL for passed and skipped tests. */
static const char *verdict(test *t, int status, char *buf, size_t size)
{
    if (t->killed)
        snprintf(buf, size, "not done after %d s", TEST_LIMIT_S);
    else if (atomic_load(&t->result->failed))
        return t->result->text;
    else if (t->crashed)
        snprintf(buf, size, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        snprintf(buf, size, "exit status %d", WEXITSTATUS(status));
    else if (atomic_load(&t->result->returned) ||
             atomic_load(&t->result->skipped))
        return NULL;
    else
        snprintf(buf, size, "exited before it returned");
    return buf;
}

static void show_output(test *t)
{
    char chunk[4096];
    ssize_t n;
    lseek(t->output, 0, SEEK_SET);
    while ((n = read(t->output, chunk, sizeof chunk)) > 0)
        fwrite(chunk, 1, (size_t)n, stderr);
}

/* In Criterion's words, as far as tap.sh reads them. */
static void write_failure(FILE *tap, const test *t, const char *why)
{
    const char *how = t->killed    ? " timed out"
                      : t->crashed ? " unexpected signal"
                                   : "";
    fprintf(tap, "not ok - %s::%s%s (%.2fs)\n", t->suite, t->name, how,
            t->took_s);
    for (const char *p = why; *p;) {
        size_t n = strcspn(p, "\n");
        fprintf(tap, "# %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static void report(test *t, const char *why, FILE *tap)
{
    if (why) {
        t->state = FAILED;
        write_failure(tap, t, why);
        fprintf(stderr, "[FAIL] %s::%s (%.2fs): %s\n", t->suite, t->name,
                t->took_s, why);
        show_output(t);
    } else if (atomic_load(&t->result->skipped)) {
        t->state = SKIPPED;
        fprintf(tap, "ok - %s::%s  # SKIP %s\n", t->suite, t->name,
                t->result->text);
        fprintf(stderr, "[SKIP] %s::%s: %s\n", t->suite, t->name,
                t->result->text);
    } else {
        t->state = PASSED;
        fprintf(tap, "ok - %s::%s  (%.2fs)\n", t->suite, t->name, t->took_s);
    }
    fflush(tap);
}

/*
 * WNOWAIT first: while it is a zombie its number, and so that of its process
 * group, belongs to nobody else, and what the test left running can be killed.
 */
static bool reap(test *t, FILE *tap)
{
    siginfo_t info = {0};
    char why[200];
    int status = 0;
    int flags = WEXITED | WNOHANG | WNOWAIT;
    if (waitid(P_PID, (id_t)t->pid, &info, flags) < 0 || info.si_pid == 0)
        return false;
    kill(-t->pid, SIGKILL);
    waitpid(t->pid, &status, 0);
    t->crashed = WIFSIGNALED(status) && !t->killed;
    t->took_s = (double)(test_now_ms() - t->began_ms) / 1000;
    report(t, verdict(t, status, why, sizeof why), tap);
    munmap(t->result, sizeof *t->result);
    close(t->output);
    return true;
}

/* Reaps what has ended and kills what is over its limit; how many ended? */
static int look_after(FILE *tap)
{
    int ended = 0;
    for (test *t = tests; t < tests + tests_len; t++) {
        if (t->state != RUNNING)
            continue;
        if (reap(t, tap)) {
            ended++;
        } else if (!t->killed &&
                   test_now_ms() - t->began_ms > TEST_LIMIT_S * 1000) {
            t->killed = true;
            kill(-t->pid, SIGKILL);
        }
    }
    return ended;
}

/* SIGCHLD is blocked, and so waits for us here. */
static void run_all(int jobs, FILE *tap)
{
    const struct timespec tick = {0, 200000000};
    sigset_t child, old;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &old);
    int next = 0, running = 0;
    while (next < tests_len || running) {
        while (next < tests_len && running < jobs) {
            start(&tests[next++], &old);
            running++;
        }
        sigtimedwait(&child, NULL, &tick);
        running -= look_after(tap);
    }
}

static int by_name(const void *a, const void *b)
{
    const test *x = a, *y = b;
    int order = strcmp(x->suite, y->suite);
    return order ? order : strcmp(x->name, y->name);
}

static void keep_matching(const char *pattern)
{
    int kept = 0;
    for (int i = 0; i < tests_len; i++) {
        char full[300];
        snprintf(full, sizeof full, "%s/%s", tests[i].suite, tests[i].name);
        if (fnmatch(pattern, full, FNM_EXTMATCH) == 0)
            tests[kept++] = tests[i];
    }
    tests_len = kept;
}

static int count(state wanted)
{
    int n = 0;
    for (int i = 0; i < tests_len; i++)
        n += tests[i].state == wanted;
    return n;
}

static int summary(void)
{
    printf("%d passed, %d failed", count(PASSED), count(FAILED));
    if (count(SKIPPED))
        printf(", %d skipped", count(SKIPPED));
    printf("\n");
    return count(FAILED) ? 1 : 0;
}

/* As many as this process may use at a time. */
static int processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

typedef struct args {
    const char *tap_path;
    int jobs;
    bool list;
} args;

static int parse_args(int argc, char **argv, args *a)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--tap=", 6) == 0)
            a->tap_path = argv[i] + 6;
        else if (strncmp(argv[i], "--filter=", 9) == 0)
            keep_matching(argv[i] + 9);
        else if (strncmp(argv[i], "--jobs=", 7) == 0)
            a->jobs = atoi(argv[i] + 7);
        else if (strcmp(argv[i], "--list") == 0)
            a->list = true;
        else
            return -1;
    }
    return a->jobs < 1 ? -1 : 0;
}

static int list_all(void)
{
    for (int i = 0; i < tests_len; i++)
        printf("%s: %s\n", tests[i].suite, tests[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    args a = {.tap_path = "/dev/null", .jobs = processors()};
    if (parse_args(argc, argv, &a) < 0) {
        fprintf(stderr,
                "usage: %s [--list] [--tap=file] [--filter=suite/name] "
                "[--jobs=n]\n",
                argv[0]);
        return 2;
    }
    if (tests_len)
        qsort(tests, (size_t)tests_len, sizeof *tests, by_name);
    if (a.list)
        return list_all();
    FILE *tap = fopen(a.tap_path, "we");
    if (!tap) {
        perror(a.tap_path);
        return 2;
    }
    fprintf(tap, "TAP version 13\n1..%d\n", tests_len);
    run_all(a.jobs, tap);
    fclose(tap);
    return summary();
}

#endif
