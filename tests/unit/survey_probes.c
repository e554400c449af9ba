/* Surveys whose keys may be no locks, so that each is looked at first; and those of a
   cluster, whose slots may move meanwhile. */
#include "surveys.h"

/* --- keys that may be locks ----------------------------------------------- */

static void put_look(rl_bytes *to, const char *name, size_t len)
{
    rl_put_array(to, 2);
    rl_put_text(to, "LOOK");
    rl_put_bytes(to, name, len);
}

/* The latest that was looked at. */
static char seen[600];
static size_t seen_len;

static bool fits(const char *text, size_t len)
{
    snprintf(seen, sizeof seen, "%s", text);
    seen_len = len;
    return strncmp(text, "lock", 4) == 0;
}

static void open_looking(scene *x, const char *page)
{
    open_scene(x);
    x->pass[0].ask = put_look;
    x->pass[0].fits = fits;
    stub_say(&x->b, "SCAN", page);
    stub_say(&x->b, "LOOK", "$4\r\nlock\r\n");
    seen_len = 0;
}

#define THREE PAGE("0", 3, KEY("a") KEY("b") KEY("c"))

static void expect_looked(const char *answer, const char *order)
{
    scene x;
    open_looking(&x, THREE);
    stub_say(&x.b, "LOOK b", answer);
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, order);
    EXPECT_INT(stub_asked(&x.b, "LOOK"), 3);
    close_scene(&x);
}

TEST_CASE(survey_looks, at_each_key_and_asks_about_it,
          expect_looked("$4\r\nlock\r\n", "a b c "))
TEST_CASE(survey_looks, and_leaves_what_is_no_lock,
          expect_looked("$3\r\nany\r\n", "a c "))
/* It has what was told of the one before it. */
TEST_CASE(survey_looks, and_leaves_what_is_gone,
          expect_looked("$-1\r\n", "a c "))
TEST_CASE(survey_looks, and_leaves_what_is_a_number,
          expect_looked(":7\r\n", "a c "))
TEST_CASE(survey_looks, and_leaves_what_is_of_another_type,
          expect_looked("-WRONGTYPE no\r\n", "a c "))

static void expect_fails(const char *answer, rlock_status status)
{
    scene x;
    open_looking(&x, THREE);
    stub_say(&x.b, "LOOK b", answer);
    EXPECT_STATUS(make(&x), status);
    EXPECT_INT(x.asked, 0);
    close_scene(&x);
}

TEST_CASE(survey_looks, and_ends_where_it_may_not,
          expect_fails("-NOPERM no\r\n", RLOCK_ESERVER))
TEST_CASE(survey_looks, and_ends_where_the_server_hangs_up,
          expect_fails(NULL, RLOCK_EIO))
TEST_CASE(survey_looks, and_ends_where_a_list_is_told,
          expect_fails("*1\r\n$4\r\nlock\r\n", RLOCK_EIO))

TEST(survey_looks, and_goes_on_where_it_may_not_look_at_a_guess)
{
    scene x;
    open_looking(&x, "*2\r\n$1\r\n0\r\n*2\r\n$2\r\n?a\r\n$1\r\nb\r\n");
    stub_say(&x.b, "LOOK ?a", "-NOPERM no\r\n");
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "b ");
    close_scene(&x);
}

/* As much as a holder id may have; but how long it is, is told. */
static void expect_text(size_t len, size_t kept)
{
    static char text[600];
    scene x;
    open_looking(&x, PAGE("0", 1, KEY("a")));
    memset(text, 'x', len);
    memcpy(text, "lock", 4);
    text[len] = '\0';
    stub_say_text(&x.b, "LOOK", text, 0);
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_INT(seen_len, len);
    EXPECT_INT(strlen(seen), kept);
    EXPECT_INT(x.asked, 1);
    close_scene(&x);
}

TEST_CASE(survey_looks, at_no_text, expect_text(4, 4))
TEST_CASE(survey_looks, at_all_of_a_long_text, expect_text(511, 511))
TEST_CASE(survey_looks, at_the_beginning_of_a_longer_text,
          expect_text(512, 511))
TEST_CASE(survey_looks, at_the_beginning_of_a_text_of_any_length,
          expect_text(599, 511))

static int looked_at[200], looks, answered;

static bool count_answer(const char *text, size_t len)
{
    answered++;
    return fits(text, len);
}

static void note_look(stub *b, const char *words)
{
    (void)b;
    if (strncmp(words, "LOOK", 4) == 0)
        looked_at[looks++] = answered;
}

TEST(survey_looks, at_sixty_four_at_a_time)
{
    static char page[4000];
    int len = snprintf(page, sizeof page, "*2\r\n$1\r\n0\r\n*130\r\n");
    for (int i = 0; i < 130; i++)
        len += snprintf(page + len, sizeof page - (size_t)len,
                        "$4\r\nk%03d\r\n", i);
    scene x;
    open_looking(&x, page);
    x.pass[0].fits = count_answer;
    x.b.hear = note_look;
    looks = answered = 0;
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT(looks == 130 && x.noted == 130);
    for (int i = 0; i < 130; i++)
        EXPECT_INT(looked_at[i], i / 64 * 64);
    close_scene(&x);
}

