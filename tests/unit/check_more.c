/* How a server is checked while its client is made, or goes on: replicas that have to
   be there, who of several threads does it, and what whoever meets his first server
   is told. */
#include <errno.h>

#include "checked.h"
#include "handles.h"
#include "shim.h"

/* --- replicas ------------------------------------------------------------- */

static void open_with_replicas(checked *s, int64_t wait_ms)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.min_replicas = 2;
    o.replica_wait_ms = wait_ms;
    checked_open_with(s, &o);
}

static void expect_replicas(const char *answer, rlock_status status,
                            const char *text)
{
    checked s;
    open_with_replicas(&s, 500);
    stub_say(&s.b, "WAIT", answer);
    EXPECT_INT(checked_passes(&s), status == RLOCK_OK);
    EXPECT_INT(stub_asked(&s.b, "WAIT 2 500"), 1);
    EXPECT_INT(s.f.status, status);
    EXPECT_STR(s.f.text, status == RLOCK_OK ? "" : text);
    EXPECT_INT(s.told.n, status == RLOCK_OK && *text);
    if (s.told.n)
        EXPECT_STR(s.told.message[0], text);
    checked_close(&s);
}

#define REPLICAS_CASE(name, ...)                                               \
    TEST_CASE(check_replicas, name, expect_replicas(__VA_ARGS__))

REPLICAS_CASE(that_are_there_are_enough, ":2\r\n", RLOCK_OK, "")
REPLICAS_CASE(may_be_more, ":3\r\n", RLOCK_OK, "")
REPLICAS_CASE(that_lack_are_warned_of, ":1\r\n", RLOCK_OK,
              "1 of the 2 replicas of min_replicas are there, so no lock is "
              "granted")
REPLICAS_CASE(may_not_be_asked_for, "-NOPERM no 'wait'\r\n", RLOCK_ESERVER,
              "the user lacks rights: WAIT, for min_replicas")
REPLICAS_CASE(are_not_known_there, "-ERR unknown command 'WAIT'\r\n",
              RLOCK_ENOTSUP,
              "min_replicas needs WAIT; the server answered: ERR unknown "
              "command 'WAIT'")
REPLICAS_CASE(are_told_as_a_word, "+NOPERM\r\n", RLOCK_ENOTSUP,
              "min_replicas needs WAIT; the server answered: NOPERM")
REPLICAS_CASE(are_told_as_nothing, "$-1\r\n", RLOCK_ENOTSUP,
              "min_replicas needs WAIT; the server answered: no number")
REPLICAS_CASE(are_not_told, NULL, RLOCK_EIO, "connection closed by the server")

TEST(check_replicas, are_asked_for_only_where_some_are_wanted)
{
    checked s;
    checked_open(&s);
    EXPECT(checked_passes(&s));
    EXPECT_INT(stub_asked(&s.b, "WAIT"), 0);
    checked_close(&s);
}

static long waited_ms(const checked *s)
{
    const char *at = strstr(stub_heard(&s->b), "WAIT 2 ");
    EXPECT(at);
    return strtol(at + 7, NULL, 10);
}

/* Half of the time that is left: the answer has to come, too. */
TEST(check_replicas, are_waited_for_no_longer_than_there_is_time)
{
    checked s;
    open_with_replicas(&s, 5000);
    EXPECT(rl_check_connection(s.node, s.c, in_ms(1000), &s.f));
    EXPECT_BETWEEN(waited_ms(&s), 300, 500);
    checked_close(&s);
}

TEST(check_replicas, are_asked_for_when_there_is_no_time_as_well)
{
    checked s;
    open_with_replicas(&s, 5000);
    stub_row_add(
        &s.b,
        (stub_row){.words = "EVALSHA probe", .answer = STUB_WELL, .ms = 2000});
    EXPECT(!rl_check_connection(s.node, s.c, in_ms(1000), &s.f));
    EXPECT_INT(stub_asked(&s.b, "WAIT"), 0);
    EXPECT_INT(s.f.sys_errno, ETIMEDOUT);
    checked_close(&s);
}

/* --- who does it ---------------------------------------------------------- */

TEST(check_once, waits_for_another_threads_and_gives_up_in_time)
{
    checked s;
    checked_open(&s);
    s.e->checking = true;
    EXPECT(!rl_check_connection(s.node, s.c, rl_now_us(), &s.f));
    EXPECT_STR(s.f.text, "another connection is still being checked");
    EXPECT(s.f.status == RLOCK_EIO && s.f.sys_errno == ETIMEDOUT);
    EXPECT(s.e->checking && atomic_load(&s.e->unchecked));
    EXPECT_INT(stub_asked(&s.b, ""), 0);
    s.e->checking = false;
    EXPECT(checked_passes(&s));
    EXPECT(!s.e->checking);
    checked_close(&s);
}

