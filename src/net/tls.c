/*
 * A client's certificate, its key and the authorities it trusts are files, and
 * files are replaced while a client lives: certificates are valid for some
 * weeks. So they are looked at before each connection, and read again when they
 * have changed. What has changed for the worse (a file may be written just now)
 * is not taken: connections go on being made from what was read last, and, if
 * one fails, it is told that there was something new.
 *
 * `mutex` guards the context and what is known of the files. One thread at a
 * time looks at them and reads them, and holds nothing meanwhile; connections
 * have a reference to what they were made from.
 */
#include "net/tls.h"

#include "base/clock.h"
#include "base/options.h"
#include "base/thread.h"
#include "rlock_config.h"

#ifdef RL_HAS_OPENSSL

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/tls_context.h"
#include "net/tls_stream.h"

struct rl_tls {
    rl_tls_settings set; /* fixed, as the next two are */
    bool checks_name;
    char *server_name; /* instead of the host's; or NULL */
    rl_mutex mutex;    /* guards what follows */
    rl_cond looked;
    bool looking; /* somebody is, at the files */
    SSL_CTX *ctx;
    rl_tls_files files; /* of which it was made */
    bool outdated;      /* there are others, which are of no use: */
    rl_fault why;
};

static rlock_status no_memory(rl_fault *f)
{
    return rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory");
}

static rlock_status make(const rlock_options *o, rl_tls *t, rl_fault *f)
{
    t->checks_name = o->tls_verify == RLOCK_TLS_VERIFY_FULL;
    if (!rl_tls_settings_init(&t->set, o) ||
        !rl_options_copy(&t->server_name, o->tls_server_name))
        return no_memory(f);
    rl_tls_files_look(&t->files, &t->set);
    t->ctx = rl_tls_context_new(&t->set, f);
    return t->ctx ? RLOCK_OK : f->status;
}

rlock_status rl_tls_new(const rlock_options *o, rl_tls **out, rl_fault *f)
{
    *out = NULL;
    /* Its own end of the process would free what threads are still using. */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    rl_tls *t = calloc(1, sizeof *t);
    if (!t)
        return no_memory(f);
    rl_mutex_init(&t->mutex, RL_RANK_ALONE);
    rl_cond_init(&t->looked);
    rlock_status s = make(o, t, f);
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
    rl_tls_settings_fini(&t->set);
    free(t->server_name);
    rl_cond_fini(&t->looked);
    rl_mutex_fini(&t->mutex);
    free(t);
}

/* --- files that change ---------------------------------------------------- */

/* They are looked at before they are read: what changes meanwhile is seen the
   next time. */
static void take_new_locked(rl_tls *t, const rl_tls_files *now)
    RL_REQUIRES(&t->mutex)
{
    rl_fault f;
    rl_mutex_unlock(&t->mutex);
    SSL_CTX *ctx = rl_tls_context_new(&t->set, &f);
    rl_mutex_lock(&t->mutex);
    t->outdated = ctx == NULL;
    if (!ctx) {
        t->why = f;
        return;
    }
    SSL_CTX_free(t->ctx);
    t->ctx = ctx;
    t->files = *now;
}

static void look_locked(rl_tls *t) RL_REQUIRES(&t->mutex)
{
    rl_tls_files now;
    t->looking = true;
    rl_mutex_unlock(&t->mutex);
    rl_tls_files_look(&now, &t->set);
    rl_mutex_lock(&t->mutex);
    if (rl_tls_files_are(&now, &t->files))
        t->outdated = false;
    else
        take_new_locked(t, &now);
    t->looking = false;
    rl_cond_wake_all(&t->looked);
}

/* Counted for the caller. */
static SSL_CTX *context_of(rl_tls *t, int64_t deadline_us)
{
    rl_mutex_lock(&t->mutex);
    while (t->looking && rl_now_us() < deadline_us)
        rl_cond_wait_until(&t->looked, &t->mutex, deadline_us);
    if (!t->looking)
        look_locked(t);
    SSL_CTX *ctx = t->ctx;
    SSL_CTX_up_ref(ctx);
    rl_mutex_unlock(&t->mutex);
    return ctx;
}

void rl_tls_explain(rl_tls *t, rl_fault *f)
{
    char text[sizeof f->text];
    rl_mutex_lock(&t->mutex);
    if (t->outdated) {
        snprintf(text, sizeof text, "%.60s (the newer %.124s)", f->text,
                 t->why.text);
        memcpy(f->text, text, sizeof text);
    }
    rl_mutex_unlock(&t->mutex);
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

rlock_status rl_tls_shake_hands(rl_tls *t, int fd, const char *host,
                                int64_t deadline_us, rl_transport *out,
                                rl_fault *f)
{
    const char *name = t->server_name ? t->server_name : host;
    SSL_CTX *ctx = context_of(t, deadline_us);
    ERR_set_mark();
    rl_tls_stream *s = rl_tls_stream_new(ctx, fd);
    SSL_CTX_free(ctx); /* the stream has its own reference */
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
