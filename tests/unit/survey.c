/* A survey at servers that are tables: which keys are gone through, which locks are
   asked about, how many at a time, and what ends it. */
#include <errno.h>

#include "shim.h"
#include "surveys.h"

/* --- which keys ----------------------------------------------------------- */

TEST(survey, goes_through_all_keys)
{
    scene x;
    open_scene(&x);
    stub_say(&x.b, "SCAN 0", PAGE("7", 2, KEY("b") KEY("a")));
    stub_say(&x.b, "SCAN 7", PAGE("9", 0, ""));
    stub_say(&x.b, "SCAN 9", PAGE("0", 2, KEY("c") KEY("a")));
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "a b c ");
    EXPECT_INT(x.noted, 3);
    EXPECT_STR(stub_heard(&x.b),
               "PING rlock\nSCAN 0 COUNT 500\nSCAN 7 COUNT 500\n"
               "SCAN 9 COUNT 500\nEVALSHA survey 1 a\nEVALSHA survey 1 b\n"
               "EVALSHA survey 1 c\n");
    EXPECT_INT(x.cl->engine.node.pool->places, 0);
    close_scene(&x);
}

static void expect_scan(const char *match, const char *type, const char *words)
{
    scene x;
    open_scene(&x);
    x.pass[0].match = match;
    x.pass[0].type = type;
    stub_say(&x.b, "SCAN", PAGE("0", 0, ""));
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(stub_heard(&x.b) + strlen("PING rlock\n"), words);
    close_scene(&x);
}

TEST_CASE(survey, may_want_keys_that_match,
          expect_scan("a*", NULL, "SCAN 0 COUNT 500 MATCH a*\n"))
TEST_CASE(survey, may_want_keys_of_a_type,
          expect_scan(NULL, "zset", "SCAN 0 COUNT 500 TYPE zset\n"))
TEST_CASE(survey, may_want_keys_that_match_and_are_of_a_type,
          expect_scan("a*", "zset", "SCAN 0 COUNT 500 MATCH a* TYPE zset\n"))

TEST(survey, asks_about_what_all_passes_have_found_at_the_end)
{
    scene x;
    open_scene(&x);
    x.s.passes = 2;
    x.pass[1].match = "*";
    stub_say(&x.b, "SCAN 0 COUNT 500", PAGE("0", 2, KEY("c") KEY("b")));
    stub_say(&x.b, "SCAN 0 COUNT 500 MATCH", PAGE("0", 2, KEY("a") KEY("b")));
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "a b c ");
    close_scene(&x);
}

/* Others may have put it there. */
TEST(survey, takes_a_key_that_is_long)
{
    static char page[160 * 1024];
    scene x;
    open_scene(&x);
    int len = snprintf(page, sizeof page, "*2\r\n$1\r\n0\r\n*1\r\n$150000\r\n");
    memset(page + len, 'k', 150000);
    strcpy(page + len + 150000, "\r\n");
    stub_say(&x.b, "SCAN", page);
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_INT(x.names.at[0].len, 150000);
    close_scene(&x);
}

static void expect_ends(const char *words, const char *answer,
                        rlock_status status, const char *message)
{
    scene x;
    open_scene(&x);
    stub_say(&x.b, "SCAN 0", PAGE("7", 2, KEY("a") KEY("b")));
    stub_say(&x.b, "SCAN 7", PAGE("0", 1, KEY("c")));
    stub_say(&x.b, words, answer);
    expect_told(make(&x), status, 0, message);
    EXPECT(stub_asked(&x.b, "EVALSHA") <= 1);
    close_scene(&x);
}

#define AT                   "unix:///nowhere: "
#define ENDS_CASE(name, ...) TEST_CASE(survey, name, expect_ends(__VA_ARGS__))

ENDS_CASE(ends_where_keys_may_not_be_gone_through, "SCAN", "-NOPERM no\r\n",
          RLOCK_ESERVER, AT "the server answered: NOPERM no")
ENDS_CASE(ends_where_the_second_page_may_not_be_seen, "SCAN 7",
          "-NOPERM no\r\n", RLOCK_ESERVER, AT "the server answered: NOPERM no")
ENDS_CASE(ends_where_the_server_hangs_up, "SCAN 7", NULL, RLOCK_EIO,
          AT "connection closed by the server")
ENDS_CASE(ends_where_a_page_is_none, "SCAN 7", ":1\r\n", RLOCK_EIO,
          AT "not a Redis reply: unexpected size or shape")
