/* Which master is in office, of what Sentinels say: epochs, and addresses. */
#include "route/sentinel_choice.h"

#include "test.h"

static rl_sentinel_answer says(int port, int64_t epoch)
{
    return (rl_sentinel_answer){.place = {.host = "10.0.0.1", .port = port},
                                .epoch = epoch};
}

/* It leads a failover that is in progress. */
static rl_sentinel_answer leads(int port, int64_t epoch)
{
    rl_sentinel_answer s = says(port, epoch);
    s.passing = true;
    return s;
}

/* The port of the master in office after one asking. */
#define AFTER(o, ...)                                                          \
    after(o, (rl_sentinel_answer[]){__VA_ARGS__},                              \
          sizeof((rl_sentinel_answer[]){__VA_ARGS__}) /                        \
              sizeof(rl_sentinel_answer))

static int after(rl_sentinel_choice *o, const rl_sentinel_answer *said,
                 size_t n)
{
    uint64_t nth = o->master.nth;
    rl_ruling ruling = rl_sentinel_choice_judge(o, said, n);
    EXPECT_INT(o->master.nth, nth + (ruling == RL_CHOICE_CHANGES));
    return o->master.port;
}

/* The same, and in a dispute the master in office is there, or is not. */
#define LOOK(o, there, ...)                                                    \
    look(o, there, (rl_sentinel_answer[]){__VA_ARGS__},                        \
         sizeof((rl_sentinel_answer[]){__VA_ARGS__}) /                         \
             sizeof(rl_sentinel_answer))

static int look(rl_sentinel_choice *o, bool there,
                const rl_sentinel_answer *said, size_t n)
{
    if (rl_sentinel_choice_judge(o, said, n) == RL_CHOICE_DISPUTED)
        rl_sentinel_choice_look(o, there);
    return o->master.port;
}

/* It knows of other Sentinels. */
static rl_sentinel_answer among(rl_sentinel_answer s, int others)
{
    s.others = others;
    return s;
}

TEST(sentinel_choice, the_first_that_is_named_takes_it)
{
    rl_sentinel_choice o = {0};
    EXPECT_INT(AFTER(&o, says(1, 7)), 1);
    EXPECT_INT(o.master.nth, 1);
}

TEST(sentinel_choice, a_higher_epoch_counts)
{
    rl_sentinel_choice o = {0};
    EXPECT_INT(AFTER(&o, says(1, 7)), 1);
    EXPECT_INT(AFTER(&o, says(2, 8)), 2);
    EXPECT_INT(o.master.nth, 2);
}

TEST(sentinel_choice, a_lower_epoch_does_not)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    EXPECT_INT(AFTER(&o, says(2, 6)), 1);
    EXPECT_INT(o.master.nth, 1);
}

TEST(sentinel_choice, one_that_is_stale_is_no_change_wherever_it_stands)
{
    rl_sentinel_choice o = {0}, p = {0};
    EXPECT_INT(AFTER(&o, says(1, 1), says(2, 2), says(2, 2)), 2);
    EXPECT_INT(AFTER(&p, says(2, 2), says(2, 2), says(1, 1)), 2);
    EXPECT(o.master.nth == 1 && p.master.nth == 1);
}

TEST(sentinel_choice, the_same_master_is_no_change)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    EXPECT_INT(AFTER(&o, says(1, 9)), 1);
    EXPECT(o.master.nth == 1 && o.epoch == 9);
}

/* The leader of a failover has the epoch before it has the address. */
TEST(sentinel_choice,
     the_leader_of_a_failover_does_not_count_against_the_others)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    EXPECT_INT(AFTER(&o, leads(1, 8), says(1, 7), says(1, 7)), 1);
    EXPECT_INT(AFTER(&o, leads(1, 8), says(2, 8), says(1, 7)), 2);
    EXPECT_INT(AFTER(&o, leads(1, 8)), 2);
    EXPECT_INT(AFTER(&o, says(2, 8), says(2, 8), leads(1, 8)), 2);
    EXPECT_INT(o.master.nth, 2);
}

TEST(sentinel_choice, who_comes_during_a_failover_ends_up_with_the_new_master)
{
    rl_sentinel_choice o = {0}, p = {0};
    EXPECT_INT(AFTER(&o, leads(1, 2), says(2, 2)), 2);
    EXPECT_INT(AFTER(&p, leads(1, 2)), 1);
    EXPECT_INT(AFTER(&p, leads(1, 2), says(2, 2)), 2);
    EXPECT_INT(AFTER(&p, says(2, 2), says(2, 2)), 2);
}

