#include "servers.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_PORT 10000
#define PORTS      10000
#define BUS        10000 /* from a server's port to the one of its bus */

static bench_server *started;
static size_t n_started;

static void await(const bench_server *s)
{
    const char *path = s->uri + strlen("unix://");
    redisContext *c = NULL;
    for (int tries = 500; tries > 0 && (!c || c->err); tries--) {
        if (c)
            redisFree(c);
        bench_pause_us(10000);
        c = redisConnectUnix(path);
    }
    bench_check(c && !c->err, "a server does not start");
    bench_ask(c, "PING");
    redisFree(c);
}

void bench_start(bench_server *s)
{
    pid_t parent = getpid();
    fflush(stdout); /* the child must not print it again */
    s->pid = fork();
    bench_check(s->pid >= 0, "cannot fork");
    if (s->pid > 0) {
        await(s);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !freopen("/dev/null", "w", stdout))
        _exit(1);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
           s->uri + strlen("unix://"), "--save", "", "--appendonly", "no",
           (char *)NULL);
    _exit(1);
}

/* --- with an address ------------------------------------------------------ */

static bool is_free(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0;
    close(fd);
    return good;
}

int bench_choose_port(void)
{
    int port;
    do
        port = FIRST_PORT + (int)(bench_now_ns() / 1000 % PORTS);
    while (!is_free(port) || !is_free(port + BUS));
    return port;
}

const char *bench_port_of(const bench_server *s)
{
    return strrchr(s->uri, ':') + 1;
}

static void await_port(const bench_server *s)
{
    redisContext *c = NULL;
    for (int tries = 2000; tries > 0 && (!c || c->err); tries--) {
        if (c)
            redisFree(c);
        bench_pause_us(10000);
        c = redisConnect("127.0.0.1", atoi(bench_port_of(s)));
    }
    bench_check(c && !c->err, "a server does not start");
    redisFree(c);
}

void bench_start_at(bench_server *s, const char *dir, char *const command[])
{
    pid_t parent = getpid();
    fflush(stdout); /* the child must not print it again */
    s->pid = fork();
    bench_check(s->pid >= 0, "cannot fork");
    if (s->pid > 0) {
        await_port(s);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && chdir(dir) == 0 &&
        freopen("/dev/null", "w", stdout))
        execvp(command[0], command);
    _exit(1);
}

redisReply *bench_reply(const bench_server *s, const char *command)
{
    struct timeval soon = {.tv_usec = 200000};
    redisReply *r = NULL;
    redisContext *c =
        redisConnectWithTimeout("127.0.0.1", atoi(bench_port_of(s)), soon);
    if (c && !c->err && redisSetTimeout(c, soon) == REDIS_OK)
        r = redisCommand(c, command);
    if (c)
        redisFree(c);
    return r;
}

bool bench_says(const bench_server *s, const char *command, const char *text)
{
    redisReply *r = bench_reply(s, command);
    bool found = r && r->type == REDIS_REPLY_STRING && strstr(r->str, text);
    freeReplyObject(r);
    return found;
}

/* --- either --------------------------------------------------------------- */

void bench_stop(bench_server *s)
{
    if (s->pid <= 0)
        return;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void bench_hang(bench_server *s)
{
    kill(s->pid, SIGSTOP);
    waitpid(s->pid, NULL, WUNTRACED);
}

static void stop_all(void)
{
    for (size_t i = 0; i < n_started; i++)
        bench_stop(&started[i]);
}

void bench_start_servers(bench_server s[], size_t n, const char *uri)
{
    snprintf(s[0].uri, sizeof s[0].uri, "%s", uri);
    started = s;
    n_started = n;
    atexit(stop_all);
    for (size_t i = 1; i < n; i++) {
        int len = snprintf(s[i].uri, sizeof s[i].uri, "%s.%zu", uri, i + 1);
        bench_check(len < (int)sizeof s[i].uri, "the path is too long");
        bench_start(&s[i]);
    }
}

/* Until it has what is written at once, twice: the first time may be by chance
 * (it has got all, and asks for what comes next a second later). */
void bench_follow(redisContext *master, const char *replica, const char *tcp)
{
    char command[64];
    redisContext *c = bench_connect(replica);
    snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %s",
             strrchr(tcp, ':') + 1);
    /* No file is left where the program runs. */
    bench_ask(master, "CONFIG SET repl-diskless-sync yes");
    bench_ask(master, "CONFIG SET repl-diskless-sync-delay 0");
    bench_ask(c, "CONFIG SET repl-diskless-load swapdb");
    bench_ask(c, command);
    for (int good = 0, tries = 0; good < 2; tries++) {
        bench_check(tries < 100, "the replica does not follow");
        bench_ask(master, "SET bench:follows 1");
        good = bench_ask(master, "WAIT 1 100") == 1 ? good + 1 : 0;
    }
    redisFree(c);
}

static long long calls_of(const char *info, const char *command)
{
    char key[64];
    snprintf(key, sizeof key, "cmdstat_%s:calls=", command);
    const char *at = strstr(info, key);
    return at ? atoll(at + strlen(key)) : 0;
}

long long bench_script_calls(const char *uri)
{
    redisContext *c = bench_connect(uri);
    redisReply *r = redisCommand(c, "INFO commandstats");
    bench_check(r && r->type == REDIS_REPLY_STRING, "INFO");
    long long calls = calls_of(r->str, "evalsha") + calls_of(r->str, "eval");
    freeReplyObject(r);
    redisFree(c);
    return calls;
}
