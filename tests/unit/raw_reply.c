/* Replies that are kept whole, as hiredis builds them, on a line. */
#include "wire/line.h"

#include <errno.h>

#include "shim.h"
#include "test.h"

#define NUMBER ":7\r\n"

typedef struct phone {
    rl_line line;
    rl_raw_reply raw;
    rl_slot whole, small;
    int answered, failed;
    bool sent_whole;
    rl_fault why;
    rl_item top;
    size_t count;
    char text[200]; /* of an error */
} phone;

static void note(phone *p, const rl_reply *r)
{
    p->answered++;
    p->top = r->top;
    p->count = r->count;
    if (rl_reply_is(r, REDIS_REPLY_ERROR))
        snprintf(p->text, sizeof p->text, "%s", r->top.str);
}

static void whole_answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    (void)now_us;
    note(RL_CONTAINER(s, phone, whole), r);
}

static void small_answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    (void)now_us;
    note(RL_CONTAINER(s, phone, small), r);
}

static void whole_failed(rl_slot *s, bool whole, const rl_fault *why,
                         int64_t now_us)
{
    phone *p = RL_CONTAINER(s, phone, whole);
    (void)now_us;
    p->failed++;
    p->sent_whole = whole;
    p->why = *why;
}

static void small_failed(rl_slot *s, bool whole, const rl_fault *why,
                         int64_t now_us)
{
    (void)whole;
    (void)now_us;
    RL_CONTAINER(s, phone, small)->why = *why;
}

static void put(phone *p, rl_slot *s)
{
    const char *bytes;
    rl_put_array(rl_line_begin(&p->line), 1);
    rl_put_text(rl_line_begin(&p->line), "PING");
    EXPECT(rl_line_push(&p->line, s));
    rl_line_sent(&p->line, rl_line_bytes(&p->line, &bytes));
}

/* Asks for one reply that is kept whole. */
static void open_phone(phone *p)
{
    *p = (phone){.whole = {.answered = whole_answered,
                           .failed = whole_failed,
                           .raw = &p->raw},
                 .small = {.answered = small_answered, .failed = small_failed}};
    EXPECT(rl_line_init(&p->line));
    EXPECT(rl_raw_reply_init(&p->raw));
    put(p, &p->whole);
}

static bool hear(phone *p, const char *text)
{
    return rl_line_feed(&p->line, text, strlen(text), 5);
}

static void close_phone(phone *p)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "closed");
    rl_line_fail(&p->line, &f, 7);
    rl_line_fini(&p->line);
    rl_raw_reply_drop(&p->raw);
}

TEST(raw_reply, is_what_hiredis_builds)
{
    phone p;
    open_phone(&p);
    EXPECT(hear(&p, "*3\r\n$3\r\none\r\n*2\r\n:2\r\n-ODD err\r\n$-1\r\n"));
    EXPECT_INT(p.answered, 1);
    EXPECT_INT(p.top.type, REDIS_REPLY_ARRAY);
    const redisReply *r = p.raw.reply;
    EXPECT_INT(r->elements, 3);
    EXPECT_STR(r->element[0]->str, "one");
    EXPECT_INT(r->element[1]->element[0]->integer, 2);
    EXPECT_STR(r->element[1]->element[1]->str, "ODD err");
    EXPECT_INT(r->element[2]->type, REDIS_REPLY_NIL);
    close_phone(&p);
}

TEST(raw_reply, may_come_byte_by_byte_and_others_stand_around_it)
{
    static const char bytes[] = NUMBER "*2\r\n:1\r\n*1\r\n$2\r\nhi\r\n" NUMBER;
    phone p;
    open_phone(&p);
    rl_line_fini(&p.line);
    EXPECT(rl_line_init(&p.line));
    put(&p, &p.small);
    put(&p, &p.whole);
    for (size_t i = 0; i + 1 < sizeof bytes; i++) {
        if (p.answered == 2 && !p.small.line)
            put(&p, &p.small);
        EXPECT(rl_line_feed(&p.line, bytes + i, 1, 5));
    }
    EXPECT_INT(p.answered, 3);
    EXPECT_INT(p.top.integer, 7);
    EXPECT_STR(p.raw.reply->element[1]->element[0]->str, "hi");
    close_phone(&p);
}

