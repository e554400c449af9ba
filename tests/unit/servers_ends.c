/* What is told of a server that breaks off, may not be asked all, or is asked by a
   client that lacks memory or is closed. */
#include <errno.h>

#include "shim.h"
#include "surveyed.h"

/* --- rights --------------------------------------------------------------- */

static void expect_rights(const char *probed, const char *listens,
                          const char *missing, int64_t channels)
{
    scene s;
    open_well(&s);
    stub_say(&s.b, "EVALSHA", probed);
    stub_say(&s.b, "SUBSCRIBE", listens);
    if (*listens == '-')
        stub_say(&s.b, "UNSUBSCRIBE", listens);
    const rlock_server_info *x = only(&s);
    EXPECT_STATUS(x->status, RLOCK_OK);
    EXPECT_STR(s.t.missing[0], missing);
    EXPECT_INT(x->channels, channels);
    EXPECT_STR(s.t.eviction[0], "noeviction");
    close_scene(&s);
}

#define LISTENS  "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
#define NO_RIGHT "-NOPERM no\r\n"
#define RINGS_NOT                                                              \
    STUB_PROBED("$4\r\nZADD\r\n", "$15\r\nso waiters poll\r\n", STUB_NO,       \
                STUB_NO)

TEST_CASE(servers_rights, that_are_all_there_are_told_as_none,
          expect_rights(STUB_WELL, LISTENS, "", 1))
TEST_CASE(servers_rights, to_listen_are_told_by_the_channels,
          expect_rights(STUB_WELL, NO_RIGHT, "", 0))
TEST_CASE(servers_rights, to_ring_are_told_by_the_channels,
          expect_rights(RINGS_NOT, LISTENS, "ZADD", 0))
TEST_CASE(servers_rights, to_do_neither_are_told_by_the_channels,
          expect_rights(RINGS_NOT, NO_RIGHT, "ZADD", 0))
TEST_CASE(servers_rights, that_nobody_tells_are_not_told,
          expect_rights(NO_RIGHT, LISTENS, "not told", 1))

/* --- a second connection -------------------------------------------------- */

static void expect_second(const char *run, int first, int second, int again,
                          int64_t same, int64_t own)
{
    scene s;
    const int ids[] = {first, second, again};
    char answer[3][16];
    open_well(&s);
    stub_say_text(&s.b, "INFO server", run, 0);
    for (int i = 0; i < 3; i++) {
        snprintf(answer[i], sizeof answer[i], ids[i] ? ":%d\r\n" : "-ERR\r\n",
                 ids[i]);
        stub_row_add(&s.b, (stub_row){.words = "CLIENT ID",
                                      .answer = answer[i],
                                      .nth = i + 1});
    }
    const rlock_server_info *x = only(&s);
    EXPECT_INT(x->same_server, same);
    EXPECT_INT(x->own_connections, own);
    EXPECT_INT(stub_asked(&s.b, "CLIENT ID"), 3);
    close_scene(&s);
}

#define OTHER    "run_id:two\r\n"
#define NOT_TOLD RLOCK_NOT_TOLD
#define SECOND_CASE(name, ...)                                                 \
    TEST_CASE(servers_second, name, expect_second(__VA_ARGS__))

SECOND_CASE(may_lead_to_the_same_server, SECOND, 7, 8, 7, 1, 1)
SECOND_CASE(may_lead_to_another_one, OTHER, 7, 8, 7, 0, 1)
SECOND_CASE(may_be_the_first_one, SECOND, 7, 7, 7, 1, 0)
SECOND_CASE(may_take_the_place_of_the_first_one, SECOND, 7, 8, 9, 1, 0)
SECOND_CASE(has_perhaps_the_number_that_it_has_elsewhere, OTHER, 7, 7, 7, 0, 1)
SECOND_CASE(may_not_tell_the_run, "", 7, 8, 7, NOT_TOLD, 1)
/* What the first one told is not told of it. */
SECOND_CASE(may_tell_something_else, "x:y\r\n", 7, 8, 7, NOT_TOLD, 1)
SECOND_CASE(may_not_tell_its_number, SECOND, 7, 0, 7, 1, NOT_TOLD)
SECOND_CASE(comes_after_one_that_may_not_tell, SECOND, 0, 8, 7, 1, NOT_TOLD)
SECOND_CASE(comes_before_one_that_may_not_tell, SECOND, 7, 8, 0, 1, NOT_TOLD)

