/*
 * Processes that fork, that execute other programs, and that end, while they
 * use the library.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dialer.h"

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

/* --- fork ----------------------------------------------------------------- */

/* Only with the address sanitizer. */
void __sanitizer_purge_allocator(void) __attribute__((weak));

/*
 * The address sanitizer's allocator is copied as it is at the fork: a mutex
 * that another thread had there, for a moment, is never free again in the
 * child, which waits for it with its first allocation of that size. So the
 * child takes each of them once, and says so. False, of the parent: this child
 * could not.
 */
static bool can_allocate(pid_t child, const int said[2])
{
    char byte = 'x';
    if (child == 0) {
        __sanitizer_purge_allocator();
        EXPECT_INT(write(said[1], &byte, 1), 1);
        return true;
    }
    struct pollfd p = {.fd = said[0], .events = POLLIN};
    if (poll(&p, 1, 3000) == 1)
        return true;
    kill(child, SIGKILL);
    EXPECT(waitpid(child, NULL, 0) == child);
    return false;
}

static pid_t fork_that_can_allocate(void)
{
    pid_t child;
    int said[2];
    bool can;
    do {
        EXPECT(pipe(said) == 0);
        child = fork();
        EXPECT(child >= 0);
        can = can_allocate(child, said);
        close(said[0]);
        close(said[1]);
    } while (!can);
    return child;
}

/* A child that hangs is killed by its alarm. */
static pid_t fork_child(void)
{
    fflush(NULL);
    pid_t child =
        __sanitizer_purge_allocator ? fork_that_can_allocate() : fork();
    EXPECT(child >= 0);
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(TEST_LIMIT_S / 2);
    }
    return child;
}

