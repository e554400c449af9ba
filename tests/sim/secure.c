/*
 * TLS: the server's end of a connection is OpenSSL between two pieces of
 * memory, one for what has come and one for what is to go. What goes wrong
 * with connections goes wrong with records then, in the middle of them too,
 * and with handshakes, of which each step takes its time.
 *
 * Called by server.c: what has come is deciphered before commands are cut out
 * of it, and what is said is enciphered. So a server that stands still shakes
 * no hands either. The client's end is the library's own.
 *
 * One certificate, for all servers, is made before any world begins, of
 * constant dice, and what OpenSSL draws afterwards is the world's: so a seed
 * is a history. Its locks are libc's: no call of the seam is made under one,
 * so whoever has one runs on until it is free.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* how it draws is set for all of it */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "world.h"

struct secure {
    SSL *ssl;
    BIO *in, *out; /* the stream's own */
    bool is_open;  /* hands are shaken */
};

static SSL_CTX *contexts[2]; /* for TLS 1.2, and 1.3 */
static char trusted[32];

/* --- chance --------------------------------------------------------------- */

static int draw(unsigned char *at, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (unsigned char)chance_next(&w.dice);
    return 1;
}

static int is_ready(void)
{
    return 1;
}

/* --- the certificate ------------------------------------------------------ */

static void need(bool ok, const char *what)
{
    if (!ok)
        die("OpenSSL has no %s for the world: %s", what,
            ERR_reason_error_string(ERR_get_error()));
}

static void add_names(X509 *cert)
{
    X509_EXTENSION *names = X509V3_EXT_conf_nid(
        NULL, NULL, NID_subject_alt_name, "DNS:s.example,IP:127.0.0.1");
    need(names && X509_add_ext(cert, names, -1), "names");
    X509_EXTENSION_free(names);
}

/* It vouches for itself, in all the years in which this may be run. */
static X509 *make_certificate(EVP_PKEY *key)
{
    X509 *cert = X509_new();
    X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;
    const unsigned char who[] = "s.example";
    need(
        name && X509_set_version(cert, 2) &&
            ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) &&
            ASN1_TIME_set_string(X509_getm_notBefore(cert),
                                 "20200101000000Z") &&
            ASN1_TIME_set_string(X509_getm_notAfter(cert), "20990101000000Z") &&
            X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, who, -1, -1,
                                       0) &&
            X509_set_issuer_name(cert, name) && X509_set_pubkey(cert, key),
        "certificate");
    add_names(cert);
    need(X509_sign(cert, key, EVP_sha256()), "signature");
    return cert;
}

/* As the file that a client is to trust, and may show as its own; it has no
   other name. */
static void publish(X509 *cert, EVP_PKEY *key)
{
    int fd = memfd_create("authority", 0);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    need(file && PEM_write_X509(file, cert) &&
             PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) &&
             fflush(file) == 0,
         "file");
    snprintf(trusted, sizeof trusted, "/proc/self/fd/%d", fd);
}

static SSL_CTX *make_context(X509 *cert, EVP_PKEY *key, int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    need(ctx && SSL_CTX_use_certificate(ctx, cert) &&
             SSL_CTX_use_PrivateKey(ctx, key) &&
             SSL_CTX_set_min_proto_version(ctx, version) &&
             SSL_CTX_set_max_proto_version(ctx, version),
         "context");
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    return ctx;
}

void secure_warm(void)
{
    static const RAND_METHOD of_the_world = {
        .bytes = draw, .pseudorand = draw, .status = is_ready};
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    need(RAND_set_rand_method(&of_the_world), "dice");
    chance_init(&w.dice, 1);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    need(key != NULL, "key");
    X509 *cert = make_certificate(key);
    publish(cert, key);
    contexts[0] = make_context(cert, key, TLS1_2_VERSION);
    contexts[1] = make_context(cert, key, TLS1_3_VERSION);
}

const char *secure_authority(void)
{
    return trusted;
}

/* --- a connection --------------------------------------------------------- */

static secure *begin(void)
{
    secure *s = need_memory(sizeof *s);
    s->ssl = SSL_new(contexts[cfg.tls > 12]);
    s->in = BIO_new(BIO_s_mem());
    s->out = BIO_new(BIO_s_mem());
    if (!s->ssl || !s->in || !s->out)
        die("out of memory");
    BIO_set_mem_eof_return(s->in, -1); /* more may come */
    SSL_set_bio(s->ssl, s->in, s->out);
    SSL_set_accept_state(s->ssl);
    return s;
}

/* What OpenSSL has to say. */
static void take_records(secure *s, text *out)
{
    char part[4096];
    for (int n; (n = BIO_read(s->out, part, sizeof part)) > 0;)
        text_add(out, part, (size_t)n);
}

/* Errors are the running thread's, which is the library's or the program's:
   what is added here is taken off again. */
static bool decipher(secure *s, text *to)
{
    char part[4096];
    int n = 1;
    ERR_set_mark();
    if (!s->is_open)
        s->is_open = SSL_do_handshake(s->ssl) == 1;
    while (s->is_open && n > 0) {
        n = SSL_read(s->ssl, part, sizeof part);
        text_add(to, part, n > 0 ? (size_t)n : 0);
    }
    bool goes_on = SSL_want_read(s->ssl);
    ERR_pop_to_mark();
    return goes_on;
}

bool secure_hear(conn *c, text *said)
{
    if (!c->tls)
        c->tls = begin();
    BIO_write(c->tls->in, c->sealed.at, (int)c->sealed.len);
    c->sealed.len = 0;
    bool goes_on = decipher(c->tls, &c->input);
    take_records(c->tls, said);
    return goes_on;
}

void secure_say(conn *c, const text *t, text *sealed)
{
    ERR_set_mark();
    if (t->len > 0 && c->tls)
        SSL_write(c->tls->ssl, t->at, (int)t->len);
    else if (c->tls)
        SSL_shutdown(c->tls->ssl);
    ERR_pop_to_mark();
    if (c->tls)
        take_records(c->tls, sealed);
}

void secure_end(conn *c)
{
    if (!c->tls)
        return;
    ERR_set_mark();
    SSL_free(c->tls->ssl);
    ERR_pop_to_mark();
    free(c->tls);
    c->tls = NULL;
}
