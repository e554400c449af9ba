#include "sentinels.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 5, MOST_MASTERS = 3 };

typedef struct one {
    const char *password;
    int port;
    pid_t pid; /* 0: it is dead */
    char conf[160], log[160];
    redisContext *ctx;
} one;

struct sentinels {
    char dir[128], uri[MOST_MASTERS][256], password[32];
    int n, masters, master_port[MOST_MASTERS];
    const authority *a; /* for TLS, or NULL */
    int secure_port;
    one at[MOST];
};

/* --- a replica ------------------------------------------------------------ */

/* WAIT is about what its own connection has written. */
bool replica_follows(server *master)
{
    server_cmd(master, "SET rlock:test:replicates 1 PX 1000");
    return server_int(master, "WAIT 1 100") >= 1;
}

server *replica_start(server *master)
{
    char args[64];
    server_cmd(master, "CONFIG SET repl-diskless-sync-delay 0");
    snprintf(args, sizeof args, "--replicaof 127.0.0.1 %d",
             server_port(master));
    server *replica = server_start_tcp(args);
    EVENTUALLY(SOON, replica_follows(master));
    return replica;
}

server *replica_start_secure(server *master, int master_port,
                             const authority *a, int *port)
{
    server *replica = server_start_tcp(NULL);
    *port = secure_listen(replica, a, "server", "no");
    server_cmd(master, "CONFIG SET repl-diskless-sync-delay 0");
    server_cmd(master, "CONFIG SET tls-replication yes");
    server_cmd(replica, "CONFIG SET tls-replication yes");
    server_cmd(replica, "REPLICAOF 127.0.0.1 %d", master_port);
    EVENTUALLY(SOON, replica_follows(master));
    return replica;
}

/* --- Sentinels ------------------------------------------------------------ */

static void configure_tls(FILE *f, const sentinels *s)
{
    fprintf(f,
            "tls-port %d\ntls-replication yes\ntls-auth-clients no\n"
            "tls-cert-file %s\ntls-key-file %s\ntls-ca-cert-file %s\n",
            s->secure_port, authority_file(s->a, "server"),
            authority_file(s->a, "server.key"), authority_file(s->a, "ca"));
}

static const char *const names[MOST_MASTERS] = {
    SENTINELS_MASTER, SENTINELS_MASTER "2", SENTINELS_MASTER "3"};

/*
 * How long a master is silent before it is thought dead. Three masters and what
 * watches them are many processes, and one that is only late is not to be
 * replaced.
 */
static int down_after_ms(const sentinels *s)
{
    return s->masters > 1 ? 1000 : 300;
}

static void configure(sentinels *s, one *o)
{
    FILE *f = fopen(o->conf, "w");
    EXPECT(f);
    fprintf(f, "port %d\nbind 127.0.0.1\ndir %s\n", o->port, s->dir);
    for (int i = 0; i < s->masters; i++)
        fprintf(f,
                "sentinel monitor %s 127.0.0.1 %d %d\n"
                "sentinel down-after-milliseconds %s %d\n"
                "sentinel failover-timeout %s 2000\n",
                names[i], s->master_port[i], s->n / 2 + 1, names[i],
                down_after_ms(s), names[i]);
    if (*s->password)
        fprintf(f, "requirepass %s\n", s->password);
    if (s->a)
        configure_tls(f, s);
    fclose(f);
}

