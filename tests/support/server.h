/*
 * A redis-server of the test's own: on a Unix socket in a new directory under
 * $TMPDIR, without persistence, stopped by its pid, and killed by the kernel
 * when the test's process dies. No function returns an error: what cannot be
 * done fails the test.
 */
#ifndef TEST_SUPPORT_SERVER_H
#define TEST_SUPPORT_SERVER_H

#include <hiredis/hiredis.h>
#include <sys/types.h>

#include "test.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct server server;

/* A server may go by what the time was so long ago: Valkey 9.1 looks every 3
 * ms.
 */
#define CLOCK_AGE_MS 5

/*
 * Starts a server and waits until it answers. args: further redis-server
 * arguments as one string, split at blanks, such as "--maxmemory 2mb
 * --appendonly yes", where "" is an empty argument; NULL for none. With "--port
 * 0" absent or present the server listens only on its socket, unless
 * server_start_tcp() is used. The program is redis-server, or the one that
 * RLOCK_TEST_SERVER names in the environment.
 */
server *server_start(const char *args);
/*
 * Arguments for a server whose data outlives its process. It leaves to the
 * kernel when the disk is written: waiting for the disk, as with "always", has
 * cost a lease of 1.5 s on a machine whose disk was busy.
 */
#define SERVER_DURABLE "--appendonly yes --appendfsync no"
/*
 * Such arguments, and with them a server that lets its tests use DEBUG and set
 * whatever they like: Redis 7 has to be told. Valid until the next call.
 */
const char *server_unlocked(const char *args);

/* The same as server_start(), listening on a free TCP port of 127.0.0.1 as
 * well. */
server *server_start_tcp(const char *args);

/* The same as server_start(), with a wall clock that can be put forward and
   back: by so many seconds against the machine's. */
server *server_start_clocked(const char *args);
void server_set_clock(server *sv, long long ahead_s);
/* It stands still, at so many us; 0: it goes on. */
void server_stop_clock(server *sv, long long at_us);

/* A port of 127.0.0.1 that is this test's alone, for what is no server of these.
 */
int server_free_port(void);

/* Skips the test on a machine that does not know the name localhost. */
void need_host_names(void);

void server_stop(server *sv); /* ends it and removes its directory */
void server_kill(server *sv); /* SIGKILL; the directory stays */
/* Removes all that a killed server has saved: it will come back empty. */
void server_forget(server *sv);
/* Takes the last bytes off what a killed server has appended to its file, as a
   power cut does. False: there is no more than that. */
bool server_cut_log(server *sv, off_t bytes);
/* It writes the file anew, from what it has. */
void server_rewrite_log(server *sv);
/* Ends it by SIGTERM, if it runs, and starts it with the same socket, port and
   arguments in the same directory. */
void server_restart(server *sv);
void server_pause(server *sv);  /* SIGSTOP, returns when it has stopped */
void server_resume(server *sv); /* SIGCONT */
/* What is asked from now on is begun only after so many ms. */
void server_hold_back(server *sv, int ms);

const char *server_uri(const server *sv);  /* unix:///... */
const char *server_path(const server *sv); /* path of the socket */
int server_port(const server *sv);         /* 0 without TCP */
pid_t server_pid(const server *sv);
/* Path of a file in its directory; valid until the next call. */
const char *server_file(const server *sv, const char *name);

/*
 * Runs a command on a connection of the test's own (opened with the first use,
 * and anew when it broke). The words are formatted as redisCommand() does. The
 * reply is valid until the calling thread's next call of any of these; it is
 * never NULL, and may be an error reply. May be called on any thread.
 */
redisReply *server_cmd(server *sv, const char *fmt, ...);
/* The reply's integer; fails the test when it is none. */
long long server_int(server *sv, const char *fmt, ...);
/* A string, status or error reply's text; "" for nil. */
const char *server_str(server *sv, const char *fmt, ...);
/* An integer of INFO, for instance "total_commands_processed". */
long long server_info(server *sv, const char *field);
/* How many connections there have been that are not there any more. */
long long server_closed(server *sv);
/* Calls so far of a command, from INFO commandstats; 0 if none. */
long long server_calls(server *sv, const char *command);

/*
 * Loads all scripts of the library, so that a test sees each script call as
 * one EVALSHA. Without it the first use of a script is an EVALSHA, answered
 * NOSCRIPT, and then an EVAL: two requests. To be repeated after a restart.
 */
void server_load_scripts(server *sv);

/*
 * A client of this server, or of opts->uri or opts->connect where one is set
 * (a proxy's, say). opts NULL for defaults. Fails the test.
 */
rlock_client *server_client(server *sv, const rlock_options *opts);
/* A lock handle; fails the test. */
rlock *test_lock(rlock_client *cl, const char *name);
rlock *test_fair_lock(rlock_client *cl, const char *name);

/*
 * Recorded events: hook them into the options of the client, then count and
 * wait. Safe for any number of threads.
 */
typedef struct events events;
events *events_new(void);
void events_free(events *ev);
void events_hook(events *ev, rlock_options *opts); /* sets on_event */
int events_count(events *ev, rlock_event_type type);
/* Waits until at least n events of the type were seen; fails the test. */
void events_wait(events *ev, rlock_event_type type, int n, int limit_ms);
/* Copies the last event of the type; its strings are valid until free. False
   if there was none. */
bool events_last(events *ev, rlock_event_type type, rlock_event *out);
/* Time (test_now_ms) of the last event of the type; 0 if none. */
int64_t events_time(events *ev, rlock_event_type type);
/* Message of the last event of the type; "" if none. Valid until free. */
const char *events_message(events *ev, rlock_event_type type);

#ifdef __cplusplus
}
#endif
#endif
