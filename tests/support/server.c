/*
 * A redis-server as a child process.
 *
 * The kernel kills the server when its parent ends (PR_SET_PDEATHSIG), so a
 * test that crashes leaves no process behind. "Parent" there means the thread
 * that forked, and a test may start or restart its server on any thread:
 * therefore each server has a thread of its own, the keeper, which forks it,
 * waits for its end, and ends with it.
 */
#include "server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "asker.h"

enum {
    READY_LIMIT_MS = 20000, /* sanitizers and busy machines are slow */
    END_LIMIT_MS = 5000,
    ARGS_MAX = 100,
    DIR_MAX = 80, /* leaves room in sun_path */
    PORT_TRIES = 20
};

struct server {
    char dir[DIR_MAX + 1];
    char socket[DIR_MAX + 8];
    char log[DIR_MAX + 8];
    char clock[DIR_MAX + 32]; /* environment of a clocked server */
    atomic_llong *ahead_s;    /* its clock, mapped; else NULL */
    char uri[DIR_MAX + 16];
    char *args; /* the words of argv[] that the test gave */
    char port_arg[8];
    int port;
    char *argv[ARGS_MAX + 1];
    pthread_t keeper;
    bool has_keeper;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pid_t pid;    /* guarded by mutex; that of the last process */
    bool running; /* guarded by mutex; until it is reaped */
    asker *ask;
};

/* The directory and what is in it. */

static void make_dir(server *sv)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || !*tmp || strlen(tmp) > DIR_MAX - 16)
        tmp = "/tmp";
    snprintf(sv->dir, sizeof sv->dir, "%s/rlock-XXXXXX", tmp);
    if (!mkdtemp(sv->dir))
        FAIL("cannot make %s: %s", sv->dir, strerror(errno));
    snprintf(sv->socket, sizeof sv->socket, "%s/s", sv->dir);
    snprintf(sv->log, sizeof sv->log, "%s/log", sv->dir);
    snprintf(sv->uri, sizeof sv->uri, "unix://%s", sv->socket);
}

static void remove_dir(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    int fd = dirfd(dir);
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, entry->d_name, 0) == 0)
            continue;
        /* A directory, such as that of the append-only files. */
        char sub[DIR_MAX + 300];
        snprintf(sub, sizeof sub, "%s/%s", path, entry->d_name);
        remove_dir(sub);
    }
    closedir(dir);
    rmdir(path);
}

/* The end of the server's log, for the report of a failure. */
static const char *log_tail(const server *sv, char *buf, size_t size)
{
    ssize_t n = 0;
    int fd = open(sv->log, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (lseek(fd, -(off_t)size + 1, SEEK_END) < 0)
            lseek(fd, 0, SEEK_SET);
        n = read(fd, buf, size - 1);
        close(fd);
    }
    buf[n > 0 ? n : 0] = '\0';
    return buf;
}

static _Noreturn void fail_with_log(const server *sv, const char *what)
{
    char tail[1200];
    FAIL("redis-server %s; its log ends:\n%s", what,
         log_tail(sv, tail, sizeof tail));
}

/* The process and its keeper. */

/*
 * In the forked child: only async-signal-safe calls. Its output goes to the
 * log, so that nobody who reads the test's output waits for the server, and
 * it inherits no descriptor, for a copy would keep a connection open that the
 * test believes closed.
 */
static _Noreturn void become_server(const server *sv, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(126);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int in = open("/dev/null", O_RDONLY);
    int out = open(sv->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(in, 0);
    dup2(out, 1);
    dup2(out, 2);
    syscall(SYS_close_range, 3, ~0U, 0);
    execvp(sv->argv[0], sv->argv);
    static const char text[] = "cannot execute redis-server\n";
    if (write(2, text, sizeof text - 1) < 0)
        _exit(126);
    _exit(127);
}

/*
 * WNOWAIT leaves the zombie until the mutex is held: whoever sees `running`
 * under the mutex may use the pid.
 */
static void reap(server *sv, pid_t pid)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 &&
           errno == EINTR)
        ;
    pthread_mutex_lock(&sv->mutex);
    waitpid(pid, NULL, 0);
    sv->running = false;
    pthread_cond_broadcast(&sv->changed);
    pthread_mutex_unlock(&sv->mutex);
}