TEST(servers_second, that_tells_a_word_for_its_number_tells_none)
{
    scene s;
    open_well(&s);
    stub_say(&s.b, "CLIENT ID", "+7\r\n");
    EXPECT_INT(only(&s)->own_connections, RLOCK_NOT_TOLD);
    close_scene(&s);
}

static void expect_second_says(const char *info)
{
    scene s;
    open_well(&s);
    stub_say(&s.b, "INFO server", info);
    const rlock_server_info *x = only(&s);
    EXPECT(x->same_server == NOT_TOLD && x->own_connections == 1);
    close_scene(&s);
}

TEST_CASE(servers_second, that_may_not_be_asked_tells_no_run,
          expect_second_says("-NOPERM no\r\n"))
TEST_CASE(servers_second, that_tells_a_text_of_no_length_tells_no_run,
          expect_second_says("$0\r\n\r\n"))

static void go_away(stub *b, const char *words)
{
    b->away = b->away || strcmp(words, "CLIENT ID\n") == 0;
}

TEST(servers_second, that_cannot_be_made_tells_nothing)
{
    scene s;
    open_well(&s);
    s.b.hear = go_away;
    const rlock_server_info *x = only(&s);
    EXPECT_STATUS(x->status, RLOCK_OK);
    EXPECT(x->same_server == NOT_TOLD && x->own_connections == NOT_TOLD);
    EXPECT_INT(stub_asked(&s.b, "CLIENT ID"), 1);
    EXPECT_STR(s.t.eviction[0], "noeviction");
    close_scene(&s);
}

static void expect_second_breaks(const char *words, int nth, int64_t same)
{
    scene s;
    open_well(&s);
    stub_hang_up(&s.b, words, nth);
    const rlock_server_info *x = only(&s);
    EXPECT_STATUS(x->status, RLOCK_OK);
    EXPECT(x->same_server == same && x->own_connections == NOT_TOLD);
    EXPECT_STR(s.t.eviction[0], "noeviction");
    close_scene(&s);
}

TEST_CASE(servers_second, that_breaks_off_at_once_tells_nothing,
          expect_second_breaks("CLIENT ID", 2, NOT_TOLD))
TEST_CASE(servers_second, that_breaks_off_in_the_end_has_told_its_number,
          expect_second_breaks("PING rlock", 3, NOT_TOLD))

/* --- what breaks off ------------------------------------------------------ */

/* Nothing of what it told is, and it is asked no more. */
static void expect_broken(const char *words, int nth)
{
    scene s;
    open_well(&s);
    stub_say_text(&s.b, "INFO",
                  INFO "slave0:ip=::1,port=1,state=online,offset=1,lag=0\r\n",
                  1);
    stub_hang_up(&s.b, words, nth);
    const rlock_server_info *x = only(&s);
    EXPECT(x->status == RLOCK_EIO && x->role == RLOCK_SERVER_UNKNOWN);
    EXPECT_STR(s.t.error[0], "connection closed by the server");
    EXPECT_STR(s.t.address[0], "unix:///nowhere");
    EXPECT(x->rtt_p50_us == NOT_TOLD && x->min_replicas == NOT_TOLD);
    EXPECT(x->channels == NOT_TOLD && x->own_connections == NOT_TOLD);
    EXPECT_STR(s.t.missing[0], "not told");
    EXPECT_STR(s.t.eviction[0], "not told");
    close_scene(&s);
}

#define BROKEN_CASE(name, ...)                                                 \
    TEST_CASE(servers_broken, name, expect_broken(__VA_ARGS__))

