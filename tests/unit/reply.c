/* The bounded reply, fed through hiredis' parser. */
#include "wire/reply.h"

#include <errno.h>

#include "base/list.h"
#include "test.h"

typedef enum outcome { WHOLE, PARTIAL, REFUSED } outcome;

typedef struct parser {
    redisReader *reader;
    rl_reply reply;
} parser;

static parser *parser_new(void)
{
    parser *p = calloc(1, sizeof *p);
    EXPECT(p);
    p->reader = redisReaderCreateWithFunctions(&rl_reply_builder);
    EXPECT(p->reader);
    p->reader->privdata = &p->reply;
    return p;
}

static void parser_free(parser *p)
{
    redisReaderFree(p->reader);
    free(p);
}

static outcome feed(parser *p, const char *bytes, size_t len)
{
    void *reply = NULL;
    EXPECT_INT(redisReaderFeed(p->reader, bytes, len), REDIS_OK);
    if (redisReaderGetReply(p->reader, &reply) != REDIS_OK)
        return REFUSED;
    return reply ? WHOLE : PARTIAL;
}

static outcome feed_text(parser *p, const char *text)
{
    return feed(p, text, strlen(text));
}

/* Only the last byte makes it whole. */
static outcome feed_bytewise(parser *p, const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i + 1 < len; i++) {
        if (feed(p, text + i, 1) != PARTIAL)
            return REFUSED;
    }
    return feed(p, text + len - 1, 1);
}

static void expect_outcome(const char *text, outcome wanted)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, text), wanted);
    parser_free(p);
}

static void expect_item(const rl_item *i, int type, const char *text)
{
    EXPECT_INT(i->type, type);
    EXPECT(rl_item_is(i, type));
    EXPECT_STR(i->str, text);
    EXPECT_INT(i->len, strlen(text));
}

TEST(reply, scalars)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "+PONG\r\n"), WHOLE);
    EXPECT(rl_reply_is(&p->reply, REDIS_REPLY_STATUS));
    expect_item(&p->reply.top, REDIS_REPLY_STATUS, "PONG");
    EXPECT_INT(feed_text(p, "-ERR no\r\n"), WHOLE);
    expect_item(&p->reply.top, REDIS_REPLY_ERROR, "ERR no");
    EXPECT_INT(feed_text(p, "$5\r\nhello\r\n"), WHOLE);
    expect_item(&p->reply.top, REDIS_REPLY_STRING, "hello");
    EXPECT_INT(feed_text(p, "$0\r\n\r\n"), WHOLE);
    expect_item(&p->reply.top, REDIS_REPLY_STRING, "");
    EXPECT_INT(feed_text(p, "$-1\r\n"), WHOLE);
    EXPECT(rl_reply_is(&p->reply, REDIS_REPLY_NIL));
    EXPECT(!rl_reply_is_array(&p->reply, 0));
    parser_free(p);
}

static void expect_integer(const char *text, long long wanted)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, text), WHOLE);
    EXPECT(rl_reply_is(&p->reply, REDIS_REPLY_INTEGER));
    EXPECT_INT(p->reply.top.integer, wanted);
    parser_free(p);
}

TEST(reply, integers)
{
    expect_integer(":0\r\n", 0);
    expect_integer(":-2\r\n", -2);
    expect_integer(":9223372036854775807\r\n", INT64_MAX);
    expect_integer(":-9223372036854775808\r\n", INT64_MIN);
}

TEST(reply, a_string_may_hold_any_byte)
{
    parser *p = parser_new();
    EXPECT_INT(feed(p, "$4\r\na\0\r\n\r\n", 10), WHOLE);
    EXPECT_INT(p->reply.top.len, 4);
    EXPECT(memcmp(p->reply.top.str, "a\0\r\n", 5) == 0);
    parser_free(p);
}