static void *keep(void *arg)
{
    server *sv = arg;
    pid_t parent = getpid();
    pthread_setname_np(pthread_self(), "test-server");
    pid_t pid = fork();
    if (pid == 0)
        become_server(sv, parent);
    if (pid < 0)
        FAIL("cannot fork: %s", strerror(errno));
    pthread_mutex_lock(&sv->mutex);
    sv->pid = pid;
    sv->running = true;
    pthread_cond_broadcast(&sv->changed);
    pthread_mutex_unlock(&sv->mutex);
    reap(sv, pid);
    return NULL;
}

/* The keeper takes no signals that are meant for the test. */
static void launch(server *sv)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_mutex_lock(&sv->mutex);
    sv->pid = 0;
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int err = pthread_create(&sv->keeper, NULL, keep, sv);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    while (err == 0 && sv->pid == 0)
        pthread_cond_wait(&sv->changed, &sv->mutex);
    pthread_mutex_unlock(&sv->mutex);
    if (err)
        FAIL("cannot start a thread: %s", strerror(err));
    sv->has_keeper = true;
}

static bool is_running(server *sv)
{
    pthread_mutex_lock(&sv->mutex);
    bool running = sv->running;
    pthread_mutex_unlock(&sv->mutex);
    return running;
}

static void send_signal(server *sv, int sig)
{
    pthread_mutex_lock(&sv->mutex);
    if (sv->running)
        kill(sv->pid, sig);
    pthread_mutex_unlock(&sv->mutex);
}

static void wait_end(server *sv, int limit_ms)
{
    int64_t until = test_now_ms() + limit_ms;
    while (is_running(sv) && test_now_ms() < until)
        test_pause_ms(1);
}

/* Ends the process, if there is one, and the keeper. */
static void end_process(server *sv)
{
    if (!sv->has_keeper)
        return;
    send_signal(sv, SIGKILL);
    pthread_join(sv->keeper, NULL);
    sv->has_keeper = false;
}

/* Starting, until it answers. */

/* Any answer will do, such as NOAUTH, but not LOADING. */
static bool answers_ping(const server *sv)
{
    struct timeval limit = {1, 0};
    redisContext *cx = redisConnectUnixWithTimeout(sv->socket, limit);
    redisReply *reply = NULL;
    if (cx && !cx->err) {
        redisSetTimeout(cx, limit);
        reply = redisCommand(cx, "PING");
    }
    bool yes = reply && !(reply->type == REDIS_REPLY_ERROR &&
                          strncmp(reply->str, "LOADING", 7) == 0);
    if (reply)
        freeReplyObject(reply);
    if (cx)
        redisFree(cx);
    return yes;
}

/* False when the process ended, as it does when its port is taken. */
static bool wait_ready(server *sv)
{
    int64_t until = test_now_ms() + READY_LIMIT_MS;
    sigset_t old;
    asker_block_signals(&old);
    bool ready = false;
    while (!ready && is_running(sv) && test_now_ms() < until) {
        ready = answers_ping(sv);
        if (!ready)
            test_pause_ms(1);
    }
    asker_unblock_signals(&old);
    if (!ready && is_running(sv))
        fail_with_log(sv, "does not answer");
    return ready;
}

/*
 * A port below those that the kernel gives to outgoing connections, which
 * could take it while the server is down. Another test may choose the same:
 * then one of the servers ends at once, and its test tries again.
 */
static int choose_port(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned x = (unsigned)now.tv_nsec * 2654435761U ^ (unsigned)getpid();
    return 10000 + (int)(x / 7 % 20000);
}

static bool port_is_free(int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    bool bound = bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    close(fd);
    return bound;
}

static void start_on_some_port(server *sv)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        do
            sv->port = choose_port();
        while (!port_is_free(sv->port));
        snprintf(sv->port_arg, sizeof sv->port_arg, "%d", sv->port);
        launch(sv);
        if (wait_ready(sv))
            return;
        end_process(sv);
    }
    fail_with_log(sv, "finds no port");
}

