/*
 * OpenSSL reads and writes through a BIO of ours. Writing puts records into
 * `out` and always succeeds; they are handed to the kernel next, as far as it
 * takes them. Reading asks the socket, which is never waited for.
 *
 * The threads of a mux (net/mux.h) write and read at the same time, so the
 * stream has a mutex of its own. It is a leaf, and held for as long as it takes
 * to encrypt or decrypt what is there.
 *
 * A command counts as sent once its record has been begun to be handed on,
 * since the rest may be at any time later. Only when the kernel refuses the
 * record at once has the command certainly not been executed: what is left of
 * it is thrown away, and half a record cannot be decrypted.
 *
 * OpenSSL keeps errors in a queue for each thread, where the program's own may
 * lie. So what a call has come to is not asked of that queue but of the stream,
 * and what we have added to it is taken off again. (OpenSSL empties it before a
 * handshake, the program's errors too.)
 */
#include "base/clock.h"
#include "base/os.h"
#include "rlock_config.h"

#ifdef RL_HAS_OPENSSL

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/tls_stream.h"

/* A record holds no more. */
#define RECORD_MAX 16384

/* With these begin a record of a handshake, and one with an alert. */
#define FIRST_OF_HANDSHAKE 22
#define FIRST_OF_ALERT     21

/* An alert that OpenSSL 1.1.1 has no words for. */
#define CERTIFICATE_REQUIRED 116

