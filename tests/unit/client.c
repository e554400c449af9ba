/* What a client is made of, what becomes of its options, and the calls that are about
   it alone. */
#include <errno.h>
#include <pthread.h>

#include "handles.h"
#include "op/core.h"
#include "room.h"
#include "shim.h"
#include "stub.h"

/* --- what it is made of --------------------------------------------------- */

static rl_engine *engine_of(rlock_client *cl)
{
    return &cl->engine;
}

TEST(client, has_the_defaults_of_the_manual)
{
    rlock_client *cl = stub_client(NULL, (rlock_options)RLOCK_OPTIONS_INIT);
    const rl_engine *e = engine_of(cl);
    EXPECT(e->pool_size == 16 && !e->cluster && !e->sentinels && !e->tls);
    EXPECT(e->core.holds.warn_us == 0 && e->core.holds.late_due_us == 0);
    EXPECT(strncmp(e->core.bell, "rlock_bell:", 11) == 0);
    EXPECT_INT(strlen(e->core.bell), 11 + 36);
    EXPECT_STR(e->core.server, "unix:///nowhere");
    EXPECT_STR(atomic_load(&e->core.node), "unix:///nowhere");
    EXPECT(!e->core.patient && !e->core.redirects && !e->core.hears);
    rlock_client_free(cl);
}

TEST(client, connects_for_as_long_as_its_options_say)
{
    rlock_client *cl;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = "unix:///nowhere";
    o.lazy = true;
    o.connect_timeout_ms = 5;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    EXPECT_INT(engine_of(cl)->node.pool->dialer.connect_timeout_ms, 5);
    rlock_client_free(cl);
    cl = client_of("unix:///nowhere");
    EXPECT_INT(engine_of(cl)->node.pool->dialer.connect_timeout_ms, 1000);
    rlock_client_free(cl);
}

TEST(client, is_what_its_options_say)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    stub_events told;
    o.pool_size = 3;
    o.warn_hold_ms = 7;
    o.warn_renew_late = true;
    o.watchdog_lease_ms = 600;
    o.max_hold_ms = 9000;
    rlock_client *cl = stub_client(&told, o);
    const rl_engine *e = engine_of(cl);
    EXPECT(e->pool_size == 3 && e->core.holds.warn_us == 7000);
    EXPECT_INT(e->core.holds.late_due_us, RL_NEVER);
    EXPECT(e->node.pool->dialer.credentials == &e->credentials);
    EXPECT_INT(e->core.holds.renewal_ms, 600);
    EXPECT_INT(e->core.holds.max_hold_ms, 9000);
    EXPECT(e->notifier.notes);
    rlock_client_free(cl);
}

/* Each has a bell of its own. */
TEST(client, is_another_than_the_next)
{
    kit k = kit_open();
    EXPECT(strcmp(engine_of(k.cl)->core.bell, engine_of(k.other)->core.bell));
    kit_close(&k);
}

static int tell(rlock_credentials *out, void *arg)
{
    out->password = arg;
    return 0;
}

TEST(client, asks_its_program_for_credentials)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.credentials = tell;
    o.credentials_arg = &o;
    rlock_client *cl = stub_client(NULL, o);
    EXPECT(engine_of(cl)->credentials.callback == tell);
    EXPECT(engine_of(cl)->credentials.arg == &o);
    rlock_client_free(cl);
}

static int connects;

static struct redisContext *connect_to_nobody(void *arg)
{
    connects++;
    EXPECT_STR((const char *)arg, "here");
    return NULL;
}

TEST(client, connects_as_its_program_does)
{
    rlock_client *cl;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.connect = connect_to_nobody;
    o.connect_arg = "here";
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT(!cl && connects == 1);
    EXPECT_CONTAINS(rlock_last_error()->message,
                    "the connect callback returned NULL");
}

static int cancel_state(void)
{
    int state, ignored;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcancelstate(state, &ignored);
    return state;
}

