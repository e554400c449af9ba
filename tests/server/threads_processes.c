/*
 * Processes with several threads each at one lock. The counter that it protects
 * is read and written in two steps, so that two owners at a time lose an
 * update.
 */
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scene.h"

enum {
    PROCESSES = 4,
    CHILD_THREADS = 3,
    CHILD_TURNS = SANITIZED ? 10 : 30,
    LONG_MS = 20000
};

typedef struct shop {
    rlock_client *cl;
    char path[128];
} shop;

static redisReply *ask(redisContext *cx, const char *cmd)
{
    redisReply *r = redisCommand(cx, cmd);
    EXPECT(r && r->type != REDIS_REPLY_ERROR);
    return r;
}

/* GET and SET, with nothing but the lock between those of two owners. */
static void count_in_redis(redisContext *cx)
{
    char cmd[64];
    redisReply *r = ask(cx, "GET counter");
    int n = r->str ? atoi(r->str) : 0;
    freeReplyObject(r);
    snprintf(cmd, sizeof cmd, "SET counter %d", n + 1);
    freeReplyObject(ask(cx, cmd));
}

static intptr_t serve_shop(void *arg)
{
    shop *s = arg;
    redisContext *cx = redisConnectUnix(s->path);
    EXPECT(cx && !cx->err);
    rlock *lk = test_lock(s->cl, "shop");
    for (int i = 0; i < CHILD_TURNS; i++) {
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        count_in_redis(cx);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    rlock_free(lk);
    redisFree(cx);
    return 0;
}

/* In a child, forked before anything was started; told the server's path. */
static _Noreturn void run_child(int fd, pid_t parent)
{
    shop s = {0};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[160];
    test_thread *threads[CHILD_THREADS];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || read(fd, s.path, sizeof s.path) <= 0)
        _exit(2);
    snprintf(uri, sizeof uri, "unix://%s", s.path);
    opts.uri = uri;
    opts.command_timeout_ms = LONG_MS;
    EXPECT_STATUS(rlock_client_new(&opts, &s.cl), RLOCK_OK);
    for (int i = 0; i < CHILD_THREADS; i++)
        threads[i] = test_spawn(serve_shop, &s);
    for (int i = 0; i < CHILD_THREADS; i++)
        test_join(threads[i]);
    rlock_client_free(s.cl);
    _exit(0);
}

TEST(threads_processes, processes_that_share_a_lock_lose_no_update)
{
    int fds[PROCESSES][2], status;
    pid_t child[PROCESSES], parent = getpid();
    for (int i = 0; i < PROCESSES; i++) {
        EXPECT_INT(pipe(fds[i]), 0);
        fflush(NULL);
        child[i] = fork();
        EXPECT(child[i] >= 0);
        if (child[i] == 0)
            run_child(fds[i][0], parent);
    }
    server *sv = server_start(NULL);
    char path[128] = "";
    snprintf(path, sizeof path, "%s", server_path(sv));
    for (int i = 0; i < PROCESSES; i++)
        EXPECT_INT(write(fds[i][1], path, sizeof path), sizeof path);
    for (int i = 0; i < PROCESSES; i++) {
        EXPECT(waitpid(child[i], &status, 0) == child[i]);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(fds[i][0]);
        close(fds[i][1]);
    }
    EXPECT_INT(atoi(server_str(sv, "GET counter")),
               PROCESSES * CHILD_THREADS * CHILD_TURNS);
    server_stop(sv);
}
