/* A line: slots, and bytes in and out, in every order they may come. */
#include "wire/line.h"

#include <errno.h>

#include "shim.h"
#include "test.h"

#define SLOTS 8

typedef struct phone {
    rl_line line;
    int ended; /* slots */
    int pushed;
    long long pushed_number;
    int64_t now_us;
} phone;

typedef struct question {
    rl_slot slot;
    phone *on;
    int answered, failed; /* how often */
    int place;            /* the first that ended has 1 */
    bool whole;
    long long number;
    rl_fault why;
    struct question *then; /* is pushed by the callback */
    bool then_pushed;
} question;

static void put_ping(phone *p)
{
    rl_bytes *b = rl_line_begin(&p->line);
    rl_put_array(b, 1);
    rl_put_text(b, "PING"); /* 14 bytes */
}

#define PING_LEN 14

static bool ask(phone *p, question *q)
{
    put_ping(p);
    return rl_line_push(&p->line, &q->slot);
}

static void ended(question *q)
{
    q->place = ++q->on->ended;
    if (q->then)
        q->then_pushed = ask(q->on, q->then);
}

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    q->answered++;
    q->number = rl_reply_is(r, REDIS_REPLY_INTEGER) ? r->top.integer : -1;
    q->on->now_us = now_us;
    ended(q);
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    q->failed++;
    q->whole = whole;
    q->why = *why;
    q->on->now_us = now_us;
    ended(q);
}

static question question_on(phone *p)
{
    return (question){.slot = {.answered = answered, .failed = failed},
                      .on = p};
}

static void open_phone(phone *p, question *q, size_t n)
{
    *p = (phone){0};
    EXPECT(rl_line_init(&p->line));
    for (size_t i = 0; i < n; i++)
        q[i] = question_on(p);
}

static void send_all(phone *p)
{
    const char *bytes;
    rl_line_sent(&p->line, rl_line_bytes(&p->line, &bytes));
}

static bool hear(phone *p, const char *text)
{
    return rl_line_feed(&p->line, text, strlen(text), 5);
}

static void break_line(phone *p)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, ETIMEDOUT, "broken");
    rl_line_fail(&p->line, &f, 7);
}

static void close_phone(phone *p)
{
    break_line(p);
    rl_line_fini(&p->line);
}

TEST(line, a_command_waits_to_be_sent)
{
    phone p;
    question q;
    const char *bytes;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    EXPECT_INT(rl_line_bytes(&p.line, &bytes), PING_LEN);
    EXPECT(memcmp(bytes, "*1\r\n$4\r\nPING\r\n", PING_LEN) == 0);
    EXPECT_INT(p.line.pending, 1);
    EXPECT(rl_line_first(&p.line) == &q.slot && q.slot.line == &p.line);
    close_phone(&p);
}

/* What is being written is not sent before it is pushed. */
TEST(line, a_command_that_is_not_pushed_yet_is_not_sent)
{
    phone p;
    const char *bytes;
    open_phone(&p, NULL, 0);
    put_ping(&p);
    EXPECT_INT(rl_line_bytes(&p.line, &bytes), 0);
    close_phone(&p);
}

TEST(line, a_command_may_be_sent_byte_by_byte)
{
    phone p;
    question q;
    const char *bytes;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    for (int i = 0; i < PING_LEN; i++) {
        EXPECT_INT(rl_line_bytes(&p.line, &bytes), PING_LEN - i);
        EXPECT_INT(*bytes, "*1\r\n$4\r\nPING\r\n"[i]);
        rl_line_sent(&p.line, 1);
    }
    EXPECT_INT(rl_line_bytes(&p.line, &bytes), 0);
    close_phone(&p);
}