static void note_checking(stub *b, const char *words)
{
    (void)words;
    *(int *)b->arg += b->cl->engine.checking;
}

TEST(check_once, is_for_one_thread_as_long_as_it_takes)
{
    checked s;
    int checking = 0;
    checked_open(&s);
    s.b.hear = note_checking;
    s.b.arg = &checking;
    EXPECT(checked_passes(&s));
    EXPECT_INT(checking, stub_asked(&s.b, ""));
    EXPECT(checking == 5 && !s.e->checking);
    checked_close(&s);
}

/* Whoever calls may have all the time in the world. */
TEST(check_once, takes_no_longer_than_a_command_may)
{
    checked s;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.command_timeout_ms = 700;
    checked_open_with(&s, &o);
    stub_row_add(&s.b,
                 (stub_row){.words = "EVAL return", .answer = "", .ms = 800});
    EXPECT(!checked_passes(&s));
    EXPECT(s.f.status == RLOCK_EIO && s.f.sys_errno == ETIMEDOUT);
    checked_close(&s);
}

TEST(check_once, a_server_of_a_cluster_whose_slots_moved_is_only_left_for_now)
{
    checked s;
    checked_in_cluster(&s);
    stub_say(&s.b, "EVALSHA", "-MOVED 7 10.0.0.1:6379\r\n");
    EXPECT(!checked_passes(&s));
    EXPECT_STR(s.f.text, "the server answered: MOVED 7 10.0.0.1:6379");
    EXPECT(s.f.transient);
    checked_close(&s);
}

TEST(check_once, a_server_of_a_cluster_that_refuses_is_no_better_later)
{
    checked s;
    checked_in_cluster(&s);
    stub_say(&s.b, "EVALSHA", "-NOPERM no\r\n");
    EXPECT(!checked_passes(&s));
    EXPECT(!s.f.transient);
    checked_close(&s);
}

TEST(check_once, that_one_cannot_ask_for_slots_that_move_is_no_failure)
{
    checked s;
    checked_in_cluster(&s);
    stub_say(&s.b, "ASKING", NULL);
    EXPECT(!checked_passes(&s));
    EXPECT_STR(s.f.text, "connection closed by the server");
    EXPECT_INT(s.told.n, 0);
    checked_close(&s);
}

/* --- who goes on ---------------------------------------------------------- */

static void expect_missing(const char *answer, bool told, const char *missing,
                           bool rings)
{
    checked s;
    char out[64] = "before";
    bool is_rung = !rings;
    checked_open(&s);
    stub_say(&s.b, "EVALSHA", answer);
    EXPECT_INT(
        rl_check_missing(s.node, s.c, in_ms(SOON), out, sizeof out, &is_rung),
        told);
    EXPECT_STR(out, missing);
    EXPECT_INT(is_rung, rings);
    checked_close(&s);
}

#define MISSING_CASE(name, ...)                                                \
    TEST_CASE(check_missing, name, expect_missing(__VA_ARGS__))

MISSING_CASE(is_nothing_where_all_is_well, STUB_WELL, true, "", true)
MISSING_CASE(is_named, STUB_PROBED("$4\r\nZADD\r\n", STUB_NO, STUB_NO, STUB_NO),
             true, "ZADD", true)
MISSING_CASE(is_told_with_whether_one_may_ring,
             STUB_PROBED("$4\r\nZADD\r\n", "$15\r\nso waiters poll\r\n",
                         STUB_NO, STUB_NO),
             true, "ZADD", false)
MISSING_CASE(is_told_with_a_warning_of_something_else,
             STUB_PROBED(STUB_NO, "$3\r\nodd\r\n", STUB_NO, STUB_NO), true, "",
             true)
MISSING_CASE(is_told_without_a_warning,
             STUB_PROBED(STUB_NO, "$-1\r\n", STUB_NO, STUB_NO), true, "", true)
MISSING_CASE(is_not_told_where_it_is_no_text,
             STUB_PROBED("$-1\r\n", "$15\r\nso waiters poll\r\n", STUB_NO,
                         STUB_NO),
             false, "before", true)
MISSING_CASE(is_not_told_where_too_little_is, "*2\r\n$4\r\nZADD\r\n" STUB_NO,
             false, "before", true)
MISSING_CASE(is_not_told_where_the_server_hangs_up, NULL, false, "before", true)
MISSING_CASE(may_be_the_keys, "-NOPERM no key\r\n", true,
             "the user lacks rights: the keys rlock_token:*, rlock_queue:* an",
             true)