static void launch(one *o)
{
    const char *program = getenv("RLOCK_TEST_SERVER");
    if (!program)
        program = "redis-server";
    o->pid = fork();
    EXPECT(o->pid >= 0);
    if (o->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(o->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execlp(program, program, o->conf, "--sentinel", (char *)NULL);
    _exit(127);
}

/* NULL: it does not answer, or with an error. */
static redisReply *ask(one *o, const char *command)
{
    struct timeval limit = {1, 0};
    if (!o->ctx) {
        o->ctx = redisConnectWithTimeout("127.0.0.1", o->port, limit);
        if (o->ctx && !o->ctx->err && *o->password)
            freeReplyObject(redisCommand(o->ctx, "AUTH %s", o->password));
    }
    redisReply *r =
        o->ctx && !o->ctx->err ? redisCommand(o->ctx, command) : NULL;
    if (!r && o->ctx) {
        redisFree(o->ctx);
        o->ctx = NULL;
    }
    if (r && r->type == REDIS_REPLY_ERROR) {
        freeReplyObject(r);
        r = NULL;
    }
    return r;
}

/* What is behind a name in a list of both; NULL: nothing. */
static const char *behind(const redisReply *r, const char *name)
{
    for (size_t i = 0; r && i + 1 < r->elements; i += 2)
        if (strcmp(r->element[i]->str, name) == 0)
            return r->element[i + 1]->str;
    return NULL;
}

/* The value behind a name of "SENTINEL MASTER". */
static long long value(one *o, const char *master, const char *name)
{
    char command[64];
    snprintf(command, sizeof command, "SENTINEL MASTER %s", master);
    redisReply *r = ask(o, command);
    const char *text = behind(r, name);
    long long n = text ? atoll(text) : -1;
    if (r)
        freeReplyObject(r);
    return n;
}

static bool says(one *o, const char *command)
{
    redisReply *r = ask(o, command);
    bool ok = r != NULL;
    if (r)
        freeReplyObject(r);
    return ok;
}

static bool is_ready(sentinels *s, one *o)
{
    for (int i = 0; i < s->masters; i++)
        if (value(o, names[i], "num-other-sentinels") != s->n - 1 ||
            value(o, names[i], "num-slaves") < 1)
            return false;
    return true;
}

static sentinels *prepare(int master_port, int n)
{
    const char *tmp = getenv("TMPDIR");
    sentinels *s = calloc(1, sizeof *s);
    EXPECT(s && n <= MOST);
    snprintf(s->dir, sizeof s->dir, "%.80s/rlock-sentinels-XXXXXX",
             tmp ? tmp : "/tmp");
    EXPECT(mkdtemp(s->dir));
    s->n = n;
    s->masters = 1;
    s->master_port[0] = master_port;
    return s;
}

static void start_one(sentinels *s, int i)
{
    one *o = &s->at[i];
    o->password = s->password;
    o->port = server_free_port();
    snprintf(o->conf, sizeof o->conf, "%s/%d.conf", s->dir, i);
    snprintf(o->log, sizeof o->log, "%s/%d.log", s->dir, i);
    configure(s, o);
    launch(o);
    char *uri = s->uri[0];
    snprintf(uri + strlen(uri), sizeof s->uri[0] - strlen(uri),
             "%s127.0.0.1:%d", i ? "," : "", s->a ? s->secure_port : o->port);
}

/* The first has all of them, and no name. */
static void complete_uris(sentinels *s)
{
    for (int i = s->masters - 1; i >= 0; i--) {
        memmove(s->uri[i], s->uri[0], sizeof s->uri[0]);
        strcat(s->uri[i], "/");
        strcat(s->uri[i], names[i]);
    }
}

static sentinels *start_all(sentinels *s)
{
    strcpy(s->uri[0], s->a ? "rediss-sentinel://" : "redis-sentinel://");
    for (int i = 0; i < s->n; i++)
        start_one(s, i);
    complete_uris(s);
    for (int i = 0; i < s->n; i++) {
        EVENTUALLY(SOON, says(&s->at[i], "PING"));
        /* Of a replica they want INFO that is younger than five pings, and ask
           for it once a second. */
        says(&s->at[i], "SENTINEL DEBUG info-period 200 ping-period 300 "
                        "ask-period 100 publish-period 100 "
                        "min-link-reconnect-period 100");
    }
    for (int i = 0; i < s->n; i++)
        EVENTUALLY(SOON, is_ready(s, &s->at[i]));
    return s;
}

sentinels *sentinels_start_at(int master_port, int n)
{
    return start_all(prepare(master_port, n));
}

sentinels *sentinels_start(server *master, int n)
{
    return sentinels_start_at(server_port(master), n);
}

sentinels *sentinels_start_several(server *const master[], int masters, int n)
{
    EXPECT(masters <= MOST_MASTERS);
    sentinels *s = prepare(server_port(master[0]), n);
    for (s->masters = 1; s->masters < masters; s->masters++)
        s->master_port[s->masters] = server_port(master[s->masters]);
    return start_all(s);
}

sentinels *sentinels_start_guarded(server *master, int n, const char *password)
{
    sentinels *s = prepare(server_port(master), n);
    snprintf(s->password, sizeof s->password, "%s", password);
    return start_all(s);
}

sentinels *sentinels_start_secure(int master_port, const authority *a)
{
    sentinels *s = prepare(master_port, 1);
    s->a = a;
    s->secure_port = server_free_port();
    return start_all(s);
}

static void end(one *o)
{
    if (o->pid == 0)
        return;
    kill(o->pid, SIGKILL);
    EXPECT_INT(waitpid(o->pid, NULL, 0), o->pid);
    o->pid = 0;
    if (o->ctx)
        redisFree(o->ctx);
    o->ctx = NULL;
}

/* Who is killed while it writes its configuration leaves a copy of it. */
static void remove_all(const char *dir)
{
    char path[512];
    DIR *d = opendir(dir);
    EXPECT(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        unlink(path);
    }
    closedir(d);
    rmdir(dir);
}

void sentinels_stop(sentinels *s)
{
    for (int i = 0; i < s->n; i++)
        end(&s->at[i]);
    remove_all(s->dir);
    free(s);
}

const char *sentinels_uri(const sentinels *s)
{
    return sentinels_uri_of(s, 0);
}

const char *sentinels_uri_of(const sentinels *s, int i)
{
    return s->uri[i];
}

int sentinels_port(const sentinels *s, int i)
{
    return s->at[i].port;
}

int sentinels_secure_port(const sentinels *s)
{
    return s->secure_port;
}

void sentinels_say(sentinels *s, int i, const char *command)
{
    EXPECT(says(&s->at[i], command));
}

void sentinels_kill(sentinels *s, int i)
{
    end(&s->at[i]);
}

void sentinels_pause(sentinels *s, int i)
{
    kill(s->at[i].pid, SIGSTOP);
}

void sentinels_forget(sentinels *s, int i)
{
    says(&s->at[i], "SENTINEL REMOVE " SENTINELS_MASTER);
    EXPECT(!says(&s->at[i], "SENTINEL MASTER " SENTINELS_MASTER));
}

void sentinels_monitor(sentinels *s, int i, const server *master)
{
    char command[128];
    snprintf(command, sizeof command, "SENTINEL MONITOR %s 127.0.0.1 %d %d",
             SENTINELS_MASTER, server_port(master), s->n / 2 + 1);
    sentinels_say(s, i, command);
    snprintf(command, sizeof command,
             "SENTINEL SET %s down-after-milliseconds %d failover-timeout 2000",
             SENTINELS_MASTER, down_after_ms(s));
    sentinels_say(s, i, command);
}

int sentinels_naming(sentinels *s, const server *master)
{
    int n = 0, port = server_port(master);
    for (int i = 0; i < s->n; i++)
        n += s->at[i].pid > 0 &&
             value(&s->at[i], SENTINELS_MASTER, "port") == port;
    return n;
}

void sentinels_await(sentinels *s, const server *master, int n)
{
    EVENTUALLY(ELECTED_SOON, sentinels_naming(s, master) >= n);
}

static bool is(const redisReply *r, const char *name, const char *wanted)
{
    const char *text = behind(r, name);
    return text && strcmp(text, wanted) == 0;
}

/* Flags that say more than that speak of trouble, or of a failover. */
static bool sees_no_trouble(one *o)
{
    redisReply *m = ask(o, "SENTINEL MASTER " SENTINELS_MASTER);
    redisReply *all = ask(o, "SENTINEL REPLICAS " SENTINELS_MASTER);
    const redisReply *r = all && all->elements ? all->element[0] : NULL;
    bool well = is(m, "flags", "master") && is(r, "flags", "slave") &&
                is(r, "master-link-status", "ok");
    if (m)
        freeReplyObject(m);
    if (all)
        freeReplyObject(all);
    return well;
}

bool sentinels_agree(sentinels *s, const server *master)
{
    if (sentinels_naming(s, master) < s->n)
        return false;
    for (int i = 0; i < s->n; i++)
        if (!sees_no_trouble(&s->at[i]))
            return false;
    return true;
}

long long sentinels_epoch(sentinels *s)
{
    long long highest = -1;
    for (int i = 0; i < s->n; i++) {
        long long epoch = value(&s->at[i], SENTINELS_MASTER, "config-epoch");
        highest = epoch > highest ? epoch : highest;
    }
    return highest;
}

static int subscribers(one *o)
{
    redisReply *r = ask(o, "CLIENT LIST TYPE pubsub");
    int n = 0;
    for (const char *at = r && r->str ? r->str : "";
         (at = strstr(at, "addr=")) != NULL; at++)
        n++;
    if (r)
        freeReplyObject(r);
    return n;
}

void sentinels_await_client(sentinels *s, int n)
{
    for (int i = 0; i < n; i++)
        EVENTUALLY(SOON, subscribers(&s->at[i]) > 0);
}

/* Failovers are given up after this. */
#define FAILOVER_MS 5000

static bool becomes_master(sentinels *s, const server *heir)
{
    int64_t until_ms = test_now_ms() + FAILOVER_MS;
    while (sentinels_naming(s, heir) == 0) {
        if (test_now_ms() > until_ms)
            return false;
        test_pause_ms(10);
    }
    return true;
}

/* Who says hello that often takes what is being promoted for a mistake, and
   makes it a replica again, after four times that. */
bool sentinels_fail_over(sentinels *s, const server *heir, int limit_ms)
{
    int64_t until_ms = test_now_ms() + limit_ms;
    for (int i = 0; i < s->n; i++)
        says(&s->at[i], "SENTINEL DEBUG publish-period 1000");
    do
        EVENTUALLY(SOON,
                   says(&s->at[0], "SENTINEL FAILOVER " SENTINELS_MASTER) ||
                       sentinels_naming(s, heir) > 0);
    while (!becomes_master(s, heir) && test_now_ms() < until_ms);
    return sentinels_naming(s, heir) > 0;
}
