/*
 * Time, threads, and the way a test ends. What differs between Criterion and
 * the plain runner is at the end; the other half of it is in plain.c.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct test_thread {
    intptr_t (*fn)(void *arg);
    void *arg;
    intptr_t result;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool done; /* guarded by mutex */
};

/* --- the log that tap.sh reads -------------------------------------------- */

static char running[300]; /* the test of this process */

/*
 * The kernel's word: a program may have clocks of its own (shim.h). One write
 * for each line, as the witness and other tests write there, too.
 */
static int64_t true_us(void)
{
    struct timespec ts;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

__attribute__((format(printf, 1, 2))) static void note(const char *fmt, ...)
{
    const char *path = getenv("RLOCK_TEST_LOG");
    char line[400];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    int fd =
        path && *running ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (fd < 0)
        return;
    if (write(fd, line, (size_t)n) != n)
        perror(path);
    close(fd);
}

void test_begin(const char *suite, const char *name)
{
    snprintf(running, sizeof running, "%s::%s", suite, name);
    note("began %lld %d %s\n", (long long)true_us(), TEST_LEASE_MS, running);
}

void test_lease(int64_t ms)
{
    note("lease %lld %s\n", (long long)ms, running);
}

/* --- what sanitizers ask for ----------------------------------------------- */

static volatile sig_atomic_t has_failed;

/*
 * A test that fails leaves in the midst of things, and what it has left there
 * is no finding of its own: it would count as one also if the test is run
 * again, and passes.
 */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return has_failed;
}

/* A look-up that nobody waits for any more, while the process ends. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:__res_context_send\n";
}

/*
 * OpenSSL is not built for TSan, which sees its locks and not its atomics: what
 * one handshake has worked out of an authority's certificate, once, the next one
 * reads behind such a flag.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libcrypto.so\n";
}

void test_failed(void)
{
    has_failed = 1;
    note("failed %lld %s\n", (long long)true_us(), running);
}

int test_slowness(void)
{
    const char *said = getenv("RLOCK_TEST_SLOWNESS");
    return said ? atoi(said) : 1;
}

int64_t test_clock_us(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t test_now_us(void)
{
    return test_clock_us(CLOCK_MONOTONIC);
}

int64_t test_since_ms(int64_t began_ms)
{
    return test_now_ms() - began_ms;
}

int64_t test_now_ms(void)
{
    return test_now_us() / 1000;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t test_median(int64_t time[], size_t n)
{
    qsort(time, n, sizeof *time, by_size);
    return time[n / 2];
}

void test_pause_ms(int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    /* An absolute time, so that signals do not make the pause longer. */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) ==
           EINTR)
        ;
}

static void *run_thread(void *arg)
{
    test_thread *t = arg;
    intptr_t result = t->fn(t->arg);
    pthread_mutex_lock(&t->mutex);
    t->result = result;
    t->done = true;
    pthread_cond_signal(&t->ended);
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

test_thread *test_spawn(intptr_t (*fn)(void *arg), void *arg)
{
    test_thread *t = calloc(1, sizeof *t);
    EXPECT(t);
    t->fn = fn;
    t->arg = arg;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->ended, &attr);
    pthread_condattr_destroy(&attr);
    EXPECT_INT(pthread_create(&t->thread, NULL, run_thread, t), 0);
    return t;
}

/* Not pthread_timedjoin_np(): older ThreadSanitizers do not know it. */
static bool wait_done(test_thread *t, int limit_s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit_s;
    int err = 0;
    pthread_mutex_lock(&t->mutex);
    while (!t->done && err == 0)
        err = pthread_cond_timedwait(&t->ended, &t->mutex, &until);
    bool done = t->done;
    pthread_mutex_unlock(&t->mutex);
    return done;
}

intptr_t test_join(test_thread *t)
{
    if (!wait_done(t, TEST_LIMIT_S / 2))
        FAIL("a thread has not ended within %d s", TEST_LIMIT_S / 2);
    pthread_join(t->thread, NULL);
    intptr_t result = t->result;
    pthread_cond_destroy(&t->ended);
    pthread_mutex_destroy(&t->mutex);
    free(t);
    return result;
}

bool test_done(test_thread *t)
{
    pthread_mutex_lock(&t->mutex);
    bool done = t->done;
    pthread_mutex_unlock(&t->mutex);
    return done;
}

#ifndef RLOCK_TEST_PLAIN

/* Criterion executes the program anew for each test, so this is its pid. */
static pid_t test_pid;

__attribute__((constructor)) static void remember_pid(void)
{
    test_pid = getpid();
}

/*
 * Criterion ends a test with longjmp(), which only the test's own thread may
 * do. On another thread the process ends, which counts as failed, too, and as
 * no crash.
 */
_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (getpid() == test_pid)
        test_failed();
    if (gettid() == test_pid) {
        struct criterion_assert_stats stat = {
            .message = text, .file = file, .line = (unsigned)line};
        criterion_send_assert(&stat);
        criterion_abort_test();
    }
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    _exit(1);
}

_Noreturn void test_skip(const char *reason)
{
    criterion_skip_test("%s", reason);
    abort(); /* not reached; the header does not say so */
}

#endif
