/* Replies that are kept whole, as hiredis builds them, on a line. */
#include "wire/line.h"

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
    char text[200]; /* of an error */
} phone;

static void note(phone *p, const rl_reply *r)
{
    p->answered++;
    p->top = r->top;
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