TEST(reply, an_array_of_scalars)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "*5\r\n:1\r\n$2\r\nab\r\n$-1\r\n+OK\r\n-ERR\r\n"),
               WHOLE);
    EXPECT(rl_reply_is_array(&p->reply, 5));
    EXPECT(!rl_reply_is_array(&p->reply, 6));
    EXPECT_INT(p->reply.item[0].integer, 1);
    expect_item(&p->reply.item[1], REDIS_REPLY_STRING, "ab");
    EXPECT(rl_item_is(&p->reply.item[2], REDIS_REPLY_NIL));
    expect_item(&p->reply.item[3], REDIS_REPLY_STATUS, "OK");
    expect_item(&p->reply.item[4], REDIS_REPLY_ERROR, "ERR");
    parser_free(p);
}

TEST(reply, an_empty_array_and_none)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "*0\r\n"), WHOLE);
    EXPECT(rl_reply_is_array(&p->reply, 0));
    EXPECT_INT(p->reply.count, 0);
    EXPECT_INT(feed_text(p, "*-1\r\n"), WHOLE);
    EXPECT(rl_reply_is(&p->reply, REDIS_REPLY_NIL));
    parser_free(p);
}

TEST(reply, byte_by_byte_it_is_the_same)
{
    parser *p = parser_new();
    EXPECT_INT(
        feed_bytewise(p, "*3\r\n:1\r\n$16\r\n1700000000000000\r\n+x\r\n"),
        WHOLE);
    EXPECT(rl_reply_is_array(&p->reply, 3));
    expect_item(&p->reply.item[1], REDIS_REPLY_STRING, "1700000000000000");
    EXPECT_INT(feed_bytewise(p, "-NOSCRIPT none\r\n"), WHOLE);
    expect_item(&p->reply.top, REDIS_REPLY_ERROR, "NOSCRIPT none");
    EXPECT_INT(feed_bytewise(p, "$-1\r\n"), WHOLE);
    parser_free(p);
}

TEST(reply, the_next_one_begins_afresh)
{
    parser *p = parser_new();
    char text[900];
    memset(text, 'x', sizeof text);
    memcpy(text, "$800\r\n", 6);
    memcpy(text + 806, "\r\n", 2);
    for (int i = 0; i < 20; i++)
        EXPECT_INT(feed(p, text, 808), WHOLE);
    EXPECT_INT(feed_text(p, "*2\r\n:1\r\n:2\r\n"), WHOLE);
    EXPECT_INT(feed_text(p, ":7\r\n"), WHOLE);
    EXPECT_INT(p->reply.count, 0);
    EXPECT(!rl_reply_is_array(&p->reply, 0));
    parser_free(p);
}

TEST(reply, replies_in_one_read_are_told_apart)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, ":1\r\n:2\r\n:3\r\n"), WHOLE);
    EXPECT_INT(p->reply.top.integer, 1);
    EXPECT_INT(feed_text(p, ""), WHOLE);
    EXPECT_INT(p->reply.top.integer, 2);
    EXPECT_INT(feed_text(p, ""), WHOLE);
    EXPECT_INT(p->reply.top.integer, 3);
    EXPECT_INT(feed_text(p, ""), PARTIAL);
    parser_free(p);
}

/* A text of n bytes as a bulk string. */
static outcome feed_bulk(parser *p, size_t n)
{
    char head[32];
    char *body = malloc(n + 2);
    EXPECT(body);
    memset(body, 'b', n);
    memcpy(body + n, "\r\n", 2);
    snprintf(head, sizeof head, "$%zu\r\n", n);
    outcome o = feed_text(p, head);
    if (o == PARTIAL)
        o = feed(p, body, n + 2);
    free(body);
    return o;
}

TEST(reply, the_longest_string_fits_and_a_longer_one_is_refused)
{
    parser *p = parser_new();
    EXPECT_INT(feed_bulk(p, RL_REPLY_TEXT - 1), WHOLE);
    EXPECT_INT(p->reply.top.len, RL_REPLY_TEXT - 1);
    EXPECT_INT(p->reply.top.str[RL_REPLY_TEXT - 1], 0);
    EXPECT_INT(feed_bulk(p, RL_REPLY_TEXT), REFUSED);
    parser_free(p);
}