/* The same port may be busy for a moment after the last process ended. */
static void start_again(server *sv)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        launch(sv);
        if (wait_ready(sv))
            return;
        end_process(sv);
        if (!sv->port)
            break;
        test_pause_ms(50);
    }
    fail_with_log(sv, "ended at once");
}

/* Words of the test's own, which come last and so win. */
static int split_args(server *sv, const char *args, int n)
{
    static char empty[] = "";
    sv->args = strdup(args ? args : "");
    EXPECT(sv->args);
    char *rest = NULL;
    char *word = strtok_r(sv->args, " ", &rest);
    for (; word; word = strtok_r(NULL, " ", &rest)) {
        EXPECT(n < ARGS_MAX);
        sv->argv[n++] = strcmp(word, "\"\"") == 0 ? empty : word;
    }
    return n;
}

/* The shared page from which the server takes its clock, see preload/. */
static void make_clock(server *sv)
{
    const char *path = strchr(sv->clock, '=') + 1;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT(fd >= 0);
    EXPECT_INT(ftruncate(fd, sizeof *sv->ahead_s), 0);
    sv->ahead_s = mmap(NULL, sizeof *sv->ahead_s, PROT_READ | PROT_WRITE,
                       MAP_SHARED, fd, 0);
    EXPECT(sv->ahead_s != MAP_FAILED);
    close(fd);
}

/* env(1), which then becomes the server. */
static int prefix_clock(server *sv)
{
    static char env[] = "env", preload[] = "LD_PRELOAD=" RLOCK_PRELOAD_CLOCK;
    snprintf(sv->clock, sizeof sv->clock, "RLOCK_TEST_CLOCK=%s/clock", sv->dir);
    make_clock(sv);
    sv->argv[0] = env;
    sv->argv[1] = preload;
    sv->argv[2] = sv->clock;
    return 3;
}

static const char *program(void)
{
    const char *named = getenv("RLOCK_TEST_SERVER");
    return named ? named : "redis-server";
}

/* Of Redis, Valkey and Redict alike: "... v=7.0.15 ..." */
static int major_version(void)
{
    char command[300], line[300] = "";
    snprintf(command, sizeof command, "'%s' --version", program());
    FILE *out = popen(command, "re");
    if (!out || !fgets(line, sizeof line, out))
        FAIL("cannot run %s", command);
    pclose(out);
    const char *v = strstr(line, "v=");
    return v ? atoi(v + 2) : 0;
}

const char *server_unlocked(const char *args)
{
    static _Thread_local char all[300];
    const char *unlocking = "--enable-debug-command yes "
                            "--enable-protected-configs yes";
    snprintf(all, sizeof all, "%s %s", args,
             major_version() < 7 ? "" : unlocking);
    return all;
}

static void make_argv(server *sv, const char *args, bool clocked)
{
    strcpy(sv->port_arg, "0");
    const char *const fixed[] = {
        "--port",    sv->port_arg,  "--bind", "127.0.0.1",    "--unixsocket",
        sv->socket,  "--save",      "",       "--appendonly", "no",
        "--logfile", sv->log,       "--dir",  sv->dir,        "--daemonize",
        "no",        "--databases", "16"};
    int n = clocked ? prefix_clock(sv) : 0;
    sv->argv[n++] = (char *)program();
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        sv->argv[n++] = (char *)fixed[i];
    n = split_args(sv, args, n);
    sv->argv[n] = NULL;
}

static server *new_server(const char *args, bool clocked)
{
    server *sv = calloc(1, sizeof *sv);
    EXPECT(sv);
    pthread_mutex_init(&sv->mutex, NULL);
    pthread_cond_init(&sv->changed, NULL);
    make_dir(sv);
    make_argv(sv, args, clocked);
    sv->ask = asker_new(sv->socket);
    return sv;
}

server *server_start(const char *args)
{
    server *sv = new_server(args, false);
    start_again(sv);
    return sv;
}

server *server_start_clocked(const char *args)
{
    server *sv = new_server(args, true);
    start_again(sv);
    return sv;
}

void server_set_clock(server *sv, long long ahead_s)
{
    atomic_store(sv->ahead_s, ahead_s);
}

