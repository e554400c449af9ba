/*
 * Row 65 of the catalogue: name servers that are slow, silent, or at fault; of
 * row 47, a name with an address behind which nobody answers; and row 161, what
 * both are to who must not block. The names are
 * looked up by a getaddrinfo() of this file's own, in the place of the C
 * library's.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>

#include "fake.h"
#include "loop.h"

typedef enum answer { GOOD, FAILS, SILENT, BLACK_HOLE_FIRST } answer;

static atomic_int name_server; /* answer */
static atomic_int lookups, answered;

typedef int look_up_fn(const char *host, const char *port,
                       const struct addrinfo *hints, struct addrinfo **out);

/* What the C library makes of a number. */
static int look_up_number(const char *address, const char *port,
                          const struct addrinfo *hints, struct addrinfo **out)
{
    struct addrinfo numeric = *hints;
    look_up_fn *real;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    numeric.ai_flags |= AI_NUMERICHOST;
    return real(address, port, &numeric, out);
}

static char black_hole_port[8];

int getaddrinfo(const char *host, const char *port,
                const struct addrinfo *hints, struct addrinfo **out)
{
    if (hints->ai_flags & AI_NUMERICHOST)
        return look_up_number(host, port, hints, out);
    atomic_fetch_add(&lookups, 1);
    while (atomic_load(&name_server) == SILENT)
        test_pause_ms(1);
    int error = atomic_load(&name_server) == FAILS
                    ? EAI_AGAIN
                    : look_up_number("127.0.0.1", port, hints, out);
    if (!error && atomic_load(&name_server) == BLACK_HOLE_FIRST) {
        struct addrinfo *rest = *out;
        error = look_up_number("127.0.0.1", black_hole_port, hints, out);
        (*out)->ai_next = rest;
    }
    atomic_fetch_add(&answered, 1);
    return error;
}

/* A server whose name is asked for with every new connection. */
static scene scene_named(int64_t lease_ms, int64_t timeout_ms)
{
    static char uri[64];
    scene s = {.sv = server_start_tcp(NULL), .opts = RLOCK_OPTIONS_INIT};
    server_load_scripts(s.sv);
    snprintf(uri, sizeof uri, "redis://redis.test:%d", server_port(s.sv));
    s.opts.uri = uri;
    scene_client(&s, lease_ms, timeout_ms);
    EXPECT(atomic_load(&lookups) > 0);
    return s;
}

/* Its answers come; the threads that waited for them end. */
static void name_server_recovers(void)
{
    atomic_store(&name_server, GOOD);
    EVENTUALLY(5000, atomic_load(&answered) == atomic_load(&lookups));
}

TEST(resolve, fault_065_a_name_server_that_fails_is_named_as_the_cause)
{
    scene s = scene_named(0, 0); /* the control */
    atomic_store(&name_server, FAILS);
    expect_no_client(s.opts.uri, 1000);
    EXPECT_CONTAINS(rlock_last_error()->message, "cannot look up the host");
    scene_stop(&s);
}

TEST(resolve, fault_065_a_silent_name_server_is_given_up_in_time)
{
    scene s = scene_named(0, 0); /* the control */
    atomic_store(&name_server, SILENT);
    EXPECT_BETWEEN(expect_no_client(s.opts.uri, 300), 290, 300 + SLACK_MS);
    EXPECT_CONTAINS(rlock_last_error()->message, "cannot look up the host");
    EXPECT_CONTAINS(rlock_last_error()->message, "name server");
    name_server_recovers();
    scene_stop(&s);
}

/* The thread that asks for the master, or for the map, is not in its way. */
static void expect_given_up_in_time(const char *scheme, const char *rest)
{
    char uri[96];
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    snprintf(uri, sizeof uri, "%s://redis.test:1,other.test:2%s", scheme, rest);
    o.uri = uri;
    o.connect_timeout_ms = 700;
    o.command_timeout_ms = 100;
    atomic_store(&name_server, FAILS); /* the control */
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT(test_since_ms(began_ms) < 800 + SLACK_MS);
    atomic_store(&name_server, SILENT);
    began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT(test_since_ms(began_ms) < 800 + SLACK_MS);
    name_server_recovers();
}

TEST(resolve, a_silent_name_server_holds_up_no_client_with_sentinels)
{
    expect_given_up_in_time("redis-sentinel", "/main");
}

TEST(resolve, a_silent_name_server_holds_up_no_client_of_a_cluster)
{
    expect_given_up_in_time("redis-cluster", "");
}

/* All connections break, and are made again: a level more, a renewal. */
static void expect_connects_again(answer now)
{
    scene s = scene_named(3000, 1000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1);
    int before = atomic_load(&lookups);
    atomic_store(&name_server, (int)now);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1);
    EXPECT(atomic_load(&lookups) > before);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    name_server_recovers();
    scene_stop(&s);
}

TEST(resolve, fault_065_the_last_good_address_will_do_when_the_look_up_fails)
{
    expect_connects_again(GOOD); /* the control */
    expect_connects_again(FAILS);
}