TEST(reply, strings_of_an_array_share_the_room)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "*3\r\n"), PARTIAL);
    EXPECT_INT(feed_bulk(p, 600), PARTIAL);
    EXPECT_INT(feed_bulk(p, 600), PARTIAL);
    EXPECT_INT(feed_bulk(p, 600), REFUSED);
    parser_free(p);
}

/* Room used up to its last byte is still followed by nothing but NULs. */
TEST(reply, the_room_can_be_filled_to_its_end)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "*4\r\n"), PARTIAL);
    EXPECT_INT(feed_bulk(p, RL_REPLY_TEXT - 11), PARTIAL);
    EXPECT_INT(feed_bulk(p, 9), PARTIAL);
    EXPECT_INT(feed_bulk(p, 0), PARTIAL);
    EXPECT_INT(feed_bulk(p, 0), WHOLE);
    EXPECT_INT(p->reply.item[1].len, 9);
    EXPECT_STR(p->reply.item[1].str, "bbbbbbbbb");
    EXPECT_STR(p->reply.item[3].str, "");
    parser_free(p);
}

TEST(reply, an_announced_string_costs_nothing)
{
    parser *p = parser_new();
    EXPECT(feed_text(p, "$1073741824\r\nabc") != WHOLE);
    parser_free(p);
}

TEST(reply, absurd_sizes_are_no_crash)
{
    parser *p = parser_new();
    EXPECT(feed_text(p, "$9223372036854775807\r\nabc\r\n") != WHOLE);
    parser_free(p);
    p = parser_new();
    EXPECT(feed_text(p, "$99999999999999999999\r\nabc\r\n") != WHOLE);
    parser_free(p);
    p = parser_new();
    EXPECT(feed_text(p, "$-5\r\nabc\r\n") != WHOLE);
    parser_free(p);
}

TEST(reply, too_many_elements_are_refused)
{
    expect_outcome("*8\r\n", PARTIAL);
    expect_outcome("*9\r\n", REFUSED);
    expect_outcome("*2147483647\r\n", REFUSED);
    expect_outcome("*4294967297\r\n:1\r\n", REFUSED);
    expect_outcome("*9223372036854775807\r\n", REFUSED);
}

TEST(reply, a_negative_count_is_no_array)
{
    parser *p = parser_new();
    EXPECT(feed_text(p, "*-2\r\n:1\r\n") == REFUSED ||
           rl_reply_is(&p->reply, REDIS_REPLY_NIL));
    parser_free(p);
}

TEST(reply, nesting_is_refused)
{
    expect_outcome("*1\r\n*1\r\n:1\r\n", REFUSED);
    expect_outcome("*2\r\n:1\r\n*0\r\n", REFUSED);
    expect_outcome("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
                   REFUSED);
}

TEST(reply, what_is_no_resp_is_refused)
{
    expect_outcome("HTTP/1.1 400 Bad Request\r\n", REFUSED);
    expect_outcome("\r\n", REFUSED);
    expect_outcome("SSH-2.0-OpenSSH_9\r\n", REFUSED);
}

TEST(reply, a_long_error_text_is_cut)
{
    enum { LEN = 3 * RL_REPLY_TEXT };
    static char text[LEN + 1];
    parser *p = parser_new();
    memset(text, 'e', LEN);
    memcpy(text, "-ERR ", 5);
    EXPECT_INT(feed_text(p, text), PARTIAL);
    EXPECT_INT(feed_text(p, "\r\n"), WHOLE);
    EXPECT(rl_reply_is(&p->reply, REDIS_REPLY_ERROR));
    EXPECT_INT(p->reply.top.len, RL_REPLY_TEXT - 1);
    EXPECT_INT(strlen(p->reply.top.str), RL_REPLY_TEXT - 1);
    EXPECT(strncmp(p->reply.top.str, "ERR eee", 7) == 0);
    parser_free(p);
}

