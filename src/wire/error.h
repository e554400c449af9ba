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

#endif
