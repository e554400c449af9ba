/*
 * Defaults are strict: TLS 1.2 or newer, the server's chain and name are
 * checked, no renegotiation, and a key that needs a passphrase is refused,
 * since OpenSSL would ask for that on the terminal. The last word is the
 * program's, by tls_setup.
 *
 * What is wrong with a file is said in words of ours: OpenSSL's last one on it
 * is "system lib" or "PEM lib".
 */
#include "base/options.h"
#include "rlock_config.h"

#ifdef RL_HAS_OPENSSL

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/tls_context.h"

bool rl_tls_settings_init(rl_tls_settings *s, const rlock_options *o)
{
    *s = (rl_tls_settings){.verify = o->tls_verify,
                           .setup = o->tls_setup,
                           .setup_arg = o->tls_setup_arg};
    return rl_options_copy(&s->ca_file, o->tls_ca_file) &&
           rl_options_copy(&s->ca_dir, o->tls_ca_dir) &&
           rl_options_copy(&s->cert_file, o->tls_cert_file) &&
           rl_options_copy(&s->key_file, o->tls_key_file);
}

void rl_tls_settings_fini(rl_tls_settings *s)
{
    free(s->ca_file);
    free(s->ca_dir);
    free(s->cert_file);
    free(s->key_file);
}

/* --- the files ------------------------------------------------------------ */

/* The system's authorities in one file; those in its folder OpenSSL looks up
   for each connection. */
static const char *default_ca_file(void)
{
    const char *named = getenv(X509_get_default_cert_file_env());
    return named ? named : X509_get_default_cert_file();
}

void rl_tls_files_look(rl_tls_files *f, const rl_tls_settings *s)
{
    bool own = s->ca_file || s->ca_dir;
    const char *path[RL_TLS_FILES] = {own ? s->ca_file : default_ca_file(),
                                      s->ca_dir, s->cert_file, s->key_file};
    for (size_t i = 0; i < RL_TLS_FILES; i++)
        f->at[i] = path[i] ? rl_os_stamp_of(path[i]) : (rl_os_stamp){0};
}

bool rl_tls_files_are(const rl_tls_files *a, const rl_tls_files *b)
{
    for (size_t i = 0; i < RL_TLS_FILES; i++)
        if (!rl_os_stamp_is(&a->at[i], &b->at[i]))
            return false;
    return true;
}

/* --- what is wrong with one ----------------------------------------------- */

static rlock_status no_memory(rl_fault *f)
{
    return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
}

static rlock_status unusable(rl_fault *f, const char *option, const char *file,
                             const char *why)
{
    char shown[60];
    rl_printable(shown, sizeof shown, file, strlen(file));
    return rl_fault_set(f, RLOCK_EINVAL, 0, "%s \"%s\" %s", option, shown, why);
}

static rlock_status unreadable(rl_fault *f, const char *option,
                               const char *file, int err)
{
    char why[80];
    snprintf(why, sizeof why, "cannot be read: %s", strerror(err));
    unusable(f, option, file, why);
    f->sys_errno = err;
    return f->status;
}

/* Is there such a word in a PEM file? It stands in a line of its own. */
static bool has_word(const char *file, const char *word)
{
    char line[256];
    bool found = false;
    FILE *in = fopen(file, "r");
    while (in && !found && fgets(line, sizeof line, in))
        found = strstr(line, word) != NULL;
    if (in)
        fclose(in);
    return found;
}

static rlock_status refused(rl_fault *f, const char *option, const char *file)
{
    char why[100];
    unsigned long e = ERR_peek_last_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;
    if (ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE)
        return no_memory(f);
    snprintf(why, sizeof why, "cannot be used: %s",
             reason ? reason : "unknown error");
    return unusable(f, option, file, why);
}

static rlock_status check_readable(const char *option, const char *file,
                                   rl_fault *f)
{
    FILE *in = fopen(file, "r");
    if (!in)
        return unreadable(f, option, file, errno);
    fclose(in);
    return RLOCK_OK;
}

#define CERTIFICATE "CERTIFICATE-----"
#define PRIVATE_KEY "PRIVATE KEY-----"

