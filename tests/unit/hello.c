/* What is said first on a connection, and what its answers come to. */
#include "net/hello.h"

#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

/* A server that answers when it has been asked, all at once. */
typedef struct scripted {
    const char *answers;
    char asked[400];
    size_t len;
    int writes, pipe[2];
} scripted;

static scripted *peer;

static ssize_t take(rl_transport *t, const char *bytes, size_t n, rl_fault *f)
{
    (void)t;
    (void)f;
    EXPECT(peer->len + n < sizeof peer->asked);
    memcpy(peer->asked + peer->len, bytes, n);
    peer->len += n;
    peer->writes++;
    return (ssize_t)n;
}

static ssize_t give(rl_transport *t, char *bytes, size_t room, rl_fault *f)
{
    (void)t;
    (void)f;
    size_t n = peer->writes && peer->answers ? strlen(peer->answers) : 0;
    EXPECT(n <= room);
    if (n > 0)
        memcpy(bytes, peer->answers, n);
    if (n > 0)
        peer->answers = NULL;
    return (ssize_t)n;
}

static void hang_up(rl_transport *t)
{
    (void)t;
}

static const rl_transport_ops ops = {take, give, hang_up};

typedef struct scene {
    scripted peer;
    rl_conn *c;
    rl_uri uri;
    rl_hello hello;
    rl_fault f;
} scene;

/* Its descriptor is readable all the time, and has nothing by itself. */
static void scene_start(scene *s, const char *uri, const char *answers)
{
    *s = (scene){.peer.answers = answers};
    peer = &s->peer;
    EXPECT_INT(pipe(s->peer.pipe), 0);
    EXPECT_INT(write(s->peer.pipe[1], "x", 1), 1);
    s->c = rl_conn_new((rl_transport){.ops = &ops, .fd = s->peer.pipe[0]});
    EXPECT(s->c);
    EXPECT_INT(rl_uri_parse(&s->uri, uri, &s->f), RLOCK_OK);
    s->hello.uri = &s->uri;
}

static rlock_status say(scene *s)
{
    return rl_hello_say(&s->hello, s->c, rl_after_ms(rl_now_us(), SOON), &s->f);
}

static void scene_stop(scene *s)
{
    rl_fault f = {.status = RLOCK_EIO};
    rl_conn_break(s->c, &f);
    rl_conn_free(s->c);
    rl_uri_fini(&s->uri);
    close(s->peer.pipe[0]);
    close(s->peer.pipe[1]);
}

#define ALL    "redis://u:secret@h/7"
#define ECHO   "$5\r\nrlock\r\n"
#define MASTER "*3\r\n$6\r\nmaster\r\n:1\r\n*0\r\n"

TEST(hello, all_of_it_goes_in_one_write)
{
    scene s;
    scene_start(&s, ALL, "+OK\r\n+OK\r\n" ECHO MASTER);
    s.hello.master = true;
    EXPECT_STATUS(say(&s), RLOCK_OK);
    EXPECT_INT(s.peer.writes, 1);
    EXPECT_STR(s.peer.asked, "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$6\r\nsecret\r\n"
                             "*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n"
                             "*2\r\n$4\r\nPING\r\n$5\r\nrlock\r\n"
                             "*1\r\n$4\r\nROLE\r\n");
    EXPECT(!s.c->line.pushed && s.c->line.pending == 0);
    scene_stop(&s);
}

static void expect_refused(const char *answers, rlock_status status,
                           const char *why)
{
    scene s;
    scene_start(&s, ALL, answers);
    s.hello.master = true;
    EXPECT_STATUS(say(&s), status);
    EXPECT_CONTAINS(s.f.text, why);
    scene_stop(&s);
}

#define NOAUTH "-NOAUTH Authentication required.\r\n"

/* The first thing that is wrong is what is wrong. */
TEST(hello, a_login_that_is_refused_is_told_before_what_follows_from_it)
{
    expect_refused("-WRONGPASS no\r\n" NOAUTH NOAUTH NOAUTH, RLOCK_ESERVER,
                   "login failed: WRONGPASS");
}

TEST(hello, a_database_that_is_not_there_is_told)
{
    expect_refused("+OK\r\n-ERR DB index is out of range\r\n" ECHO MASTER,
                   RLOCK_ESERVER, "cannot select database 7");
}

TEST(hello, another_word_is_no_echo)
{
    expect_refused("+OK\r\n+OK\r\n$5\r\nother\r\n" MASTER, RLOCK_EIO,
                   "does not answer PING");
}

