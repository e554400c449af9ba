/*
 * The library as a guest in somebody else's process: threads, cancellation,
 * output, random numbers, dlclose.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "scene.h"
#include "tasks.h"

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

static uint64_t blocked_by(const char *tid)
{
    char blocked[64];
    read_status(tid, "SigBlk:\t", blocked, sizeof blocked);
    return strtoull(blocked, NULL, 16);
}

/*
 * What a thread blocks that asked for all signals. Some cannot be blocked: the
 * kernel keeps two, the C library two or three, and qemu-user, which may run
 * these tests, a few more.
 */
static uint64_t all_signals(void)
{
    sigset_t all, old;
    char tid[32];
    snprintf(tid, sizeof tid, "%ld", syscall(SYS_gettid));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    uint64_t mask = blocked_by(tid);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    EXPECT(__builtin_popcountll(mask) >= 56);
    return mask;
}

static void expect_threads_block_all_signals(void)
{
    uint64_t all = all_signals();
    DIR *dir = opendir("/proc/self/task");
    EXPECT(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        uint64_t mask = blocked_by(entry->d_name);
        if (task_is_named(entry->d_name, "rlock-") && (mask & all) != all)
            FAIL("thread %s blocks %llx, not %llx", entry->d_name,
                 (unsigned long long)mask, (unsigned long long)all);
    }
    closedir(dir);
}

TEST(process, the_librarys_threads_are_named_few_and_block_all_signals)
{
    server *sv = server_start(NULL);
    int before = tasks_named("");
    rlock_client *cl = server_client(sv, NULL);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_INT(tasks_named(""), before);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, tasks_named("rlock-") == 1);
    EXPECT_INT(tasks_named(""), before + 1);
    test_thread *t = test_spawn(lock_once, lk);
    waiters_settle(sv, 1, cl, 1);
    EVENTUALLY(SOON, tasks_named("rlock-") == 1);
    EXPECT_INT(tasks_named(""), before + 1 + 1);
    expect_threads_block_all_signals();
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    test_join(t);
    rlock_free(lk);
    rlock_client_free(cl);
    EVENTUALLY(SOON, tasks_named("") == before);
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
        EVENTUALLY(SOON, stats_of(v->cl).waiting_now == 1);
    EVENTUALLY(SOON, atomic_load(&v->begun));
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
    scene s = scene_held(0, 0);
    victim v = {.sv = s.sv, .cl = s.cl, .lk = test_lock(s.cl, SCENE_LOCK)};
    cancel_inside(acquire_and_end, &v, 1);
    EXPECT_INT(atomic_load(&v.status), RLOCK_TIMEOUT);
    EXPECT_INT(stats_of(s.cl).waiting_now, 0);
    EXPECT_INT(server_int(s.sv, "EXISTS %s", "rlock_queue:{job}"), 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(v.lk), RLOCK_OK);
    rlock_free(v.lk);
    scene_stop(&s);
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
    return rlock_holder_info(arg, &holder, sizeof holder);
}

/* A call of another thread keeps the client busy for half a second. */
TEST(process, cancellation_takes_effect_after_a_client_was_freed)
{
    scene s = scene_held_proxied(0, 500);
    victim v = {.sv = s.sv, .cl = s.cl};
    proxy_rule(s.px, "EVALSHA", 1, PROXY_SWALLOW_REPLY, NULL);
    test_thread *t = test_spawn(ask_holder, s.lk);
    EVENTUALLY(SOON, proxy_fired(s.px));
    cancel_inside(free_client_and_end, &v, 0);
    EXPECT_INT(atomic_load(&v.status), RLOCK_OK);
    EXPECT_INT(test_join(t), RLOCK_EIO);
    s.cl = NULL;
    scene_stop(&s);
}

/* --- what else belongs to the host -------------------------------------------
 */

/* Two sequences in some C libraries, and one in others. */
static void seed_random_numbers(void)
{
    srand(42);
    srandom(42);
}

TEST(process, the_hosts_random_numbers_are_left_alone)
{
    enum { N = 50 };
    long wanted[N];
    server *sv = server_start(NULL);
    seed_random_numbers();
    for (int i = 0; i < N; i++)
        wanted[i] = i % 2 ? random() : rand();
    seed_random_numbers();
    rlock_client *cl = server_client(sv, NULL);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    for (int i = 0; i < N; i++) {
        lock_once(lk);
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
    opts.watchdog_lease_ms = BRISK_MS;
    cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK), *text = test_lock(cl, "text");
    server_cmd(sv, "SET text x");
    EXPECT_INT(rlock_lock(text), RLOCK_EWRONGTYPE);
    EXPECT_INT(rlock_unlock(text), RLOCK_NOT_HELD);
    EXPECT_INT(rlock_lock(lk), RLOCK_OK);
    server_kill(sv);
    EVENTUALLY(SOON, !rlock_is_held(lk));
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
    EXPECT_INT(p.new(cl, SCENE_LOCK, &p.lk), RLOCK_OK);
    test_thread *t = test_spawn(outlive_the_library, &p);
    EVENTUALLY(SOON, atomic_load(&p.used));
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
    server_cmd(sv, "DEL job");
    use_and_unload(sv, false);
    server_stop(sv);
}