TEST(line, replies_answer_in_the_order_of_the_commands)
{
    phone p;
    question q[3];
    open_phone(&p, q, 3);
    for (int i = 0; i < 3; i++)
        EXPECT(ask(&p, &q[i]));
    send_all(&p);
    EXPECT(hear(&p, ":10\r\n:11\r\n:12\r\n"));
    for (int i = 0; i < 3; i++) {
        EXPECT(q[i].answered == 1 && q[i].failed == 0);
        EXPECT_INT(q[i].number, 10 + i);
        EXPECT_INT(q[i].place, i + 1);
        EXPECT(!q[i].slot.line);
    }
    EXPECT(p.line.pending == 0 && !rl_line_first(&p.line));
    EXPECT_INT(p.now_us, 5);
    close_phone(&p);
}

/* Wherever the bytes are split, once or at each. */
TEST(line, replies_may_come_in_any_pieces)
{
    static const char replies[] = ":10\r\n*2\r\n:1\r\n$4\r\na\r\nb\r\n:12\r\n";
    size_t len = sizeof replies - 1;
    for (size_t cut = 0; cut <= len; cut++) {
        phone p;
        question q[3];
        open_phone(&p, q, 3);
        for (int i = 0; i < 3; i++)
            EXPECT(ask(&p, &q[i]));
        send_all(&p);
        EXPECT(rl_line_feed(&p.line, replies, cut, 5));
        EXPECT(rl_line_feed(&p.line, replies + cut, len - cut, 5));
        EXPECT(q[0].number == 10 && q[1].answered == 1 && q[2].number == 12);
        EXPECT(!rl_line_is_mid_reply(&p.line));
        close_phone(&p);
    }
}

TEST(line, replies_may_come_byte_by_byte)
{
    static const char replies[] = ":10\r\n$-1\r\n-ERR no\r\n";
    phone p;
    question q[3];
    open_phone(&p, q, 3);
    for (int i = 0; i < 3; i++)
        EXPECT(ask(&p, &q[i]));
    send_all(&p);
    for (size_t i = 0; i < sizeof replies - 1; i++)
        EXPECT(rl_line_feed(&p.line, replies + i, 1, 5));
    EXPECT_INT(p.ended, 3);
    EXPECT(q[0].number == 10 && q[2].answered == 1);
    close_phone(&p);
}

TEST(line, knows_that_it_is_in_the_middle_of_a_reply)
{
    static const char reply[] = "*2\r\n:1\r\n:2\r\n";
    phone p;
    question q;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    send_all(&p);
    EXPECT(!rl_line_is_mid_reply(&p.line));
    for (size_t i = 0; i < sizeof reply - 2; i++) {
        EXPECT(rl_line_feed(&p.line, reply + i, 1, 5));
        EXPECT(rl_line_is_mid_reply(&p.line));
    }
    EXPECT(hear(&p, "\n"));
    EXPECT(!rl_line_is_mid_reply(&p.line));
    close_phone(&p);
}

TEST(line, fails_by_a_reply_to_no_question)
{
    phone p;
    question q;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    send_all(&p);
    EXPECT(!hear(&p, ":1\r\n:2\r\n"));
    EXPECT(q.answered == 1 && q.failed == 0);
    EXPECT(p.line.failed);
    EXPECT_INT(p.line.fault.status, RLOCK_EIO);
    EXPECT_CONTAINS(p.line.fault.text, "nobody had asked");
    close_phone(&p);
}

/* It was sent to somebody else: the next one must not get it. */
TEST(line, fails_by_a_reply_that_came_before_the_question_was_sent)
{
    phone p;
    question q;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    rl_line_sent(&p.line, PING_LEN - 1);
    EXPECT(!hear(&p, ":1\r\n"));
    EXPECT(q.answered == 0 && q.failed == 1 && !q.whole);
    close_phone(&p);
}

/* Nor if it had only begun to come. */
TEST(line, fails_by_a_reply_that_began_before_the_question_was_sent)
{
    phone p;
    question q;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    EXPECT(hear(&p, ":"));
    send_all(&p);
    EXPECT(!hear(&p, "1\r\n"));
    EXPECT(q.answered == 0 && q.failed == 1 && q.whole);
    EXPECT_CONTAINS(q.why.text, "nobody had asked");
    close_phone(&p);
}