/* The elements behind it must not write past the room that it filled. */
TEST(reply, a_cut_error_within_an_array_leaves_the_rest_whole)
{
    static char text[2 * RL_REPLY_TEXT + 1];
    parser *p = parser_new();
    memset(text, 'e', sizeof text - 1);
    text[0] = '-';
    EXPECT_INT(feed_text(p, "*3\r\n"), PARTIAL);
    EXPECT_INT(feed_text(p, text), PARTIAL);
    EXPECT_INT(feed_text(p, "\r\n-E\r\n:5\r\n"), WHOLE);
    EXPECT(p->reply.item[0].len < RL_REPLY_TEXT);
    EXPECT_INT(p->reply.item[0].len, strlen(p->reply.item[0].str));
    EXPECT_STR(p->reply.item[1].str, "");
    EXPECT_INT(p->reply.item[2].integer, 5);
    parser_free(p);
}

static long long number_of(int type, long long integer, const char *text)
{
    rl_item i = {.type = type,
                 .integer = integer,
                 .str = text,
                 .len = text ? strlen(text) : 0};
    return rl_item_number(&i);
}

#define NUMBER(name, type, integer, text, wanted)                              \
    TEST_CASE(                                                                 \
        reply, name,                                                           \
        EXPECT_INT(number_of(REDIS_REPLY_##type, integer, text), wanted))

NUMBER(an_integer_is_a_number, INTEGER, 42, NULL, 42)
NUMBER(a_negative_integer_is_a_number, INTEGER, -42, NULL, -42)
NUMBER(the_largest_integer_is_a_number, INTEGER, INT64_MAX, NULL, INT64_MAX)
NUMBER(a_text_of_digits_is_a_number, STRING, 0, "42", 42)
NUMBER(a_token_is_a_number, STRING, 0, "1700000000000001", 1700000000000001)
NUMBER(a_text_with_a_sign_is_a_number, STRING, 0, "-7", -7)
NUMBER(the_largest_number_may_be_a_text, STRING, 0, "9223372036854775807",
       INT64_MAX)
NUMBER(a_text_beyond_all_numbers_is_none, STRING, 0, "9223372036854775808", -1)
NUMBER(a_text_below_all_numbers_is_none, STRING, 0, "-9223372036854775809", -1)
NUMBER(an_empty_text_is_none, STRING, 0, "", -1)
NUMBER(a_text_that_goes_on_is_none, STRING, 0, "4x", -1)
NUMBER(a_text_without_digits_is_none, STRING, 0, "x", -1)
NUMBER(a_fraction_is_none, STRING, 0, "4.5", -1)
NUMBER(a_status_is_none, STATUS, 0, "42", -1)
NUMBER(an_error_is_none, ERROR, 0, "42", -1)
NUMBER(nil_is_none, NIL, 0, NULL, -1)

/* --- what the scripts of a lock are answered ------------------------------ */

TEST(reply, granted_is_a_text)
{
    parser *p = parser_new();
    const rl_reply *r = &p->reply;
    EXPECT_INT(feed_text(p, "$16\r\n1700000000000001\r\n"), WHOLE);
    EXPECT(rl_reply_is(r, REDIS_REPLY_STRING) && !rl_reply_is_array(r, 0));
    EXPECT_INT(rl_item_number(&r->top), 1700000000000001);
    parser_free(p);
}

TEST(reply, granted_with_a_clock_is_three_items)
{
    parser *p = parser_new();
    const rl_reply *r = &p->reply;
    EXPECT_INT(feed_text(p, "*3\r\n:1\r\n$16\r\n1700000000000001\r\n"
                            "$16\r\n1700000000000000\r\n"),
               WHOLE);
    EXPECT(rl_reply_is_array(r, 3) && !rl_reply_is_array(r, 4));
    EXPECT_INT(rl_item_number(&r->item[0]), 1);
    EXPECT_INT(rl_item_number(&r->item[1]), 1700000000000001);
    EXPECT_INT(rl_item_number(&r->item[2]), 1700000000000000);
    parser_free(p);
}

TEST(reply, busy_is_five_items)
{
    parser *p = parser_new();
    const rl_reply *r = &p->reply;
    EXPECT_INT(feed_text(p, "*5\r\n:0\r\n:29950\r\n$2\r\n17\r\n:0\r\n"
                            ":0\r\n"),
               WHOLE);
    EXPECT(rl_reply_is_array(r, 5));
    EXPECT_INT(rl_item_number(&r->item[0]), 0);
    EXPECT_INT(rl_item_number(&r->item[1]), 29950);
    parser_free(p);
}

TEST(reply, a_key_without_expiry_has_a_negative_time)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "*2\r\n:0\r\n:-1\r\n"), WHOLE);
    EXPECT_INT(rl_item_number(&p->reply.item[1]), -1);
    parser_free(p);
}

