/*
 * One connection's TLS: what the program writes becomes records in `out`, and
 * what the socket has is decrypted. Nothing here waits but the handshake.
 */
#ifndef RL_NET_TLS_STREAM_H
#define RL_NET_TLS_STREAM_H

#include <openssl/ssl.h>

#include "base/thread.h"
#include "net/transport.h"
#include "wire/bytes.h"

typedef struct rl_tls_stream {
    int fd;
    rl_mutex mutex; /* guards all below: OpenSSL wants one thread at a time */
    SSL *ssl;       /* owns the BIO that leads to this struct */
    rl_bytes out;   /* records that the kernel has not taken yet */
    bool dead;      /* nothing is sent any more */
    bool drained;   /* what has come is read; for this call of ours */
    bool heard;     /* the server has sent something, which began with */
    unsigned char first;
    int alert;  /* a fatal one of its, by number, or 0 */
    bool ended; /* it has closed */
    int err;    /* errno of a socket that is broken, or 0 */
} rl_tls_stream;

/* Takes over the socket, unless it fails. NULL: out of memory. */
rl_tls_stream *rl_tls_stream_new(SSL_CTX *ctx, int fd);
void rl_tls_stream_free(rl_tls_stream *s);
/* Frees it and gives the socket back. */
void rl_tls_stream_leave(rl_tls_stream *s);

/*
 * The handshake, until the deadline. Afterwards all that it had to send is
 * with the kernel.
 */
rlock_status rl_tls_stream_begin(rl_tls_stream *s, int64_t deadline_us,
                                 rl_fault *f);

/* The stream as a transport, which owns it. */
rl_transport rl_tls_transport(rl_tls_stream *s);

#endif