ENDS_CASE(ends_where_one_may_not_ask, "EVALSHA survey", "-NOPERM no\r\n",
          RLOCK_ESERVER, AT "the server answered: NOPERM no")
ENDS_CASE(ends_where_the_server_hangs_up_at_a_question, "EVALSHA survey", NULL,
          RLOCK_EIO, AT "connection closed by the server")

TEST(survey, ends_where_what_is_answered_makes_no_sense)
{
    scene x;
    open_scene(&x);
    x.absurd = true;
    stub_say(&x.b, "SCAN 0", PAGE("0", 2, KEY("a") KEY("b")));
    expect_told(make(&x), RLOCK_EIO, 0,
                AT "what was answered about a lock is odd");
    EXPECT_STR(x.order, "a ");
    close_scene(&x);
}

TEST(survey, cannot_be_made_where_nobody_is)
{
    scene x;
    open_scene(&x);
    x.b.away = true;
    expect_told(make(&x), RLOCK_EIO, 0,
                AT "the connect callback returned NULL");
    close_scene(&x);
}

static void expect_time(int64_t ms, const char *words, const char *answer,
                        rlock_status status)
{
    scene x;
    open_scene(&x);
    x.cl->engine.core.set.command_timeout_ms = 1000;
    stub_say(&x.b, "SCAN 0", PAGE("0", 1, KEY("a")));
    stub_row_add(&x.b, (stub_row){.words = words, .answer = answer, .ms = ms});
    EXPECT_STATUS(make(&x), status);
    close_scene(&x);
}

TEST_CASE(survey, gives_a_page_the_time_of_a_command,
          expect_time(990, "SCAN 0", PAGE("0", 0, ""), RLOCK_OK))
TEST_CASE(survey, gives_a_page_no_more_time,
          expect_time(1001, "SCAN 0", "", RLOCK_EIO))
TEST_CASE(survey, gives_questions_no_more_time,
          expect_time(1001, "EVALSHA survey", "", RLOCK_EIO))

/* --- which locks ---------------------------------------------------------- */

TEST(survey, does_not_ask_about_what_is_not_wanted)
{
    scene x;
    open_scene(&x);
    x.unwanted = "b";
    stub_say(&x.b, "SCAN", PAGE("0", 3, KEY("a") KEY("b") KEY("c")));
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "a c ");
    x.s.wants = NULL;
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "a c a b c ");
    close_scene(&x);
}

/* The page's keys are k000, k001 ... */
static const char *page_of(int n)
{
    static char page[4000];
    int len = snprintf(page, sizeof page, "*2\r\n$1\r\n0\r\n*%d\r\n", n);
    for (int i = 0; i < n; i++)
        len += snprintf(page + len, sizeof page - (size_t)len,
                        "$4\r\nk%03d\r\n", i);
    return page;
}

TEST(survey, asks_the_first_alone_and_then_sixty_four_at_a_time)
{
    scene x;
    open_scene(&x);
    stub_say(&x.b, "SCAN", page_of(130));
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_INT(x.asked, 130);
    for (int i = 0; i < 130; i++)
        EXPECT_INT(x.noted_at[i], i == 0 ? 0 : i < 65 ? 1 : i < 129 ? 65 : 129);
    EXPECT_INT(x.noted, 130);
    close_scene(&x);
}

static bool take_piece(rl_sink *sink, const rl_cell *c, size_t len)
{
    (void)len;
    RL_CONTAINER(sink, scene, sink)->pieces += c->integer == 5;
    return true;
}

static void begin_one(rl_survey *s, rl_name lock)
{
    scene *x = scene_of(s);
    EXPECT_INT(x->pieces, x->asked); /* of the one before all has come */
    EXPECT_INT(lock.len, 4);
}

TEST(survey, that_is_answered_by_pieces_asks_one_at_a_time)
{
    scene x;
    open_scene(&x);
    x.sink.take = take_piece;
    x.s.sink = &x.sink;
    x.s.begin = begin_one;
    x.s.note = NULL;
    stub_say(&x.b, "SCAN", page_of(5));
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT(x.asked == 5 && x.pieces == 5 && x.noted == 0);
    for (int i = 0; i < 5; i++)
        EXPECT_INT(x.noted_at[i], i);
    close_scene(&x);
}

