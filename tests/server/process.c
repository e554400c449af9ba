/*
 * The library as a guest in somebody else's process: fork, exec, exit,
 * signals, cancellation, threads, output, random numbers, dlclose.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proxy.h"

enum { LONG_MS = 20000 };

#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif
#ifndef HAS_TSAN
#define HAS_TSAN 0
#endif

#if HAS_TSAN || defined(__SANITIZE_ADDRESS__)
enum { FORKS = 30 };
#else
enum { FORKS = 150 };
#endif

/* A server, a client, and a lock that is held by the test's thread. */
typedef struct rig {
    server *sv;
    proxy *px; /* or NULL */
    rlock_client *cl;
    rlock *lk;
} rig;

static rig rig_start(bool with_proxy, int64_t command_timeout_ms)
{
    rig r = {.sv = server_start(NULL)};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.command_timeout_ms = command_timeout_ms;
    if (with_proxy) {
        r.px = proxy_start(r.sv);
        opts.uri = proxy_uri(r.px);
    }
    r.cl = server_client(r.sv, &opts);
    r.lk = test_lock(r.cl, "main");
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    return r;
}

static void rig_stop(rig *r)
{
    rlock_free(r->lk);
    rlock_client_free(r->cl);
    if (r->px)
        proxy_stop(r->px);
    server_stop(r->sv);
}

static rlock_stats stats_of(rlock_client *cl)
{
    rlock_stats s;
    EXPECT_STATUS(rlock_client_stats(cl, &s), RLOCK_OK);
    return s;
}

/* --- fork ----------------------------------------------------------------- */

/* A child that hangs is killed by its alarm. */
static pid_t fork_child(void)
{
    fflush(NULL);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(TEST_LIMIT_S / 2);
    }
    return child;
}

static void expect_exit(pid_t child, int wanted)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        EXPECT_INT(errno, EINTR);
    if (WIFSIGNALED(status))
        FAIL("the child was killed by signal %d", WTERMSIG(status));
    EXPECT_INT(WEXITSTATUS(status), wanted);
}