MISSING_CASE(is_not_told_where_scripts_are_refused, "-NOPERM no 'eval'\r\n",
             false, "the server answered: NOPERM no 'eval'", true)
MISSING_CASE(is_told_as_it_is_worded,
             STUB_PROBED("$4\r\n50%%\r\n", STUB_NO, STUB_NO, STUB_NO), true,
             "50%%", true)
MISSING_CASE(is_not_told_but_the_servers_words_are, "-ERR 50%% no\r\n", false,
             "the server answered: ERR 50%% no", true)
MISSING_CASE(is_not_told_where_the_server_can_do_nothing, "-OOM no memory\r\n",
             false, "the server answered: OOM no memory", true)

static void expect_bell(const char *answer, const char *end, bool told,
                        bool allowed)
{
    checked s;
    bool is_allowed = !allowed;
    checked_open(&s);
    stub_say(&s.b, "SUBSCRIBE", answer);
    stub_say(&s.b, "UNSUBSCRIBE", end);
    EXPECT_INT(rl_check_bell(s.node, s.c, in_ms(SOON), &is_allowed), told);
    EXPECT_INT(is_allowed, allowed);
    EXPECT_STR(strrchr(s.e->core.bell, ':') + 1,
               strrchr(strtok(s.b.log, "\n"), ':') + 1);
    checked_close(&s);
}

#define LISTENS  "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
#define CEASES   "*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n"
#define NO_RIGHT "-NOPERM no\r\n"
TEST_CASE(check_bell, may_be_heard, expect_bell(LISTENS, CEASES, true, true))
TEST_CASE(check_bell, may_not_be_heard,
          expect_bell(NO_RIGHT, NO_RIGHT, true, false))
TEST_CASE(check_bell, that_cannot_be_left_is_not_told,
          expect_bell(LISTENS, NO_RIGHT, false, true))

/* --- while it is made ----------------------------------------------------- */

/* As it was before it looked for its server. */
static rlock_status make(checked *s, bool lazy)
{
    atomic_store(&s->e->unchecked, false);
    s->e->core.server_run.awaited = false;
    s->e->node.connector.down = false;
    return rl_check_server(s->e, lazy);
}

TEST(check_server, that_is_well_leaves_its_connection_to_the_keeper)
{
    checked s;
    checked_open(&s);
    EXPECT_STATUS(make(&s, false), RLOCK_OK);
    EXPECT(s.e->node.keeper.conn && s.b.conns == 2);
    EXPECT(!atomic_load(&s.e->unchecked));
    EXPECT(!rl_server_run_read(&s.e->core.server_run).restarted);
    checked_close(&s);
}

static void expect_said(const char *answer, const char *message)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, "EVAL return", answer);
    expect_told(make(&s, false), RLOCK_ESERVER, 0, message);
    EXPECT_INT(s.told.n, 0);
    checked_close(&s);
}

/* Of what is cut off at once nothing but the words is shown; else, all. */
#define SAID_CASE(name, answer, message)                                       \
    TEST_CASE(check_server, name,                                              \
              expect_said("-" answer "\r\n",                                   \
                          "unix:///nowhere: the server answered: " message))

SAID_CASE(that_wants_a_password_is_told_where_it_goes,
          "NOAUTH Authentication required.",
          "NOAUTH Authentication required. It goes into the URI: "
          "redis://:PASSWORD@host (of Sentinels, into sentinel_password)")
SAID_CASE(that_is_a_replica_is_told_who_is_wanted,
          "READONLY You can't write against a read only replica.",
          "READONLY You can't write against a read only replica. Name its "
          "master, or its Sentinels (redis-sentinel://)")
SAID_CASE(that_is_protected_is_told_in_short,
          "DENIED Redis is running in protected mode because nobody has set a "
          "password",
          "DENIED Redis is running in protected mode: set a password there "
          "(requirepass), and it lets other machines in")
SAID_CASE(that_says_more_than_that_is_told_whole,
          "NOAUTH Authentication required. Ask Bob",
          "NOAUTH Authentication required. Ask Bob It goes into the URI: "
          "redis://:PASSWORD@host (of Sentinels, into sentinel_password)")
SAID_CASE(that_says_something_else_is_told_as_it_is, "OOM command not allowed",
          "OOM command not allowed")

TEST(check_server, that_refuses_connections_may_not_run)
{
    checked s;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = "redis://127.0.0.1:1";
    checked_open_with(&s, &o);
    s.e->node.pool->dialer.connect = NULL;
    expect_told(make(&s, false), RLOCK_EIO, ECONNREFUSED,
                "redis://127.0.0.1:1: cannot connect: Connection refused: is "
                "redis-server running there?");
    checked_close(&s);
}