static int exit_status(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        EXPECT_INT(errno, EINTR);
    if (WIFSIGNALED(status))
        FAIL("the child was killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void expect_exit(pid_t child, int wanted)
{
    EXPECT_INT(exit_status(child), wanted);
}

static void tell_nobody(const rlock_metric *m, void *arg)
{
    FAIL("%s is told to %p", m->name, arg);
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
    EXPECT_STATUS(rlock_client_stats(cl, &stats, sizeof stats), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_metrics_each(cl, tell_nobody, NULL), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_acquire(lk, 10, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_extend(lk, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_force_unlock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_is_locked(lk, &locked), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_ttl(lk, &ttl), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_holder_info(lk, &holder, sizeof holder), RLOCK_EFORKED);
    EXPECT_INT(rlock_last_error()->status, RLOCK_EFORKED);
    EXPECT_CONTAINS(rlock_last_error()->message, "fork");
    rlock_cancel(lk);
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_INT(rlock_valid_ms(lk), 0);
    EXPECT(rlock_token(lk) == 0);
}

TEST(fork, fault_084_in_a_child_every_call_answers_forked_and_sends_nothing)
{
    scene s = scene_held_proxied(0, 0);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    int sent = requests(s.px);
    pid_t child = fork_child();
    if (child == 0) {
        expect_forked(s.cl, s.lk);
        rlock_free(s.lk);
        EXPECT_STATUS(rlock_client_close(s.cl, RLOCK_CLOSE_RELEASE_HELD),
                      RLOCK_EFORKED);
        _exit(0);
    }
    expect_exit(child, 0);
    EXPECT_INT(requests(s.px), sent);
    scene_stop(&s);
}

/* The child frees what it inherited. */
static void end_a_child(scene *s)
{
    pid_t child = fork_child();
    if (child == 0) {
        rlock_free(s->lk);
        rlock_client_free(s->cl);
        _exit(0);
    }
    expect_exit(child, 0);
}

TEST(fork, fault_084_a_childs_end_disturbs_neither_lock_nor_connections)
{
    scene s = scene_held(0, 0);
    long long connections = server_info(s.sv, "total_connections_received");
    for (int i = 0; i < 6; i++) {
        if (i > 0) /* after the control */
            end_a_child(&s);
        EXPECT(rlock_is_held(s.lk));
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    }
    EXPECT_STR(server_str(s.sv, "EVAL %s 1 job",
                          "return redis.call('hvals', KEYS[1])[1]"),
               "7");
    EXPECT_INT(server_info(s.sv, "total_connections_received"), connections);
    EXPECT_INT(stats_of(s.cl).reconnects, 0);
    for (int i = 0; i < 7; i++)
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS job"), 0);
    scene_stop(&s);
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

TEST(fork, fault_084_a_child_that_frees_the_client_closes_its_copies)
{
    server *sv = server_start(NULL);
    int before = count_sockets();
    rlock_client *cl = server_client(sv, NULL);
    rlock *lk = test_lock(cl, SCENE_LOCK);
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

static int status_of_freeing_child(scene *s)
{
    int status;
    pid_t child = fork_child();
    if (child == 0) {
        rlock_free(s->lk);
        rlock_client_free(s->cl);
        events_free(s->ev); /* the test's own */
        memset(s, 0, sizeof *s);
        _exit(has_leaks() ? 3 : 0);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    return status;
}

/* What a thread was changing at the fork is not freed: so when all sleep. */
TEST(fork, fault_084_a_child_that_frees_all_leaks_nothing)
{
    if (!__lsan_do_recoverable_leak_check)
        SKIP("needs the leak sanitizer");
    scene s = scene_held(0, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
    EXPECT(!has_leaks()); /* the control */
    s = scene_held(0, 0);
    EVENTUALLY(SOON, status_of_freeing_child(&s) == 0);
    scene_stop(&s);
}

/* A client that was made while main is held by another. */
static void use_own_client(rlock_client *cl)
{
    rlock *lk = test_lock(cl, SCENE_LOCK), *own = test_lock(cl, "own");
    rlock_holder holder;
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(own), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(own, &holder, sizeof holder), RLOCK_OK);
    EXPECT_INT(holder.pid, getpid());
    EXPECT_STATUS(rlock_unlock(own), RLOCK_OK);
    rlock_free(own);
    rlock_free(lk);
}

TEST(fork, fault_084_a_child_can_make_its_own_client)
{
#if HAS_TSAN
    SKIP("ThreadSanitizer starts no threads in a child of a process that "
         "has several");
#endif
    scene s = scene_held(0, 0);
    uint64_t token = rlock_token(s.lk);
    rlock_client *second = server_client(s.sv, NULL);
    use_own_client(second); /* the control */
    rlock_client_free(second);
    pid_t child = fork_child();
    if (child == 0) {
        rlock_client *cl = server_client(s.sv, NULL);
        rlock *lk = test_lock(cl, SCENE_LOCK);
        use_own_client(cl);
        EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT(rlock_token(lk) > token);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        expect_forked(s.cl, s.lk);
        rlock_free(lk);
        rlock_client_free(cl);
        rlock_free(s.lk);
        rlock_client_free(s.cl);
        _exit(0);
    }
    EVENTUALLY(SOON, server_int(s.sv, "EXISTS %s", "rlock_queue:{job}"));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_exit(child, 0);
    scene_stop(&s);
}

/* In the child, which has a client of its own. */
static void expect_dead(server *sv, rlock_owner *inherited)
{
    rlock_client *cl = server_client(sv, NULL);
    rlock *lk = test_lock(cl, "own");
    rlock_owner *own;
    rlock_owner_set(inherited);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EFORKED);
    EXPECT_CONTAINS(rlock_last_error()->message, "before fork");
    EXPECT_STATUS(rlock_acquire_start(lk, 0, 60000, NULL, NULL), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_owner_new("own", &own), RLOCK_OK);
    rlock_owner_set(own);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_owner_set(NULL);
    rlock_owner_free(own);
    rlock_owner_free(inherited);
    rlock_free(lk);
    rlock_client_free(cl);
}

TEST(fork, an_owner_of_the_parent_is_dead_in_the_child)
{
#if HAS_TSAN
    SKIP("ThreadSanitizer starts no threads in a child of a process that "
         "has several");
#endif
    scene s = scene_start(0, 0);
    rlock_owner *o;
    EXPECT_STATUS(rlock_owner_new("parent", &o), RLOCK_OK);
    rlock_owner_set(o);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    pid_t child = fork_child();
    if (child == 0) {
        expect_dead(s.sv, o);
        scene_free_in_child(&s);
        _exit(0);
    }
    expect_exit(child, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_owner_set(NULL);
    rlock_owner_free(o);
    scene_stop(&s);
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
TEST(fork, fault_084_a_child_can_free_what_other_threads_were_using)
{
    scene s = scene_held_proxied(0, SOON);
    load l = {.cl = s.cl};
    test_thread *threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = test_spawn(lock_and_wait, &l);
    EVENTUALLY(SOON, stats_of(s.cl).acquires > 20); /* the control */
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork_child();
        if (child == 0) {
            EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EFORKED);
            rlock_free(s.lk);
            rlock_client_free(s.cl);
            _exit(0);
        }
        expect_exit(child, 0);
    }
    atomic_store(&l.stop, true);
    for (int i = 0; i < 4; i++)
        test_join(threads[i]);
    EXPECT_INT(stats_of(s.cl).acquires_failed, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
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

/* Every connection, and the doorbell with its descriptor to wake it. */
static void expect_close_on_exec(server *sv, const rlock_options *opts)
{
    int before = count_inherited();
    rlock_client *cl = server_client(sv, opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    test_thread *t = test_spawn(lock_once, lk);
    EVENTUALLY(SOON, server_int(sv, "EXISTS %s", "rlock_queue:{job}") == 1);
    EXPECT_INT(count_inherited(), before);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    test_join(t);
    rlock_free(lk);
    rlock_client_free(cl);
}

TEST(fork, no_descriptor_is_inherited_by_exec)
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

TEST(fork, no_descriptor_of_the_callback_is_inherited_by_exec)
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

/* Under qemu-user, which does not follow an execve(). */
#define NOT_OF_THIS_MACHINE 77

/* It waits for a second at the end of a program, and by then complains of the
   connector, which has ended, and which nobody joins. */
static void have_thread_sanitizer_not_wait(void)
{
    char options[1000];
    const char *given = getenv("TSAN_OPTIONS");
    snprintf(options, sizeof options, "%s%satexit_sleep_ms=0",
             given ? given : "", given ? ":" : "");
    setenv("TSAN_OPTIONS", options, 1);
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
        have_thread_sanitizer_not_wait();
        if (tidy)
            setenv("RLOCK_TEST_TIDY", "1", 1);
        execl(exe, exe, (char *)NULL);
        _exit(errno == ENOEXEC ? NOT_OF_THIS_MACHINE : 3);
    }
    int status = exit_status(child);
    if (status == NOT_OF_THIS_MACHINE)
        SKIP("the kernel executes no program for this processor");
    EXPECT_INT(status, 0);
}

TEST(fork, fault_094_a_program_that_holds_locks_exits_cleanly)
{
    server *sv = server_start(NULL);
    run_and_exit(sv, true); /* the control */
    EXPECT_INT(server_int(sv, "EXISTS held"), 0);
    run_and_exit(sv, false);
    EXPECT_INT(server_int(sv, "EXISTS held"), 1);
    EXPECT_BETWEEN(server_int(sv, "PTTL held"), 1, 30000);
    server_stop(sv);
}
