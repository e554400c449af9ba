/* What a server says to who listens on channels is no answer: a line whose
   connection has subscribed to something, or is about to end that. */
#include "test.h"
#include "wire/line.h"

typedef struct question {
    rl_slot slot;
    int answered, failed;
    char text[32]; /* the answer's, or of its first item */
    rl_fault why;
} question;

typedef struct phone {
    rl_line line;
    question q[3];
    int heard;
} phone;

static const char *text_of(const rl_reply *r)
{
    const rl_item *i = r->count > 0 ? &r->item[0] : &r->top;
    return i->str ? i->str : "";
}

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    (void)now_us;
    q->answered++;
    snprintf(q->text, sizeof q->text, "%s", text_of(r));
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    (void)whole;
    (void)now_us;
    q->failed++;
    q->why = *why;
}

static phone *open_phone(void)
{
    phone *p = calloc(1, sizeof *p);
    EXPECT(p && rl_line_init(&p->line));
    for (size_t i = 0; i < 3; i++)
        p->q[i].slot = (rl_slot){.answered = answered, .failed = failed};
    return p;
}

/* All three are asked and sent. */
static phone *open_asked(void)
{
    phone *p = open_phone();
    const char *bytes;
    for (size_t i = 0; i < 3; i++) {
        rl_put_array(rl_line_begin(&p->line), 1);
        rl_put_text(rl_line_begin(&p->line), "PING");
        EXPECT(rl_line_push(&p->line, &p->q[i].slot));
    }
    rl_line_sent(&p->line, rl_line_bytes(&p->line, &bytes));
    return p;
}

static void close_phone(phone *p)
{
    rl_fault f = {.status = RLOCK_EIO};
    rl_line_fail(&p->line, &f, 7);
    rl_line_fini(&p->line);
    free(p);
}

static bool hear(phone *p, const char *text)
{
    return rl_line_feed(&p->line, text, strlen(text), 5);
}

static void note(void *arg, const rl_reply *r)
{
    phone *p = arg;
    (void)r;
    p->heard++;
}

#define MESSAGE       "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"
#define SMESSAGE      "*3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$0\r\n\r\n"
#define PMESSAGE      "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n$1\r\nx\r\n"
#define SUBSCRIBED    "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define UNSUBSCRIBED  "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n"
#define SUNSUBSCRIBED "*3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n"
#define NO_CHANNEL    "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n"

/* The answers are those that were asked for, wherever the message comes. */
static void expect_no_answer(const char *message)
{
    static const char *const answers[] = {"+a\r\n", "$1\r\nb\r\n", "+c\r\n"};
    for (int at = 0; at < 4; at++) {
        phone *p = open_asked();
        for (int i = 0; i < 3; i++) {
            EXPECT(i != at || hear(p, message));
            EXPECT(hear(p, answers[i]));
        }
        EXPECT(at < 3 || hear(p, message));
        for (int i = 0; i < 3; i++) {
            EXPECT_INT(p->q[i].answered, 1);
            EXPECT_INT(p->q[i].text[0], 'a' + i);
        }
        EXPECT(!p->line.failed);
        close_phone(p);
    }
}

#define NO_ANSWER(name, bytes)                                                 \
    TEST_CASE(line_heard, name, expect_no_answer(bytes))

NO_ANSWER(a_message_is_no_answer, MESSAGE)
NO_ANSWER(a_message_of_a_sharded_channel_is_no_answer, SMESSAGE)
NO_ANSWER(a_message_of_a_pattern_is_no_answer, PMESSAGE)

/* Also the answer to a subscription, and what comes before an answer. */
TEST(line_heard, a_message_is_not_what_ends_a_subscription)
{
    phone *p = open_asked();
    p->q[0].slot.subscribes = p->q[1].slot.subscribes = true;
    p->q[2].slot.preface = 1;
    EXPECT(hear(p, SUBSCRIBED MESSAGE UNSUBSCRIBED MESSAGE "+OK\r\n+c\r\n"));
    EXPECT_STR(p->q[0].text, "subscribe");
    EXPECT_STR(p->q[1].text, "unsubscribe");
    EXPECT_STR(p->q[2].text, "c");
    close_phone(p);
}

