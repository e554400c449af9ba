/* Replies of any shape, as Sentinels give them, in a bounded table. */
#include "wire/table.h"

#include "test.h"
#include "wire/line.h"

typedef struct scene {
    rl_line line;
    rl_slot slot;
    int answers, failures;
    int type;
} scene;

static rl_table table;

static void answered(rl_slot *slot, const rl_reply *r, int64_t now_us)
{
    scene *s = RL_CONTAINER(slot, scene, slot);
    (void)now_us;
    s->answers++;
    s->type = r->top.type;
}

static void failed(rl_slot *slot, bool whole, const rl_fault *why,
                   int64_t now_us)
{
    (void)whole, (void)why, (void)now_us;
    RL_CONTAINER(slot, scene, slot)->failures++;
}

static void ask(scene *s, const char *reply)
{
    *s = (scene){.answers = 0};
    EXPECT(rl_line_init(&s->line));
    s->line.reply.table = &table;
    s->slot = (rl_slot){.answered = answered, .failed = failed};
    rl_put_raw(rl_line_begin(&s->line), "x", 1);
    EXPECT(rl_line_push(&s->line, &s->slot));
    rl_line_sent(&s->line, 1);
    rl_line_feed(&s->line, reply, strlen(reply), 0);
    rl_line_fini(&s->line);
}

TEST(table, has_a_list_of_names_and_values)
{
    scene s;
    ask(&s,
        "*6\r\n$2\r\nip\r\n$1\r\nh\r\n$4\r\nport\r\n:7\r\n$1\r\na\r\n$-1\r\n");
    EXPECT(s.answers == 1 && s.type == REDIS_REPLY_ARRAY);
    EXPECT_INT(table.count, 7);
    EXPECT_INT(table.cell[0].integer, 6);
    EXPECT_STR(rl_table_value(&table, 0, "ip"), "h");
    EXPECT_INT(table.cell[4].integer, 7);
    EXPECT(!rl_table_value(&table, 0, "a"));
    EXPECT(!rl_table_value(&table, 0, "h"));
}

TEST(table, has_lists_in_lists_in_their_order)
{
    scene s;
    ask(&s, "*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\na\r\n$1\r\nc\r\n");
    EXPECT_INT(s.answers, 1);
    EXPECT_INT(table.count, 7);
    EXPECT_STR(rl_table_value(&table, 1, "a"), "b");
    EXPECT_STR(rl_table_value(&table, 4, "a"), "c");
}

TEST(table, an_error_is_told_as_everywhere)
{
    scene s;
    ask(&s, "-ERR No such master\r\n");
    EXPECT(s.answers == 1 && s.type == REDIS_REPLY_ERROR);
}

TEST(table, what_is_nested_too_deeply_fails_the_line)
{
    scene s;
    ask(&s, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n");
    EXPECT(s.answers == 0 && s.failures == 1);
}

#define FOUR_DEEP "*1\r\n*1\r\n*1\r\n*1\r\n"

/* The first that has no place in the table is no array. */
static void expect_too_deep(const char *reply)
{
    scene s;
    ask(&s, FOUR_DEEP ":1\r\n");
    EXPECT_INT(s.answers, 1);
    ask(&s, reply);
    EXPECT(s.answers == 0 && s.failures == 1);
}

TEST_CASE(table, a_number_that_is_too_deep_fails_the_line,
          expect_too_deep(FOUR_DEEP "*1\r\n:1\r\n"))
TEST_CASE(table, a_text_that_is_too_deep_fails_the_line,
          expect_too_deep(FOUR_DEEP "*1\r\n$1\r\na\r\n"))
TEST_CASE(table, a_nil_that_is_too_deep_fails_the_line,
          expect_too_deep(FOUR_DEEP "*1\r\n$-1\r\n"))

TEST(table, what_is_more_than_it_holds_is_left_out)
{
    scene s;
    static char reply[8 * RL_TABLE_CELLS];
    int n = snprintf(reply, sizeof reply, "*%d\r\n", RL_TABLE_CELLS);
    for (int i = 0; i < RL_TABLE_CELLS; i++)
        n += snprintf(reply + n, sizeof reply - (size_t)n, ":1\r\n");
    ask(&s, reply);
    EXPECT(s.answers == 1 && s.failures == 0);
    EXPECT_INT(table.count, RL_TABLE_CELLS);
}

TEST(table, a_text_that_is_too_long_is_left_out)
{
    scene s;
    static char reply[RL_TABLE_TEXT + 100];
    int n = snprintf(reply, sizeof reply, "*2\r\n$%d\r\n", RL_TABLE_TEXT);
    memset(reply + n, 'x', RL_TABLE_TEXT);
    strcpy(reply + n + RL_TABLE_TEXT, "\r\n$1\r\na\r\n");
    ask(&s, reply);
    EXPECT(s.answers == 1 && table.count == 3);
    EXPECT(!table.cell[1].str);
    EXPECT_STR(table.cell[2].str, "a");
}

/* Of what was there before nothing is read. */
TEST(table, the_next_one_has_nothing_of_the_last)
{
    scene s;
    ask(&s, "*4\r\n$4\r\naaaa\r\n$1\r\nx\r\n$1\r\nn\r\n$1\r\nv\r\n");
    EXPECT_STR(rl_table_value(&table, 0, "n"), "v");
    ask(&s, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nn\r\n");
    EXPECT_INT(table.count, 4);
    EXPECT_STR(rl_table_value(&table, 0, "a"), "b");
    EXPECT(!rl_table_value(&table, 0, "n"));
}

TEST(table, a_value_stands_beside_its_name)
{
    scene s;
    ask(&s, "*2\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n*2\r\n$1\r\nc\r\n$1\r\nd\r\n");
    EXPECT(!rl_table_value(&table, 1, "c"));
    EXPECT_STR(rl_table_value(&table, 4, "c"), "d");
    ask(&s, "*2\r\n$1\r\na\r\n*1\r\n$1\r\nb\r\n");
    EXPECT(!rl_table_value(&table, 0, "a"));
    ask(&s, "*2\r\n*1\r\n$1\r\na\r\n$1\r\nb\r\n");
    EXPECT(!rl_table_value(&table, 1, "a"));
}