TEST(raw_reply, shows_the_text_of_an_error)
{
    phone p;
    open_phone(&p);
    EXPECT(hear(&p, "-NOSCRIPT No matching script.\r\n"));
    EXPECT_INT(p.top.type, REDIS_REPLY_ERROR);
    EXPECT_STR(p.text, "NOSCRIPT No matching script.");
    EXPECT_STR(p.raw.reply->str, "NOSCRIPT No matching script.");
    put(&p, &p.whole);
    EXPECT(hear(&p, NUMBER)); /* takes its place */
    EXPECT_INT(p.raw.reply->integer, 7);
    close_phone(&p);
}

/* What comes before the reply says nothing, and is not kept. */
TEST(raw_reply, does_not_take_a_preface)
{
    phone p;
    open_phone(&p);
    p.whole.preface = 1;
    EXPECT(hear(&p, "+OK\r\n"));
    EXPECT(!p.raw.reply && p.answered == 0);
    EXPECT(hear(&p, NUMBER));
    EXPECT_INT(p.raw.reply->integer, 7);
    close_phone(&p);
}

static void expect_refused(const char *bytes)
{
    phone p;
    open_phone(&p);
    EXPECT(!hear(&p, bytes));
    EXPECT(p.failed == 1 && p.sent_whole && !p.raw.reply);
    EXPECT_CONTAINS(p.why.text, "not a Redis reply");
    EXPECT_INT(p.why.sys_errno, 0);
    close_phone(&p);
}

TEST_CASE(raw_reply, is_refused_when_it_announces_too_many_elements,
          expect_refused("*1048577\r\n"))
TEST_CASE(raw_reply, is_refused_when_its_arrays_have_too_many_together,
          expect_refused("*3\r\n*1048574\r\n"))
TEST_CASE(raw_reply, is_refused_when_it_is_none, expect_refused("hello\r\n"))

TEST(raw_reply, is_refused_when_its_text_is_too_long)
{
    static char some[1 << 20];
    phone p;
    open_phone(&p);
    EXPECT(hear(&p, "$100000000\r\n"));
    size_t fed = 0;
    while (fed <= RL_RAW_REPLY_BYTES &&
           rl_line_feed(&p.line, some, sizeof some, 5))
        fed += sizeof some;
    EXPECT_BETWEEN(fed, RL_RAW_REPLY_BYTES - sizeof some, RL_RAW_REPLY_BYTES);
    EXPECT_INT(p.failed, 1);
    EXPECT_CONTAINS(p.why.text, "too long");
    close_phone(&p);
}

/* Its buffers are better freed. */
TEST(raw_reply, that_was_large_retires_its_line)
{
    static char some[2 << 20];
    phone p;
    open_phone(&p);
    EXPECT(hear(&p, NUMBER));
    EXPECT(!p.line.retired);
    put(&p, &p.whole);
    EXPECT(hear(&p, "$2097152\r\n"));
    EXPECT(rl_line_feed(&p.line, some, sizeof some, 5));
    EXPECT(hear(&p, "\r\n"));
    EXPECT_INT(p.raw.reply->len, sizeof some);
    EXPECT(p.line.retired);
    close_phone(&p);
}

TEST(raw_reply, that_is_half_there_goes_with_its_line)
{
    phone p;
    open_phone(&p);
    EXPECT(hear(&p, "*3\r\n$3\r\none\r\n*2\r\n:2\r\n"));
    EXPECT(rl_line_is_mid_reply(&p.line));
    close_phone(&p);
    EXPECT(p.failed == 1 && !p.raw.reply);
}

