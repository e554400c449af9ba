/*
 * What a program asks of TLS, made into an SSL_CTX: once for the client, and
 * again when one of the files is another one (tls.c).
 */
#ifndef RL_NET_TLS_CONTEXT_H
#define RL_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <rlock/client.h>

#include "base/error.h"
#include "base/os.h"

typedef struct rl_tls_settings {
    char *ca_file, *ca_dir, *cert_file, *key_file; /* or NULL */
    rlock_tls_verify verify;
    int (*setup)(struct ssl_ctx_st *ctx, void *arg); /* or NULL */
    void *setup_arg;
} rl_tls_settings;

/* False: out of memory. In either case to be given to fini. */
bool rl_tls_settings_init(rl_tls_settings *s, const rlock_options *o);
void rl_tls_settings_fini(rl_tls_settings *s);

/* Its files as they are just now. */
#define RL_TLS_FILES 4

typedef struct rl_tls_files {
    rl_os_stamp at[RL_TLS_FILES];
} rl_tls_files;

void rl_tls_files_look(rl_tls_files *f, const rl_tls_settings *s);
bool rl_tls_files_are(const rl_tls_files *a, const rl_tls_files *b);

/*
 * Reads the files and has the program say its word. NULL: RLOCK_EINVAL, one of
 * them is of no use, as *f says; RLOCK_ENOMEM.
 */
SSL_CTX *rl_tls_context_new(const rl_tls_settings *s, rl_fault *f);

#endif
