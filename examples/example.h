/*
 * What the examples share, so that each shows only its own point: a program
 * that ends at the first failure, and processes.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <inttypes.h>
#include <rlock/rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline void fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Runs a call and ends the program when it does not answer RLOCK_OK. */
#define MUST(call)                                                             \
    ((call) == RLOCK_OK ? (void)0 : fail(#call, rlock_last_error()->message))

/* A client with the default options. */
static inline rlock_client *new_client(const char *uri)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client;
    opts.uri = uri;
    MUST(rlock_client_new(&opts, &client));
    return client;
}

/* Writes stdout line by line, so that lines of several threads and processes
   stay whole, and nothing is left for a child to print again. */
static inline void print_lines(void)
{
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
}

static inline void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Runs body in n processes at once; answers how many of them failed. A client
   does not survive fork(): body makes its own. */
static inline int in_processes(int n, int (*body)(const char *uri),
                               const char *uri)
{
    int failed = 0, status;
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(body(uri));
        failed += pid < 0;
    }
    while (wait(&status) > 0)
        failed += status != 0;
    return failed;
}

#endif
