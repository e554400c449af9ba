/* When a round is over. */
#include "op/rule.h"

#include "test.h"

/* One letter for each part. */
typedef struct round_of {
    rl_op op;
    rl_part *parts[RL_PARTS_MAX];
    rl_part part[RLOCK_RED_MAX];
} round_of;

/*
 * . waits   + ok   - failed   s slow   S slow, and then ok after all
 * z slow, and silent for longer than there is patience
 * n not due   u nobody waits for it   0 takes no part
 */
static void set_part(rl_part *x, char c)
{
    *x = (rl_part){.due = c != 'n',
                   .awaited = c != 'u',
                   .over = c == '+' || c == '-' || c == 'S',
                   .ok = c == '+' || c == 'S',
                   .slow = c == 's' || c == 'S' || c == 'z',
                   .silent = c == 'z'};
}

static rl_op *round_like(round_of *r, const char *parts, size_t quorum)
{
    rl_op_init(&r->op, r->parts);
    r->op.n = strlen(parts);
    r->op.quorum = quorum;
    for (size_t i = 0; i < r->op.n; i++) {
        set_part(&r->part[i], parts[i]);
        r->op.part[i] = parts[i] == '0' ? NULL : &r->part[i];
    }
    return &r->op;
}

static void expect_all(const char *parts, bool decided)
{
    round_of r;
    rl_op *op = round_like(&r, parts, 1);
    EXPECT_INT(rl_rule_is_decided(op), decided);
}

static void expect_early(const char *parts, bool decided)
{
    round_of r;
    rl_op *op = round_like(&r, parts, 2);
    op->early = true;
    EXPECT_INT(rl_rule_is_decided(op), decided);
}

#define ALL(name, parts, decided)                                              \
    TEST_CASE(rule, name, expect_all(parts, decided))
#define EARLY(name, parts, decided)                                            \
    TEST_CASE(rule, name, expect_early(parts, decided))

ALL(one_that_waits_is_waited_for, ".", false)
ALL(one_that_is_ok_is_enough, "+", true)
ALL(one_that_failed_is_enough, "-", true)
ALL(all_are_waited_for_though_one_is_ok, "+..", false)
ALL(all_are_waited_for_though_one_failed, "-+.", false)
ALL(all_have_answered, "-++", true)
ALL(what_is_not_due_is_not_waited_for, "+nn", true)
ALL(what_takes_no_part_is_not_waited_for, "+0", true)
ALL(what_is_slow_is_not_waited_for, "+s", true)
ALL(what_nobody_waits_for_is_not_waited_for, "+u", true)
ALL(a_round_of_none_is_over, "00", true)

EARLY(a_quorum_ends_it, "++.", true)
EARLY(less_than_a_quorum_does_not, "+..", false)
EARLY(it_goes_on_while_there_is_hope, "-+.", false)
EARLY(it_ends_without_hope, "--.", true)
EARLY(a_slow_one_is_waited_for_where_it_is_needed, "-+s", false)
EARLY(a_slow_one_is_not_waited_for_beside_a_quorum, "++s", true)
EARLY(one_without_an_answer_for_too_long_is_no_hope, "-z.", true)
EARLY(one_without_an_answer_leaves_the_others_hope, "z..", false)
EARLY(a_slow_one_that_answers_after_all_counts, "+S.", true)
EARLY(one_that_takes_no_part_is_no_hope, "0-.", true)
EARLY(it_ends_when_all_have_answered, "+--", true)
EARLY(one_that_is_not_due_is_no_hope, "n-.", true)

static size_t ok_of(const char *parts)
{
    round_of r;
    return rl_rule_ok(round_like(&r, parts, 1));
}

TEST(rule, those_that_are_ok_are_counted)
{
    EXPECT_INT(ok_of("+-."), 1);
    EXPECT_INT(ok_of("++S0"), 3);
    EXPECT_INT(ok_of("--s"), 0);
}

