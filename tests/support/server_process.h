/* What the sources of server.h share. */
#ifndef TEST_SUPPORT_SERVER_PROCESS_H
#define TEST_SUPPORT_SERVER_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>

#include "asker.h"
#include "server.h"

enum {
    END_LIMIT_MS = 5000,
    ARGS_MAX = 100,
    DIR_MAX = 80 /* leaves room in sun_path */
};

struct server {
    char dir[DIR_MAX + 1];
    char socket[DIR_MAX + 8];
    char log[DIR_MAX + 8];
    char clock[DIR_MAX + 32]; /* environment of a clocked server */
    atomic_llong *told;       /* of its clock, two, mapped; else NULL */
    char uri[DIR_MAX + 16];
    char *args; /* the words of argv[] that the test gave */
    char port_arg[8];
    int port;
    char *argv[ARGS_MAX + 1];
    pthread_t keeper;
    bool has_keeper;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pid_t pid;    /* guarded by mutex; that of the last process */
    bool running; /* guarded by mutex; until it is reaped */
    asker *ask;
};

/* A server that is not started yet: its directory is there. */
server *process_new(const char *args);
/* Before it is started. */
void process_set_port(server *sv, int port);
/* One of so many ports, which depends on the time and the process. */
int process_some_port(int first, int count);
/*
 * Of 127.0.0.1: true if nobody listens there, nor will any other test until this
 * process has ended. A server that is down would else be taken for a stranger's,
 * which grants its locks.
 */
bool process_take_port(int port);
/* Fails the test, and shows the end of the server's log. */
_Noreturn void process_fail(const server *sv, const char *what);
/* Starts the process, by a new keeper. */
void process_launch(server *sv);
bool process_runs(server *sv);
/* To the process, if there is one. */
void process_signal(server *sv, int sig);
void process_wait_end(server *sv, int limit_ms);
/* Ends the process, if there is one, and the keeper. */
void process_end(server *sv);
/* Until it answers. False when the process ended, as it does when its port is
 * taken. */
bool process_wait_ready(server *sv);

#endif