BROKEN_CASE(before_it_is_asked, "PING rlock", 1)
BROKEN_CASE(when_it_is_asked_the_time, "TIME", 1)
BROKEN_CASE(when_it_has_told_the_time_often, "TIME", 20)
BROKEN_CASE(when_it_is_asked_for_rights, "EVALSHA", 0)
BROKEN_CASE(when_it_is_listened_to, "SUBSCRIBE", 0)
BROKEN_CASE(when_it_is_asked_for_its_first_option, "CONFIG GET appendfsync", 0)
BROKEN_CASE(when_it_is_asked_for_its_last_option, "CONFIG GET databases", 0)
BROKEN_CASE(when_it_is_asked_for_info, "INFO", 1)
BROKEN_CASE(when_it_is_asked_who_one_is, "CLIENT ID", 1)
BROKEN_CASE(when_it_is_asked_again_who_one_is, "CLIENT ID", 3)

static void expect_asked_no_more(const char *words, const char *next)
{
    scene s;
    open_well(&s);
    stub_hang_up(&s.b, words, 1);
    EXPECT_STATUS(only(&s)->status, RLOCK_EIO);
    EXPECT_INT(stub_asked(&s.b, words), 1);
    EXPECT_INT(stub_asked(&s.b, next), 0);
    close_scene(&s);
}

TEST_CASE(servers_broken, at_the_time_is_not_asked_for_rights,
          expect_asked_no_more("TIME", "EVAL"))
TEST_CASE(servers_broken, at_rights_is_not_listened_to,
          expect_asked_no_more("EVALSHA", "SUBSCRIBE"))
TEST_CASE(servers_broken, at_an_option_is_not_asked_for_another,
          expect_asked_no_more("CONFIG GET appendfsync", "CONFIG GET min"))
TEST_CASE(servers_broken, at_options_is_not_asked_for_info,
          expect_asked_no_more("CONFIG GET databases", "INFO\n"))

/* Each question has the time of a command, and no more. */
static void expect_patience(int64_t ms, rlock_status status)
{
    scene s;
    open_well(&s);
    s.e->core.set.command_timeout_ms = 1000;
    stub_row_add(&s.b, (stub_row){.words = "CONFIG GET databases",
                                  .answer = ms < 1000 ? "*0\r\n" : "",
                                  .ms = ms});
    stub_row_add(&s.b, (stub_row){.words = "CONFIG GET appendfsync",
                                  .answer = "*0\r\n",
                                  .ms = ms < 1000 ? ms : 0});
    EXPECT_STATUS(only(&s)->status, status);
    close_scene(&s);
}

TEST_CASE(servers_broken, is_none_that_is_slow, expect_patience(900, RLOCK_OK))
TEST_CASE(servers_broken, is_one_that_is_silent,
          expect_patience(1001, RLOCK_EIO))

TEST(servers_broken, is_one_that_cannot_be_reached)
{
    scene s;
    open_well(&s);
    s.b.away = true;
    EXPECT_STATUS(only(&s)->status, RLOCK_EIO);
    EXPECT_STR(s.t.error[0], "the connect callback returned NULL");
    EXPECT_STR(s.t.address[0], "unix:///nowhere");
    EXPECT_INT(stub_asked(&s.b, ""), 0);
    close_scene(&s);
}

/* --- who asks ------------------------------------------------------------- */

static const char *closing_at;

static void close_at(stub *b, const char *words)
{
    if (strncmp(words, closing_at, strlen(closing_at)) == 0)
        atomic_store(&b->cl->closing, true);
}

/* It was begun before the client was closed, and ends with that question. */
static void expect_closed(const char *at, int asked)
{
    scene s;
    open_well(&s);
    s.b.hear = close_at;
    closing_at = at;
    expect_told(look(&s), RLOCK_ECLOSED, 0,
                "unix:///nowhere: the client is closed");
    EXPECT_INT(s.t.n, 0);
    EXPECT_INT(stub_asked(&s.b, at), 1);
    if (asked)
        EXPECT_INT(stub_asked(&s.b, ""), asked);
    atomic_store(&s.cl->closing, false);
    close_scene(&s);
}

