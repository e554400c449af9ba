#include "asker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "script_text.h"

enum { CMD_LIMIT_S = 20 };

/* A thread's last reply, kept until its next command. */
typedef struct answer answer;

struct answer {
    answer *next;
    pid_t tid;
    redisReply *reply;
};

struct asker {
    const char *path;
    pthread_mutex_t mutex;
    redisContext *cx; /* guarded by mutex */
    pid_t pid;        /* guarded by mutex; the process that opened cx */
    answer *answers;  /* guarded by mutex */
};

asker *asker_new(const char *path)
{
    asker *a = calloc(1, sizeof *a);
    EXPECT(a);
    a->path = path;
    pthread_mutex_init(&a->mutex, NULL);
    return a;
}

static void hang_up_locked(asker *a)
{
    if (a->cx)
        redisFree(a->cx);
    a->cx = NULL;
}

void asker_free(asker *a)
{
    hang_up_locked(a);
    while (a->answers) {
        answer *an = a->answers;
        a->answers = an->next;
        freeReplyObject(an->reply);
        free(an);
    }
    pthread_mutex_destroy(&a->mutex);
    free(a);
}

void asker_block_signals(sigset_t *old)
{
    sigset_t set;
    sigfillset(&set);
    sigdelset(&set, SIGSEGV);
    sigdelset(&set, SIGBUS);
    sigdelset(&set, SIGFPE);
    sigdelset(&set, SIGILL);
    sigdelset(&set, SIGABRT);
    pthread_sigmask(SIG_BLOCK, &set, old);
}

void asker_unblock_signals(const sigset_t *old)
{
    const struct timespec now = {0, 0};
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!sigismember(old, SIGPIPE))
        sigtimedwait(&pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

static bool connect_locked(asker *a)
{
    struct timeval limit = {CMD_LIMIT_S, 0};
    a->cx = redisConnectUnixWithTimeout(a->path, limit);
    if (a->cx && !a->cx->err && redisSetTimeout(a->cx, limit) == REDIS_OK) {
        fcntl(a->cx->fd, F_SETFD, FD_CLOEXEC);
        return true;
    }
    return false;
}

static redisReply *ask_once_locked(asker *a, const char *cmd, int len)
{
    void *reply = NULL;
    errno = 0;
    if (!a->cx && !connect_locked(a))
        return NULL;
    redisAppendFormattedCommand(a->cx, cmd, (size_t)len);
    redisGetReply(a->cx, &reply);
    return reply;
}

/* A connection that was used before may have been closed by the server. */
static redisReply *ask_locked(asker *a, const char *cmd, int len)
{
    if (a->pid != getpid())
        hang_up_locked(a); /* after a fork() it is the parent's */
    a->pid = getpid();
    bool used = a->cx != NULL;
    redisReply *reply = ask_once_locked(a, cmd, len);
    if (!reply && used && errno != EAGAIN) {
        hang_up_locked(a);
        reply = ask_once_locked(a, cmd, len);
    }
    return reply;
}

static void keep_answer_locked(asker *a, redisReply *reply)
{
    answer *an = a->answers;
    while (an && an->tid != gettid())
        an = an->next;
    if (!an) {
        an = calloc(1, sizeof *an);
        EXPECT(an);
        an->tid = gettid();
        an->next = a->answers;
        a->answers = an;
    }
    if (an->reply)
        freeReplyObject(an->reply);
    an->reply = reply;
}

redisReply *asker_cmd(server *sv, const char *fmt, va_list ap)
{
    asker *a = server_asker(sv);
    char *cmd;
    char why[200] = "no memory";
    int len = redisvFormatCommand(&cmd, fmt, ap);
    if (len < 0)
        FAIL("bad format of a command: %s", fmt);
    sigset_t old;
    asker_block_signals(&old);
    pthread_mutex_lock(&a->mutex);
    redisReply *reply = ask_locked(a, cmd, len);
    if (reply) {
        keep_answer_locked(a, reply);
    } else if (a->cx) {
        snprintf(why, sizeof why, "%s", a->cx->errstr);
        hang_up_locked(a);
    }
    pthread_mutex_unlock(&a->mutex);
    asker_unblock_signals(&old);
    redisFreeCommand(cmd);
    if (!reply)
        FAIL("no answer to \"%s\": %s", fmt, why);
    return reply;
}

redisReply *server_cmd(server *sv, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    redisReply *reply = asker_cmd(sv, fmt, ap);
    va_end(ap);
    return reply;
}

long long asker_int(server *sv, const char *fmt, va_list ap)
{
    const redisReply *reply = asker_cmd(sv, fmt, ap);
    if (reply->type != REDIS_REPLY_INTEGER)
        FAIL("\"%s\" has no integer as its reply: type %d, \"%s\"", fmt,
             reply->type, reply->str ? reply->str : "");
    return reply->integer;
}

long long server_int(server *sv, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    long long n = asker_int(sv, fmt, ap);
    va_end(ap);
    return n;
}

void server_hold_back(server *sv, int ms)
{
    EXPECT_STR(server_str(sv, "CLIENT PAUSE %d ALL", ms), "OK");
}

const char *server_str(server *sv, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const redisReply *reply = asker_cmd(sv, fmt, ap);
    va_end(ap);
    if (reply->type == REDIS_REPLY_NIL)
        return "";
    if (!reply->str)
        FAIL("\"%s\" has no text as its reply: type %d", fmt, reply->type);
    return reply->str;
}

/* What follows `key` at the beginning of a line, or NULL. */
static const char *line_with(const char *text, const char *key)
{
    size_t len = strlen(key);
    while (text && strncmp(text, key, len) != 0) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text ? text + len : NULL;
}

static long long number_in(const char *info, const char *field)
{
    char key[128];
    snprintf(key, sizeof key, "%s:", field);
    const char *value = line_with(info, key);
    char *end = NULL;
    long long number = value ? strtoll(value, &end, 10) : 0;
    if (!value || end == value)
        FAIL("INFO has no number for \"%s\"", field);
    return number;
}

long long server_info(server *sv, const char *field)
{
    return number_in(server_str(sv, "INFO all"), field);
}

long long server_closed(server *sv)
{
    const char *info = server_str(sv, "INFO all");
    return number_in(info, "total_connections_received") -
           number_in(info, "connected_clients");
}

long long server_calls(server *sv, const char *command)
{
    char key[128];
    snprintf(key, sizeof key, "cmdstat_%s:calls=", command);
    const char *value = line_with(server_str(sv, "INFO commandstats"), key);
    return value ? strtoll(value, NULL, 10) : 0;
}

void server_load_scripts(server *sv)
{
    for (int i = 0; i < RL_SCRIPT_COUNT; i++) {
        const char *text = script_text(rl_scripts[i].name);
        const char *sha1 = server_str(sv, "SCRIPT LOAD %s", text);
        EXPECT_STR(sha1, script_sha(i));
    }
}