TEST(rule, what_is_left_of_an_earlier_round_does_not_count)
{
    round_of r;
    rl_op *op = round_like(&r, "nn.", 2);
    r.part[0].ok = r.part[1].ok = true;
    op->early = true;
    EXPECT_INT(rl_rule_ok(op), 0);
}

/* --- what is told of each ------------------------------------------------------ */

static void expect_told(const char *parts, unsigned closed, unsigned lacking,
                        unsigned late, const char *wanted)
{
    round_of r;
    char told[RL_SAYS_MAX];
    rl_op *op = round_like(&r, parts, 1);
    op->closed = closed;
    op->lacking = lacking;
    op->late = late;
    for (size_t i = 0; i < op->n; i++)
        if (parts[i] == '-' && op->part[i])
            strcpy(r.part[i].fault.text, "no way");
    rl_rule_tell(op, told);
    EXPECT_STR(told, wanted);
}

#define SAYS(name, parts, closed, lacking, late, wanted)                       \
    TEST_CASE(rule, name, expect_told(parts, closed, lacking, late, wanted))

SAYS(tells_of_nobody_nothing, "", 0, 0, 0, "")
SAYS(tells_of_one, "+", 0, 0, 0, "1 ok")
SAYS(tells_of_each_what_came, "+-.", 0, 0, 0,
     "1 ok; 2 no way; 3 no answer so far")
SAYS(tells_who_takes_no_part, "+0-", 0, 0, 0, "1 ok; 2 left out; 3 no way")
SAYS(tells_whose_client_is_closed, "+++", 2, 0, 0,
     "1 ok; 2 the client is closed; 3 ok")
SAYS(tells_for_whom_memory_lacked, "+++", 0, 4, 0,
     "1 ok; 2 ok; 3 out of memory")
SAYS(tells_who_is_late, "+++", 0, 0, 1, "1 no answer so far; 2 ok; 3 ok")
SAYS(tells_the_first_reason, "+++", 1, 3, 7,
     "1 the client is closed; 2 out of memory; 3 no answer so far")

TEST(rule, tells_who_was_not_asked)
{
    round_of r;
    char told[RL_SAYS_MAX];
    rl_rule_tell(round_like(&r, "+S-", 1), told);
    EXPECT_STR(told, "1 ok; 2 ok; 3 not asked");
}

/* What each says is cut, so that there is room for all: however long it is. */
static void expect_each_told(size_t len)
{
    round_of r;
    char told[RL_SAYS_MAX];
    rl_op *op = round_like(&r, "---", 1);
    for (size_t i = 0; i < 3; i++)
        memset(r.part[i].fault.text, 'x', len);
    rl_rule_tell(op, told);
    EXPECT(strlen(told) < RL_SAYS_MAX);
    EXPECT(strncmp(told, "1 xxx", 5) == 0 && strstr(told, "x; 2 xxx") &&
           strstr(told, "x; 3 xxx"));
}

TEST(rule, tells_something_of_each_of_many)
{
    const rl_part *any = NULL;
    for (size_t len = 3; len < sizeof any->fault.text; len++)
        expect_each_told(len);
}

/* --- what settles it ------------------------------------------------------ */

static bool if_all_have(const rl_op *op)
{
    return rl_rule_ok(op) == op->n;
}

static void expect_settled(const char *parts, bool decided)
{
    round_of r;
    rl_op *op = round_like(&r, parts, 2);
    op->settles = if_all_have;
    EXPECT_INT(rl_rule_is_decided(op), decided);
}

#define SETTLED(name, parts, decided)                                          \
    TEST_CASE(rule, name, expect_settled(parts, decided))

SETTLED(a_slow_one_that_settles_it_is_waited_for, "++s", false)
SETTLED(nobody_is_waited_for_when_it_is_settled, "+++", true)
SETTLED(one_that_is_silent_settles_nothing_any_more, "++z", true)
SETTLED(one_that_has_failed_settles_nothing_any_more, "++-", true)
SETTLED(without_a_quorum_it_is_no_matter_what_settles_it, "+z-", true)
