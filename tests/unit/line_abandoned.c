/* One slot is given up, on a line that others wait on. */
#include "wire/line.h"

#include <errno.h>

#include "shim.h"
#include "test.h"

#define PING "*1\r\n$4\r\nPING\r\n"
#define LEN  (sizeof PING - 1)

typedef struct question {
    rl_slot slot;
    int answered, failed; /* how often */
    bool whole;
    long long number;
    rl_fault why;
} question;

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    (void)now_us;
    q->answered++;
    q->number = r->top.integer;
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    question *q = RL_CONTAINER(s, question, slot);
    (void)now_us;
    q->failed++;
    q->whole = whole;
    q->why = *why;
}

/* Three that ask; so many bytes have been sent. */
static void open_line(rl_line *l, question q[3], size_t sent)
{
    EXPECT(rl_line_init(l));
    for (int i = 0; i < 3; i++) {
        q[i] =
            (question){.slot = {.answered = answered,
                                .failed = failed,
                                .replies = RL_REPLY_BIT(REDIS_REPLY_INTEGER)}};
        rl_put_raw(rl_line_begin(l), PING, LEN);
        EXPECT(rl_line_push(l, &q[i].slot));
    }
    rl_line_sent(l, sent);
}

static void close_line(rl_line *l)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, ETIMEDOUT, "broken");
    rl_line_fail(l, &f, 7);
    rl_line_fini(l);
}

static bool hear(rl_line *l, const char *text)
{
    return rl_line_feed(l, text, strlen(text), 5);
}

/* Which one of the three is given up? */
static void expect_others_answered(int given_up)
{
    rl_line l;
    question q[3];
    open_line(&l, q, 3 * LEN);
    rl_line_abandon(&l, &q[given_up].slot, 7);
    EXPECT(q[given_up].failed == 1 && q[given_up].whole);
    EXPECT_INT(q[given_up].why.sys_errno, ETIMEDOUT);
    EXPECT_STR(q[given_up].why.text, "no reply: Connection timed out");
    EXPECT(!q[given_up].slot.line && l.retired && l.pending == 3);
    EXPECT(hear(&l, ":0\r\n:1\r\n:2\r\n"));
    for (int i = 0; i < 3; i++) {
        EXPECT(q[i].failed == (i == given_up));
        EXPECT(q[i].answered == (i != given_up));
        EXPECT(i == given_up || q[i].number == i);
    }
    EXPECT(!l.failed && l.pending == 0);
    close_line(&l);
}

TEST_CASE(line_abandoned, the_reply_of_the_first_is_nobodys,
          expect_others_answered(0))
TEST_CASE(line_abandoned, the_reply_of_one_between_is_nobodys,
          expect_others_answered(1))
TEST_CASE(line_abandoned, the_reply_of_the_last_is_nobodys,
          expect_others_answered(2))

TEST(line_abandoned, a_reply_that_is_half_there_is_nobodys)
{
    rl_line l;
    question q[3];
    open_line(&l, q, 3 * LEN);
    EXPECT(hear(&l, ":1"));
    rl_line_abandon(&l, &q[0].slot, 7);
    EXPECT(hear(&l, "0\r\n:1\r\n"));
    EXPECT(q[0].answered == 0 && q[1].answered == 1 && q[1].number == 1);
    close_line(&l);
}

TEST(line_abandoned, its_reply_still_has_to_be_one_that_fits)
{
    rl_line l;
    question q[3];
    open_line(&l, q, 3 * LEN);
    rl_line_abandon(&l, &q[0].slot, 7);
    EXPECT(!hear(&l, "+odd\r\n"));
    EXPECT(q[0].failed == 1 && q[1].failed == 1 && q[1].whole);
    close_line(&l);
}

/* The kernel has a part of the second, which cannot be executed any more; what
   is behind it cannot be, either. */
TEST(line_abandoned, what_was_not_sent_is_not_sent_any_more)
{
    rl_line l;
    question q[3];
    const char *bytes;
    open_line(&l, q, LEN + 3);
    rl_line_abandon(&l, &q[1].slot, 7);
    EXPECT_STR(q[1].why.text, "cannot send: Connection timed out");
    EXPECT(q[1].failed == 1 && !q[1].whole && q[2].failed == 1 && !q[2].whole);
    EXPECT_INT(rl_line_bytes(&l, &bytes), 0);
    EXPECT(l.retired && q[0].failed == 0);
    EXPECT(hear(&l, ":1\r\n"));
    EXPECT_INT(q[0].answered, 1);
    close_line(&l);
}

/* Otherwise its reply would be taken for the next one's. */
TEST(line_abandoned, without_memory_the_line_fails)
{
    rl_line l;
    question q[3];
    open_line(&l, q, 3 * LEN);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rl_line_abandon(&l, &q[1].slot, 7);
    shim_clear(shim_here());
    for (int i = 0; i < 3; i++)
        EXPECT(q[i].failed == 1 && q[i].whole);
    EXPECT(l.failed);
    close_line(&l);
}

TEST(line_abandoned, what_stays_unanswered_ends_with_the_line)
{
    rl_line l;
    question q[3];
    open_line(&l, q, 3 * LEN);
    rl_line_abandon(&l, &q[2].slot, 7);
    close_line(&l);
    EXPECT(q[0].failed == 1 && q[1].failed == 1 && q[2].failed == 1);
}

/* Behind "NOSCRIPT" the one that is answered would say more, say; the server
   would take that for the rest of the command that it has a part of. */
TEST(line_abandoned, nothing_is_said_behind_a_part_of_a_command)
{
    rl_line l;
    question q[3];
    const char *bytes;
    open_line(&l, q, LEN + 3);
    rl_line_abandon(&l, &q[1].slot, 7);
    EXPECT_INT(rl_line_bytes(&l, &bytes), 0);
    EXPECT(!rl_line_speaks(&l));
    rl_put_raw(rl_line_begin(&l), PING, LEN);
    EXPECT(!rl_line_push(&l, &q[2].slot));
    EXPECT_INT(rl_line_bytes(&l, &bytes), 0);
    EXPECT_STR(l.fault.text, "cannot send: Connection timed out");
    EXPECT(hear(&l, ":0\r\n"));
    EXPECT(q[0].answered == 1 && q[1].failed == 1 && !q[1].whole);
    EXPECT(rl_line_is_spent(&l));
    close_line(&l);
}

/* The pool looks for a reset, which tells of other connections, too. */
TEST(line_abandoned, a_line_that_ends_afterwards_says_of_what_and_when)
{
    rl_line l;
    question q[3];
    rl_fault reset;
    open_line(&l, q, LEN + 3);
    rl_line_abandon(&l, &q[1].slot, 7);
    EXPECT_INT(l.fault.sys_errno, ETIMEDOUT);
    rl_fault_set(&reset, RLOCK_EIO, ECONNRESET, "no reply: %s",
                 strerror(ECONNRESET));
    rl_line_fail(&l, &reset, 9);
    EXPECT(l.fault.sys_errno == ECONNRESET && l.failed_us == 9);
    EXPECT(q[0].failed == 1 && q[0].why.sys_errno == ECONNRESET);
    close_line(&l);
    EXPECT(l.fault.sys_errno == ECONNRESET && l.failed_us == 9);
}
