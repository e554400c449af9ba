/*
 * What TLS costs: a pair over rediss:// against one over redis://, in turns, on
 * TCP both; and the memory of its connections. The server listens for TLS with
 * a certificate that openssl(1) makes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define CYCLES  1500
#define BLOCK   20
#define CLIENTS 100

static char dir[] = "/tmp/rlock-bench-XXXXXX";

static const char *file(const char *name)
{
    static char path[2][64];
    static int next;
    next = !next;
    snprintf(path[next], sizeof path[next], "%s/%s", dir, name);
    return path[next];
}

static void make_certificate(void)
{
    char command[400];
    bench_check(mkdtemp(dir) != NULL, "no folder");
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
             "-nodes -days 2 -subj /CN=bench -addext "
             "subjectAltName=IP:127.0.0.1 -keyout %s -out %s 2>/dev/null",
             file("key"), file("cert"));
    bench_check(system(command) == 0, "no certificate");
}

static void remove_certificate(void)
{
    unlink(file("key"));
    unlink(file("cert"));
    rmdir(dir);
}

static void set(redisContext *c, const char *option, const char *value)
{
    redisReply *r = redisCommand(c, "CONFIG SET %s %s", option, value);
    bench_check(r && r->type == REDIS_REPLY_STATUS, "the server has no TLS");
    freeReplyObject(r);
}

static int listen_securely(redisContext *c)
{
    char port[8];
    int n = bench_free_port();
    snprintf(port, sizeof port, "%d", n);
    set(c, "tls-auth-clients", "no");
    set(c, "tls-key-file", file("key"));
    set(c, "tls-cert-file", file("cert"));
    set(c, "tls-ca-cert-file", file("cert"));
    set(c, "tls-port", port);
    return n;
}

static rlock_client *meet(const char *uri, bool secure)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = uri;
    o.tls_ca_file = secure ? file("cert") : NULL;
    bench_ok(rlock_client_new(&o, &cl));
    return cl;
}

static double block(rlock *lk)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++) {
        bench_ok(rlock_lock(lk));
        bench_ok(rlock_unlock(lk));
    }
    return (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

static double ping_us(redisContext *c)
{
    static double us[101];
    for (size_t i = 0; i < 101; i++)
        us[i] = (double)bench_ping_ns(c) / 1000;
    return bench_median(us, 101);
}

static void compare(const char *plain, const char *secure, redisContext *c)
{
    static double us[2][CYCLES];
    rlock_client *cl[2] = {meet(plain, false), meet(secure, true)};
    rlock *lk[2] = {bench_lock(cl[0], "bench:plain"),
                    bench_lock(cl[1], "bench:tls")};
    bench_begin();
    for (int i = 0; i < CYCLES; i++)
        for (int k = 0; k < 2; k++)
            us[(i + k) % 2][i] = block(lk[(i + k) % 2]);
    double p = bench_median(us[0], CYCLES), s = bench_median(us[1], CYCLES);
    bench_row("uncontended pair over TLS, as a multiple of plain TCP", 1.45,
              s / p, "", "%.1f µs against %.1f µs, PING %.1f µs", s, p,
              ping_us(c));
    for (int k = 0; k < 2; k++) {
        rlock_free(lk[k]);
        rlock_client_free(cl[k]);
    }
}

static void lock_once(rlock_client *cl)
{
    rlock *lk = bench_lock(cl, "bench:memory");
    bench_ok(rlock_lock(lk));
    bench_ok(rlock_unlock(lk));
    rlock_free(lk);
}

/* A client has one connection, and one more when it has locked. */
static double connection_kib(const char *uri, bool secure)
{
    rlock_client *cl[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        cl[i] = meet(uri, secure);
    double before = bench_memory() / 1024;
    for (int i = 0; i < CLIENTS; i++)
        lock_once(cl[i]);
    double grown = bench_memory() / 1024 - before;
    for (int i = 0; i < CLIENTS; i++)
        rlock_client_free(cl[i]);
    return grown / CLIENTS;
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    char plain[64], secure[64];
    redisContext *c = bench_connect(uri);
    bench_open_port(uri, plain);
    make_certificate();
    snprintf(secure, sizeof secure, "rediss://127.0.0.1:%d",
             listen_securely(c));
    bench_place(uri, true);
    compare(plain, secure, c);
    bench_displace(uri);
    double tls = connection_kib(secure, true);
    double tcp = connection_kib(plain, false);
    bench_row("memory of a connection over TLS, more than plain", 40, tls - tcp,
              " KiB", "a client's first lock takes %.0f KiB against %.0f", tls,
              tcp);
    remove_certificate();
    redisFree(c);
    return 0;
}
