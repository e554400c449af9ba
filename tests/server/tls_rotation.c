/*
 * Certificates that are replaced while a client lives: its own, its key, and
 * the authorities that it trusts. The next connection is made from what is
 * there by then.
 */
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rlock_config.h"
#include "scene.h"
#include "secure.h"

/* The program's files, copies of an authority's. */
typedef struct desk {
    char dir[160], ca[180], cert[180], key[180];
} desk;

typedef struct secured {
    authority *a, *b;
    desk d;
    server *sv;
    char uri[64];
    rlock_options opts;
} secured;

/* All at once, as a program does that knows what it does. */
static void put(const char *from, const char *to)
{
    char command[1000];
    snprintf(command, sizeof command, "cp '%s' '%s.new' && mv '%s.new' '%s'",
             from, to, to, to);
    EXPECT_INT(system(command), 0);
}

static void put_pair(const desk *d, const authority *a, const char *name)
{
    char key[32];
    snprintf(key, sizeof key, "%s.key", name);
    put(authority_file(a, name), d->cert);
    put(authority_file(a, key), d->key);
}

static void put_all(const desk *d, const authority *a)
{
    put(authority_file(a, "ca"), d->ca);
    put_pair(d, a, "client");
}

static secured secured_start(void)
{
#ifndef RL_HAS_OPENSSL
    SKIP("rlock was built without OpenSSL");
#endif
    secured s = {.a = authority_new(), .opts = RLOCK_OPTIONS_INIT};
    s.b = authority_new();
    s.sv = server_start(NULL);
    int port = secure_listen(s.sv, s.a, "server", "yes");
    snprintf(s.uri, sizeof s.uri, "%s", secure_uri("127.0.0.1", port));
    snprintf(s.d.dir, sizeof s.d.dir, "%s", server_file(s.sv, "desk"));
    EXPECT_INT(mkdir(s.d.dir, 0700), 0);
    snprintf(s.d.ca, sizeof s.d.ca, "%s/ca", s.d.dir);
    snprintf(s.d.cert, sizeof s.d.cert, "%s/cert", s.d.dir);
    snprintf(s.d.key, sizeof s.d.key, "%s/key", s.d.dir);
    put_all(&s.d, s.a);
    return s;
}

/* What points into it is set where it stays. */
static void use_desk(secured *s)
{
    s->opts.uri = s->uri;
    s->opts.tls_ca_file = s->d.ca;
    s->opts.tls_cert_file = s->d.cert;
    s->opts.tls_key_file = s->d.key;
}

static void secured_stop(secured *s)
{
    unlink(s->d.ca);
    unlink(s->d.cert);
    unlink(s->d.key);
    rmdir(s->d.dir);
    server_stop(s->sv);
    authority_free(s->a);
    authority_free(s->b);
}

/* From now on it has another certificate, and wants theirs by that authority.
 */
static void change_server(secured *s, const authority *to)
{
    const redisReply *r = server_cmd(
        s->sv,
        "CONFIG SET tls-cert-file %s tls-key-file %s tls-ca-cert-file %s",
        authority_file(to, "server"), authority_file(to, "server.key"),
        authority_file(to, "ca"));
    if (r->type == REDIS_REPLY_ERROR)
        SKIP("a server before Redis 7 cannot change all of it at once");
}

static void break_connections(secured *s)
{
    server_int(s->sv, "CLIENT KILL TYPE normal SKIPME yes");
}

TEST(tls_rotation, what_was_replaced_is_used_for_the_next_connection)
{
    secured s = secured_start();
    use_desk(&s);
    s.opts.watchdog_lease_ms = 3 * BRISK_MS;
    scene one = scene_with(s.sv, &s.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    break_connections(&s); /* the control */
    watch_renewals(one.cl, 1);
    put_all(&s.d, s.b);
    change_server(&s, s.b);
    break_connections(&s);
    watch_renewals(one.cl, 1);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    unlock_times(one.lk, 2, RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).lost, 0);
    scene_leave(&one);
    secured_stop(&s);
}

/* It is just being written. */
static void put_half(const char *from, const char *to)
{
    static char text[20000];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    EXPECT(in && out);
    size_t n = fread(text, 1, sizeof text, in) / 2;
    EXPECT(n > 0);
    EXPECT_INT(fwrite(text, 1, n, out), n);
    fclose(in);
    fclose(out);
}

static bool fails_for_the_newer(rlock_client *cl, const char *what)
{
    return rlock_client_ping(cl) == RLOCK_EIO &&
           strstr(rlock_last_error()->message, what);
}