static rlock_status bad_certificate(rl_fault *f, const char *option,
                                    const char *file)
{
    return has_word(file, CERTIFICATE)
               ? refused(f, option, file)
               : unusable(f, option, file, "has no certificate in PEM");
}

/* A certificate is there: for a key of another type OpenSSL looks for one more.
 */
static bool is_of_another(void)
{
    int reason = ERR_GET_REASON(ERR_peek_last_error());
    return reason == X509_R_KEY_VALUES_MISMATCH ||
           reason == X509_R_KEY_TYPE_MISMATCH ||
           reason == SSL_R_NO_CERTIFICATE_ASSIGNED;
}

/* own: it is in a file of its own. */
static rlock_status bad_key(rl_fault *f, bool own, const char *file)
{
    const char *option = own ? "tls_key_file" : "tls_cert_file";
    if (!has_word(file, PRIVATE_KEY))
        return unusable(f, option, file,
                        own ? "has no private key in PEM"
                            : "has no private key in PEM, and no tls_key_file "
                              "is named");
    if (has_word(file, "ENCRYPTED"))
        return unusable(f, option, file,
                        "needs a passphrase: tls_setup can load it with one");
    if (is_of_another())
        return unusable(f, option, file,
                        "is not the key of the certificate in tls_cert_file");
    return refused(f, option, file);
}

/* --- the context ---------------------------------------------------------- */

static int no_passphrase(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return -1;
}

static void set_defaults(SSL_CTX *ctx, rlock_tls_verify verify)
{
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    /* Memory is given back while a connection rests. */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    SSL_CTX_set_verify(ctx,
                       verify == RLOCK_TLS_VERIFY_NONE ? SSL_VERIFY_NONE
                                                       : SSL_VERIFY_PEER,
                       NULL);
}

static rlock_status trust(SSL_CTX *ctx, const rl_tls_settings *s, rl_fault *f)
{
    if (s->ca_dir && access(s->ca_dir, R_OK | X_OK) != 0)
        return unreadable(f, "tls_ca_dir", s->ca_dir, errno);
    if (s->ca_file && check_readable("tls_ca_file", s->ca_file, f) != RLOCK_OK)
        return f->status;
    if (!s->ca_file && !s->ca_dir)
        SSL_CTX_set_default_verify_paths(ctx);
    else if (SSL_CTX_load_verify_locations(ctx, s->ca_file, s->ca_dir) != 1)
        return s->ca_file ? bad_certificate(f, "tls_ca_file", s->ca_file)
                          : refused(f, "tls_ca_dir", s->ca_dir);
    return RLOCK_OK;
}

static rlock_status present(SSL_CTX *ctx, const rl_tls_settings *s, rl_fault *f)
{
    const char *cert = s->cert_file;
    const char *key = s->key_file ? s->key_file : cert;
    bool own = s->key_file != NULL;
    if (!cert)
        return key ? rl_fault_set(f, RLOCK_EINVAL, 0,
                                  "tls_key_file without tls_cert_file")
                   : RLOCK_OK;
    if (check_readable("tls_cert_file", cert, f) != RLOCK_OK ||
        check_readable("tls_key_file", key, f) != RLOCK_OK)
        return f->status;
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return bad_certificate(f, "tls_cert_file", cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1)
        return bad_key(f, own, key);
    return RLOCK_OK;
}

static rlock_status set_up(SSL_CTX *ctx, const rl_tls_settings *s, rl_fault *f)
{
    set_defaults(ctx, s->verify);
    rlock_status status = trust(ctx, s, f);
    if (status == RLOCK_OK)
        status = present(ctx, s, f);
    if (status == RLOCK_OK && s->setup && s->setup(ctx, s->setup_arg) != 1)
        status = rl_fault_set(f, RLOCK_EINVAL, 0, "tls_setup has refused");
    return status;
}

SSL_CTX *rl_tls_context_new(const rl_tls_settings *s, rl_fault *f)
{
    ERR_set_mark();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx)
        no_memory(f);
    if (ctx && set_up(ctx, s, f) != RLOCK_OK) {
        SSL_CTX_free(ctx);
        ctx = NULL;
    }
    ERR_pop_to_mark();
    return ctx;
}

#endif
