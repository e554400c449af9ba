/* Which master is in office, of what Sentinels say: epochs, and addresses. */
#include "route/office.h"

#include "test.h"

static rl_statement says(int port, int64_t epoch)
{
    return (rl_statement){.place = {.host = "10.0.0.1", .port = port},
                          .epoch = epoch};
}

/* It leads a failover that is in progress. */
static rl_statement leads(int port, int64_t epoch)
{
    rl_statement s = says(port, epoch);
    s.passing = true;
    return s;
}

/* The port of the master in office after one asking. */
#define AFTER(o, ...)                                                          \
    after(o, (rl_statement[]){__VA_ARGS__},                                    \
          sizeof((rl_statement[]){__VA_ARGS__}) / sizeof(rl_statement))

static int after(rl_office *o, const rl_statement *said, size_t n)
{
    uint64_t nth = o->master.nth;
    bool changed = rl_office_judge(o, said, n);
    EXPECT_INT(o->master.nth, nth + changed);
    return o->master.port;
}

TEST(office, the_first_that_is_named_takes_it)
{
    rl_office o = {0};
    EXPECT_INT(AFTER(&o, says(1, 7)), 1);
    EXPECT_INT(o.master.nth, 1);
}

TEST(office, a_higher_epoch_counts)
{
    rl_office o = {0};
    EXPECT_INT(AFTER(&o, says(1, 7)), 1);
    EXPECT_INT(AFTER(&o, says(2, 8)), 2);
    EXPECT_INT(o.master.nth, 2);
}

TEST(office, a_lower_epoch_does_not)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    EXPECT_INT(AFTER(&o, says(2, 6)), 1);
    EXPECT_INT(o.master.nth, 1);
}

TEST(office, one_that_is_stale_is_no_change_wherever_it_stands)
{
    rl_office o = {0}, p = {0};
    EXPECT_INT(AFTER(&o, says(1, 1), says(2, 2), says(2, 2)), 2);
    EXPECT_INT(AFTER(&p, says(2, 2), says(2, 2), says(1, 1)), 2);
    EXPECT(o.master.nth == 1 && p.master.nth == 1);
}

TEST(office, the_same_master_is_no_change)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    EXPECT_INT(AFTER(&o, says(1, 9)), 1);
    EXPECT(o.master.nth == 1 && o.epoch == 9);
}

/* The leader of a failover has the epoch before it has the address. */
TEST(office, the_leader_of_a_failover_does_not_count_against_the_others)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    EXPECT_INT(AFTER(&o, leads(1, 8), says(1, 7), says(1, 7)), 1);
    EXPECT_INT(AFTER(&o, leads(1, 8), says(2, 8), says(1, 7)), 2);
    EXPECT_INT(AFTER(&o, leads(1, 8)), 2);
    EXPECT_INT(AFTER(&o, says(2, 8), says(2, 8), leads(1, 8)), 2);
    EXPECT_INT(o.master.nth, 2);
}

TEST(office, who_comes_during_a_failover_ends_up_with_the_new_master)
{
    rl_office o = {0}, p = {0};
    EXPECT_INT(AFTER(&o, leads(1, 2), says(2, 2)), 2);
    EXPECT_INT(AFTER(&p, leads(1, 2)), 1);
    EXPECT_INT(AFTER(&p, leads(1, 2), says(2, 2)), 2);
    EXPECT_INT(AFTER(&p, says(2, 2), says(2, 2)), 2);
}

TEST(office, one_that_was_left_comes_back)
{
    rl_office o = {0};
    AFTER(&o, says(1, 1));
    AFTER(&o, says(2, 2));
    EXPECT_INT(AFTER(&o, leads(2, 3)), 2);
    EXPECT_INT(AFTER(&o, leads(2, 3), says(1, 3)), 1);
    EXPECT_INT(AFTER(&o, says(1, 3), says(1, 3)), 1);
    EXPECT_INT(o.master.nth, 3);
}

TEST(office, of_two_that_are_settled_the_one_that_more_of_them_say)
{
    rl_office o = {0};
    EXPECT_INT(AFTER(&o, says(1, 2), says(2, 2), says(2, 2)), 2);
}

/* --- what they say -------------------------------------------------------- */

/* In place: a table's texts are pointed at from its cells. */
static void list(rl_table *t, size_t n, const char *const *words)
{
    *t = (rl_table){0};
    rl_table_add(t, REDIS_REPLY_ARRAY, 0)->integer = (long long)n;
    for (size_t i = 0; i < n; i++)
        EXPECT(rl_table_add_text(t, REDIS_REPLY_STRING, 1, words[i],
                                 strlen(words[i])));
}

static bool reads(const char *ip, const char *port, const char *epoch,
                  const char *flags, rl_statement *s)
{
    const char *const words[] = {"ip",           ip,    "port",  port,
                                 "config-epoch", epoch, "flags", flags};
    static rl_table t;
    list(&t, 8, words);
    return rl_office_read(&t, s);
}

TEST(office, reads_a_place_its_epoch_and_whether_it_is_passing)
{
    rl_statement s;
    EXPECT(reads("10.0.0.9", "6379", "12", "master", &s));
    EXPECT_STR(s.place.host, "10.0.0.9");
    EXPECT(s.place.port == 6379 && s.epoch == 12 && !s.passing);
    EXPECT(reads("h", "1", "0", "o_down,master,failover_in_progress", &s));
    EXPECT(s.passing);
}

TEST(office, refuses_what_is_no_place)
{
    rl_statement s;
    EXPECT(!reads("", "6379", "1", "", &s));
    EXPECT(!reads("h", "0", "1", "", &s));
    EXPECT(!reads("h", "65536", "1", "", &s));
    EXPECT(!reads("h", "-1", "1", "", &s));
    EXPECT(!reads("h", "12x", "1", "", &s));
    EXPECT(!reads("h", "12", "", "", &s));
    EXPECT(!reads("h", "12", "99999999999999999999", "", &s));
}

TEST(office, a_list_without_an_end_is_read_no_further)
{
    const char *const words[] = {"ip", "h", "port"};
    static rl_table t;
    rl_place p;
    list(&t, 3, words);
    EXPECT(!rl_office_read_place(&t, 0, &p));
}