TEST(resolve, fault_065_the_last_good_address_will_do_when_nothing_is_answered)
{
    expect_connects_again(GOOD); /* the control */
    expect_connects_again(SILENT);
}

/* If the client is closed while the look-up goes on, its thread lives on. */
static void close_after_asking(answer now)
{
    scene s = scene_named(0, 200);
    atomic_store(&name_server, (int)now);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    int before = atomic_load(&lookups);
    EVENTUALLY(5000, (rlock_client_ping(s.cl), atomic_load(&lookups) > before));
    EXPECT_INT(atomic_load(&answered) == atomic_load(&lookups), now == GOOD);
    scene_free_client(&s);
    name_server_recovers();
    scene_stop(&s);
}

TEST(resolve, fault_065_a_look_up_that_ends_after_its_client_does_no_harm)
{
    close_after_asking(GOOD); /* the control */
    close_after_asking(SILENT);
}

/* A ping on a new connection; asks it for the address? */
static bool asks_anew(const scene *s)
{
    int before = atomic_load(&lookups);
    server_cmd(s->sv, "CLIENT KILL TYPE normal");
    EVENTUALLY(5000, rlock_client_ping(s->cl) == RLOCK_OK);
    return atomic_load(&lookups) > before;
}

/* It may be hours old by then. */
TEST(resolve, fault_065_an_answer_that_nobody_waited_for_is_not_taken_later)
{
    scene s = scene_named(0, 200);
    EXPECT(asks_anew(&s)); /* the control */
    atomic_store(&name_server, SILENT);
    EXPECT(asks_anew(&s));
    name_server_recovers();
    EXPECT(asks_anew(&s));
    scene_stop(&s);
}

static black_hole open_black_hole(void)
{
    black_hole b = black_hole_open();
    snprintf(black_hole_port, sizeof black_hole_port, "%d", b.port);
    return b;
}

/* Each address has its share of the time. */
TEST(resolve, fault_047_a_black_hole_does_not_hide_the_second_address)
{
    scene s = scene_named(0, 0); /* the control */
    black_hole hole = open_black_hole();
    atomic_store(&name_server, BLACK_HOLE_FIRST);
    rlock_options opts = s.opts;
    opts.connect_timeout_ms = 2000;
    int64_t began_ms = test_now_ms();
    rlock_client *cl = server_client(s.sv, &opts);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 990, 2000);
    rlock_client_free(cl);
    black_hole_close(&hole);
    scene_stop(&s);
}

/* --- 161: who starts and dispatches never waits for that -------------------
 */

/* A start, or a dispatch, that waited for the name or the server took longer,
   and on a busy machine none that does not takes as long. */
enum { NO_WAIT_MS = 500, PATIENCE_MS = 2500 };

static void expect_no_wait(int64_t began_ms)
{
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, NO_WAIT_MS);
}

/* Until it has been told, looking without a pause. */
static void dispatch_until_told(rlock_client *cl, request *r, int told)
{
    int64_t until_ms = test_now_ms() + SOON;
    while (r->told < told) {
        int64_t began_ms = test_now_ms();
        EXPECT(began_ms < until_ms);
        EXPECT_STATUS(rlock_client_dispatch(cl), RLOCK_OK);
        expect_no_wait(began_ms);
        test_pause_ms(1);
    }
    EXPECT_INT(r->told, told);
}

/* All connections break; of two, one does not wait, and one does. */
static void expect_nothing_blocks(answer now)
{
    scene s = scene_named(0, PATIENCE_MS);
    request a = request_new(s.lk), b = request_new(test_lock(s.cl, "other"));
    EXPECT_STATUS(loop_acquire(s.cl, &a, 0, 60000), RLOCK_OK); /* the control */
    EXPECT_STATUS(loop_unlock(s.cl, &a), RLOCK_OK);
    atomic_store(&name_server, (int)now);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(request_acquire(&a, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&b, SOON, 60000), RLOCK_OK);
    expect_no_wait(began_ms);
    dispatch_until_told(s.cl, &a, 3);
    EXPECT(a.status == RLOCK_OK || a.status == RLOCK_EIO);
    EXPECT_BETWEEN(a.at_ms - began_ms, 0, PATIENCE_MS + SLACK_MS);
    name_server_recovers();
    dispatch_until_told(s.cl, &b, 1);
    EXPECT_STATUS(b.status, RLOCK_OK);
    rlock_free(b.lk);
    request_free(&a);
    request_free(&b);
    scene_stop(&s);
}

TEST(resolve, fault_161_a_silent_name_server_blocks_no_start_and_no_dispatch)
{
    expect_nothing_blocks(SILENT);
}

TEST(resolve, fault_161_a_name_server_that_fails_blocks_nothing)
{
    expect_nothing_blocks(FAILS);
}

TEST(resolve, fault_161_a_black_hole_blocks_no_start_and_no_dispatch)
{
    black_hole hole = open_black_hole();
    expect_nothing_blocks(BLACK_HOLE_FIRST);
    black_hole_close(&hole);
}
