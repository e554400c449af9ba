#include "scene.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rlock/metrics.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

scene scene_server(const char *args)
{
    scene s = {.sv = server_start(args), .opts = RLOCK_OPTIONS_INIT};
    server_load_scripts(s.sv);
    return s;
}

static void join(scene *s)
{
    s->ev = events_new();
    events_hook(s->ev, &s->opts);
    s->cl = server_client(s->sv, &s->opts);
    s->lk = test_lock(s->cl, SCENE_LOCK);
}

void scene_client(scene *s, int64_t lease_ms, int64_t timeout_ms)
{
    s->opts.watchdog_lease_ms = lease_ms;
    s->opts.command_timeout_ms = timeout_ms;
    if (s->px)
        s->opts.uri = proxy_uri(s->px);
    join(s);
}

scene scene_start(int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_server(NULL);
    scene_client(&s, lease_ms, timeout_ms);
    return s;
}

scene scene_proxied(int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_server(NULL);
    s.px = proxy_start(s.sv);
    scene_client(&s, lease_ms, timeout_ms);
    return s;
}

scene scene_held(int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_start(lease_ms, timeout_ms);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    return s;
}

scene scene_held_proxied(int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_proxied(lease_ms, timeout_ms);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    return s;
}

scene scene_with(server *sv, const rlock_options *opts)
{
    scene s = {.sv = sv, .opts = *opts};
    join(&s);
    return s;
}

void scene_free_client(scene *s)
{
    rlock_free(s->lk);
    rlock_client_free(s->cl);
    s->lk = NULL;
    s->cl = NULL;
}

void scene_free_in_child(scene *s)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        scene_free_client(s);
        _exit(0);
    }
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(status, 0);
}

void scene_leave(scene *s)
{
    if (s->cl || s->lk)
        scene_free_client(s);
    events_free(s->ev);
}

void scene_stop(scene *s)
{
    scene_leave(s);
    if (s->px)
        proxy_stop(s->px);
    server_stop(s->sv);
}

int64_t expect_no_client(const char *uri, int64_t connect_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    opts.uri = uri;
    opts.connect_timeout_ms = connect_ms;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_EIO);
    return test_now_ms() - began_ms;
}

rlock_stats stats_of(rlock_client *cl)
{
    rlock_stats stats;
    EXPECT_STATUS(rlock_client_stats(cl, &stats, sizeof stats), RLOCK_OK);
    return stats;
}

typedef struct wanted {
    const char *name, *labels;
    double value;
    int found;
} wanted;

static void compare(const rlock_metric *m, void *arg)
{
    wanted *x = arg;
    if (strcmp(m->name, x->name) != 0 || strcmp(m->labels, x->labels) != 0)
        return;
    x->value = m->value;
    x->found++;
}

double figure_of(rlock_client *cl, const char *name, const char *labels)
{
    wanted x = {name, labels, 0, 0};
    EXPECT_STATUS(rlock_metrics_each(cl, compare, &x), RLOCK_OK);
    EXPECT_INT(x.found, 1);
    return x.value;
}

long long script_calls(server *sv)
{
    return server_calls(sv, "evalsha") + server_calls(sv, "eval");
}

long long queued(server *sv, const char *name)
{
    return server_int(sv, "ZCARD rlock_queue:{%s}", name);
}

long long levels(server *sv, const char *name)
{
    redisReply *r = server_cmd(sv, "HVALS %s", name);
    long long sum = 0;
    if (r->type != REDIS_REPLY_ARRAY)
        FAIL("HVALS %s: %s", name, r->str ? r->str : "no array");
    for (size_t i = 0; i < r->elements; i++)
        sum += atoll(r->element[i]->str);
    return sum;
}

bool key_exists(server *sv, const char *key)
{
    return server_int(sv, "EXISTS %s", key) == 1;
}

long long key_ttl(server *sv, const char *key)
{
    return server_int(sv, "PTTL %s", key);
}

static long long number_behind(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? atoll(at + strlen(key)) : 0;
}

/* A sign of life may be asked for at any time. */
long long commands(server *sv)
{
    const char *all = server_str(sv, "INFO all");
    return number_behind(all, "total_commands_processed:") -
           number_behind(all, "cmdstat_pexpire:calls=");
}

int requests(proxy *px)
{
    return proxy_count(px, "") - proxy_count(px, "$7\r\nPEXPIRE\r\n");
}

