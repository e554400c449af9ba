/*
 * One connection. It wraps a hiredis context, of which only the parser and
 * the socket are used: reads and writes are our own, because hiredis' blocking
 * calls start their time limit anew with every byte and every signal, raise
 * SIGPIPE, and believe any size the server announces.
 *
 * What holds here instead: a total deadline for every operation; no SIGPIPE;
 * bounded replies; and a connection that failed or timed out is broken and
 * never used again, since a late reply would answer the next question.
 *
 * A connection belongs to one thread at a time.
 */
#ifndef RL_NET_CONN_H
#define RL_NET_CONN_H

#include <sys/queue.h>

#include "base/error.h"
#include "wire/reply.h"

typedef struct rl_conn {
    redisContext *ctx; /* owned */
    bool plain;        /* bytes go straight to the socket: no TLS */
    bool broken;
    bool known;     /* its server has been identified */
    bool eager;     /* somebody waits for each reply: it is looked out for */
    unsigned waits; /* how often a reply was waited for */
    int luck;       /* how often, of late, it came while we looked out for it */
    char *out;      /* what is to be sent */
    size_t out_len, out_room;
    int64_t idle_since_us;     /* for the pool */
    TAILQ_ENTRY(rl_conn) idle; /* in the pool's list of idle ones */
    LIST_ENTRY(rl_conn) all;   /* in the list of all that are open */
} rl_conn;

/*
 * Takes over a connected context; NULL: out of memory, and the context is the
 * caller's still.
 */
rl_conn *rl_conn_new(redisContext *ctx);
void rl_conn_free(rl_conn *c);

/* Adds a command to what the next flush sends. */
bool rl_conn_append(rl_conn *c, int argc, const char **argv,
                    const size_t *lens);

/* Forgets what was appended. */
void rl_conn_discard(rl_conn *c);

/*
 * Sends everything appended. When it fails, the last command at least has not
 * reached the server whole, and so is not executed.
 */
rlock_status rl_conn_flush(rl_conn *c, int64_t deadline_us, rl_fault *f);

/* Reads the next reply. A failure says nothing about the command. */
rlock_status rl_conn_read(rl_conn *c, int64_t deadline_us, rl_reply *into,
                          rl_fault *f);

/*
 * The same without waiting; RLOCK_BUSY: not yet. Has to go on with the same
 * *into until the reply is whole.
 */
rlock_status rl_conn_try_read(rl_conn *c, rl_reply *into, rl_fault *f);

/* Has a part of a reply been read, into what is to be gone on with? */
bool rl_conn_is_mid_reply(const rl_conn *c);

/* One command of C strings and its reply. */
rlock_status rl_conn_ask(rl_conn *c, int64_t deadline_us, rl_reply *into,
                         rl_fault *f, int argc, const char **argv);

/*
 * After a failure: an error reply that the server had sent before, if one is
 * there. False: there is none.
 */
bool rl_conn_last_words(rl_conn *c, rl_reply *into);

/* Has the server closed it, or sent something that nobody asked for? */
bool rl_conn_is_stale(const rl_conn *c);

/* Is a whole reply, or a part of one, waiting in memory? */
bool rl_conn_has_input(const rl_conn *c);

#endif