/* Those of the page before stay. */
TEST(survey_looks, at_the_keys_of_each_page_once)
{
    scene x;
    open_looking(&x, PAGE("7", 2, KEY("a") KEY("b")));
    stub_say(&x.b, "SCAN 7", PAGE("0", 2, KEY("c") KEY("d")));
    stub_say(&x.b, "LOOK c", "$3\r\nany\r\n");
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "a b d ");
    EXPECT_INT(stub_asked(&x.b, "LOOK"), 4);
    close_scene(&x);
}

static void close_it(stub *b, const char *words)
{
    if (strncmp(words, "SCAN", 4) == 0)
        atomic_store(&b->cl->closing, true);
}

TEST(survey_looks, at_nothing_when_its_client_is_closed)
{
    scene x;
    open_looking(&x, THREE);
    x.b.hear = close_it;
    EXPECT_STATUS(make(&x), RLOCK_ECLOSED);
    EXPECT_INT(stub_asked(&x.b, "LOOK"), 0);
    atomic_store(&x.cl->closing, false);
    close_scene(&x);
}

/* --- clusters ------------------------------------------------------------- */

static void open_clustered(scene *x)
{
    open_at(x, CLUSTERED);
    stub_say(&x->b, "SCAN", PAGE("0", 1, KEY("a")));
}

TEST(survey_in_cluster, asks_each_master_once)
{
    scene x;
    open_clustered(&x);
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "a a ");
    EXPECT_INT(stub_asked(&x.b, "SCAN"), 2);
    EXPECT_INT(x.b.conns, 2);
    close_scene(&x);
}

TEST(survey_in_cluster, knows_each_master_once_and_in_the_order_of_slots)
{
    scene x;
    rl_fault f;
    rl_node *out[RL_SERVERS];
    open_clustered(&x);
    EXPECT_INT(rl_survey_masters(&x.cl->engine, out, &f), 2);
    EXPECT_STR(out[0]->name, FIRST_MASTER);
    EXPECT_STR(out[1]->name, SECOND_MASTER);
    clustered_tell(&x.cl->engine, 5, 0); /* the last one has no slot less */
    EXPECT_INT(rl_survey_masters(&x.cl->engine, out, &f), 2);
    close_scene(&x);
}

TEST(survey_in_cluster, that_nobody_knows_says_why)
{
    scene x;
    rl_fault f;
    rl_node *out[RL_SERVERS];
    open_clustered(&x);
    rl_mutex_lock(&x.cl->engine.cluster->mutex);
    x.cl->engine.cluster->known = false;
    rl_mutex_unlock(&x.cl->engine.cluster->mutex);
    x.cl->engine.core.set.connect_timeout_ms = 0;
    EXPECT_INT(rl_survey_masters(&x.cl->engine, out, &f), 0);
    EXPECT(f.status == RLOCK_EIO && *f.text);
    EXPECT(make(&x) == RLOCK_EIO && x.asked == 0);
    EXPECT_CONTAINS(rlock_last_error()->message, CLUSTERED ": ");
    close_scene(&x);
}

/* Its keys would lie in several slots. */
TEST(survey_in_cluster, does_not_ask_about_what_can_be_no_lock_there)
{
    scene x;
    open_clustered(&x);
    stub_say(&x.b, "SCAN", "*2\r\n$1\r\n0\r\n*2\r\n$3\r\na}b\r\n" KEY("c"));
    EXPECT_STATUS(make(&x), RLOCK_OK);
    EXPECT_STR(x.order, "c c ");
    close_scene(&x);
}

/* Of the first master; the other one is well. */
static void expect_answered(const char *answer, rlock_status status)
{
    scene x;
    open_clustered(&x);
    stub_row_add(
        &x.b,
        (stub_row){.words = "EVALSHA survey", .answer = answer, .nth = 1});
    EXPECT_STATUS(make(&x), status);
    EXPECT_INT(x.noted, status == RLOCK_OK);
    EXPECT_INT(stub_asked(&x.b, "SCAN"), status == RLOCK_OK ? 2 : 1);
    if (status != RLOCK_OK)
        EXPECT_CONTAINS(rlock_last_error()->message, FIRST_MASTER ": ");
    close_scene(&x);
}

#define ANSWERED_CASE(name, ...)                                               \
    TEST_CASE(survey_in_cluster, name, expect_answered(__VA_ARGS__))

ANSWERED_CASE(goes_on_where_a_slot_has_moved, "-MOVED 1 here:1\r\n", RLOCK_OK)
ANSWERED_CASE(goes_on_where_a_slot_is_moving, "-ASK 1 here:1\r\n", RLOCK_OK)
ANSWERED_CASE(goes_on_where_a_slot_may_be_asked_about_again,
              "-TRYAGAIN later\r\n", RLOCK_OK)
ANSWERED_CASE(ends_where_a_right_is_missing, "-NOPERM no\r\n", RLOCK_ESERVER)
ANSWERED_CASE(ends_where_a_server_hangs_up, NULL, RLOCK_EIO)
