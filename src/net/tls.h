/*
 * TLS over a socket of ours, by OpenSSL. A client has one rl_tls: which
 * authorities it trusts, its certificate, whose name it expects. Each of its
 * connections shakes hands once, within its deadline, and is a transport
 * (transport.h) from there on. Files that have changed meanwhile are read again
 * for it.
 *
 * There is no way back to plain: a server that does not speak TLS, or cannot
 * prove its name, is not spoken to.
 */
#ifndef RL_NET_TLS_H
#define RL_NET_TLS_H

#include <rlock/client.h>

#include "net/transport.h"

typedef struct rl_tls rl_tls;

/* Does the program ask for something that only TLS has? */
static inline bool rl_tls_is_asked_for(const rlock_options *o)
{
    return o->tls_ca_file || o->tls_ca_dir || o->tls_cert_file ||
           o->tls_key_file || o->tls_server_name || o->tls_verify ||
           o->tls_setup;
}

/*
 * Reads all files. RLOCK_EINVAL: one of them is of no use, as *f says;
 * RLOCK_ENOTSUP: built without OpenSSL; RLOCK_ENOMEM.
 */
rlock_status rl_tls_new(const rlock_options *o, rl_tls **out, rl_fault *f);
void rl_tls_free(rl_tls *t); /* NULL is accepted; connections stay */

/*
 * Takes over the connected socket, unless it fails. host: whose name the server
 * has to prove, unless the program has given another one. Blocks until the
 * deadline. RLOCK_EIO, RLOCK_ENOMEM.
 */
rlock_status rl_tls_shake_hands(rl_tls *t, int fd, const char *host,
                                int64_t deadline_us, rl_transport *out,
                                rl_fault *f);

/* Adds to why a connection failed that a file has changed, if it is of no use.
 */
void rl_tls_explain(rl_tls *t, rl_fault *f);

#endif