/* Lua's false comes as nil. */
TEST(reply, an_array_may_have_nil_in_it)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "*3\r\n:1\r\n$-1\r\n:3\r\n"), WHOLE);
    EXPECT(rl_item_is(&p->reply.item[1], REDIS_REPLY_NIL));
    EXPECT_INT(p->reply.item[2].integer, 3);
    parser_free(p);
}

TEST(reply, an_error_is_no_array)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "-NOSCRIPT No matching script.\r\n"), WHOLE);
    EXPECT(!rl_reply_is_array(&p->reply, 0));
    EXPECT(!rl_reply_is(&p->reply, REDIS_REPLY_STRING));
    parser_free(p);
}

/* An array that announces more than it has shows only what was there. */
TEST(reply, an_array_is_whole_with_its_last_item)
{
    parser *p = parser_new();
    EXPECT_INT(feed_text(p, "*2\r\n:1\r\n"), PARTIAL);
    EXPECT_INT(feed_text(p, ":2\r\n"), WHOLE);
    EXPECT_INT(p->reply.item[1].integer, 2);
    parser_free(p);
}

/* --- copies ---------------------------------------------------------------- */

static void copy_and_forget(parser *p, const char *text, rl_reply *to)
{
    EXPECT_INT(feed_text(p, text), WHOLE);
    memset(to, 0x55, sizeof *to);
    rl_reply_copy(to, &p->reply);
    memset(&p->reply, 0x55, sizeof p->reply);
    parser_free(p);
}

TEST(reply, a_copy_has_texts_of_its_own)
{
    rl_reply copy;
    copy_and_forget(parser_new(), "*3\r\n$3\r\none\r\n:2\r\n$5\r\nthree\r\n",
                    &copy);
    EXPECT_INT(copy.count, 3);
    expect_item(&copy.item[0], REDIS_REPLY_STRING, "one");
    EXPECT(copy.item[1].integer == 2 && !copy.item[1].str && !copy.top.str);
    expect_item(&copy.item[2], REDIS_REPLY_STRING, "three");
    copy_and_forget(parser_new(), "-ERR no\r\n", &copy);
    expect_item(&copy.top, REDIS_REPLY_ERROR, "ERR no");
    copy_and_forget(parser_new(), ":7\r\n", &copy);
    EXPECT(copy.top.integer == 7 && !copy.top.str);
}

/* An item behind the last one is an older reply's. */
TEST(reply, a_copy_touches_no_more_than_there_is)
{
    parser *p = parser_new();
    rl_reply copy;
    EXPECT_INT(feed_text(p, "*2\r\n$1\r\na\r\n$1\r\nb\r\n"), WHOLE);
    EXPECT_INT(feed_text(p, "*1\r\n$1\r\nc\r\n"), WHOLE);
    rl_reply_copy(&copy, &p->reply);
    EXPECT(copy.count == 1 && copy.item[1].str == p->reply.item[1].str);
    parser_free(p);
}

TEST(reply, a_number_is_one_whatever_failed_before)
{
    rl_item i = {.type = REDIS_REPLY_STRING, .str = "17", .len = 2};
    errno = ERANGE;
    EXPECT_INT(rl_item_number(&i), 17);
}