void read_lock(server *sv, char *holder, size_t size, int *count)
{
    redisReply *reply = server_cmd(sv, "HGETALL " SCENE_LOCK);
    EXPECT_INT(reply->type, REDIS_REPLY_ARRAY);
    EXPECT_INT(reply->elements, 2);
    snprintf(holder, size, "%s", reply->element[0]->str);
    *count = atoi(reply->element[1]->str);
}

void take_by_hand(server *sv, const char *name, int64_t ttl_ms)
{
    EXPECT_INT(server_int(sv, "HSET %s " BY_HAND " 1", name), 1);
    if (ttl_ms)
        server_int(sv, "PEXPIRE %s %lld", name, (long long)ttl_ms);
}

void hold_by_hand(server *sv, const char *name)
{
    take_by_hand(sv, name, 0);
    server_cmd(sv, "SET rlock_token:{%s} 1000 PX 300000", name);
}

void watch_renewals(rlock_client *cl, int more)
{
    uint64_t until = stats_of(cl).renewals + (uint64_t)more;
    EVENTUALLY(SOON, stats_of(cl).renewals >= until);
}

void expect_renewals(scene *s, int more)
{
    watch_renewals(s->cl, more);
}

void expect_hold_lost(scene *s)
{
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, 20000);
    EXPECT(!rlock_is_held(s->lk));
    EXPECT_INT(rlock_valid_ms(s->lk), 0);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_LOST);
    EXPECT_INT(stats_of(s->cl).lost, 1);
}

void expect_undisturbed(scene *s)
{
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    if (s->opts.watchdog_lease_ms)
        expect_renewals(s, 1);
    EXPECT(rlock_is_held(s->lk));
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_INT(stats_of(s->cl).lost, 0);
    expect_nothing_left(s->sv);
}

scene scene_undisturbed(const char *args, int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_server(args);
    scene_client(&s, lease_ms, timeout_ms);
    expect_undisturbed(&s);
    return s;
}

scene scene_undisturbed_proxied(int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_proxied(lease_ms, timeout_ms);
    expect_undisturbed(&s);
    return s;
}

void lock_times(rlock *lk, int n)
{
    while (n-- > 0)
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
}

void unlock_times(rlock *lk, int n, rlock_status wanted)
{
    while (n-- > 0)
        EXPECT_STATUS(rlock_unlock(lk), wanted);
}

rlock_status in_time(rlock_status status, int64_t began_ms, int64_t limit_ms)
{
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, limit_ms + SLACK_MS);
    return status;
}

/* --- threads ------------------------------------------------------------- */

intptr_t lock_once(void *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    return 0;
}

typedef struct request {
    rlock_status (*verb)(rlock *lk);
    rlock *lk;
} request;

static intptr_t ask(void *arg)
{
    const request *r = arg;
    return r->verb(r->lk);
}

rlock_status on_another_thread(rlock_status (*verb)(rlock *lk), rlock *lk)
{
    request r = {verb, lk};
    return (rlock_status)test_join(test_spawn(ask, &r));
}

/* --- waiters ------------------------------------------------------------- */

struct waiter {
    test_thread *thread;
    rlock *lk;
    int64_t wait_ms, lease_ms;
    int64_t at_ms;
    rlock_status status;
    atomic_bool returned, go_on;
};

static intptr_t wait_and_unlock(void *arg)
{
    waiter *w = arg;
    w->status = rlock_acquire(w->lk, w->wait_ms, w->lease_ms);
    w->at_ms = test_now_ms();
    atomic_store(&w->returned, true);
    if (w->status != RLOCK_OK)
        return 0;
    while (!atomic_load(&w->go_on))
        test_pause_ms(1);
    rlock_unlock(w->lk);
    return 0;
}

waiter *waiter_start(rlock *lk, int64_t wait_ms, int64_t lease_ms)
{
    waiter *w = calloc(1, sizeof *w);
    EXPECT(w);
    w->lk = lk;
    w->wait_ms = wait_ms;
    w->lease_ms = lease_ms;
    w->thread = test_spawn(wait_and_unlock, w);
    return w;
}

/* In this order: what is asleep after it was queued, sleeps in the queue. */
void waiters_settle(server *sv, int n, rlock_client *cl, int n_threads)
{
    EVENTUALLY(20000, queued(sv, SCENE_LOCK) == n &&
                          stats_of(cl).waiting_now == (uint64_t)n_threads);
}

