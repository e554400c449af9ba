/* Which master is in office, of what Sentinels say: epochs, and addresses. */
#include "route/sentinel_choice.h"

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
    rl_ruling ruling = rl_office_judge(o, said, n);
    EXPECT_INT(o->master.nth, nth + (ruling == RL_OFFICE_CHANGES));
    return o->master.port;
}

/* The same, and in a dispute the master in office is there, or is not. */
#define LOOK(o, there, ...)                                                    \
    look(o, there, (rl_statement[]){__VA_ARGS__},                              \
         sizeof((rl_statement[]){__VA_ARGS__}) / sizeof(rl_statement))

static int look(rl_office *o, bool there, const rl_statement *said, size_t n)
{
    if (rl_office_judge(o, said, n) == RL_OFFICE_DISPUTED)
        rl_office_look(o, there);
    return o->master.port;
}

/* It knows of other Sentinels. */
static rl_statement among(rl_statement s, int others)
{
    s.others = others;
    return s;
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

TEST(office, of_as_many_on_either_side_the_master_in_office)
{
    rl_office o = {0};
    EXPECT_INT(AFTER(&o, says(1, 2)), 1);
    EXPECT_INT(AFTER(&o, says(2, 2), says(1, 2)), 1);
    EXPECT_INT(AFTER(&o, says(1, 2), says(2, 2)), 1);
}

/* They are not of one kind, and never will be. */
TEST(office, one_with_an_epoch_of_its_own_does_not_hold_back_the_others)
{
    rl_office o = {0};
    EXPECT_INT(AFTER(&o, says(1, 1), says(1, 4), says(1, 1)), 1);
    EXPECT_INT(o.epoch, 1);
    EXPECT_INT(AFTER(&o, says(2, 2), says(1, 4), says(2, 2)), 2);
}

TEST(office, whom_most_name_is_not_left_for_what_one_says)
{
    rl_office o = {0};
    EXPECT_INT(AFTER(&o, says(2, 9), says(1, 7), says(1, 7)), 1);
    EXPECT_INT(AFTER(&o, says(2, 9), says(1, 7), says(1, 7)), 1);
    EXPECT_INT(AFTER(&o, says(2, 9), leads(1, 7), says(1, 7)), 2);
}

/* It has not asked those who would say what it says. */
TEST(office, two_of_five_are_not_most_of_them)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    EXPECT_INT(AFTER(&o, among(says(1, 7), 4), among(says(1, 7), 4),
                     among(says(2, 8), 4)),
               2);
}

/* --- eras ----------------------------------------------------------------- */

TEST(office, a_new_era_begins_when_most_say_so_three_times_and_it_is_gone)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 1; i < RL_ERA_ASKINGS; i++)
        EXPECT_INT(LOOK(&o, false, says(2, 0), says(2, 0), says(1, 7)), 1);
    EXPECT_INT(LOOK(&o, false, says(2, 0), says(2, 0), says(1, 7)), 2);
    EXPECT(o.master.nth == 2 && o.epoch == 0);
}

TEST(office, a_master_that_is_there_stays_in_office_whatever_they_say)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, true, says(2, 0), says(2, 0), says(2, 0)), 1);
    for (int i = 1; i < RL_ERA_ASKINGS; i++)
        EXPECT_INT(LOOK(&o, false, says(2, 0)), 1);
    EXPECT_INT(LOOK(&o, true, says(2, 0)), 1);
    EXPECT_INT(LOOK(&o, false, says(2, 0)), 1);
}

TEST(office, a_half_is_not_most_of_them)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, false, says(2, 0), says(1, 7)), 1);
    EXPECT_INT(rl_office_judge(&o, (rl_statement[]){says(2, 0), says(3, 0)}, 2),
               RL_OFFICE_STAYS);
}

/* It may name one that was replaced, which grants on. */
TEST(office, one_that_is_cut_off_from_the_others_it_knows_begins_no_era)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, false, among(says(2, 3), 2)), 1);
    for (int i = 1; i < RL_ERA_ASKINGS; i++)
        LOOK(&o, false, among(says(2, 3), 2), among(says(2, 3), 2));
    EXPECT_INT(LOOK(&o, false, among(says(2, 3), 2), among(says(2, 3), 2)), 2);
}

TEST(office, the_count_begins_anew_when_they_name_yet_another_one)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, false, says(2 + i % 2, 0)), 1);
    for (int i = 0; i < 10; i++) {
        EXPECT_INT(LOOK(&o, false, says(2, 0)), 1);
        EXPECT_INT(LOOK(&o, false, says(1, 7)), 1);
    }
}

TEST(office, who_leads_a_failover_begins_no_era)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, false, leads(2, 6), leads(2, 6)), 1);
}

/* One that has not heard of it yet, or never will. */
TEST(office, an_epoch_of_an_era_before_counts_only_when_most_say_it)
{
    rl_office o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < RL_ERA_ASKINGS; i++)
        LOOK(&o, false, says(2, 0), says(2, 0));
    EXPECT_INT(o.master.port, 2);
    EXPECT_INT(LOOK(&o, false, says(1, 7), says(2, 0), says(2, 0)), 2);
    EXPECT_INT(LOOK(&o, false, says(1, 7), says(3, 1), says(2, 0)), 2);
    EXPECT_INT(LOOK(&o, false, says(1, 7), says(3, 1), says(3, 1)), 3);
    EXPECT_INT(o.epoch, 1);
    EXPECT_INT(LOOK(&o, false, says(1, 7), says(3, 1)), 3);
    EXPECT_INT(LOOK(&o, false, says(4, 8), says(3, 1)), 4);
}

TEST(office, who_names_another_master_than_the_one_in_office_dissents)
{
    rl_office o = {0};
    rl_statement all[] = {says(1, 7), leads(2, 9), says(3, 6), says(4, 6)};
    AFTER(&o, says(1, 7));
    EXPECT(!rl_office_dissenter(&o, all, 2));
    EXPECT(rl_office_dissenter(&o, all, 4) == &all[2]);
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
    EXPECT(s.passing && s.others == 0);
}

TEST(office, reads_how_many_others_a_sentinel_knows_of)
{
    const char *const words[] = {
        "ip", "h", "port", "1", "config-epoch", "0", "num-other-sentinels",
        "4"};
    static rl_table t;
    rl_statement s;
    list(&t, 8, words);
    EXPECT(rl_office_read(&t, &s) && s.others == 4);
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