static bool would_block(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* --- the BIO -------------------------------------------------------------- */

static int put_record(BIO *b, const char *bytes, int n)
{
    rl_tls_stream *s = BIO_get_data(b);
    rl_put_raw(&s->out, bytes, (size_t)n);
    return s->out.lacking ? -1 : n;
}

static int heard(rl_tls_stream *s, const char *bytes, int n, int room)
{
    if (!s->heard)
        s->first = (unsigned char)*bytes;
    s->heard = true;
    s->drained = n < room;
    return n;
}

static int get_records(BIO *b, char *bytes, int room)
{
    rl_tls_stream *s = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    ssize_t n =
        s->drained ? -1 : recv(s->fd, bytes, (size_t)room, MSG_DONTWAIT);
    if (n > 0)
        return heard(s, bytes, (int)n, room);
    if (s->drained || (n < 0 && would_block())) {
        s->drained = true;
        BIO_set_retry_read(b);
        return -1;
    }
    s->ended = n == 0;
    s->err = n < 0 ? errno : 0;
    return (int)n;
}

static long control(BIO *b, int what, long number, void *arg)
{
    (void)b, (void)number, (void)arg;
    return what == BIO_CTRL_FLUSH;
}

static int init(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

/* One for all, made with the first connection. NULL: out of memory. */
static const BIO_METHOD *method(void)
{
    static _Atomic(BIO_METHOD *) made;
    BIO_METHOD *m = made, *nobody = NULL;
    if (m)
        return m;
    m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rlock");
    if (!m)
        return NULL;
    BIO_meth_set_write(m, put_record);
    BIO_meth_set_read(m, get_records);
    BIO_meth_set_ctrl(m, control);
    BIO_meth_set_create(m, init);
    if (atomic_compare_exchange_strong(&made, &nobody, m))
        return m;
    BIO_meth_free(m);
    return nobody;
}

/* --- what has gone wrong -------------------------------------------------- */

/* The last call found nothing, and something may come. */
static bool may_retry(const rl_tls_stream *s)
{
    return SSL_want_read(s->ssl) && BIO_should_retry(SSL_get_rbio(s->ssl));
}

/* The server's last words, which it says by number. */
static void hear_alert(const SSL *ssl, int where, int number)
{
    rl_tls_stream *s = SSL_get_app_data(ssl);
    if (where & SSL_CB_ALERT && where & SSL_CB_READ &&
        number >> 8 == SSL3_AL_FATAL)
        s->alert = number & 0xff;
}

static const char *alert_text(int alert)
{
    return alert == CERTIFICATE_REQUIRED
               ? "it wants a client certificate (tls_cert_file)"
               : SSL_alert_desc_string_long(alert);
}

static const char *reason(void)
{
    unsigned long e = ERR_peek_last_error();
    const char *text = e ? ERR_reason_error_string(e) : NULL;
    return text ? text : "unknown error";
}

static bool lacks_memory(const rl_tls_stream *s)
{
    return s->out.lacking ||
           ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE;
}

/* Why the last call failed, for good. */
static rlock_status broken(const rl_tls_stream *s, const char *doing,
                           rl_fault *f)
{
    if (lacks_memory(s))
        return rl_fault_passes(
            f, rl_fault_set(f, RLOCK_ENOMEM, 0, "%s: out of memory", doing));
    if (s->alert)
        return rl_fault_set(f, RLOCK_EIO, 0, "%s: TLS: the server says: %s",
                            doing, alert_text(s->alert));
    if (s->err)
        return rl_fault_set(f, RLOCK_EIO, s->err, "%s: %s", doing,
                            strerror(s->err));
    if (s->ended || SSL_get_shutdown(s->ssl) & SSL_RECEIVED_SHUTDOWN)
        return rl_fault_set(f, RLOCK_EIO, 0, "connection closed by the server");
    return rl_fault_set(f, RLOCK_EIO, 0, "%s: TLS: %s", doing, reason());
}

/* --- a stream ------------------------------------------------------------- */

/*
 * What the kernel takes now. False: the socket is broken, as s->err says, and
 * nothing is sent any more, were it to mend.
 */
static bool flush(rl_tls_stream *s) RL_REQUIRES(&s->mutex)
{
    while (!s->dead && rl_bytes_left(&s->out) > 0) {
        ssize_t n =
            rl_os_send(s->fd, s->out.at + s->out.begin, rl_bytes_left(&s->out));
        if (n < 0 && would_block())
            return true;
        if (n < 0) {
            s->err = errno;
            s->dead = true;
            return false;
        }
        rl_bytes_sent(&s->out, (size_t)n);
    }
    return !s->dead;
}

/* Decrypts as much as there is room for. */
static size_t decrypt(rl_tls_stream *s, char *bytes, size_t room)
    RL_REQUIRES(&s->mutex)
{
    size_t have = 0;
    int n = 1;
    s->drained = false;
    while (have < room && n > 0) {
        n = SSL_read(s->ssl, bytes + have, (int)(room - have));
        have += n > 0 ? (size_t)n : 0;
    }
    return have;
}

static ssize_t tls_read(rl_transport *t, char *bytes, size_t room, rl_fault *f)
{
    rl_tls_stream *s = t->tls;
    rl_mutex_lock(&s->mutex);
    ERR_set_mark();
    ssize_t n = (ssize_t)decrypt(s, bytes, room);
    flush(s); /* what OpenSSL had to say to what came */
    bool ended = n < (ssize_t)room && !may_retry(s);
    /* An end behind data is told by the next read, which poll knows nothing of.
     */
    t->again = n > 0 && ended;
    if (n == 0 && ended) {
        broken(s, "no reply", f);
        n = -1;
    }
    ERR_pop_to_mark();
    rl_mutex_unlock(&s->mutex);
    return n;
}

/*
 * A server that refuses us says why and closes. If it has not read all that was
 * sent to it, the kernel resets the connection, and a write may notice that
 * before anybody has read what the server said.
 */
static void hear_last_words(rl_tls_stream *s) RL_REQUIRES(&s->mutex)
{
    char byte;
    int err = s->err;
    s->drained = false;
    SSL_peek(s->ssl, &byte, 1);
    s->err = err;
}

static ssize_t write_locked(rl_tls_stream *s, const char *bytes, size_t n)
    RL_REQUIRES(&s->mutex)
{
    if (!flush(s))
        return -1;
    if (n == 0 || rl_bytes_left(&s->out) > 0)
        return 0;
    int done = SSL_write(s->ssl, bytes, n < RECORD_MAX ? (int)n : RECORD_MAX);
    return done > 0 && flush(s) ? done : -1;
}

static ssize_t tls_write(rl_transport *t, const char *bytes, size_t n,
                         rl_fault *f)
{
    rl_tls_stream *s = t->tls;
    rl_mutex_lock(&s->mutex);
    ERR_set_mark();
    ssize_t done = write_locked(s, bytes, n);
    if (done < 0) {
        hear_last_words(s);
        broken(s, "cannot send", f);
    }
    t->holds = !s->dead && rl_bytes_left(&s->out) > 0;
    ERR_pop_to_mark();
    rl_mutex_unlock(&s->mutex);
    return done;
}

static void tls_close(rl_transport *t)
{
    rl_tls_stream_free(t->tls);
}

static const rl_transport_ops tls_ops = {tls_write, tls_read, tls_close};

rl_transport rl_tls_transport(rl_tls_stream *s)
{
    return (rl_transport){.ops = &tls_ops, .fd = s->fd, .tls = s};
}

rl_tls_stream *rl_tls_stream_new(SSL_CTX *ctx, int fd)
{
    rl_tls_stream *s = calloc(1, sizeof *s);
    BIO *b = s && method() ? BIO_new(method()) : NULL;
    SSL *ssl = b ? SSL_new(ctx) : NULL;
    if (!ssl) {
        BIO_free(b);
        free(s);
        return NULL;
    }
    BIO_set_data(b, s);
    SSL_set_bio(ssl, b, b);
    SSL_set_connect_state(ssl);
    SSL_set_max_send_fragment(ssl, RECORD_MAX); /* one write is one record */
    SSL_set_app_data(ssl, s);
    SSL_set_info_callback(ssl, hear_alert);
    s->ssl = ssl;
    s->fd = fd;
    rl_mutex_init(&s->mutex, RL_RANK_ALONE);
    return s;
}

void rl_tls_stream_leave(rl_tls_stream *s)
{
    SSL_free(s->ssl);
    rl_bytes_fini(&s->out);
    rl_mutex_fini(&s->mutex);
    free(s);
}

void rl_tls_stream_free(rl_tls_stream *s)
{
    int fd = s->fd;
    rl_tls_stream_leave(s);
    close(fd);
}

/* --- the handshake -------------------------------------------------------- */

static rlock_status refused(long why, rl_fault *f)
{
    bool name = why == X509_V_ERR_HOSTNAME_MISMATCH ||
                why == X509_V_ERR_IP_ADDRESS_MISMATCH;
    return rl_fault_set(f, RLOCK_EIO, 0,
                        "TLS: the server's certificate is refused: %s%s",
                        X509_verify_cert_error_string(why),
                        name ? " (tls_server_name sets another name)" : "");
}

static rlock_status handshake_failed(const rl_tls_stream *s, rl_fault *f)
{
    long verified = SSL_get_verify_result(s->ssl);
    if (verified != X509_V_OK && SSL_get_verify_mode(s->ssl) != SSL_VERIFY_NONE)
        return refused(verified, f);
    if (s->heard && s->first != FIRST_OF_HANDSHAKE &&
        s->first != FIRST_OF_ALERT)
        return rl_fault_set(f, RLOCK_EIO, 0,
                            "TLS: what answers there does not speak TLS");
    return broken(s, "TLS handshake", f);
}

/* Goes on with it. True: it is over, as *status says. */
static bool step(rl_tls_stream *s, rlock_status *status, rl_fault *f)
{
    rl_mutex_lock(&s->mutex);
    ERR_set_mark();
    s->drained = false;
    bool done = SSL_do_handshake(s->ssl) == 1;
    bool flushed = flush(s);
    if (!flushed)
        hear_last_words(s);
    bool goes_on = flushed && (done || may_retry(s));
    *status = goes_on ? RLOCK_OK : handshake_failed(s, f);
    bool over = !goes_on || (done && rl_bytes_left(&s->out) == 0);
    ERR_pop_to_mark();
    rl_mutex_unlock(&s->mutex);
    return over;
}

rlock_status rl_tls_stream_begin(rl_tls_stream *s, int64_t deadline_us,
                                 rl_fault *f)
{
    rlock_status status;
    while (!step(s, &status, f)) {
        bool more = rl_bytes_left(&s->out) > 0;
        struct pollfd p = {.fd = s->fd,
                           .events = (short)(POLLIN | (more ? POLLOUT : 0))};
        if (rl_now_us() >= deadline_us)
            return rl_fault_set(f, RLOCK_EIO, ETIMEDOUT,
                                "TLS handshake: %s (is it a port for TLS?)",
                                strerror(ETIMEDOUT));
        poll(&p, 1, rl_poll_ms(deadline_us));
    }
    return status;
}

#endif
