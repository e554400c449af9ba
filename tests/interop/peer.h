/*
 * What the peers in C share: reading commands and answering them, see
 * checks.py.
 */
#ifndef PEER_H
#define PEER_H

#include <stdint.h>

/* Runs a command on a lock; returns the answer, valid until the next call. */
typedef const char *peer_fn(const char *name, int64_t a, int64_t b);

typedef struct peer_command {
    const char *word;
    peer_fn *run;
} peer_command;

/*
 * Until the end of the input. The last of the commands has no word; "count" is
 * made of "lock" and "unlock". Returns the exit status.
 */
int peer_run(const peer_command *commands);

/* The answer to what failed. */
const char *peer_error(const char *message);
const char *peer_number(int64_t number);

int64_t peer_now_ms(void);
void peer_pause_ms(int ms);

#endif