TEST(check_server, that_is_away_is_met_later_by_a_lazy_client)
{
    checked s;
    checked_open(&s);
    stub_row_add(&s.b, (stub_row){.words = "EVAL return", .nth = 1});
    EXPECT_STATUS(make(&s, true), RLOCK_OK);
    EXPECT(!s.e->node.keeper.conn && atomic_load(&s.e->unchecked));
    EXPECT(rl_server_run_read(&s.e->core.server_run).awaited);
    EXPECT(s.e->node.connector.down);
    EXPECT_STR(s.e->node.connector.fault.text,
               "connection closed by the server");
    checked_close(&s);
}

/* What would be no better later is said at once. */
TEST(check_server, that_refuses_is_refused_to_a_lazy_client)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, "EVAL return", NO_RIGHT);
    expect_told(make(&s, true), RLOCK_ESERVER, 0,
                "unix:///nowhere: the server answered: NOPERM no");
    EXPECT(!atomic_load(&s.e->unchecked));
    checked_close(&s);
}

static void open_of_sentinels(checked *s)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = "redis-sentinel://127.0.0.1:1/main";
    o.connect_timeout_ms = 2000;
    checked_open_with(s, &o);
    stub_say(&s->b, "ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
}

static int open_connections(const checked *s)
{
    int n = 0;
    for (int i = 0; i < STUB_CONNS; i++)
        n += s->b.conn[i].of != NULL;
    return n;
}

#define LOADING "-LOADING Redis is loading\r\n"

/* Who answered first may not have known of it. */
TEST(check_server, that_sentinels_name_is_asked_for_again)
{
    checked s;
    open_of_sentinels(&s);
    stub_row_add(
        &s.b, (stub_row){.words = "EVAL return", .answer = LOADING, .nth = 1});
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(make(&s, false), RLOCK_OK);
    EXPECT(test_now_ms() - began_ms >= 50); /* they are given a moment */
    EXPECT_INT(stub_asked(&s.b, "EVAL return"), 2);
    EXPECT_INT(s.told.n, 0);
    EXPECT(s.e->node.keeper.conn && !s.e->node.keeper.conn->line.failed);
    EXPECT_INT(open_connections(&s), 2); /* one is the test's */
    checked_close(&s);
}

TEST(check_server, that_sentinels_name_is_asked_for_until_time_is_up)
{
    checked s;
    open_of_sentinels(&s);
    stub_row_add(
        &s.b, (stub_row){.words = "EVAL return", .answer = LOADING, .ms = 800});
    EXPECT_STATUS(make(&s, false), RLOCK_ESERVER);
    EXPECT_INT(stub_asked(&s.b, "EVAL return"), 3);
    checked_close(&s);
}

static void expect_asked_once(const char *answer, bool lazy,
                              rlock_status status)
{
    checked s;
    open_of_sentinels(&s);
    stub_say(&s.b, "EVAL return", answer);
    EXPECT_STATUS(make(&s, lazy), status);
    EXPECT_INT(stub_asked(&s.b, "EVAL return"), 1);
    checked_close(&s);
}

TEST_CASE(check_server, that_refuses_is_not_asked_for_again,
          expect_asked_once(NO_RIGHT, false, RLOCK_ESERVER))
TEST_CASE(check_server,
          that_a_lazy_client_can_meet_later_is_not_asked_for_again,
          expect_asked_once(LOADING, true, RLOCK_OK))

TEST(check_server, of_itself_is_not_asked_again)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, "EVAL return", LOADING);
    EXPECT_STATUS(make(&s, false), RLOCK_ESERVER);
    EXPECT_INT(stub_asked(&s.b, "EVAL return"), 1);
    checked_close(&s);
}

/* Its map is waited for, which tells who is asked. */
TEST(check_server, of_a_cluster_that_is_away_is_asked_nothing)
{
    checked s;
    checked_in_cluster(&s);
    EXPECT_STATUS(make(&s, false), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message,
                    "redis-cluster://127.0.0.1:1: ");
    EXPECT_INT(stub_asked(&s.b, ""), 0);
    checked_close(&s);
}

/* It is made, but for the last thing it needs. */
TEST(check_server, without_a_descriptor_is_of_no_use)
{
    checked s;
    checked_open(&s);
    rl_loop_fini(&s.e->loop, false);
    rl_loop_init(&s.e->loop);
    shim_fail(shim_here(), SHIM_EVENTFD, 1, SHIM_EVER, EMFILE);
    rlock_status status = make(&s, false);
    shim_clear(shim_here());
    expect_told(status, RLOCK_ENOMEM, EMFILE,
                "no descriptor: Too many open files");
    checked_close(&s);
}