/* --- poured out, piece by piece -------------------------------------------- */

typedef struct pieces {
    rl_sink sink;
    size_t most; /* is refused behind so many */
    size_t n;
    rl_cell cell[16];
    char text[16][16];
    size_t len[16];
} pieces;

static bool take_piece(rl_sink *s, const rl_cell *c, size_t len)
{
    pieces *to = RL_CONTAINER(s, pieces, sink);
    EXPECT(to->n < 16 && len < 16);
    if (to->n == to->most)
        return false;
    to->cell[to->n] = *c;
    if (c->str)
        memcpy(to->text[to->n], c->str, len);
    to->len[to->n++] = len;
    return true;
}

static parser *pouring(pieces *to, size_t most)
{
    parser *p = parser_new();
    *to = (pieces){.sink = {take_piece}, .most = most};
    p->reply.sink = &to->sink;
    return p;
}

static void expect_piece(const pieces *to, size_t i, int type, int depth,
                         long long integer, const char *text)
{
    const rl_cell *c = &to->cell[i];
    EXPECT_INT(c->type, type);
    EXPECT_INT(c->depth, depth);
    EXPECT_INT(c->integer, integer);
    EXPECT_INT(c->str != NULL, text != NULL);
    EXPECT_STR(to->text[i], text ? text : "");
    EXPECT_INT(to->len[i], text ? strlen(text) : 0);
}

TEST(reply, a_sink_gets_each_piece_with_its_depth)
{
    pieces to;
    parser *p = pouring(&to, 16);
    EXPECT_INT(
        feed_text(p, "*5\r\n:7\r\n*2\r\n$2\r\nhi\r\n*1\r\n:8\r\n$-1\r\n"
                     "+ok\r\n-no\r\n"),
        REFUSED); /* an error within: an item, for which there is no room */
    parser_free(p);
    p = pouring(&to, 16);
    EXPECT_INT(feed_text(p, "*4\r\n:7\r\n*2\r\n$2\r\nhi\r\n*1\r\n:8\r\n$-1\r\n"
                            "+ok\r\n"),
               WHOLE);
    EXPECT_INT(to.n, 8);
    expect_piece(&to, 0, REDIS_REPLY_ARRAY, 0, 4, NULL);
    expect_piece(&to, 1, REDIS_REPLY_INTEGER, 1, 7, NULL);
    expect_piece(&to, 2, REDIS_REPLY_ARRAY, 1, 2, NULL);
    expect_piece(&to, 3, REDIS_REPLY_STRING, 2, 0, "hi");
    expect_piece(&to, 4, REDIS_REPLY_ARRAY, 2, 1, NULL);
    expect_piece(&to, 5, REDIS_REPLY_INTEGER, 3, 8, NULL);
    expect_piece(&to, 6, to.cell[6].type, 1, 0, NULL); /* no text: nil */
    expect_piece(&to, 7, REDIS_REPLY_STATUS, 1, 0, "ok");
    EXPECT_INT(p->reply.top.type, REDIS_REPLY_ARRAY);
    EXPECT_INT(p->reply.count, 0);
    parser_free(p);
}

TEST(reply, a_sink_may_refuse_any_piece)
{
    pieces to;
    for (size_t most = 0; most < 4; most++) {
        parser *p = pouring(&to, most);
        EXPECT_INT(feed_text(p, "*3\r\n:7\r\n$2\r\nhi\r\n$-1\r\n"), REFUSED);
        EXPECT_INT(to.n, most);
        parser_free(p);
    }
}

/* That is told as everywhere. */
TEST(reply, a_sink_gets_no_error)
{
    pieces to;
    parser *p = pouring(&to, 16);
    EXPECT_INT(feed_text(p, "-ERR no\r\n"), WHOLE);
    EXPECT_INT(to.n, 0);
    expect_item(&p->reply.top, REDIS_REPLY_ERROR, "ERR no");
    parser_free(p);
}