static void expect_no_reply(const char *bytes)
{
    phone p;
    question q[2];
    open_phone(&p, q, 2);
    EXPECT(ask(&p, &q[0]) && ask(&p, &q[1]));
    send_all(&p);
    EXPECT(!hear(&p, bytes));
    EXPECT(p.line.failed);
    EXPECT(q[0].failed == 1 && q[0].whole && q[1].failed == 1);
    EXPECT_INT(q[0].why.status, RLOCK_EIO);
    EXPECT_CONTAINS(q[0].why.text, "not a Redis reply");
    EXPECT(q[0].why.transient);
    close_phone(&p);
}

#define NO_REPLY(name, bytes) TEST_CASE(line, name, expect_no_reply(bytes))

NO_REPLY(fails_by_what_is_no_protocol, "HTTP/1.1 400 Bad Request\r\n")
NO_REPLY(fails_by_an_array_of_too_many, "*9\r\n")
NO_REPLY(fails_by_an_array_in_an_array, "*1\r\n*1\r\n:1\r\n")
NO_REPLY(fails_by_a_number_that_is_none, ":1x\r\n")

/* A huge string is refused before it has come. */
TEST(line, fails_when_a_reply_is_longer_than_its_budget)
{
    static char chunk[16 * 1024];
    phone p;
    question q;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    send_all(&p);
    EXPECT(hear(&p, "$1000000\r\n"));
    int chunks = 0;
    while (rl_line_feed(&p.line, chunk, sizeof chunk, 5))
        EXPECT(++chunks <= 4);
    EXPECT_INT(chunks, 3);
    EXPECT(q.failed == 1);
    EXPECT_CONTAINS(q.why.text, "too long");
    close_phone(&p);
}

TEST(line, a_budget_is_for_one_reply_not_for_all)
{
    static char text[500], reply[600];
    phone p;
    memset(text, 'x', sizeof text - 1);
    int len = snprintf(reply, sizeof reply, "+%s\r\n", text);
    open_phone(&p, NULL, 0);
    for (int i = 0; i < 1000; i++) {
        question q = question_on(&p);
        EXPECT(ask(&p, &q));
        send_all(&p);
        EXPECT(rl_line_feed(&p.line, reply, (size_t)len, 5));
        EXPECT_INT(q.answered, 1);
    }
    close_phone(&p);
}

/* A command is executed only if the server got all of it. */
TEST(line, a_failure_tells_by_the_byte_what_was_sent)
{
    for (size_t sent = 0; sent <= 3 * PING_LEN; sent++) {
        phone p;
        question q[3];
        open_phone(&p, q, 3);
        for (int i = 0; i < 3; i++)
            EXPECT(ask(&p, &q[i]));
        rl_line_sent(&p.line, sent);
        break_line(&p);
        for (size_t i = 0; i < 3; i++) {
            EXPECT_INT(q[i].failed, 1);
            EXPECT_INT(q[i].whole, sent >= (i + 1) * PING_LEN);
            EXPECT_INT(q[i].place, i + 1);
        }
        close_phone(&p);
    }
}

TEST(line, what_was_sent_is_known_after_millions_of_commands)
{
    phone p;
    open_phone(&p, NULL, 0);
    p.line.written = p.line.sent = UINT64_C(1) << 40;
    question q[2] = {question_on(&p), question_on(&p)};
    EXPECT(ask(&p, &q[0]) && ask(&p, &q[1]));
    rl_line_sent(&p.line, PING_LEN + 1);
    break_line(&p);
    EXPECT(q[0].whole && !q[1].whole);
    close_phone(&p);
}

TEST(line, each_slot_of_a_failed_line_ends_once_with_the_first_reason)
{
    phone p;
    question q;
    rl_fault f;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    break_line(&p);
    rl_fault_set(&f, RLOCK_ENOMEM, 0, "another one");
    rl_line_fail(&p.line, &f, 7);
    EXPECT_INT(q.failed, 1);
    EXPECT_STR(q.why.text, "broken");
    EXPECT_STR(p.line.fault.text, "broken");
    EXPECT_INT(p.now_us, 7);
    close_phone(&p);
}