TEST(client, lets_its_thread_be_cancelled_as_before)
{
    rlock_client *cl;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = "unix:///nowhere";
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT_INT(cancel_state(), PTHREAD_CANCEL_ENABLE);
    cl = client_of("unix:///nowhere");
    EXPECT_INT(cancel_state(), PTHREAD_CANCEL_ENABLE);
    AWAY(rlock_client_ping(cl), "unix:///nowhere: ");
    EXPECT_INT(cancel_state(), PTHREAD_CANCEL_ENABLE);
    EXPECT_STATUS(rlock_client_close(cl, 0), RLOCK_OK);
    EXPECT_INT(cancel_state(), PTHREAD_CANCEL_ENABLE);
}

/* --- a sign of life ------------------------------------------------------- */

typedef struct scene {
    rlock_client *cl;
    stub b;
} scene;

static void open_scene(scene *s)
{
    s->cl = stub_client(NULL, (rlock_options)RLOCK_OPTIONS_INIT);
    stub_open(&s->b, s->cl);
    atomic_store(&s->cl->engine.unchecked, false);
}

static void expect_ping(const char *answer, rlock_status status,
                        const char *message)
{
    scene s;
    open_scene(&s);
    stub_say(&s.b, "PING\n", answer);
    rlock_status told = rlock_client_ping(s.cl);
    if (status == RLOCK_OK)
        EXPECT_STATUS(told, RLOCK_OK);
    else
        expect_told(told, status, 0, message);
    EXPECT_STR(stub_heard(&s.b), "PING rlock\nPING\n");
    EXPECT_INT(s.cl->engine.node.pool->places, 0);
    stub_close(&s.b);
}

TEST_CASE(client, is_pinged_well, expect_ping("+PONG\r\n", RLOCK_OK, ""))
TEST_CASE(client, is_pinged_and_refused,
          expect_ping("-NOPERM no\r\n", RLOCK_ESERVER,
                      "unix:///nowhere: the server answered: NOPERM no"))
TEST_CASE(client, is_pinged_and_cut_off,
          expect_ping(NULL, RLOCK_EIO,
                      "unix:///nowhere: connection closed by the server"))

TEST(client, is_pinged_over_a_connection_that_is_there)
{
    scene s;
    open_scene(&s);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    EXPECT(s.b.conns == 1 && stub_asked(&s.b, "PING\n") == 2);
    stub_close(&s.b);
}

TEST(client, is_pinged_for_as_long_as_a_command_may_take)
{
    scene s;
    open_scene(&s);
    s.cl->engine.core.set.command_timeout_ms = 500;
    stub_row_add(&s.b, (stub_row){.words = "PING\n", .answer = "", .ms = 501});
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_EIO);
    EXPECT_INT(rlock_last_error()->sys_errno, ETIMEDOUT);
    stub_close(&s.b);
}

/* --- figures, and an end to waiting --------------------------------------- */

TEST(client, tells_its_figures)
{
    rlock_stats st;
    scene s;
    open_scene(&s);
    rl_add(&s.cl->engine.core.stats.failovers, 7);
    memset(&st, 0xff, sizeof st);
    EXPECT_STATUS(rlock_client_stats(s.cl, &st, sizeof st), RLOCK_OK);
    EXPECT(st.failovers == 7 && st.reconnects == 0);
    INVALID(rlock_client_stats(s.cl, NULL, sizeof st), "a pointer is NULL");
    INVALID(rlock_client_stats(NULL, &st, sizeof st), "a pointer is NULL");
    INVALID(rlock_client_stats(s.cl, &st, 1),
            "no rlock_stats has 1 bytes (use sizeof)");
    stub_close(&s.b);
}

TEST(client, ends_waits_for_as_long_as_they_are_cancelled)
{
    kit k = kit_open();
    EXPECT_STATUS(rlock_client_cancel(k.cl, true), RLOCK_OK);
    EXPECT(atomic_load(&engine_of(k.cl)->core.canceled));
    EXPECT(!atomic_load(&engine_of(k.other)->core.canceled));
    EXPECT_STATUS(rlock_client_cancel(k.cl, false), RLOCK_OK);
    EXPECT(!atomic_load(&engine_of(k.cl)->core.canceled));
    EXPECT_STATUS(rlock_client_cancel(NULL, true), RLOCK_EINVAL);
    kit_close(&k);
}