TEST(sentinel_choice, one_that_was_left_comes_back)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 1));
    AFTER(&o, says(2, 2));
    EXPECT_INT(AFTER(&o, leads(2, 3)), 2);
    EXPECT_INT(AFTER(&o, leads(2, 3), says(1, 3)), 1);
    EXPECT_INT(AFTER(&o, says(1, 3), says(1, 3)), 1);
    EXPECT_INT(o.master.nth, 3);
}

TEST(sentinel_choice, of_two_that_are_settled_the_one_that_more_of_them_say)
{
    rl_sentinel_choice o = {0};
    EXPECT_INT(AFTER(&o, says(1, 2), says(2, 2), says(2, 2)), 2);
}

TEST(sentinel_choice, of_as_many_on_either_side_the_master_in_office)
{
    rl_sentinel_choice o = {0};
    EXPECT_INT(AFTER(&o, says(1, 2)), 1);
    EXPECT_INT(AFTER(&o, says(2, 2), says(1, 2)), 1);
    EXPECT_INT(AFTER(&o, says(1, 2), says(2, 2)), 1);
}

/* They are not of one kind, and never will be. */
TEST(sentinel_choice,
     one_with_an_epoch_of_its_own_does_not_hold_back_the_others)
{
    rl_sentinel_choice o = {0};
    EXPECT_INT(AFTER(&o, says(1, 1), says(1, 4), says(1, 1)), 1);
    EXPECT_INT(o.epoch, 1);
    EXPECT_INT(AFTER(&o, says(2, 2), says(1, 4), says(2, 2)), 2);
}

TEST(sentinel_choice, whom_most_name_is_not_left_for_what_one_says)
{
    rl_sentinel_choice o = {0};
    EXPECT_INT(AFTER(&o, says(2, 9), says(1, 7), says(1, 7)), 1);
    EXPECT_INT(AFTER(&o, says(2, 9), says(1, 7), says(1, 7)), 1);
    EXPECT_INT(AFTER(&o, says(2, 9), leads(1, 7), says(1, 7)), 2);
}

/* It has not asked those who would say what it says. */
/* It names the new master, before the others do, with an epoch of its own. */
TEST(sentinel_choice, an_epoch_that_one_says_holds_no_later_failover_back)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 1), says(1, 1), says(1, 1));
    EXPECT_INT(AFTER(&o, says(1, 1), says(2, 2), says(2, 9)), 2);
    EXPECT_INT(AFTER(&o, says(2, 2), says(2, 2), says(2, 9)), 2);
    EXPECT_INT(AFTER(&o, says(3, 3), says(3, 3), says(2, 9)), 3);
    EXPECT_INT(o.master.nth, 3);
}

/* Two of five may have been cut off, and be behind. */
TEST(sentinel_choice, an_epoch_that_some_say_stays_until_most_say_another_one)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 5));
    AFTER(&o, among(says(1, 3), 4), among(says(1, 3), 4));
    EXPECT_INT(AFTER(&o, among(says(2, 4), 4), among(says(2, 4), 4)), 1);
}

TEST(sentinel_choice, two_of_five_are_not_most_of_them)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    EXPECT_INT(AFTER(&o, among(says(1, 7), 4), among(says(1, 7), 4),
                     among(says(2, 8), 4)),
               2);
}

/* --- eras ----------------------------------------------------------------- */

TEST(sentinel_choice,
     a_new_era_begins_when_most_say_so_three_times_and_it_is_gone)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 1; i < RL_ERA_ASKINGS; i++)
        EXPECT_INT(LOOK(&o, false, says(2, 0), says(2, 0), says(1, 7)), 1);
    EXPECT_INT(LOOK(&o, false, says(2, 0), says(2, 0), says(1, 7)), 2);
    EXPECT(o.master.nth == 2 && o.epoch == 0);
}

TEST(sentinel_choice, a_master_that_is_there_stays_in_office_whatever_they_say)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, true, says(2, 0), says(2, 0), says(2, 0)), 1);
    for (int i = 1; i < RL_ERA_ASKINGS; i++)
        EXPECT_INT(LOOK(&o, false, says(2, 0)), 1);
    EXPECT_INT(LOOK(&o, true, says(2, 0)), 1);
    EXPECT_INT(LOOK(&o, false, says(2, 0)), 1);
}

