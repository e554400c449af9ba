/*
 * How bytes get to a server and back: over a plain socket (plain.c), through
 * TLS (tls_stream.c), or through a context of hiredis that the program has
 * made, perhaps with a TLS of its own (context.c). Nothing here waits.
 */
#ifndef RL_NET_TRANSPORT_H
#define RL_NET_TRANSPORT_H

#include <sys/types.h>

#include "base/error.h"

struct redisContext;
struct rl_tls_stream;

typedef struct rl_transport rl_transport;

typedef struct rl_transport_ops {
    /* How many bytes have been taken; 0: none now; -1: broken, *f says why. */
    ssize_t (*write)(rl_transport *t, const char *bytes, size_t n, rl_fault *f);
    /* How many have come; 0: none now; -1: broken or closed. */
    ssize_t (*read)(rl_transport *t, char *bytes, size_t room, rl_fault *f);
    void (*close)(rl_transport *t);
} rl_transport_ops;

struct rl_transport {
    const rl_transport_ops *ops;
    int fd;
    bool holds; /* bytes that were taken and not sent yet: write on */
    bool again; /* after a read: poll does not see what there is more */
    struct redisContext *context; /* owned; NULL: the socket is ours alone */
    struct rl_tls_stream *tls;    /* owned; or NULL */
};

/* The socket is taken over. */
rl_transport rl_plain_transport(int fd);

/* The same for a connected context. */
rl_transport rl_context_transport(struct redisContext *context);

/* What all do with a socket; for context.c, too. */
ssize_t rl_plain_write(rl_transport *t, const char *bytes, size_t n,
                       rl_fault *f);
ssize_t rl_plain_read(rl_transport *t, char *bytes, size_t room, rl_fault *f);

#endif
