#include "sentinels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_US 10000
#define TRIES   3000

static bench_sentinels *running;

static void stop_all(void)
{
    char command[64];
    for (int i = 0; i < BENCH_SENTINELS; i++)
        bench_stop(&running->at[i]);
    for (int i = 0; i < BENCH_COPIES; i++)
        bench_stop(&running->copy[i]);
    snprintf(command, sizeof command, "rm -rf %s", running->dir);
    bench_check(system(command) == 0, "the Sentinels' folder stays");
}

/* --- one of them ---------------------------------------------------------- */

static void start_copy(bench_sentinels *n, bench_server *s,
                       const bench_server *of)
{
    char port[16], master[16];
    char *command[] = {BENCH_SERVER(port), of ? "--replicaof" : NULL,
                       "127.0.0.1", master, NULL};
    snprintf(port, sizeof port, "%s", bench_port_of(s));
    snprintf(master, sizeof master, "%s", of ? bench_port_of(of) : "");
    bench_start_at(s, n->dir, command);
}

void bench_restart_copy(bench_sentinels *n, bench_server *s)
{
    start_copy(n, s, bench_other(n, s));
}

static void start_sentinel(bench_sentinels *n, int i)
{
    char path[64];
    char *command[] = {"redis-server", path, "--sentinel", NULL};
    snprintf(path, sizeof path, "%s/%d.conf", n->dir, i);
    FILE *f = fopen(path, "w");
    bench_check(f != NULL, "no file");
    fprintf(f,
            "port %s\nbind 127.0.0.1\n"
            "sentinel monitor " BENCH_MASTER " 127.0.0.1 %s 2\n"
            "sentinel down-after-milliseconds " BENCH_MASTER " 500\n"
            "sentinel failover-timeout " BENCH_MASTER " 1000\n",
            bench_port_of(&n->at[i]), bench_port_of(&n->copy[0]));
    fclose(f);
    bench_start_at(&n->at[i], n->dir, command);
}

/* --- all ------------------------------------------------------------------ */

bench_server *bench_other(bench_sentinels *n, const bench_server *one)
{
    return &n->copy[one == &n->copy[0]];
}

bench_server *bench_master(bench_sentinels *n)
{
    return &n->copy[!bench_says(&n->copy[0], "INFO replication",
                                "role:master")];
}

static bool is_well(bench_sentinels *n)
{
    const bench_server *master = bench_master(n);
    char address[64];
    snprintf(address, sizeof address, "status=ok,address=127.0.0.1:%s,",
             bench_port_of(master));
    if (!bench_says(master, "INFO replication", "state=online") ||
        !bench_says(bench_other(n, master), "INFO replication",
                    "master_link_status:up"))
        return false;
    for (int i = 0; i < BENCH_SENTINELS; i++)
        if (!bench_says(&n->at[i], "INFO sentinel", "slaves=1,sentinels=3") ||
            !bench_says(&n->at[i], "INFO sentinel", address))
            return false;
    return true;
}

void bench_await_sentinels(bench_sentinels *n)
{
    int tries = TRIES;
    while (!is_well(n) && tries-- > 0)
        bench_pause_us(TICK_US);
    bench_check(tries > 0, "the Sentinels do not agree");
}

static void choose(bench_server *s)
{
    snprintf(s->uri, sizeof s->uri, "redis://127.0.0.1:%d",
             bench_choose_port());
}

void bench_start_sentinels(bench_sentinels *n)
{
    strcpy(n->dir, "/tmp/rlock-bench-XXXXXX");
    bench_check(mkdtemp(n->dir) != NULL, "no folder");
    strcpy(n->uri, "redis-sentinel://");
    running = n;
    atexit(stop_all);
    for (int i = 0; i < BENCH_COPIES; i++) {
        choose(&n->copy[i]);
        start_copy(n, &n->copy[i], i ? &n->copy[0] : NULL);
    }
    for (int i = 0; i < BENCH_SENTINELS; i++) {
        choose(&n->at[i]);
        start_sentinel(n, i);
        sprintf(strchr(n->uri, '\0'), "%s127.0.0.1:%s", i ? "," : "",
                bench_port_of(&n->at[i]));
    }
    strcat(n->uri, "/" BENCH_MASTER);
    bench_await_sentinels(n);
}