server *server_start_tcp(const char *args)
{
    server *sv = new_server(args, false);
    start_on_some_port(sv);
    return sv;
}

static void free_server(server *sv)
{
    asker_free(sv->ask);
    pthread_cond_destroy(&sv->changed);
    pthread_mutex_destroy(&sv->mutex);
    if (sv->ahead_s)
        munmap(sv->ahead_s, sizeof *sv->ahead_s);
    free(sv->args);
    free(sv);
}

/*
 * SIGKILL, for nothing of it is kept: to SIGTERM a server answers only with
 * its next tick, and there are hundreds of tests.
 */
void server_stop(server *sv)
{
    if (!sv)
        return;
    end_process(sv);
    remove_dir(sv->dir);
    free_server(sv);
}

void server_kill(server *sv)
{
    end_process(sv);
}

void server_forget(server *sv)
{
    char path[sizeof sv->dir + sizeof "/appendonlydir"];
    snprintf(path, sizeof path, "%s/appendonlydir", sv->dir);
    remove_dir(path);
    snprintf(path, sizeof path, "%s/dump.rdb", sv->dir);
    unlink(path);
}

/* Files are numbered: appendonly.aof.7.incr.aof. */
static void find_log(const server *sv, char *path, size_t size)
{
    int last = 0, number;
    snprintf(path, size, "%s/appendonlydir", sv->dir);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (sscanf(e->d_name, "appendonly.aof.%d.incr", &number) == 1 &&
            strstr(e->d_name, ".incr.") && number > last)
            last = number;
    if (dir)
        closedir(dir);
    snprintf(path, size, "%s/appendonlydir/appendonly.aof.%d.incr.aof", sv->dir,
             last);
}

bool server_cut_log(server *sv, off_t bytes)
{
    char path[sizeof sv->dir + 64];
    struct stat st;
    find_log(sv, path, sizeof path);
    return stat(path, &st) == 0 && st.st_size > bytes &&
           truncate(path, st.st_size - bytes) == 0;
}

void server_restart(server *sv)
{
    send_signal(sv, SIGTERM);
    send_signal(sv, SIGCONT);
    wait_end(sv, END_LIMIT_MS);
    end_process(sv);
    start_again(sv);
}

/* The state letter in /proc/<pid>/stat, which follows the last bracket. */
static char process_state(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return '\0';
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *bracket = strrchr(text, ')');
    return bracket && bracket[1] ? bracket[2] : '\0';
}

void server_pause(server *sv)
{
    EXPECT(is_running(sv));
    send_signal(sv, SIGSTOP);
    EVENTUALLY(END_LIMIT_MS, process_state(server_pid(sv)) == 'T');
}

void server_resume(server *sv)
{
    send_signal(sv, SIGCONT);
}

const char *server_uri(const server *sv)
{
    return sv->uri;
}

const char *server_path(const server *sv)
{
    return sv->socket;
}

void need_host_names(void)
{
    /* A test program may have a getaddrinfo of its own. */
    if (!gethostbyname("localhost"))
        SKIP("the name localhost is not known here");
}

int server_port(const server *sv)
{
    return sv->port;
}

asker *server_asker(server *sv)
{
    return sv->ask;
}

pid_t server_pid(const server *sv)
{
    server *s = (server *)sv; /* const for the caller; the mutex is ours */
    pthread_mutex_lock(&s->mutex);
    pid_t pid = s->pid;
    pthread_mutex_unlock(&s->mutex);
    return pid;
}

const char *server_file(const server *sv, const char *name)
{
    static char path[300];
    int dir = (int)(strrchr(server_path(sv), '/') - server_path(sv));
    snprintf(path, sizeof path, "%.*s/%s", dir, server_path(sv), name);
    return path;
}

/* Clients and locks. */

rlock_client *server_client(server *sv, const rlock_options *opts)
{
    rlock_options own = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    if (opts)
        own = *opts;
    if (!own.uri && !own.connect)
        own.uri = sv->uri;
    EXPECT_STATUS(rlock_client_new(&own, &cl), RLOCK_OK);
    return cl;
}

rlock *test_lock(rlock_client *cl, const char *name)
{
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_new(cl, name, &lk), RLOCK_OK);
    return lk;
}