static void expect_forked(rlock_client *cl, rlock *lk)
{
    rlock *other = NULL;
    rlock_stats stats;
    rlock_holder holder;
    bool locked;
    int64_t ttl;
    EXPECT_STATUS(rlock_new(cl, "x", &other), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_new_n(cl, "x", 1, &other), RLOCK_EFORKED);
    EXPECT(!other);
    EXPECT_STATUS(rlock_client_ping(cl), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_client_stats(cl, &stats), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_acquire(lk, 10, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_extend(lk, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_force_unlock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_is_locked(lk, &locked), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_ttl(lk, &ttl), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_holder_info(lk, &holder), RLOCK_EFORKED);
    EXPECT_INT(rlock_last_error()->status, RLOCK_EFORKED);
    EXPECT_CONTAINS(rlock_last_error()->message, "fork");
    rlock_cancel(lk);
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_INT(rlock_valid_ms(lk), 0);
    EXPECT(rlock_token(lk) == 0);
}

TEST(process, fault_084_in_a_child_every_call_answers_forked_and_sends_nothing)
{
    rig r = rig_start(true, 0);
    EXPECT_STATUS(rlock_client_ping(r.cl), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    int sent = proxy_count(r.px, "");
    pid_t child = fork_child();
    if (child == 0) {
        expect_forked(r.cl, r.lk);
        rlock_free(r.lk);
        rlock_client_free(r.cl);
        _exit(0);
    }
    expect_exit(child, 0);
    EXPECT_INT(proxy_count(r.px, ""), sent);
    rig_stop(&r);
}

/* The child frees what it inherited. */
static void end_a_child(rig *r)
{
    pid_t child = fork_child();
    if (child == 0) {
        rlock_free(r->lk);
        rlock_client_free(r->cl);
        _exit(0);
    }
    expect_exit(child, 0);
}

TEST(process, fault_084_a_childs_end_disturbs_neither_lock_nor_connections)
{
    rig r = rig_start(false, 0);
    long long connections = server_info(r.sv, "total_connections_received");
    for (int i = 0; i < 6; i++) {
        if (i > 0) /* after the control */
            end_a_child(&r);
        EXPECT(rlock_is_held(r.lk));
        EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_client_ping(r.cl), RLOCK_OK);
    }
    EXPECT_STR(server_str(r.sv, "EVAL %s 1 main",
                          "return redis.call('hvals', KEYS[1])[1]"),
               "7");
    EXPECT_INT(server_info(r.sv, "total_connections_received"), connections);
    EXPECT_INT(stats_of(r.cl).reconnects, 0);
    for (int i = 0; i < 7; i++)
        EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_INT(server_int(r.sv, "EXISTS main"), 0);
    rig_stop(&r);
}

static int count_sockets(void)
{
    char path[300], target[64];
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    EXPECT(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t len = readlink(path, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        n += strncmp(target, "socket:", 7) == 0;
    }
    closedir(dir);
    return n;
}

TEST(process, fault_084_a_child_that_frees_the_client_closes_its_copies)
{
    server *sv = server_start(NULL);
    int before = count_sockets();
    rlock_client *cl = server_client(sv, NULL);
    rlock *lk = test_lock(cl, "main");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT(count_sockets() > before);
    pid_t child = fork_child();
    if (child == 0) {
        rlock_client_free(cl);
        rlock_free(lk);
        EXPECT_INT(count_sockets(), before);
        _exit(0);
    }
    expect_exit(child, 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    EXPECT_INT(count_sockets(), before); /* the control: the owner's own */
    server_stop(sv);
}

/* Only with the leak sanitizer. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

/*
 * To stderr, for among the reports its warning that the parent's threads are
 * missing would count as a finding.
 */
static bool has_leaks(void)
{
    __sanitizer_set_report_fd((void *)2);
    return __lsan_do_recoverable_leak_check() != 0;
}

static int status_of_freeing_child(rig *r)
{
    int status;
    pid_t child = fork_child();
    if (child == 0) {
        rlock_free(r->lk);
        rlock_client_free(r->cl);
        memset(r, 0, sizeof *r);
        _exit(has_leaks() ? 3 : 0);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    return status;
}

/* What a thread was changing at the fork is not freed: so when all sleep. */
TEST(process, fault_084_a_child_that_frees_all_leaks_nothing)
{
    if (!__lsan_do_recoverable_leak_check)
        SKIP("needs the leak sanitizer");
    rig r = rig_start(false, 0);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
    EXPECT(!has_leaks()); /* the control */
    r = rig_start(false, 0);
    EVENTUALLY(LONG_MS, status_of_freeing_child(&r) == 0);
    rig_stop(&r);
}

/* A client that was made while main is held by another. */
static void use_own_client(rlock_client *cl)
{
    rlock *lk = test_lock(cl, "main"), *own = test_lock(cl, "own");
    rlock_holder holder;
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(own), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(own, &holder), RLOCK_OK);
    EXPECT_INT(holder.pid, getpid());
    EXPECT_STATUS(rlock_unlock(own), RLOCK_OK);
    rlock_free(own);
    rlock_free(lk);
}

TEST(process, fault_084_a_child_can_make_its_own_client)
{
#if HAS_TSAN
    SKIP("ThreadSanitizer starts no threads in a child of a process that "
         "has several");
#endif
    rig r = rig_start(false, 0);
    uint64_t token = rlock_token(r.lk);
    rlock_client *second = server_client(r.sv, NULL);
    use_own_client(second); /* the control */
    rlock_client_free(second);
    pid_t child = fork_child();
    if (child == 0) {
        rlock_client *cl = server_client(r.sv, NULL);
        rlock *lk = test_lock(cl, "main");
        use_own_client(cl);
        EXPECT_STATUS(rlock_acquire(lk, LONG_MS, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT(rlock_token(lk) > token);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        expect_forked(r.cl, r.lk);
        rlock_free(lk);
        rlock_client_free(cl);
        rlock_free(r.lk);
        rlock_client_free(r.cl);
        _exit(0);
    }
    EVENTUALLY(LONG_MS, server_int(r.sv, "EXISTS %s", "rlock_queue:{main}"));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    expect_exit(child, 0);
    rig_stop(&r);
}

typedef struct load {
    rlock_client *cl;
    atomic_bool stop;
} load;

static intptr_t lock_and_wait(void *arg)
{
    load *l = arg;
    static const char *const names[] = {"a", "b"};
    rlock *lk[2];
    for (int i = 0; i < 2; i++)
        lk[i] = test_lock(l->cl, names[i]);
    for (int i = 0; !atomic_load(&l->stop); i++) {
        EXPECT_STATUS(rlock_lock(lk[i % 2]), RLOCK_OK);
        EXPECT_STATUS(rlock_acquire(lk[i % 2], 0, 5000), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk[i % 2]), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk[i % 2]), RLOCK_OK);
    }
    rlock_free(lk[0]);
    rlock_free(lk[1]);
    return 0;
}

/* Threads of the parent are anywhere in the library when it forks. */
TEST(process, fault_084_a_child_can_free_what_other_threads_were_using)
{
    rig r = rig_start(true, LONG_MS);
    load l = {.cl = r.cl};
    test_thread *threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = test_spawn(lock_and_wait, &l);
    EVENTUALLY(LONG_MS, stats_of(r.cl).acquires > 20); /* the control */
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork_child();
        if (child == 0) {
            EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_EFORKED);
            rlock_free(r.lk);
            rlock_client_free(r.cl);
            _exit(0);
        }
        expect_exit(child, 0);
    }
    atomic_store(&l.stop, true);
    for (int i = 0; i < 4; i++)
        test_join(threads[i]);
    EXPECT_INT(stats_of(r.cl).acquires_failed, 0);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

/* --- exec ----------------------------------------------------------------- */

/* Descriptors that a program which this one executes finds open. */
static int count_inherited(void)
{
    char line[64];
    int n = 0;
    FILE *f = popen("ls /proc/self/fd", "re");
    EXPECT(f);
    while (fgets(line, sizeof line, f))
        n++;
    EXPECT_INT(pclose(f), 0);
    return n;
}

static redisContext *connect_plainly(void *path)
{
    return redisConnectUnix(path);
}

static intptr_t lock_and_unlock(void *arg)
{
    rlock *lk = arg;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    return 0;
}

/* Every connection, and the doorbell with its descriptor to wake it. */
static void expect_close_on_exec(server *sv, const rlock_options *opts)
{
    int before = count_inherited();
    rlock_client *cl = server_client(sv, opts);
    rlock *lk = test_lock(cl, "main");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    test_thread *t = test_spawn(lock_and_unlock, lk);
    EVENTUALLY(LONG_MS, server_int(sv, "EXISTS %s", "rlock_queue:{main}") == 1);
    EXPECT_INT(count_inherited(), before);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    test_join(t);
    rlock_free(lk);
    rlock_client_free(cl);
}

TEST(process, no_descriptor_is_inherited_by_exec)
{
    server *sv = server_start_tcp(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[64];
    expect_close_on_exec(sv, &opts);
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", server_port(sv));
    opts.uri = uri;
    expect_close_on_exec(sv, &opts);
    server_stop(sv);
}

TEST(process, no_descriptor_of_the_callback_is_inherited_by_exec)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = connect_plainly;
    opts.connect_arg = (void *)server_path(sv);
    expect_close_on_exec(sv, &opts);
    server_stop(sv);
}

/* --- the end of the process ------------------------------------------------
 */

static rlock_client *last_client; /* what is left, for the leak sanitizer */
static rlock *last_lock, *last_waiter;
static test_thread *volatile last_thread;

static intptr_t wait_for_ever(void *arg)
{
    if (rlock_lock(arg) == RLOCK_OK)
        rlock_unlock(arg);
    return 0;
}

static void tidy_up(void)
{
    if (rlock_unlock(last_lock) != RLOCK_OK)
        _exit(4);
    test_join(last_thread);
    rlock_free(last_lock);
    rlock_free(last_waiter);
    rlock_client_free(last_client);
}

/*
 * The program executed anew, before its main(): exits with locks held, a
 * thread that waits, and all the library's threads running; or tidies up
 * before.
 */
__attribute__((constructor)) static void exit_with_locks_held(void)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *second;
    opts.uri = getenv("RLOCK_TEST_EXIT");
    if (!opts.uri)
        return;
    if (rlock_client_new(&opts, &last_client) != RLOCK_OK ||
        rlock_client_new(&opts, &second) != RLOCK_OK ||
        rlock_new(last_client, "held", &last_lock) != RLOCK_OK ||
        rlock_new(last_client, "held", &last_waiter) != RLOCK_OK ||
        rlock_lock(last_lock) != RLOCK_OK)
        _exit(2);
    last_thread = test_spawn(wait_for_ever, last_waiter);
    while (stats_of(last_client).waiting_now == 0)
        test_pause_ms(1);
    rlock_client_free(second);
    if (getenv("RLOCK_TEST_TIDY"))
        tidy_up();
    exit(0);
}

static void run_and_exit(server *sv, bool tidy)
{
    char exe[400];
    ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
    EXPECT(len > 0);
    exe[len] = '\0';
    pid_t child = fork_child();
    if (child == 0) {
        setenv("RLOCK_TEST_EXIT", server_uri(sv), 1);
        if (tidy)
            setenv("RLOCK_TEST_TIDY", "1", 1);
        execl(exe, exe, (char *)NULL);
        _exit(3);
    }
    expect_exit(child, 0);
}

TEST(process, fault_094_a_program_that_holds_locks_exits_cleanly)
{
    server *sv = server_start(NULL);
    run_and_exit(sv, true); /* the control */
    EXPECT_INT(server_int(sv, "EXISTS held"), 0);
    run_and_exit(sv, false);
    EXPECT_INT(server_int(sv, "EXISTS held"), 1);
    EXPECT_BETWEEN(server_int(sv, "PTTL held"), 1, 30000);
    server_stop(sv);
}

/* --- signals ---------------------------------------------------------------
 */

/* Death by SIGPIPE would be the failure. */
static void use_dead_connections(rlock_client *cl, server *sv)
{
    rlock *lk = test_lock(cl, "main"), *other = test_lock(cl, "other");
    for (int i = 0; i < 5; i++) {
        rlock_status s = rlock_acquire(lk, LONG_MS, RLOCK_WATCHDOG);
        EXPECT(s == RLOCK_OK || s == RLOCK_LOST);
        EXPECT_STATUS(rlock_client_ping(cl), RLOCK_OK);
        server_restart(sv);
        s = rlock_trylock(other);
        EXPECT(s == RLOCK_OK || s == RLOCK_EIO || s == RLOCK_LOST);
        rlock_unlock(lk);
        rlock_unlock(other);
    }
    server_kill(sv);
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_trylock(other), RLOCK_EIO);
        EXPECT_STATUS(rlock_client_ping(cl), RLOCK_EIO);
    }
    rlock_free(lk);
    rlock_free(other);
}