/* As who reads an answer that fits its question by its type only. */
static void find_odd(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    q->on->line.odd = true;
    answered(s, r, now_us);
}

TEST(line, fails_behind_an_answer_that_is_found_odd)
{
    phone p;
    question q[3];
    open_phone(&p, q, 3);
    q[1].slot.answered = find_odd;
    for (size_t i = 0; i < 3; i++)
        EXPECT(ask(&p, &q[i]));
    send_all(&p);
    EXPECT(hear(&p, ":1\r\n"));
    EXPECT(!hear(&p, ":2\r\n:3\r\n"));
    EXPECT(q[0].answered == 1 && q[1].answered == 1);
    EXPECT(q[1].failed == 0);
    EXPECT(q[2].answered == 0 && q[2].failed == 1 && q[2].whole);
    EXPECT_CONTAINS(q[2].why.text, "mixed up answers");
    close_phone(&p);
}

TEST(line, a_failed_one_takes_no_command_and_no_bytes)
{
    phone p;
    question q;
    const char *bytes;
    open_phone(&p, &q, 1);
    break_line(&p);
    EXPECT(!ask(&p, &q));
    EXPECT(!q.slot.line && q.failed == 0);
    EXPECT_INT(rl_line_bytes(&p.line, &bytes), 0);
    EXPECT(!hear(&p, ":1\r\n"));
    EXPECT_INT(q.answered, 0);
    close_phone(&p);
}

TEST(line, an_answer_may_ask_the_next_question)
{
    phone p;
    question q[2];
    open_phone(&p, q, 2);
    q[0].then = &q[1];
    EXPECT(ask(&p, &q[0]));
    send_all(&p);
    EXPECT(hear(&p, ":1\r\n"));
    EXPECT(q[0].then_pushed && q[1].answered == 0);
    send_all(&p);
    EXPECT(hear(&p, ":2\r\n"));
    EXPECT_INT(q[1].number, 2);
    close_phone(&p);
}

/* What came together with the answer is not for what was asked after it. */
TEST(line, a_question_asked_by_an_answer_is_not_answered_by_older_bytes)
{
    phone p;
    question q[2];
    open_phone(&p, q, 2);
    q[0].then = &q[1];
    EXPECT(ask(&p, &q[0]));
    send_all(&p);
    EXPECT(!hear(&p, ":1\r\n:2\r\n"));
    EXPECT(q[1].answered == 0 && q[1].failed == 1 && !q[1].whole);
    close_phone(&p);
}

TEST(line, a_question_asked_by_a_failure_is_not_taken)
{
    phone p;
    question q[2];
    open_phone(&p, q, 2);
    q[0].then = &q[1];
    EXPECT(ask(&p, &q[0]));
    break_line(&p);
    EXPECT(q[0].failed == 1 && !q[0].then_pushed);
    EXPECT(q[1].failed == 0 && !q[1].slot.line);
    close_phone(&p);
}

TEST(line, a_command_that_lacks_memory_leaves_no_trace)
{
    static char large[100000];
    phone p;
    question q[2];
    const char *bytes;
    open_phone(&p, q, 2);
    EXPECT(ask(&p, &q[0]));
    rl_line_sent(&p.line, 5);
    put_ping(&p);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rl_put_bytes(rl_line_begin(&p.line), large, sizeof large);
    shim_clear(shim_here());
    EXPECT(!rl_line_push(&p.line, &q[1].slot));
    EXPECT(!p.line.failed && !q[1].slot.line);
    EXPECT_INT(rl_line_bytes(&p.line, &bytes), PING_LEN - 5);
    EXPECT(ask(&p, &q[1]));
    EXPECT_INT(rl_line_bytes(&p.line, &bytes), 2 * PING_LEN - 5);
    close_phone(&p);
}

static void expect_timed_out(size_t unsent, const char *text)
{
    phone p;
    question q;
    const char *bytes;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    rl_line_sent(&p.line, rl_line_bytes(&p.line, &bytes) - unsent);
    rl_line_time_out(&p.line, 7);
    EXPECT(q.failed == 1 && q.why.sys_errno == ETIMEDOUT && q.why.transient);
    EXPECT_STR(q.why.text, text);
    close_phone(&p);
}