/* What a line takes as its own reply has the kind of the other, and no more. */
TEST(raw_reply, leaves_nothing_but_its_kind_on_the_line)
{
    phone p;
    open_phone(&p);
    p.line.reply.count = 3;
    EXPECT(hear(&p, "*3\r\n:1\r\n:2\r\n:3\r\n"));
    EXPECT(p.top.type == REDIS_REPLY_ARRAY && p.count == 0 && !p.top.str);
    put(&p, &p.whole);
    EXPECT(hear(&p, "$3\r\none\r\n"));
    EXPECT(p.top.type == REDIS_REPLY_STRING && p.count == 0 && !p.top.str);
    put(&p, &p.whole);
    EXPECT(hear(&p, NUMBER));
    EXPECT(p.top.integer == 7 && !p.top.str);
    close_phone(&p);
}

TEST(raw_reply, shows_as_much_of_a_long_error_as_there_is_room)
{
    static char error[3 * RL_REPLY_TEXT];
    phone p;
    open_phone(&p);
    memset(error, 'x', sizeof error - 3);
    error[0] = '-';
    memcpy(error + sizeof error - 3, "\r\n", 3);
    p.line.reply.table = NULL; /* what stands behind its text */
    EXPECT(hear(&p, error));
    EXPECT_INT(p.top.len, RL_REPLY_TEXT - 1);
    EXPECT_INT(strlen(p.line.reply.text), RL_REPLY_TEXT - 1);
    EXPECT_INT(p.raw.reply->len, sizeof error - 4);
    EXPECT(!p.line.reply.table);
    close_phone(&p);
}

/* --- what is counted -------------------------------------------------------- */

TEST(raw_reply, is_counted_by_itself)
{
    phone p;
    open_phone(&p);
    p.raw.bytes = RL_RAW_REPLY_BYTES;
    p.raw.items = RL_RAW_REPLY_ITEMS;
    p.raw.refused = true;
    EXPECT(hear(&p, "*2\r\n$3\r\none\r\n:1\r\n"));
    EXPECT(p.raw.bytes == 3 && p.raw.items == 2 && !p.raw.refused);
    EXPECT_INT(p.answered, 1);
    close_phone(&p);
}

TEST(raw_reply, may_have_as_many_elements_as_are_allowed)
{
    phone p;
    open_phone(&p);
    EXPECT(hear(&p, "*1048576\r\n$3\r\none\r\n$4\r\nmore\r\n"));
    EXPECT(p.failed == 0 && p.raw.items == RL_RAW_REPLY_ITEMS);
    EXPECT_INT(p.raw.bytes, 7);
    close_phone(&p);
}

static void expect_text_beside(size_t bytes, bool taken)
{
    phone p;
    open_phone(&p);
    EXPECT(hear(&p, "*2\r\n:1\r\n"));
    p.raw.bytes = RL_RAW_REPLY_BYTES - bytes;
    EXPECT_INT(hear(&p, "$4\r\nmore\r\n"), taken);
    EXPECT(p.answered == taken && p.failed == !taken);
    close_phone(&p);
}

TEST_CASE(raw_reply, may_have_as_much_text_as_is_allowed,
          expect_text_beside(4, true))
TEST_CASE(raw_reply, is_refused_when_its_texts_are_too_long_together,
          expect_text_beside(3, false))

#ifndef SHIM_SPARES_HIREDIS

TEST(raw_reply, for_which_there_is_no_memory_says_so)
{
    phone p;
    open_phone(&p);
    EXPECT(hear(&p, ":"));
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool heard = hear(&p, "7\r\n");
    shim_clear(shim_here());
    EXPECT(!heard && p.failed == 1);
    EXPECT_INT(p.why.status, RLOCK_ENOMEM);
    EXPECT(p.why.transient);
    close_phone(&p);
}

TEST(raw_reply, cannot_be_had_without_memory)
{
    rl_raw_reply o;
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool made = rl_raw_reply_init(&o);
    shim_clear(shim_here());
    EXPECT(!made && !o.reply);
}

#endif