TEST_CASE(servers_closed, at_the_time_is_the_end, expect_closed("TIME", 2))
TEST_CASE(servers_closed, at_an_option_is_the_end,
          expect_closed("CONFIG GET appendfsync", 0))
TEST_CASE(servers_closed, at_info_is_the_end, expect_closed("INFO\n", 0))
TEST_CASE(servers_closed, at_its_number_is_the_end,
          expect_closed("CLIENT ID", 0))
TEST_CASE(servers_closed, at_the_run_of_the_second_is_the_end,
          expect_closed("INFO server", 0))

/* Nothing is told then, of any server; but hiredis may do without. */
TEST(servers_memory, that_is_lacking_is_no_fault_of_the_server)
{
    int nth = 1, lacked = 0;
    for (bool failed = true; failed; nth++) {
        scene s;
        open_well(&s);
        shim_fail(shim_everywhere(), SHIM_ALLOC, nth, nth, ENOMEM);
        rlock_status status = look(&s);
        failed = shim_failed(shim_everywhere(), SHIM_ALLOC) > 0;
        shim_clear(shim_everywhere());
        EXPECT(status == RLOCK_OK || (failed && status == RLOCK_ENOMEM));
        EXPECT_INT(s.t.n, status == RLOCK_OK);
        if (status == RLOCK_OK)
            EXPECT_STR(s.t.eviction[0], "noeviction");
        else
            EXPECT_CONTAINS(rlock_last_error()->message, "out of memory");
        lacked += status == RLOCK_ENOMEM;
        close_scene(&s);
    }
    EXPECT(lacked > 4);
}

static bool have_enough(const rlock_server_info *x, void *arg)
{
    (void)x;
    return ++*(int *)arg < 2;
}

TEST(servers, are_told_until_who_is_told_has_enough)
{
    scene s;
    int n = 0;
    open_well(&s);
    stub_say_text(&s.b, "INFO",
                  "role:master\r\nslave0:ip=::1,port=1,state=online\r\n"
                  "slave1:ip=::1,port=2,state=online\r\n",
                  1);
    EXPECT_STATUS(rlock_servers(s.cl, have_enough, &n), RLOCK_OK);
    EXPECT_INT(n, 2);
    close_scene(&s);
}

TEST(servers, are_not_told_to_nobody)
{
    scene s;
    open_well(&s);
    INVALID(rlock_servers(NULL, note, &s.t), "the client is NULL");
    INVALID(rlock_servers(s.cl, NULL, &s.t), "the callback is NULL");
    EXPECT_INT(stub_asked(&s.b, ""), 0);
    close_scene(&s);
}

/* --- Sentinels ------------------------------------------------------------ */

TEST(servers, are_followed_by_the_sentinels_that_are_named)
{
    scene s;
    open_with(&s, "redis-sentinel://127.0.0.1:1,127.0.0.1:2/main");
    stub_say(&s.b, "ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
    EXPECT_STATUS(look(&s), RLOCK_OK);
    EXPECT(s.t.n == 3 && s.t.at[0].role == RLOCK_SERVER_MASTER);
    EXPECT_STR(s.t.address[1], "redis-sentinel://127.0.0.1:1");
    EXPECT_STR(s.t.address[2], "redis-sentinel://127.0.0.1:2");
    for (int i = 1; i < 3; i++) {
        EXPECT_INT(s.t.at[i].role, RLOCK_SERVER_SENTINEL);
        EXPECT_INT(s.t.at[i].status, RLOCK_EIO);
        EXPECT_STR(s.t.error[i], "cannot connect: Connection refused");
    }
    close_scene(&s);
}

/* --- a cluster ------------------------------------------------------------ */

TEST(servers, of_a_cluster_that_nobody_knows_are_not_told)
{
    scene s;
    open_with(&s, "redis-cluster://127.0.0.1:1");
    EXPECT_STATUS(look(&s), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message,
                    "redis-cluster://127.0.0.1:1: ");
    EXPECT(s.t.n == 0 && stub_asked(&s.b, "") == 0);
    close_scene(&s);
}