/* One of the three files, as the authority's; and what is said of it. */
static void write_half(const char *file, char *(*of)(desk *d), const char *what)
{
    secured s = secured_start();
    use_desk(&s);
    s.opts.watchdog_lease_ms = 6 * BRISK_MS;
    scene one = scene_with(s.sv, &s.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    put_half(authority_file(s.b, file), of(&s.d));
    break_connections(&s);
    EVENTUALLY(SOON, rlock_client_ping(one.cl) == RLOCK_OK); /* by the old */
    change_server(&s, s.b);
    break_connections(&s);
    EVENTUALLY(SOON, fails_for_the_newer(one.cl, what));
    events_wait(one.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    EXPECT_CONTAINS(events_message(one.ev, RLOCK_EVENT_RENEW_FAILED), what);
    put_all(&s.d, s.b);
    watch_renewals(one.cl, 1);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).lost, 0);
    scene_leave(&one);
    secured_stop(&s);
}

static char *cert_of(desk *d)
{
    return d->cert;
}

static char *key_of(desk *d)
{
    return d->key;
}

static char *ca_of(desk *d)
{
    return d->ca;
}

TEST_CASE(tls_rotation, what_is_of_no_use_is_not_taken_and_told_when_it_matters,
          write_half("client", cert_of, "(the newer tls_cert_file"))
TEST_CASE(tls_rotation, nor_is_half_a_key,
          write_half("client.key", key_of, "(the newer tls_key_file"))
TEST_CASE(tls_rotation, nor_is_half_a_file_of_authorities,
          write_half("ca", ca_of, "(the newer tls_ca_file"))

/* --- the program's word --------------------------------------------------- */

static atomic_int calls;
static atomic_bool refuses;

static int set_up(struct ssl_ctx_st *ctx, void *arg)
{
    EXPECT(ctx && arg == &calls);
    atomic_fetch_add(&calls, 1);
    return !atomic_load(&refuses);
}

/* On a new connection; how often it has been asked for its word. */
static int ping_anew(secured *s, rlock_client *cl)
{
    break_connections(s);
    EVENTUALLY(SOON, rlock_client_ping(cl) == RLOCK_OK);
    return atomic_load(&calls);
}

TEST(tls_rotation, the_program_has_its_word_whenever_a_file_has_changed)
{
    secured s = secured_start();
    use_desk(&s);
    s.opts.tls_setup = set_up;
    s.opts.tls_setup_arg = &calls;
    rlock_client *cl = server_client(s.sv, &s.opts);
    EXPECT_INT(ping_anew(&s, cl), 1); /* the control */
    put_pair(&s.d, s.a, "server");
    EXPECT_INT(ping_anew(&s, cl), 2);
    atomic_store(&refuses, true);
    put_pair(&s.d, s.b, "client"); /* which the server would not take */
    EXPECT(ping_anew(&s, cl) > 2);
    put_pair(&s.d, s.a, "client");
    atomic_store(&refuses, false);
    int accepted = ping_anew(&s, cl);
    EXPECT(accepted > 3);
    EXPECT_INT(ping_anew(&s, cl), accepted);
    rlock_client_free(cl);
    secured_stop(&s);
}

/* --- threads -------------------------------------------------------------- */

static atomic_bool ends;
static atomic_int done;

/* An unlock that meets one broken connection after the other is done later. */
static intptr_t lock_all_the_time(void *lk)
{
    for (; !atomic_load(&ends); atomic_fetch_add(&done, 1)) {
        EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
        rlock_status s = rlock_unlock(lk);
        EXPECT(s == RLOCK_OK || s == RLOCK_EIO);
    }
    return 0;
}

/* Between its two files a pair does not fit. */
TEST(tls_rotation, threads_that_connect_meanwhile_use_the_one_or_the_other)
{
    enum { THREADS = 6, ROUNDS = 20 };
    secured s = secured_start();
    use_desk(&s);
    scene one = scene_with(s.sv, &s.opts);
    test_thread *t[THREADS];
    rlock *lk[THREADS];
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "job-%d", i);
        lk[i] = test_lock(one.cl, name);
        t[i] = test_spawn(lock_all_the_time, lk[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        put_pair(&s.d, s.a, i % 2 ? "client" : "server");
        break_connections(&s);
        int before = atomic_load(&done);
        EVENTUALLY(SOON, atomic_load(&done) > before + 2 * THREADS);
    }
    atomic_store(&ends, true);
    for (int i = 0; i < THREADS; i++) {
        test_join(t[i]);
        rlock_free(lk[i]);
    }
    EXPECT_INT(stats_of(one.cl).lost, 0);
    scene_leave(&one);
    secured_stop(&s);
}