static void survive_the_server(server *sv, const rlock_options *opts)
{
    rlock_options own = *opts;
    own.watchdog_lease_ms = 300;
    EXPECT(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    rlock_client *cl = server_client(sv, &own);
    use_dead_connections(cl, sv);
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(process, no_sigpipe_when_a_server_on_a_unix_socket_goes_away)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    survive_the_server(server_start(NULL), &opts);
}

TEST(process, no_sigpipe_when_a_server_on_tcp_goes_away)
{
    server *sv = server_start_tcp(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[64];
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", server_port(sv));
    opts.uri = uri;
    survive_the_server(sv, &opts);
}

TEST(process, no_sigpipe_on_a_connection_of_the_callback)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = connect_plainly;
    opts.connect_arg = (void *)server_path(sv);
    survive_the_server(sv, &opts);
}

typedef struct signals {
    struct sigaction action[NSIG];
    sigset_t mask, pending;
} signals;

static void read_signals(signals *s)
{
    memset(s, 0, sizeof *s);
    for (int i = 1; i < NSIG; i++)
        sigaction(i, NULL, &s->action[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    sigpending(&s->pending);
}

static void expect_same_signals(const signals *before)
{
    signals now;
    read_signals(&now);
    for (int i = 1; i < NSIG; i++) {
        if (now.action[i].sa_handler != before->action[i].sa_handler ||
            now.action[i].sa_flags != before->action[i].sa_flags ||
            sigismember(&now.mask, i) != sigismember(&before->mask, i) ||
            sigismember(&now.pending, i) != sigismember(&before->pending, i))
            FAIL("signal %d is not as it was", i);
    }
}

TEST(process, signal_dispositions_and_mask_are_left_alone)
{
    signals before;
    sigset_t some;
    server *sv = server_start(NULL);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    EXPECT_INT(pthread_sigmask(SIG_BLOCK, &some, NULL), 0);
    signal(SIGPIPE, SIG_DFL);
    server_cmd(sv, "PING");
    read_signals(&before);
    rlock_client *cl = server_client(sv, NULL);
    expect_same_signals(&before);
    rlock *lk = test_lock(cl, "main");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    test_thread *t = test_spawn(lock_and_unlock, lk);
    EVENTUALLY(LONG_MS, stats_of(cl).waiting_now == 1);
    expect_same_signals(&before);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    test_join(t);
    server_kill(sv);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    expect_same_signals(&before);
    rlock_free(lk);
    rlock_client_free(cl);
    expect_same_signals(&before);
    server_stop(sv);
}

static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
    (void)sig;
    ticks = ticks + 1;
}

/* SIGALRM every so often, and system calls are not restarted after it. */
static void storm(int every_us)
{
    struct sigaction act = {.sa_handler = on_tick};
    struct itimerval timer = {{0, every_us}, {0, every_us}};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void calm(void)
{
    struct itimerval timer = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

TEST(process, a_storm_of_signals_disturbs_nothing)
{
    need_host_names();
    server *sv = server_start_tcp(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[64];
    snprintf(uri, sizeof uri, "redis://localhost:%d", server_port(sv));
    opts.uri = uri;
    storm(150);
    int64_t until = test_now_ms() + 300;
    do {
        rlock_client *cl = server_client(sv, &opts);
        rlock *lk = test_lock(cl, "main");
        for (int i = 0; i < 20; i++)
            lock_and_unlock(lk);
        EXPECT_INT(stats_of(cl).reconnects, 0);
        rlock_free(lk);
        rlock_client_free(cl);
    } while (test_now_ms() < until);
    calm();
    EXPECT(ticks > 20);
    server_stop(sv);
}

TEST(process, a_storm_of_signals_stretches_no_deadline)
{
    rig r = rig_start(false, 400);
    rlock *other = test_lock(r.cl, "other");
    rlock_client *second = server_client(r.sv, NULL);
    rlock *same = test_lock(second, "main");
    storm(2000);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(same, 500, 1000), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(test_now_ms() - began, 499, 500 + 500);
    server_pause(r.sv);
    began = test_now_ms();
    EXPECT_STATUS(rlock_client_ping(r.cl), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began, 399, 400 + 500);
    began = test_now_ms();
    EXPECT_STATUS(rlock_trylock(other), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began, 399, 400 + 500);
    calm();
    EXPECT(ticks > 100);
    server_resume(r.sv);
    rlock_free(other);
    rlock_free(same);
    rlock_client_free(second);
    rig_stop(&r);
}

/* --- threads ----------------------------------------------------------------
 */

/* A line of /proc/self/task/<tid>/status, without its name. */
static void read_status(const char *tid, const char *key, char *out, int size)
{
    char path[300], line[256];
    snprintf(path, sizeof path, "/proc/self/task/%s/status", tid);
    FILE *f = fopen(path, "re");
    *out = '\0';
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) == 0)
            snprintf(out, (size_t)size, "%.*s",
                     (int)strcspn(line + strlen(key), "\n"),
                     line + strlen(key));
    }
    if (f)
        fclose(f);
}

/* But SIGKILL, SIGSTOP, and two that glibc keeps for itself. */
#define ALL_SIGNALS 0xfffffffe7ffbfeffu

/* Threads of the library, by name; checks what they block if asked to. */
static int count_threads(bool check)
{
    char name[64], blocked[64];
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    EXPECT(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.')
            continue;
        read_status(entry->d_name, "Name:\t", name, sizeof name);
        if (strncmp(name, "rlock-", 6) != 0)
            continue;
        n++;
        read_status(entry->d_name, "SigBlk:\t", blocked, sizeof blocked);
        uint64_t mask = strtoull(blocked, NULL, 16);
        if (check && (mask & ALL_SIGNALS) != ALL_SIGNALS)
            FAIL("%s blocks %s", name, blocked);
    }
    closedir(dir);
    return n;
}

static int count_tasks(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    EXPECT(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

TEST(process, the_librarys_threads_are_named_few_and_block_all_signals)
{
    server *sv = server_start(NULL);
    int before = count_tasks();
    rlock_client *cl = server_client(sv, NULL);
    rlock *lk = test_lock(cl, "main");
    EXPECT_INT(count_tasks(), before);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(LONG_MS, count_threads(false) == 2);
    EXPECT_INT(count_tasks(), before + 2);
    test_thread *t = test_spawn(lock_and_unlock, lk);
    EVENTUALLY(LONG_MS, count_threads(false) == 3);
    EXPECT_INT(count_tasks(), before + 1 + 3);
    EXPECT_INT(count_threads(true), 3);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    test_join(t);
    rlock_free(lk);
    rlock_client_free(cl);
    EVENTUALLY(LONG_MS, count_tasks() == before);
    server_stop(sv);
}

/* What a look-up's thread is called, and whether it blocks SIGALRM. */
static char lookup_thread[32];
static atomic_int lookup_blocks = -1;

/* In the place of the C library's, which it calls. */
int getaddrinfo(const char *host, const char *port,
                const struct addrinfo *hints, struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *,
                struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!(hints->ai_flags & AI_NUMERICHOST)) {
        sigset_t mask;
        int64_t until = test_now_ms() + 500;
        do /* its creator may name it a little later */
            prctl(PR_GET_NAME, lookup_thread);
        while (strncmp(lookup_thread, "rlock-", 6) && test_now_ms() < until);
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        atomic_store(&lookup_blocks, sigismember(&mask, SIGALRM));
    }
    return real(host, port, hints, out);
}

TEST(process, the_thread_that_looks_up_a_name_is_like_the_others)
{
    need_host_names();
    server *sv = server_start_tcp(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[64];
    snprintf(uri, sizeof uri, "redis://localhost:%d", server_port(sv));
    opts.uri = uri;
    rlock_client_free(server_client(sv, &opts));
    EXPECT_INT(atomic_load(&lookup_blocks), 1);
    EXPECT_STR(lookup_thread, "rlock-resolve");
    server_stop(sv);
}

/* --- cancellation -----------------------------------------------------------
 */

typedef struct victim {
    server *sv;
    rlock_client *cl;
    rlock *lk;
    atomic_bool begun;
    atomic_int status; /* -1: the call has not returned */
} victim;

static _Noreturn void wait_for_the_end(void)
{
    for (;;)
        pause(); /* a point of cancellation */
}

/* Runs fn on a thread, cancels it while it is inside, and waits for its end. */
static void cancel_inside(void *(*fn)(void *), victim *v, int waiting)
{
    pthread_t thread;
    void *result;
    atomic_store(&v->status, -1);
    EXPECT_INT(pthread_create(&thread, NULL, fn, v), 0);
    if (waiting)
        EVENTUALLY(LONG_MS, stats_of(v->cl).waiting_now == 1);
    EVENTUALLY(LONG_MS, atomic_load(&v->begun));
    EXPECT_INT(pthread_cancel(thread), 0);
    EXPECT_INT(pthread_join(thread, &result), 0);
    EXPECT(result == PTHREAD_CANCELED);
}

static void *acquire_and_end(void *arg)
{
    victim *v = arg;
    atomic_store(&v->begun, true);
    atomic_store(&v->status, rlock_acquire(v->lk, 400, RLOCK_WATCHDOG));
    wait_for_the_end();
}

TEST(process, cancellation_takes_effect_after_a_blocked_acquire)
{
    rig r = rig_start(false, 0);
    victim v = {.sv = r.sv, .cl = r.cl, .lk = test_lock(r.cl, "main")};
    cancel_inside(acquire_and_end, &v, 1);
    EXPECT_INT(atomic_load(&v.status), RLOCK_TIMEOUT);
    EXPECT_INT(stats_of(r.cl).waiting_now, 0);
    EXPECT_INT(server_int(r.sv, "EXISTS %s", "rlock_queue:{main}"), 0);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(v.lk), RLOCK_OK);
    rlock_free(v.lk);
    rig_stop(&r);
}

static void *make_client_and_end(void *arg)
{
    victim *v = arg;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    opts.uri = server_uri(v->sv);
    opts.connect_timeout_ms = 300;
    opts.command_timeout_ms = 300;
    atomic_store(&v->begun, true);
    atomic_store(&v->status, rlock_client_new(&opts, &cl));
    wait_for_the_end();
}

TEST(process, cancellation_takes_effect_after_a_client_was_made)
{
    victim v = {.sv = server_start(NULL)};
    server_pause(v.sv);
    cancel_inside(make_client_and_end, &v, 0);
    EXPECT_INT(atomic_load(&v.status), RLOCK_EIO);
    server_resume(v.sv);
    server_stop(v.sv);
}

static void *free_client_and_end(void *arg)
{
    victim *v = arg;
    atomic_store(&v->begun, true);
    rlock_client_free(v->cl);
    atomic_store(&v->status, RLOCK_OK);
    wait_for_the_end();
}

static intptr_t ask_holder(void *arg)
{
    rlock_holder holder;
    return rlock_holder_info(arg, &holder);
}

/* A call of another thread keeps the client busy for half a second. */
TEST(process, cancellation_takes_effect_after_a_client_was_freed)
{
    rig r = rig_start(true, 500);
    victim v = {.sv = r.sv, .cl = r.cl};
    proxy_rule(r.px, "EVALSHA", 1, PROXY_SWALLOW_REPLY, NULL);
    test_thread *t = test_spawn(ask_holder, r.lk);
    EVENTUALLY(LONG_MS, proxy_fired(r.px));
    cancel_inside(free_client_and_end, &v, 0);
    EXPECT_INT(atomic_load(&v.status), RLOCK_OK);
    EXPECT_INT(test_join(t), RLOCK_EIO);
    rlock_free(r.lk);
    proxy_stop(r.px);
    server_stop(r.sv);
}

/* --- what else belongs to the host -------------------------------------------
 */

TEST(process, the_hosts_random_numbers_are_left_alone)
{
    enum { N = 50 };
    long wanted[N];
    server *sv = server_start(NULL);
    srandom(42);
    for (int i = 0; i < N; i++)
        wanted[i] = i % 2 ? random() : rand();
    srandom(42);
    rlock_client *cl = server_client(sv, NULL);
    rlock *lk = test_lock(cl, "main");
    for (int i = 0; i < N; i++) {
        lock_and_unlock(lk);
        EXPECT_INT(i % 2 ? random() : rand(), wanted[i]);
    }
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}

/* Success, contention, errors, a loss. */
static void do_all_sorts(server *sv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    opts.uri = "redis://127.0.0.1:99999";
    EXPECT_INT(rlock_client_new(&opts, &cl), RLOCK_EINVAL);
    opts.uri = NULL;
    opts.watchdog_lease_ms = 300;
    cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, "main"), *text = test_lock(cl, "text");
    server_cmd(sv, "SET text x");
    EXPECT_INT(rlock_lock(text), RLOCK_EWRONGTYPE);
    EXPECT_INT(rlock_unlock(text), RLOCK_NOT_HELD);
    EXPECT_INT(rlock_lock(lk), RLOCK_OK);
    server_kill(sv);
    EVENTUALLY(LONG_MS, !rlock_is_held(lk));
    EXPECT_INT(rlock_unlock(lk), RLOCK_LOST);
    EXPECT_INT(rlock_trylock(lk), RLOCK_EIO);
    rlock_free(text);
    rlock_free(lk);
    rlock_client_free(cl);
}

TEST(process, nothing_is_printed)
{
    server *sv = server_start(NULL);
    int output = memfd_create("output", MFD_CLOEXEC);
    struct stat st;
    fflush(NULL);
    int out = dup(1), err = dup(2);
    EXPECT(output >= 0 && out >= 0 && err >= 0);
    dup2(output, 1);
    dup2(output, 2);
    do_all_sorts(sv);
    fflush(NULL);
    dup2(out, 1);
    dup2(err, 2);
    EXPECT_INT(fstat(output, &st), 0);
    EXPECT_INT(st.st_size, 0);
    close(out);
    close(err);
    close(output);
    server_stop(sv);
}

/* --- dlclose
 * ------------------------------------------------------------------ */

/* The shared library, loaded beside the static one that is linked. */
typedef struct plugin {
    void *so;
    rlock_status (*client_new)(const rlock_options *, rlock_client **);
    void (*client_free)(rlock_client *);
    rlock_status (*new)(rlock_client *, const char *, rlock **);
    void (*free)(rlock *);
    rlock_status (*lock)(rlock *);
    rlock_status (*unlock)(rlock *);
    rlock *lk;
    atomic_bool used, may_end;
} plugin;

static void *symbol(plugin *p, const char *name)
{
    void *found = dlsym(p->so, name);
    if (!found)
        FAIL("%s: %s", name, dlerror());
    return found;
}

/* Two folders above the test's program. */
static bool plugin_load(plugin *p)
{
    char path[500];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 32);
    EXPECT(len > 0);
    path[len] = '\0';
    for (int i = 0; i < 3; i++)
        *strrchr(path, '/') = '\0';
    strcat(path, "/librlock.so");
    p->so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!p->so)
        return false;
    *(void **)&p->client_new = symbol(p, "rlock_client_new");
    *(void **)&p->client_free = symbol(p, "rlock_client_free");
    *(void **)&p->new = symbol(p, "rlock_new");
    *(void **)&p->free = symbol(p, "rlock_free");
    *(void **)&p->lock = symbol(p, "rlock_lock");
    *(void **)&p->unlock = symbol(p, "rlock_unlock");
    return true;
}

