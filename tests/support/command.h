/*
 * The program rlock, as a person or cron starts it: with a server, options,
 * and what it prints and leaves running. No function returns an error: what
 * cannot be done fails the test. It is killed when the test's process ends.
 */
#ifndef TEST_SUPPORT_COMMAND_H
#define TEST_SUPPORT_COMMAND_H

#include "server.h"

typedef struct command command;

/* Starts `rlock words...` in a session of its own, with the test's environment,
   and $RLOCK_URI for the server (NULL: none of its own). words: up to a NULL. */
command *command_start(const server *sv, const char *const words[]);
#define RLOCK(sv, ...)                                                         \
    command_start(sv, (const char *const[]){__VA_ARGS__, NULL})
/* From here on it inherits no descriptors of the test, but the usual three. */
void command_inherits_nothing(void);

/* Until it has ended: its status, or the negative number of the signal that
   ended it. */
int command_status(command *c);
bool command_ended(command *c);
/* What it and COMMAND have printed so far; valid until the next call. */
const char *command_out(command *c);
const char *command_err(command *c);
void command_free(command *c);
/* The three above: its status, and nothing else. */
int command_end(command *c);
/* Kills COMMAND, whose pid is in the file (below); `run` ends by it. */
void command_kill(const server *sv, command *c, const char *file);

/* What it prints, all of it well: status 0, and nothing on stderr. Valid until
   the next. */
const char *command_prints(server *sv, const char *const words[]);
/* It ends with 125, one line on stderr that has this, and nothing on stdout. */
void command_fails(server *sv, const char *const words[], const char *says);
/* It ends with 125, says this and how the verb is used, and prints nothing. */
void command_is_misused(const char *const words[], const char *says);
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Its processes: the one that was started; the one in a session of its own;
   and COMMAND, or who became it, once it is there. */
pid_t command_front(const command *c);
pid_t command_keeper(const command *c);
pid_t command_pid(const command *c);

/* A number that COMMAND has written into a file of the server's directory, once
   it is there. */
pid_t command_number(const server *sv, const char *file);
/* Path of such a file; valid until the next call but three. */
const char *command_file(const server *sv, const char *file);

/* Is there such a process, that is not dead? Stopped? */
bool process_is_alive(pid_t pid);
bool process_is_stopped(pid_t pid);

#endif