TEST_CASE(line, without_a_reply_in_time_it_says_so,
          expect_timed_out(0, "no reply: Connection timed out"))
TEST_CASE(line, what_cannot_be_sent_in_time_is_told_as_such,
          expect_timed_out(1, "cannot send: Connection timed out"))

/* From the end, as the kernel has taken what is in front. */
TEST(line, what_has_not_left_yet_can_be_dropped)
{
    phone p;
    question q[3];
    rl_fault f;
    rl_bytes taken = {0};
    open_phone(&p, q, 3);
    for (int i = 0; i < 3; i++)
        EXPECT(ask(&p, &q[i]));
    rl_line_take(&p.line, &taken);
    rl_fault_set(&f, RLOCK_EIO, ETIMEDOUT, "broken");
    rl_line_drop(&p.line, &f, PING_LEN + 1, 7);
    EXPECT(q[0].failed == 0 && q[1].failed == 1 && q[2].failed == 1);
    EXPECT(!q[1].whole && !q[1].slot.line && !q[2].whole);
    EXPECT_INT(p.line.pending, 1);
    EXPECT(hear(&p, ":1\r\n"));
    EXPECT(q[0].answered == 1 && p.line.pending == 0);
    rl_bytes_fini(&taken);
    close_phone(&p);
}

/* The first is told once, however the second one comes. */
TEST(line, a_reply_that_is_half_there_is_no_second_one)
{
    phone p;
    question q[2];
    open_phone(&p, q, 2);
    EXPECT(ask(&p, &q[0]) && ask(&p, &q[1]));
    send_all(&p);
    EXPECT(hear(&p, ":1\r\n*2\r\n:2\r\n"));
    EXPECT(q[0].answered == 1 && q[1].answered == 0);
    EXPECT(hear(&p, ":3\r\n"));
    EXPECT_INT(q[1].answered, 1);
    close_phone(&p);
}

TEST(line, input_that_lacks_memory_fails_it)
{
    phone p;
    question q;
    open_phone(&p, &q, 1);
    EXPECT(ask(&p, &q));
    send_all(&p);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    static char chunk[8000] = "$9000\r\n";
    bool heard = rl_line_feed(&p.line, chunk, sizeof chunk, 5);
    shim_clear(shim_here());
#ifndef SHIM_SPARES_HIREDIS
    EXPECT(!heard && q.failed == 1);
    EXPECT_INT(q.why.status, RLOCK_ENOMEM);
    EXPECT(q.why.transient); /* it is the line that ends */
#endif
    (void)heard;
    close_phone(&p);
}

static void note_push(void *arg, const rl_reply *r)
{
    phone *p = arg;
    p->pushed++;
    p->pushed_number = r->top.integer;
}

TEST(line, a_subscriber_gets_what_nobody_asked_for)
{
    phone p;
    open_phone(&p, NULL, 0);
    p.line.pushed = note_push;
    p.line.arg = &p;
    put_ping(&p);
    EXPECT(rl_line_push(&p.line, NULL));
    send_all(&p);
    EXPECT(hear(&p, ":1\r\n:2\r\n"));
    EXPECT(p.pushed == 2 && p.pushed_number == 2);
    EXPECT_INT(p.line.pending, 0);
    close_phone(&p);
}

TEST(line, a_subscriber_that_asks_gets_its_answer)
{
    phone p;
    question q;
    open_phone(&p, &q, 1);
    p.line.pushed = note_push;
    p.line.arg = &p;
    EXPECT(ask(&p, &q));
    EXPECT(hear(&p, ":1\r\n")); /* it cannot be the answer yet */
    send_all(&p);
    EXPECT(hear(&p, ":2\r\n:3\r\n"));
    EXPECT(q.answered == 1 && q.number == 2);
    EXPECT(p.pushed == 2 && p.pushed_number == 3);
    close_phone(&p);
}