/* Others need not bring it. */
TEST(survey, brings_the_script_once_where_it_is_not_known)
{
    scene x;
    open_scene(&x);
    stub_say(&x.b, "SCAN", page_of(3));
    stub_row_add(&x.b, (stub_row){.words = "EVALSHA survey",
                                  .answer = "-NOSCRIPT No matching script.\r\n",
                                  .nth = 1});
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_INT(x.noted, 3);
    EXPECT_INT(stub_asked(&x.b, "EVALSHA"), 3);
    EXPECT_INT(stub_asked(&x.b, "EVAL "), 1);
    EXPECT_INT(atomic_load(&x.cl->engine.core.stats.script_loads), 1);
    close_scene(&x);
}

static bool add_another(rl_survey *s, rl_name lock, const rl_reply *r)
{
    scene *x = scene_of(s);
    if (x->noted == 0)
        EXPECT(rl_names_add(s->names, "later", 5, false));
    return note(s, lock, r);
}

TEST(survey, asks_about_names_that_an_answer_has_brought)
{
    scene x;
    open_scene(&x);
    x.s.note = add_another;
    stub_say(&x.b, "SCAN", page_of(1));
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "k000 later ");
    close_scene(&x);
}

static void expect_refused(const char *key, const char *answer,
                           rlock_status status)
{
    scene x;
    char page[100];
    open_scene(&x);
    snprintf(page, sizeof page,
             "*2\r\n$1\r\n0\r\n*2\r\n$2\r\n%s\r\n$1\r\nz\r\n", key);
    stub_say(&x.b, "SCAN", page);
    stub_row_add(
        &x.b,
        (stub_row){.words = "EVALSHA survey", .answer = answer, .nth = 1});
    EXPECT_STATUS(make(&x), status);
    EXPECT_INT(x.noted, status == RLOCK_OK);
    close_scene(&x);
}

TEST_CASE(survey, goes_on_where_what_it_guesses_is_refused,
          expect_refused("?a", "-NOPERM no\r\n", RLOCK_OK))
TEST_CASE(survey, ends_where_what_it_knows_is_refused,
          expect_refused("aa", "-NOPERM no\r\n", RLOCK_ESERVER))
TEST_CASE(survey, ends_where_what_it_guesses_is_of_another_type,
          expect_refused("?a", "-WRONGTYPE no\r\n", RLOCK_EWRONGTYPE))
TEST_CASE(survey, ends_by_itself_where_slots_cannot_move,
          expect_refused("aa", "-LOADING it\r\n", RLOCK_ESERVER))
TEST_CASE(survey, ends_by_itself_where_it_is_told_of_another_server,
          expect_refused("aa", "-MOVED 1 here:1\r\n", RLOCK_ESERVER))

static const char *closing_at;

static void close_at(stub *b, const char *words)
{
    hear(b, words);
    if (strncmp(words, closing_at, strlen(closing_at)) == 0)
        atomic_store(&b->cl->closing, true);
}

static void expect_closed(const char *at, int asked)
{
    scene x;
    open_scene(&x);
    x.b.hear = close_at;
    closing_at = at;
    stub_say(&x.b, "SCAN 0", PAGE("7", 2, KEY("a") KEY("b")));
    stub_say(&x.b, "SCAN 7", PAGE("0", 0, ""));
    expect_told(make(&x), RLOCK_ECLOSED, 0, AT "the client is closed");
    EXPECT_INT(x.asked, asked);
    EXPECT_INT(stub_asked(&x.b, at), 1);
    atomic_store(&x.cl->closing, false);
    close_scene(&x);
}

TEST_CASE(survey, ends_when_its_client_is_closed_at_a_page,
          expect_closed("SCAN", 0))
TEST_CASE(survey, ends_when_its_client_is_closed_at_a_question,
          expect_closed("EVALSHA survey", 1))

TEST(survey, without_memory_says_so)
{
    int lacked = 0, nth = 1;
    for (bool failed = true; failed; nth++) {
        scene x;
        open_scene(&x);
        stub_say(&x.b, "SCAN", page_of(100));
        shim_fail(shim_everywhere(), SHIM_ALLOC, nth, nth, ENOMEM);
        rlock_status s = make(&x);
        failed = shim_failed(shim_everywhere(), SHIM_ALLOC) > 0;
        shim_clear(shim_everywhere());
        EXPECT(s == RLOCK_OK ? x.noted == 100 : failed && s == RLOCK_ENOMEM);
        lacked += s == RLOCK_ENOMEM;
        close_scene(&x);
    }
    EXPECT(lacked > 6);
}