/* Every answer after it would go to the next one who asks. */
static void expect_unfit(bool subscribes, const char *bytes)
{
    phone *p = open_asked();
    p->q[0].slot.subscribes = subscribes;
    EXPECT(!hear(p, bytes));
    EXPECT(p->line.failed);
    for (int i = 0; i < 3; i++)
        EXPECT(p->q[i].failed == 1 && p->q[i].answered == 0);
    EXPECT_CONTAINS(p->q[0].why.text, "unexpected reply");
    EXPECT(p->q[0].why.transient);
    close_phone(p);
}

#define UNFIT(name, subscribes, bytes)                                         \
    TEST_CASE(line_heard, name, expect_unfit(subscribes, bytes))

UNFIT(fails_when_an_end_of_listening_answers_something_else, false,
      SUNSUBSCRIBED)
UNFIT(fails_when_a_beginning_of_listening_answers_something_else, false,
      SUBSCRIBED)
UNFIT(fails_when_something_else_answers_a_subscription, true, "+OK\r\n")
UNFIT(fails_when_a_list_answers_a_subscription, true, "*2\r\n:1\r\n:2\r\n")

TEST(line_heard, an_error_answers_a_subscription)
{
    phone *p = open_asked();
    p->q[0].slot.subscribes = true;
    EXPECT(hear(p, "-NOPERM no\r\n"));
    EXPECT_INT(p->q[0].answered, 1);
    close_phone(p);
}

TEST(line_heard, an_end_of_listening_may_name_no_channel)
{
    phone *p = open_asked();
    p->q[0].slot.subscribes = true;
    EXPECT(hear(p, NO_CHANNEL));
    EXPECT_STR(p->q[0].text, "unsubscribe");
    close_phone(p);
}

/* Who holds a lock of another program may call himself anything. */
TEST(line_heard, a_list_that_begins_like_a_message_is_an_answer)
{
    phone *p = open_asked();
    EXPECT(hear(p, "*3\r\n$7\r\nmessage\r\n$1\r\n1\r\n:30000\r\n"));
    EXPECT_STR(p->q[0].text, "message");
    EXPECT(hear(p, "*2\r\n$7\r\nmessage\r\n$1\r\n1\r\n"));
    EXPECT_STR(p->q[1].text, "message");
    close_phone(p);
}

/* So may a script of the program, on a connection that never listens. */
TEST(line_heard, what_a_script_of_the_program_answers_is_its_answer)
{
    phone *p = open_asked();
    rl_raw_reply o;
    EXPECT(rl_raw_reply_init(&o));
    p->q[0].slot.raw = &o;
    EXPECT(hear(p, MESSAGE "+b\r\n"));
    EXPECT(p->q[0].answered == 1 && o.reply && o.reply->elements == 3);
    EXPECT_STR(p->q[1].text, "b");
    rl_raw_reply_drop(&o);
    close_phone(p);
}

TEST(line_heard, a_listener_is_told_what_answers_nobody)
{
    phone *p = open_asked();
    p->line.pushed = note;
    p->line.arg = p;
    EXPECT(hear(p, MESSAGE "+a\r\n" SUBSCRIBED "+b\r\n" SUNSUBSCRIBED));
    EXPECT_INT(p->heard, 3);
    EXPECT_STR(p->q[0].text, "a");
    EXPECT_STR(p->q[1].text, "b");
    EXPECT_INT(p->q[2].answered + p->q[2].failed, 0);
    close_phone(p);
}

#ifdef REDIS_REPLY_PUSH

NO_ANSWER(what_resp3_pushes_is_no_answer, ">2\r\n$4\r\nnews\r\n:1\r\n")
NO_ANSWER(a_message_that_resp3_pushes_is_no_answer,
          ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n")

TEST(line_heard, what_resp3_pushes_is_no_answer_to_a_script_of_the_program)
{
    phone *p = open_asked();
    rl_raw_reply o;
    EXPECT(rl_raw_reply_init(&o));
    p->q[0].slot.raw = &o;
    EXPECT(hear(p, ">2\r\n$4\r\nnews\r\n:1\r\n:7\r\n"));
    EXPECT(p->q[0].answered == 1 && o.reply && o.reply->integer == 7);
    rl_raw_reply_drop(&o);
    close_phone(p);
}

TEST(line_heard, resp3_answers_a_subscription_by_a_push)
{
    phone *p = open_asked();
    p->q[0].slot.subscribes = true;
    EXPECT(hear(p, ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"));
    EXPECT_STR(p->q[0].text, "subscribe");
    close_phone(p);
}

#endif
