/*
 * The first calls of a fresh client of a Red lock on 5 servers, 2 of which have
 * hung since it was made: nobody has found out yet, and a majority answers.
 */
#include <stdio.h>

#include <rlock/multi.h>

#include "servers.h"

#define NODES   5
#define HUNG    2 /* the last ones */
#define FIRST   10
#define CLIENTS 5 /* one after the other */

enum { ACQUIRE, NESTED, EXTEND, INNER, OUTER, VERBS };

static const char *const names[VERBS] = {
    [ACQUIRE] = "acquire", [NESTED] = "nested lock",
    [EXTEND] = "extend",   [INNER] = "unlock of a nested lock",
    [OUTER] = "unlock",
};

static bench_server servers[NODES];

static rlock_status call(rlock *lk, int verb)
{
    switch (verb) {
    case ACQUIRE:
    case NESTED:
        return rlock_lock(lk);
    case EXTEND:
        return rlock_extend(lk, 30000);
    default:
        return rlock_unlock(lk);
    }
}

/* The slowest so far, in ms. */
static void ten_rounds(rlock *lk, double slowest[VERBS])
{
    for (int round = 0; round < FIRST; round++) {
        for (int verb = 0; verb < VERBS; verb++) {
            int64_t began = bench_now_ns();
            bench_ok(call(lk, verb));
            double ms = (double)(bench_now_ns() - began) / 1e6;
            slowest[verb] = ms > slowest[verb] ? ms : slowest[verb];
        }
    }
}

static void one_client(double slowest[VERBS])
{
    rlock_client *cl[NODES];
    rlock *lk;
    for (int i = 0; i < NODES; i++)
        cl[i] = bench_client(servers[i].uri);
    bench_ok(rlock_red_new(cl, NODES, "bench:red", &lk));
    for (int i = NODES - HUNG; i < NODES; i++)
        bench_hang(&servers[i]);
    ten_rounds(lk, slowest);
    for (int i = NODES - HUNG; i < NODES; i++)
        bench_stop(&servers[i]);
    rlock_free(lk);
    for (int i = 0; i < NODES; i++)
        rlock_client_free(cl[i]);
    for (int i = NODES - HUNG; i < NODES; i++)
        bench_start(&servers[i]);
}

int main(int argc, char **argv)
{
    double slowest[VERBS] = {0};
    bench_start_servers(servers, NODES, bench_uri(argc, argv));
    for (int i = 0; i < CLIENTS; i++)
        one_client(slowest);
    for (int verb = 0; verb < VERBS; verb++) {
        char what[128];
        snprintf(what, sizeof what,
                 "%sRed with 2 of 5 just hung, slowest of the first ten: %s",
                 verb ? "- " : "", names[verb]);
        bench_row(what, 10, slowest[verb], " ms", "%d fresh clients", CLIENTS);
    }
    return 0;
}
