/* What a call is told besides its hold. */
#ifndef RL_OP_REQUEST_H
#define RL_OP_REQUEST_H

#include "base/sha1.h"
#include "hold/hold.h"
#include "wire/bytes.h"
#include "wire/raw_reply.h"

/* How an acquire asks. */
typedef struct rl_request {
    int64_t lease_ms;
    int level;
    const char *bell; /* "": do not queue */
    bool joins;       /* a side: its owner has the other one, */
    rl_uuid other;    /* as the hold with this id */
    int64_t ticket;
    bool deaf;       /* in line: nobody hears that bell now */
    int64_t beat_us; /* in line, or who wants: the clock before it is sent */
    unsigned keep;   /* a hand-over: tokens to reserve behind the one granted */
    bool makes_way;  /* a hand-over: only if nobody waits in the queue */
    bool says_least; /* the least token; the server's clock is wanted, too */
    bool says_who;   /* with a bell: who waits, to who asks that */
    bool wants;      /* the same, and that a release may grant it the lock */
    uint64_t least;
    int64_t permits; /* of a semaphore, if nobody has said yet; 0: see there */
} rl_request;

/*
 * A script of the program, to be executed only while a hold has its lock. The
 * arguments are the caller's.
 */
typedef struct rl_guarded {
    const char *script;
    size_t len;
    int keys, args;
    const char *const *argv; /* keys, then args */
    const size_t *lens;      /* of them; NULL: they are texts */
    const char *words;       /* instead of argv: args, as words of a command */
    size_t words_len;
    bool single;  /* the script is one command */
    bool compare; /* tokens; see rl_call_renew() */
    bool strict;  /* the server refuses keys of other slots (op/verb_guard.h) */
    char sha1[RL_SHA1_LEN + 1]; /* of what is sent: guard and script */
    rl_raw_reply reply;
} rl_guarded;

#endif
