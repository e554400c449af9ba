/*
 * A terminal, and a shell with one job in it. The shell tells by a letter when
 * that has stopped (s), goes on with it in the foreground for a letter, and
 * tells the end by its status.
 */
#ifndef TEST_SUPPORT_TERMINAL_H
#define TEST_SUPPORT_TERMINAL_H

#include "server.h"

typedef struct terminal {
    int master, talk;
    pid_t shell;
    char text[8192];
    size_t len;
} terminal;

/* The job is `sh -c script`, with $RLOCK, and $RLOCK_URI for the server. It is
   killed when the test's process ends. */
terminal terminal_start(const server *sv, const char *script);
/* Has it shown that so far? */
bool terminal_shows(terminal *t, const char *what);
void terminal_type(terminal *t, const char *keys);
/* Until the shell has told that. */
void terminal_is_told(terminal *t, int what);
/* Until the job has ended, with this status. */
void terminal_end(terminal *t, int status);

#endif
