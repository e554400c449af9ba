/*
 * What the benchmarks share. Each program gets a server's URI, measures one
 * thing, and prints its rows of the table that run.sh puts together:
 *
 *     | what | at most | measured | remarks |
 *
 * Latencies on one machine differ several times over with where the kernel
 * places the processes. So only what was measured in one run, in turns, is
 * compared, and only medians are; and where round trips are compared, the
 * server has a processor and the clients another, as on two machines.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>
#include <rlock/rlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the program with a message unless ok. */
void bench_check(bool ok, const char *what);
/* The same for a call of the library. */
void bench_ok(rlock_status s);

int64_t bench_now_ns(void); /* the same clock in all processes */
void bench_pause_us(int64_t us);

/* Sorts the values. */
double bench_median(double *values, size_t n);
void *bench_alloc(size_t n, size_t size);

/* Of this process: resident bytes, with what the allocator keeps for itself. */
double bench_memory(void);
int bench_threads(void);

/* Zeroed memory that forked children share. */
void *bench_share(size_t size);

/*
 * Forks; true in the child, which dies with its parent. The parent calls
 * bench_join() as often, which ends the program if a child failed.
 */
bool bench_fork(void);
void bench_join(void);

/* uri is unix:///path or redis://127.0.0.1:port. */
redisContext *bench_connect(const char *uri);
rlock_client *bench_client(const char *uri);
rlock *bench_lock(rlock_client *cl, const char *name);

/*
 * Puts the server on the first processor, and this process with its later
 * threads and children on the second, or on the first as well. False: there is
 * only one, or it is not allowed.
 */
bool bench_place(const char *uri, bool apart);
bool bench_displace(const char *uri); /* undoes it */

/* Of 127.0.0.1. */
int bench_free_port(void);

/* As if a server of our own listened there too: redis://127.0.0.1:port. */
void bench_open_port(const char *uri, char tcp[64]);

/* Runs a command whose reply is an integer or a status; 0 for a status. */
long long bench_ask(redisContext *c, const char *command);
/*
 * The least that any lock on Redis needs: SET NX PX, and a script that compares
 * and deletes, which is loaded first; sha1 becomes its own.
 */
#define BENCH_VALUE "7c9e6679-7425-40de-944b-e07fc1f90ae7"
void bench_load_raw(redisContext *c, char sha1[41]);
void bench_raw_pair(redisContext *c, const char *sha1, const char *key);

/* Processor time that the server has used, in us. */
double bench_server_us(redisContext *c);
/* PING and its reply, in ns. */
int64_t bench_ping_ns(redisContext *c);

/*
 * Begins a measurement for which the calling thread should have its processor
 * alone. The next rows say if it had not: how often it was taken away.
 */
void bench_begin(void);

/*
 * A row with a limit that is to be reached, "missed" beside it if it is not;
 * and one for orientation.
 */
void bench_row(const char *what, double limit, double measured,
               const char *unit, const char *remarks, ...)
    __attribute__((format(printf, 5, 6)));
void bench_note(const char *what, const char *measured, ...)
    __attribute__((format(printf, 2, 3)));

/* The URI from the command line. */
const char *bench_uri(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