TEST(hello, a_replica_is_no_master)
{
    expect_refused("+OK\r\n+OK\r\n" ECHO "*2\r\n$5\r\nslave\r\n:1\r\n",
                   RLOCK_EIO, "no master");
}

TEST(hello, an_answer_too_many_fails_it)
{
    scene s;
    scene_start(&s, "redis://h", ECHO ECHO);
    EXPECT_STATUS(say(&s), RLOCK_EIO);
    scene_stop(&s);
}

/* It has been logged in by the program. */
TEST(hello, of_what_a_program_has_made_only_an_echo_is_asked)
{
    scene s;
    scene_start(&s, ALL, ECHO);
    s.hello.theirs = true;
    EXPECT_STATUS(say(&s), RLOCK_OK);
    EXPECT_STR(s.peer.asked, "*2\r\n$4\r\nPING\r\n$5\r\nrlock\r\n");
    scene_stop(&s);
}

/* --- what is told, to the letter --------------------------------------------- */

static void expect_told(const char *uri, bool theirs, const char *answers,
                        rlock_status status, const char *text)
{
    scene s;
    scene_start(&s, uri, answers);
    s.hello.theirs = theirs;
    s.hello.master = !theirs;
    EXPECT_INT(say(&s), status);
    EXPECT_STR(s.f.text, text);
    EXPECT_INT(s.f.status, status);
    EXPECT_INT(s.f.sys_errno, 0);
    scene_stop(&s);
}

#define PLAIN "redis://h"
#define NOT_READY(what)                                                        \
    "the connect callback's context is not ready for commands (in MULTI, "     \
    "subscribed, or with unread replies): it answered \"" what "\""

TEST_CASE(hello, tells_which_database_is_not_there,
          expect_told("redis://h/7", false,
                      "-ERR DB index is out of range\r\n" ECHO MASTER,
                      RLOCK_ESERVER,
                      "cannot select database 7: ERR DB index is out of range"))
TEST_CASE(hello, tells_that_a_server_does_not_answer_ping,
          expect_told(PLAIN, false, "+PONG\r\n" MASTER, RLOCK_EIO,
                      "not a Redis server: it does not answer PING"))
TEST_CASE(hello, tells_what_a_server_answers_to_ping,
          expect_told(PLAIN, false, "-LOADING wait\r\n" MASTER, RLOCK_ESERVER,
                      "the server answered: LOADING wait"))
TEST_CASE(hello, tells_that_a_programs_context_is_queueing,
          expect_told(PLAIN, true, "+QUEUED\r\n", RLOCK_EINVAL,
                      NOT_READY("QUEUED")))
TEST_CASE(hello, tells_that_a_programs_context_answers_without_a_text,
          expect_told(PLAIN, true, ":1\r\n", RLOCK_EINVAL,
                      NOT_READY("(no text)")))
TEST_CASE(hello, tells_that_who_answers_is_no_master,
          expect_told(PLAIN, false, ECHO "*2\r\n$5\r\nslave\r\n:1\r\n",
                      RLOCK_EIO, "it is no master (yet)"))
TEST_CASE(hello, tells_that_who_answers_may_say_nothing_of_that,
          expect_told(PLAIN, false, ECHO "*1\r\n:1\r\n", RLOCK_EIO,
                      "it is no master (yet)"))
TEST_CASE(hello, tells_that_nobody_may_ask_for_that,
          expect_told(PLAIN, false, ECHO "-NOPERM no\r\n", RLOCK_ESERVER,
                      "the server answered: NOPERM no"))

/* Sentinels of old, and KeyDB's servers. */
TEST(hello, takes_that_ping_takes_no_word_for_an_echo)
{
    scene s;
    scene_start(&s, PLAIN,
                "-ERR wrong number of arguments for 'ping' command\r\n");
    EXPECT_STATUS(say(&s), RLOCK_OK);
    scene_stop(&s);
}

static int hand_out_nothing(rlock_credentials *out, void *arg)
{
    (void)out;
    ++*(int *)arg;
    return 0;
}

/* Only what a server has refused may have been changed meanwhile. */
TEST(hello, a_program_that_hands_out_nothing_is_asked_once)
{
    scene s;
    rl_credentials from;
    int asked = 0;
    rl_credentials_init(&from);
    from.callback = hand_out_nothing;
    from.arg = &asked;
    scene_start(&s, ALL, NULL);
    s.hello.credentials = &from;
    EXPECT(say(&s) != RLOCK_OK);
    EXPECT_INT(asked, 1);
    EXPECT_INT(s.peer.writes, 0);
    scene_stop(&s);
    rl_credentials_fini(&from);
}
