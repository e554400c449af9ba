/*
 * The process of a redis-server, and its keeper.
 *
 * The kernel kills the server when its parent ends (PR_SET_PDEATHSIG), so a
 * test that crashes leaves no process behind. "Parent" there means the thread
 * that forked, and a test may start or restart its server on any thread:
 * therefore each server has a thread of its own, the keeper, which forks it,
 * waits for its end, and ends with it.
 */
#include "server_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READY_LIMIT_MS = 20000 }; /* sanitizers and busy machines are slow */

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

_Noreturn void process_fail(const server *sv, const char *what)
{
    char tail[1200];
    FAIL("redis-server %s; its log ends:\n%s", what,
         log_tail(sv, tail, sizeof tail));
}

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
void process_launch(server *sv)
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

bool process_runs(server *sv)
{
    pthread_mutex_lock(&sv->mutex);
    bool running = sv->running;
    pthread_mutex_unlock(&sv->mutex);
    return running;
}

void process_signal(server *sv, int sig)
{
    pthread_mutex_lock(&sv->mutex);
    if (sv->running)
        kill(sv->pid, sig);
    pthread_mutex_unlock(&sv->mutex);
}

void process_wait_end(server *sv, int limit_ms)
{
    int64_t until = test_now_ms() + limit_ms;
    while (process_runs(sv) && test_now_ms() < until)
        test_pause_ms(1);
}

void process_end(server *sv)
{
    if (!sv->has_keeper)
        return;
    process_signal(sv, SIGKILL);
    pthread_join(sv->keeper, NULL);
    sv->has_keeper = false;
}

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

bool process_wait_ready(server *sv)
{
    int64_t until = test_now_ms() + READY_LIMIT_MS;
    sigset_t old;
    asker_block_signals(&old);
    bool ready = false;
    while (!ready && process_runs(sv) && test_now_ms() < until) {
        ready = answers_ping(sv);
        if (!ready)
            test_pause_ms(1);
    }
    asker_unblock_signals(&old);
    if (!ready && process_runs(sv))
        process_fail(sv, "does not answer");
    return ready;
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
    EXPECT(process_runs(sv));
    process_signal(sv, SIGSTOP);
    EVENTUALLY(END_LIMIT_MS, process_state(server_pid(sv)) == 'T');
}

void server_resume(server *sv)
{
    process_signal(sv, SIGCONT);
}

pid_t server_pid(const server *sv)
{
    server *s = (server *)sv; /* const for the caller; the mutex is ours */
    pthread_mutex_lock(&s->mutex);
    pid_t pid = s->pid;
    pthread_mutex_unlock(&s->mutex);
    return pid;
}
