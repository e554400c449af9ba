/*
 * More servers than the one a program is given, and a way to a server that is
 * as long as one across a continent.
 */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "bench.h"

typedef struct bench_server {
    char uri[128];
    pid_t pid; /* 0: not ours, or not running */
} bench_server;

/*
 * Servers 1 to n - 1 are started, on sockets beside the one of server 0, which
 * is the given one. They end with the program. Once for each program.
 */
void bench_start_servers(bench_server s[], size_t n, const char *uri);
void bench_start(bench_server *s); /* again, after a stop */
void bench_stop(bench_server *s);  /* however it is */
void bench_hang(bench_server *s);  /* SIGSTOP, returns when it has stopped */

/*
 * The same of one at redis://127.0.0.1:port. A port that is free, and the bus of
 * a cluster's node beside it; the command is run in that folder.
 */
int bench_choose_port(void);
const char *bench_port_of(const bench_server *s);
void bench_start_at(bench_server *s, const char *dir, char *const command[]);

/* What the command of one that keeps data begins with. */
#define BENCH_SERVER(port)                                                     \
    "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "",       \
        "--appendonly", "no", "--repl-diskless-sync-delay", "0",               \
        "--repl-diskless-load", "swapdb"

/* NULL: it does not answer within 0.2 s. Has it such a text in its answer? */
redisReply *bench_reply(const bench_server *s, const char *command);
bool bench_says(const bench_server *s, const char *command, const char *text);

/* The server at replica becomes one of the master, which listens at tcp, too.
 */
void bench_follow(redisContext *master, const char *replica, const char *tcp);

/* Calls of EVALSHA and EVAL that the server has seen. */
long long bench_script_calls(const char *uri);

/* Puts the round trip's time into *us before or after; see bench_share(). */
typedef _Atomic int64_t bench_round_trip_us;

/*
 * Starts a process that forwards connections to the server and keeps every
 * byte back for half a round trip, each way, whatever their number. far is the
 * URI to connect to. It ends with the program.
 */
void bench_start_relay(const char *uri, bench_round_trip_us *us, char far[128]);

#endif