TEST(sentinel_choice, a_half_is_not_most_of_them)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, false, says(2, 0), says(1, 7)), 1);
    EXPECT_INT(rl_sentinel_choice_judge(
                   &o, (rl_sentinel_answer[]){says(2, 0), says(3, 0)}, 2),
               RL_CHOICE_STAYS);
}

/* It may name one that was replaced, which grants on. */
TEST(sentinel_choice,
     one_that_is_cut_off_from_the_others_it_knows_begins_no_era)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, false, among(says(2, 3), 2)), 1);
    for (int i = 1; i < RL_ERA_ASKINGS; i++)
        LOOK(&o, false, among(says(2, 3), 2), among(says(2, 3), 2));
    EXPECT_INT(LOOK(&o, false, among(says(2, 3), 2), among(says(2, 3), 2)), 2);
}

TEST(sentinel_choice, the_count_begins_anew_when_they_name_yet_another_one)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, false, says(2 + i % 2, 0)), 1);
    for (int i = 0; i < 10; i++) {
        EXPECT_INT(LOOK(&o, false, says(2, 0)), 1);
        EXPECT_INT(LOOK(&o, false, says(1, 7)), 1);
    }
}

TEST(sentinel_choice, who_leads_a_failover_begins_no_era)
{
    rl_sentinel_choice o = {0};
    AFTER(&o, says(1, 7));
    for (int i = 0; i < 10; i++)
        EXPECT_INT(LOOK(&o, false, leads(2, 6), leads(2, 6)), 1);
}

/* One that has not heard of it yet, or never will. */
TEST(sentinel_choice, an_epoch_of_an_era_before_counts_only_when_most_say_it)
{
    rl_sentinel_choice o = {0};
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

TEST(sentinel_choice, who_names_another_master_than_the_one_in_office_dissents)
{
    rl_sentinel_choice o = {0};
    rl_sentinel_answer all[] = {says(1, 7), leads(2, 9), says(3, 6),
                                says(4, 6)};
    AFTER(&o, says(1, 7));
    EXPECT(!rl_sentinel_choice_dissenter(&o, all, 2));
    EXPECT(rl_sentinel_choice_dissenter(&o, all, 4) == &all[2]);
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
                  const char *flags, rl_sentinel_answer *s)
{
    const char *const words[] = {"ip",           ip,    "port",  port,
                                 "config-epoch", epoch, "flags", flags};
    static rl_table t;
    list(&t, 8, words);
    return rl_sentinel_choice_read(&t, s);
}

TEST(sentinel_choice, reads_a_place_its_epoch_and_whether_it_is_passing)
{
    rl_sentinel_answer s;
    EXPECT(reads("10.0.0.9", "6379", "12", "master", &s));
    EXPECT_STR(s.place.host, "10.0.0.9");
    EXPECT(s.place.port == 6379 && s.epoch == 12 && !s.passing);
    EXPECT(reads("h", "1", "0", "o_down,master,failover_in_progress", &s));
    EXPECT(s.passing && s.others == 0);
}

TEST(sentinel_choice, reads_how_many_others_a_sentinel_knows_of)
{
    const char *const words[] = {
        "ip", "h", "port", "1", "config-epoch", "0", "num-other-sentinels",
        "4"};
    static rl_table t;
    rl_sentinel_answer s;
    list(&t, 8, words);
    EXPECT(rl_sentinel_choice_read(&t, &s) && s.others == 4);
}

TEST(sentinel_choice, refuses_what_is_no_place)
{
    rl_sentinel_answer s;
    EXPECT(!reads("", "6379", "1", "", &s));
    EXPECT(!reads("h", "0", "1", "", &s));
    EXPECT(!reads("h", "65536", "1", "", &s));
    EXPECT(!reads("h", "-1", "1", "", &s));
    EXPECT(!reads("h", "12x", "1", "", &s));
    EXPECT(!reads("h", "12", "", "", &s));
    EXPECT(!reads("h", "12", "99999999999999999999", "", &s));
}

TEST(sentinel_choice, a_list_without_an_end_is_read_no_further)
{
    const char *const words[] = {"ip", "h", "port"};
    static rl_table t;
    rl_place p;
    list(&t, 3, words);
    EXPECT(!rl_sentinel_choice_read_place(&t, 0, &p));
}
