/* Names of servers: addresses that need no look-up, and what is told when there
   is no answer. */
#include "net/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>

#include "base/clock.h"
#include "remains.h"
#include "shim.h"
#include "test.h"

typedef struct scene {
    rl_resolver r;
    rl_addresses found;
    rl_fault f;
    remains before;
} scene;

static void open_scene(scene *s)
{
    *s = (scene){.before = remains_now()};
    rl_resolver_init(&s->r);
}

/* A thread that has looked up lets go of its query in its own time. */
static void close_scene(scene *s)
{
    shim_clear(shim_everywhere());
    rl_resolver_fini(&s->r);
    EVENTUALLY(SOON, remains_now().blocks == s->before.blocks &&
                         remains_now().objects == s->before.objects);
}

static rlock_status ask(scene *s, const char *host, int port)
{
    return rl_resolve(&s->r, host, port, rl_after_ms(rl_now_us(), SOON),
                      &s->found, &s->f);
}

/* Any look-up by name has this error; what is numeric is looked up, too, first. */
static void fail_names(int error)
{
    shim_fail(shim_everywhere(), SHIM_LOOKUP, 2, SHIM_EVER, error);
}

static void expect_failed(const scene *s, const char *why)
{
    char text[200];
    snprintf(text, sizeof text, "cannot look up the host: %s", why);
    EXPECT_STR(s->f.text, text);
    EXPECT(s->f.sys_errno == 0 && s->f.transient && s->found.count == 0);
}

/* --- addresses -------------------------------------------------------------- */

static void expect_numeric(const char *host, int family)
{
    scene s;
    open_scene(&s);
    shim_fail(shim_here(), SHIM_THREAD, 1, SHIM_EVER, EAGAIN);
    EXPECT_INT(ask(&s, host, 7000), RLOCK_OK);
    shim_clear(shim_here());
    EXPECT_INT(s.found.count, 1);
    EXPECT_INT(s.found.at[0].addr.any.sa_family, family);
    const struct sockaddr_in *four = (const void *)&s.found.at[0].addr;
    const struct sockaddr_in6 *six = (const void *)&s.found.at[0].addr;
    EXPECT_INT(ntohs(family == AF_INET ? four->sin_port : six->sin6_port),
               7000);
    EXPECT_INT(s.found.at[0].len,
               family == AF_INET ? sizeof *four : sizeof *six);
    close_scene(&s);
}

TEST_CASE(resolve, an_address_needs_no_thread,
          expect_numeric("127.0.0.1", AF_INET))
TEST_CASE(resolve, an_address_of_ipv6_needs_none,
          expect_numeric("::1", AF_INET6))

/* --- names ------------------------------------------------------------------- */

TEST(resolve, a_name_is_looked_up_elsewhere)
{
    scene s;
    open_scene(&s);
    EXPECT_INT(ask(&s, "localhost", 1), RLOCK_OK);
    EXPECT(s.found.count >= 1 && s.r.last.count == s.found.count);
    EXPECT(!s.r.pending && s.r.port == 1);
    EXPECT_STR(s.r.host, "localhost");
    close_scene(&s);
}

TEST(resolve, what_the_name_server_says_is_told)
{
    scene s;
    open_scene(&s);
    fail_names(EAI_NONAME);
    EXPECT_INT(ask(&s, "nowhere", 1), RLOCK_EIO);
    expect_failed(&s, gai_strerror(EAI_NONAME));
    EXPECT(!s.r.pending);
    close_scene(&s);
}

TEST(resolve, the_last_good_answer_has_to_do)
{
    scene s;
    open_scene(&s);
    EXPECT_INT(ask(&s, "localhost", 1), RLOCK_OK);
    int count = s.found.count;
    fail_names(EAI_AGAIN);
    EXPECT_INT(ask(&s, "localhost", 1), RLOCK_OK);
    EXPECT_INT(s.found.count, count);
    EXPECT_INT(shim_failed(shim_everywhere(), SHIM_LOOKUP), 1);
    close_scene(&s);
}

/* What is known of another place is of no use. */
static void expect_forgotten(const char *host, int port)
{
    scene s;
    open_scene(&s);
    EXPECT_INT(ask(&s, "localhost", 1), RLOCK_OK);
    fail_names(EAI_AGAIN);
    EXPECT_INT(ask(&s, host, port), RLOCK_EIO);
    expect_failed(&s, gai_strerror(EAI_AGAIN));
    close_scene(&s);
}

TEST_CASE(resolve, another_host_has_no_last_answer,
          expect_forgotten("other", 1))
TEST_CASE(resolve, another_port_has_none, expect_forgotten("localhost", 2))

static void expect_no_room(shim_call call, int err)
{
    scene s;
    open_scene(&s);
    shim_fail(shim_here(), call, 1, SHIM_EVER, err);
    rlock_status status = ask(&s, "localhost", 1);
    shim_clear(shim_here());
    EXPECT_INT(status, RLOCK_ENOMEM);
    expect_failed(&s, "no memory or thread for it");
    close_scene(&s);
}

TEST_CASE(resolve, without_a_thread_there_is_no_answer,
          expect_no_room(SHIM_THREAD, EAGAIN))
TEST_CASE(resolve, without_memory_there_is_none,
          expect_no_room(SHIM_ALLOC, ENOMEM))

/* Who comes later joins the query, or finds what it has found. */
TEST(resolve, who_has_no_time_leaves_the_query_to_the_next)
{
    scene s;
    open_scene(&s);
    rlock_status first =
        rl_resolve(&s.r, "localhost", 1, rl_now_us() - 1, &s.found, &s.f);
    if (first != RLOCK_OK) {
        EXPECT_INT(first, RLOCK_EIO);
        expect_failed(&s, "the name server does not answer");
        EXPECT(s.r.pending);
    }
    EXPECT_INT(ask(&s, "localhost", 1), RLOCK_OK);
    EXPECT(s.found.count >= 1 && !s.r.pending);
    close_scene(&s);
}

/* What is under way for the other host ends by itself. */
TEST(resolve, a_query_that_nobody_wants_any_more_is_left)
{
    scene s;
    open_scene(&s);
    rl_resolve(&s.r, "localhost", 1, rl_now_us() - 1, &s.found, &s.f);
    EXPECT_INT(ask(&s, "localhost", 2), RLOCK_OK);
    EXPECT(!s.r.pending && s.r.port == 2);
    close_scene(&s);
}

TEST(resolve, who_is_called_off_waits_for_no_answer_until_it_goes_on)
{
    scene s;
    open_scene(&s);
    rl_resolver_call_off(&s.r);
    rlock_status first = ask(&s, "localhost", 1);
    EXPECT(first == RLOCK_OK || first == RLOCK_EIO);
    rl_resolver_call_off(&s.r);
    rl_resolver_resume(&s.r);
    EXPECT_INT(ask(&s, "localhost", 1), RLOCK_OK);
    close_scene(&s);
}
