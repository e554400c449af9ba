/*
 * What a program asks for, as an SSL_CTX. Its defaults are strict: TLS 1.2 or
 * newer, the server's chain and name are checked, no renegotiation, and a key
 * that needs a passphrase is refused, since OpenSSL would ask for that on the
 * terminal. The last word is the program's, by tls_setup.
 */
#include "net/tls.h"

#include "base/options.h"
#include "rlock_config.h"

#ifdef RL_HAS_OPENSSL

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls_stream.h"

struct rl_tls {
    SSL_CTX *ctx;
    bool checks_name;
    char *server_name; /* instead of the host's; or NULL */
};

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

static rlock_status no_memory(rl_fault *f)
{
    return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
}

static rlock_status unusable(rl_fault *f, const char *option, const char *file)
{
    unsigned long e = ERR_peek_last_error();
    const char *why = e ? ERR_reason_error_string(e) : NULL;
    if (ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE)
        return no_memory(f);
    char shown[100];
    rl_printable(shown, sizeof shown, file, strlen(file));
    return rl_fault_set(f, RLOCK_EINVAL, 0, "%s \"%s\" cannot be used: %s",
                        option, shown, why ? why : "unknown error");
}

static rlock_status trust(SSL_CTX *ctx, const rlock_options *o, rl_fault *f)
{
    if (o->tls_ca_dir && access(o->tls_ca_dir, R_OK | X_OK) != 0)
        return rl_fault_set(f, RLOCK_EINVAL, 0, "tls_ca_dir cannot be read");
    if (!o->tls_ca_file && !o->tls_ca_dir)
        SSL_CTX_set_default_verify_paths(ctx);
    else if (SSL_CTX_load_verify_locations(ctx, o->tls_ca_file,
                                           o->tls_ca_dir) != 1)
        return unusable(f, "tls_ca_file", o->tls_ca_file ? o->tls_ca_file : "");
    return RLOCK_OK;
}

static rlock_status present(SSL_CTX *ctx, const rlock_options *o, rl_fault *f)
{
    const char *cert = o->tls_cert_file;
    const char *key = o->tls_key_file ? o->tls_key_file : cert;
    if (!cert)
        return key ? rl_fault_set(f, RLOCK_EINVAL, 0,
                                  "tls_key_file without tls_cert_file")
                   : RLOCK_OK;
    if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        return unusable(f, "tls_cert_file", cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        return unusable(f, "tls_key_file", key);
    return RLOCK_OK;
}

static rlock_status set_up(SSL_CTX *ctx, const rlock_options *o, rl_fault *f)
{
    set_defaults(ctx, o->tls_verify);
    rlock_status s = trust(ctx, o, f);
    if (s == RLOCK_OK)
        s = present(ctx, o, f);
    if (s == RLOCK_OK && o->tls_setup &&
        o->tls_setup(ctx, o->tls_setup_arg) != 1)
        s = rl_fault_set(f, RLOCK_EINVAL, 0, "tls_setup has refused");
    return s;
}

static rlock_status make(const rlock_options *o, rl_tls *t, rl_fault *f)
{
    t->checks_name = o->tls_verify == RLOCK_TLS_VERIFY_FULL;
    t->ctx = SSL_CTX_new(TLS_client_method());
    if (!rl_options_copy(&t->server_name, o->tls_server_name) || !t->ctx)
        return no_memory(f);
    return set_up(t->ctx, o, f);
}

rlock_status rl_tls_new(const rlock_options *o, rl_tls **out, rl_fault *f)
{
    *out = NULL;
    /* Its own end of the process would free what threads are still using. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    rl_tls *t = calloc(1, sizeof *t);
    if (!t)
        return no_memory(f);
    ERR_set_mark();
    rlock_status s = make(o, t, f);
    ERR_pop_to_mark();
    if (s == RLOCK_OK)
        *out = t;
    else
        rl_tls_free(t);
    return s;
}

void rl_tls_free(rl_tls *t)
{
    if (!t)
        return;
    SSL_CTX_free(t->ctx);
    free(t->server_name);
    free(t);
}

/* --- whom we expect ------------------------------------------------------- */

static bool is_address(const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, bytes) == 1 ||
           inet_pton(AF_INET6, name, bytes) == 1;
}

/*
 * An address is neither asked for by SNI nor looked for among the names. The
 * dot at the end of a whole name belongs to the look-up; one at its beginning
 * would let any name in that domain pass.
 */
static bool expect(SSL *ssl, const char *wanted, bool checks)
{
    X509_VERIFY_PARAM *p = SSL_get0_param(ssl);
    bool address = is_address(wanted);
    char name[256];
    size_t len = strlen(wanted);
    if (len >= sizeof name || *wanted == '.')
        return false;
    memcpy(name, wanted, len + 1);
    if (len > 1 && name[len - 1] == '.')
        name[len - 1] = '\0';
    if (!address && SSL_set_tlsext_host_name(ssl, name) != 1)
        return false;
    if (!checks)
        return true;
    X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return (address ? X509_VERIFY_PARAM_set1_ip_asc(p, name)
                    : X509_VERIFY_PARAM_set1_host(p, name, 0)) == 1;
}

rlock_status rl_tls_shake_hands(const rl_tls *t, int fd, const char *host,
                                int64_t deadline_us, rl_transport *out,
                                rl_fault *f)
{
    const char *name = t->server_name ? t->server_name : host;
    ERR_set_mark();
    rl_tls_stream *s = rl_tls_stream_new(t->ctx, fd);
    bool ok = s && expect(s->ssl, name, t->checks_name);
    ERR_pop_to_mark();
    rlock_status status = !s   ? no_memory(f)
                          : ok ? rl_tls_stream_begin(s, deadline_us, f)
                               : rl_fault_set(f, RLOCK_EIO, 0,
                                              "TLS: no certificate can be for "
                                              "the name \"%.60s\"",
                                              name);
    if (status == RLOCK_OK)
        *out = rl_tls_transport(s);
    else if (s)
        rl_tls_stream_leave(s);
    return status;
}

#endif
