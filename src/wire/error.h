/* What an error reply means for a lock. */
#ifndef RL_WIRE_ERROR_H
#define RL_WIRE_ERROR_H

#include "base/error.h"
#include "wire/reply.h"

typedef struct rl_error_kind {
    const char *word; /* found anywhere in the text: servers wrap errors */
    rlock_status status;
    bool definite;  /* the command was not executed, and will not be */
    bool transient; /* worth another try a little later */
    bool elsewhere; /* this connection leads to the wrong server now */
} rl_error_kind;

/* Looks the error up and fills *f (if not NULL) with its text. Never NULL. */
const rl_error_kind *rl_error_reply(const rl_reply *r, rl_fault *f);

bool rl_error_is_noscript(const rl_reply *r);

/*
 * Does a server say by this error that it has not begun to execute a script of
 * the program, so that it can be asked again? A script may answer any words, so
 * only those of the server itself count. single: the script is one command,
 * which the server may refuse as well.
 */
bool rl_error_is_refusal(const rl_reply *r, bool single);

/* The same of a text whose first line has the server refuse keys of other
   slots: it knows no such line; or it refuses the text as a whole, of which it
   perhaps would not refuse the command (no memory, replicas, or disk). */
bool rl_error_knows_no_line(const rl_reply *r);
bool rl_error_is_for_the_line(const rl_reply *r);

#endif