static intptr_t outlive_the_library(void *arg)
{
    plugin *p = arg;
    EXPECT_INT(p->lock(p->lk), RLOCK_OK);
    EXPECT_INT(p->unlock(p->lk), RLOCK_OK);
    EXPECT_INT(p->lock(p->lk), RLOCK_OK);
    atomic_store(&p->used, true);
    while (!atomic_load(&p->may_end))
        test_pause_ms(1);
    return 0;
}

/* A thread that used the library ends after, or before, it is unloaded. */
static void use_and_unload(server *sv, bool thread_ends_first)
{
    plugin p = {0};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    if (!plugin_load(&p))
        SKIP("no shared library beside the tests");
    opts.uri = server_uri(sv);
    EXPECT_INT(p.client_new(&opts, &cl), RLOCK_OK);
    EXPECT_INT(p.new(cl, "main", &p.lk), RLOCK_OK);
    test_thread *t = test_spawn(outlive_the_library, &p);
    EVENTUALLY(LONG_MS, atomic_load(&p.used));
    if (thread_ends_first) {
        atomic_store(&p.may_end, true);
        test_join(t);
    }
    p.client_free(cl);
    p.free(p.lk);
    EXPECT_INT(dlclose(p.so), 0);
    if (!thread_ends_first) {
        atomic_store(&p.may_end, true);
        test_join(t);
    }
}

TEST(process, fault_094_a_thread_that_held_a_lock_may_end_after_dlclose)
{
    server *sv = server_start(NULL);
    use_and_unload(sv, true); /* the control */
    server_cmd(sv, "DEL main");
    use_and_unload(sv, false);
    server_stop(sv);
}