/* He who is inside is told, and so is whoever comes. */
TEST(client, ends_the_waits_that_there_are)
{
    guest g;
    rlock_client *cl = client_of("unix:///nowhere");
    rl_rooms *r = &engine_of(cl)->core.rooms;
    enter(r, &g, &job);
    EXPECT_STATUS(rlock_client_cancel(cl, false), RLOCK_OK);
    EXPECT_INT(g.woken, 0);
    EXPECT_STATUS(rlock_client_cancel(cl, true), RLOCK_OK);
    EXPECT_INT(g.woken, 1);
    leave(r, &g, false);
    rlock_client_free(cl);
}

/* --- its end -------------------------------------------------------------- */

TEST(client, is_closed_with_flags_that_there_are)
{
    rlock_client *cl = client_of("unix:///nowhere");
    INVALID(rlock_client_close(cl, 6), "bad flags: 0x6");
    INVALID(rlock_client_close(NULL, 2), "bad flags: 0x2");
    EXPECT_STATUS(rlock_client_close(NULL, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_client_close(cl, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
}

TEST(client, is_freed_and_says_nothing_of_it)
{
    rlock_client *cl = client_of("unix:///nowhere");
    INVALID(rlock_client_stats(NULL, NULL, 0), "a pointer is NULL");
    rlock_client_free(cl);
    EXPECT_STR(rlock_last_error()->message, "a pointer is NULL");
    rlock_client_free(NULL);
}

/* So many holds were not given back, or count-downs not made, as the table says. */
static void expect_left(size_t locks, size_t uncounted, const rl_fault *why,
                        rlock_status status, const char *message)
{
    rlock_client *cl = client_of("unix:///nowhere");
    rl_holds *t = &engine_of(cl)->core.holds;
    t->left = locks + uncounted;
    t->uncounted = uncounted;
    if (why)
        t->failure = *why;
    expect_told(rlock_client_close(cl, 0), status, why ? why->sys_errno : 0,
                message);
}

#define LEFT_CASE(name, ...)                                                   \
    TEST_CASE(client_closed, name, expect_left(__VA_ARGS__))

static const rl_fault refused = {.status = RLOCK_ESERVER, .text = "it refused"};
static const rl_fault at_another = {.status = RLOCK_EIO,
                                    .sys_errno = ECONNRESET,
                                    .text = "Connection reset by peer",
                                    .at = "redis://there:1"};

#define KEPT "not released, and will be free when the lease has run out"

LEFT_CASE(with_a_lock_says_so, 1, 0, NULL, RLOCK_EIO,
          "unix:///nowhere: closed, but 1 lock was " KEPT ": no time was left")
LEFT_CASE(with_locks_says_how_many, 2, 0, &refused, RLOCK_ESERVER,
          "unix:///nowhere: closed, but 2 locks were " KEPT ": it refused")
LEFT_CASE(with_a_count_down_says_so, 0, 1, &at_another, RLOCK_EIO,
          "redis://there:1: closed, but 1 count-down was not made: "
          "Connection reset by peer")
LEFT_CASE(with_count_downs_says_how_many, 0, 2, NULL, RLOCK_EIO,
          "unix:///nowhere: closed, but 2 count-downs were not made: no time "
          "was left")
LEFT_CASE(with_both_says_both, 1, 2, &refused, RLOCK_ESERVER,
          "unix:///nowhere: closed, but 1 lock was " KEPT
          ", and 2 count-downs were not made: it refused")

TEST(client_closed, with_a_failure_but_nothing_left_is_closed_well)
{
    rlock_client *cl = client_of("unix:///nowhere");
    engine_of(cl)->core.holds.failure = refused;
    EXPECT_STATUS(rlock_client_close(cl, 0), RLOCK_OK);
}
