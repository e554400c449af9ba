#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* No benchmark runs for so long; one that hangs is ended. */
#define LIMIT_S 300

/* A machine that is quiet takes the processor away more rarely, per second. */
#define BUSY_RATE 20

void bench_check(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "benchmark failed: %s\n", what);
    exit(1);
}

void bench_ok(rlock_status s)
{
    bench_check(s == RLOCK_OK, rlock_last_error()->message);
}

int64_t bench_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void bench_pause_us(int64_t us)
{
    struct timespec ts = {.tv_sec = us / 1000000,
                          .tv_nsec = us % 1000000 * 1000};
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
        ;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void *bench_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);
    bench_check(p != NULL, "out of memory");
    return p;
}

double bench_memory(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    bench_check(f && fscanf(f, "%*d %ld", &pages) == 1, "/proc/self/statm");
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

int bench_threads(void)
{
    char line[256];
    int n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f) &&
           sscanf(line, "Threads: %d", &n) != 1)
        ;
    bench_check(f && n > 0, "/proc/self/status");
    fclose(f);
    return n;
}

void *bench_share(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bench_check(p != MAP_FAILED, "no shared memory");
    return p;
}

bool bench_fork(void)
{
    fflush(stdout); /* a child that fails would print the rows so far again */
    pid_t parent = getpid(), pid = fork();
    bench_check(pid >= 0, "cannot fork");
    if (pid > 0)
        return false;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it inherits no alarm */
    if (getppid() != parent)
        _exit(1);
    return true;
}

void bench_join(void)
{
    int status;
    pid_t pid = wait(&status);
    bench_check(pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                "a child failed");
}

redisContext *bench_connect(const char *uri)
{
    const char *tcp = "redis://127.0.0.1:";
    redisContext *c = strncmp(uri, tcp, strlen(tcp)) == 0
                          ? redisConnect("127.0.0.1", atoi(uri + strlen(tcp)))
                          : redisConnectUnix(uri + strlen("unix://"));
    bench_check(c && !c->err, "cannot connect");
    return c;
}

static pid_t server_pid(const char *uri)
{
    redisContext *c = bench_connect(uri);
    redisReply *r = redisCommand(c, "INFO server");
    bench_check(r && r->type == REDIS_REPLY_STRING, "INFO");
    const char *pid = strstr(r->str, "process_id:");
    bench_check(pid != NULL, "process_id");
    pid_t found = atoi(pid + strlen("process_id:"));
    freeReplyObject(r);
    redisFree(c);
    return found;
}

static bool pin(pid_t pid, int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return sched_setaffinity(pid, sizeof set, &set) == 0;
}

bool bench_place(const char *uri, bool apart)
{
    return pin(server_pid(uri), 0) && pin(0, apart ? 1 : 0);
}

bool bench_displace(const char *uri)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++)
        CPU_SET(i, &set);
    return sched_setaffinity(server_pid(uri), sizeof set, &set) == 0 &&
           sched_setaffinity(0, sizeof set, &set) == 0;
}

rlock_client *bench_client(const char *uri)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = uri;
    bench_ok(rlock_client_new(&o, &cl));
    return cl;
}

rlock *bench_lock(rlock_client *cl, const char *name)
{
    rlock *lk;
    bench_ok(rlock_new(cl, name, &lk));
    return lk;
}

long long bench_ask(redisContext *c, const char *command)
{
    redisReply *r = redisCommand(c, command);
    bench_check(r && r->type != REDIS_REPLY_ERROR, command);
    long long number = r->type == REDIS_REPLY_INTEGER ? r->integer : 0;
    freeReplyObject(r);
    return number;
}

void bench_load_raw(redisContext *c, char sha1[41])
{
    redisReply *r =
        redisCommand(c, "SCRIPT LOAD %s",
                     "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                     "return redis.call('DEL', KEYS[1]) else return 0 end");
    bench_check(r && r->type == REDIS_REPLY_STRING && r->len == 40, "SCRIPT");
    strcpy(sha1, r->str);
    freeReplyObject(r);
}

void bench_raw_pair(redisContext *c, const char *sha1, const char *key)
{
    redisReply *r = redisCommand(c, "SET %s %s NX PX 30000", key, BENCH_VALUE);
    bench_check(r && r->type == REDIS_REPLY_STATUS, "SET");
    freeReplyObject(r);
    r = redisCommand(c, "EVALSHA %s 1 %s %s", sha1, key, BENCH_VALUE);
    bench_check(r && r->type == REDIS_REPLY_INTEGER && r->integer == 1,
                "EVALSHA");
    freeReplyObject(r);
}

double bench_server_us(redisContext *c)
{
    redisReply *r = redisCommand(c, "INFO cpu");
    bench_check(r && r->type == REDIS_REPLY_STRING, "INFO");
    const char *sys = strstr(r->str, "used_cpu_sys:");
    const char *user = strstr(r->str, "used_cpu_user:");
    bench_check(sys && user, "INFO cpu");
    double s = strtod(strchr(sys, ':') + 1, NULL) +
               strtod(strchr(user, ':') + 1, NULL);
    freeReplyObject(r);
    return s * 1e6;
}

int64_t bench_ping_ns(redisContext *c)
{
    int64_t began = bench_now_ns();
    bench_ask(c, "PING");
    return bench_now_ns() - began;
}

int bench_free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bench_check(fd >= 0 && bind(fd, (struct sockaddr *)&a, size) == 0 &&
                    getsockname(fd, (struct sockaddr *)&a, &size) == 0,
                "no free port");
    close(fd);
    return ntohs(a.sin_port);
}

void bench_open_port(const char *uri, char tcp[64])
{
    char command[64];
    int port = bench_free_port();
    redisContext *c = bench_connect(uri);
    snprintf(command, sizeof command, "CONFIG SET port %d", port);
    bench_ask(c, command);
    redisFree(c);
    snprintf(tcp, 64, "redis://127.0.0.1:%d", port);
}

/* --- rows ---------------------------------------------------------------- */

static int64_t began_ns;
static long taken_before;

/* How often the processor was taken from this thread. */
static long taken(void)
{
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    return u.ru_nivcsw;
}

void bench_begin(void)
{
    began_ns = bench_now_ns();
    taken_before = taken();
}

static void print_busy(void)
{
    double seconds = (double)(bench_now_ns() - began_ns) / 1e9;
    double rate = (double)(taken() - taken_before) / seconds;
    if (began_ns && rate > BUSY_RATE)
        printf("; the machine was busy: %.0f times a second", rate);
}

void bench_row(const char *what, double limit, double measured,
               const char *unit, const char *remarks, ...)
{
    va_list args;
    printf("| %s | %g%s | %.2f%s%s | ", what, limit, unit, measured, unit,
           measured > limit ? " (missed)" : "");
    va_start(args, remarks);
    vprintf(remarks, args);
    va_end(args);
    print_busy();
    printf(" |\n");
}

void bench_note(const char *what, const char *measured, ...)
{
    va_list args;
    printf("| %s | | ", what);
    va_start(args, measured);
    vprintf(measured, args);
    va_end(args);
    printf(" | |\n");
}

const char *bench_uri(int argc, char **argv)
{
    bench_check(argc == 2 && strncmp(argv[1], "unix:///", 8) == 0,
                "usage: PROGRAM unix:///path");
    alarm(LIMIT_S);
    return argv[1];
}