bool waiter_returned(waiter *w)
{
    return atomic_load(&w->returned);
}

rlock_status waiter_status(waiter *w, int64_t *at_ms)
{
    EVENTUALLY(25000, waiter_returned(w));
    if (at_ms)
        *at_ms = w->at_ms;
    return w->status;
}

void waiter_expect_rung(waiter *w, int64_t since_ms)
{
    int64_t at_ms;
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - since_ms, 0, WELL_BEFORE_POLL_MS);
}

rlock_status waiter_end(waiter *w)
{
    atomic_store(&w->go_on, true);
    test_join(w->thread);
    rlock_status status = w->status;
    free(w);
    return status;
}

/* --- processes ----------------------------------------------------------- */

struct child {
    pid_t pid;
    int fd; /* this side's end of a socket pair */
    char uri[256];
};

static child *child_new(pid_t pid, int fd)
{
    child *c = calloc(1, sizeof *c);
    EXPECT(c);
    c->pid = pid;
    c->fd = fd;
    return c;
}

static void child_free(child *c)
{
    close(c->fd);
    free(c);
}

child *child_start(void (*fn)(child *c, void *arg), void *arg)
{
    return child_start_by(fork, fn, arg);
}

child *child_start_by(pid_t (*new_process)(void),
                      void (*fn)(child *c, void *arg), void *arg)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    fflush(NULL);
    pid_t parent = getpid(), pid = new_process();
    EXPECT(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* 0: it cannot be seen from the child's pid namespace. */
        if (getppid() != parent && getppid() != 0)
            _exit(1);
        close(fds[0]);
        fn(child_new(0, fds[1]), arg);
        _exit(0);
    }
    close(fds[1]);
    return child_new(pid, fds[0]);
}

static void child_send(child *c, const void *what, size_t size)
{
    EXPECT_INT(send(c->fd, what, size, MSG_NOSIGNAL), size);
}

static void child_receive(child *c, void *what, size_t size)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, 25000), 1);
    EXPECT_INT(recv(c->fd, what, size, MSG_WAITALL), size);
}

void child_give_uri(child *c, const server *sv)
{
    snprintf(c->uri, sizeof c->uri, "%s", server_uri(sv));
    child_send(c, c->uri, sizeof c->uri);
}

const char *child_take_uri(child *c)
{
    child_receive(c, c->uri, sizeof c->uri);
    return c->uri;
}

void child_tell(child *c, char what)
{
    child_send(c, &what, 1);
}

char child_hear(child *c)
{
    char heard = 0;
    child_receive(c, &heard, 1);
    return heard;
}

void child_expect(child *c, char what)
{
    EXPECT_INT(child_hear(c), what);
}

pid_t child_pid(const child *c)
{
    return c->pid;
}

void child_stop(child *c)
{
    int status;
    EXPECT_INT(kill(c->pid, SIGSTOP), 0);
    EXPECT_INT(waitpid(c->pid, &status, WUNTRACED), c->pid);
    EXPECT(WIFSTOPPED(status));
}

void child_continue(child *c)
{
    EXPECT_INT(kill(c->pid, SIGCONT), 0);
}

void child_kill(child *c)
{
    EXPECT_INT(kill(c->pid, SIGKILL), 0);
    EXPECT_INT(waitpid(c->pid, NULL, 0), c->pid);
    child_free(c);
}

void child_end(child *c)
{
    int status;
    EXPECT_INT(waitpid(c->pid, &status, 0), c->pid);
    EXPECT(WIFEXITED(status));
    EXPECT_INT(WEXITSTATUS(status), 0);
    child_free(c);
}

server *children_meet(int n, void (*fn)(child *c, void *arg))
{
    child *c[8];
    EXPECT_BETWEEN(n, 1, 8);
    for (int i = 0; i < n; i++)
        c[i] = child_start(fn, NULL);
    server *sv = server_start(NULL);
    for (int i = 0; i < n; i++)
        child_give_uri(c[i], sv);
    for (int i = 0; i < n; i++)
        child_tell(c[i], 'g');
    for (int i = 0; i < n; i++)
        child_expect(c[i], 'd');
    for (int i = 0; i < n; i++)
        child_end(c[i]);
    return sv;
}

rlock_client *user_client(server *sv)
{
    char uri[200];
    rlock_options o = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "unix://app:secret@%s", server_path(sv));
    o.uri = uri;
    return server_client(sv, &o);
}
