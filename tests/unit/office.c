/* Which master is in office, of what Sentinels say: epochs, and addresses. */
#include "route/office.h"

#include "test.h"

static rl_place at(int port)
{
    return (rl_place){.host = "10.0.0.1", .port = port};
}

/* The port of the master in office after that was said. */
static int after(rl_office *o, int port, int64_t epoch)
{
    rl_place said = at(port), now;
    rl_office_hear(o, &said, epoch, &now);
    return o->master.port;
}

TEST(office, the_first_that_is_named_takes_it)
{
    rl_office o = {0};
    rl_place said = at(1), now;
    EXPECT(rl_office_hear(&o, &said, 7, &now));
    EXPECT(now.nth == 1 && now.port == 1);
}

TEST(office, a_higher_epoch_counts)
{
    rl_office o = {0};
    EXPECT_INT(after(&o, 1, 7), 1);
    EXPECT_INT(after(&o, 2, 8), 2);
    EXPECT_INT(o.master.nth, 2);
    EXPECT_INT(o.left.port, 1);
}

TEST(office, a_lower_epoch_does_not)
{
    rl_office o = {0};
    after(&o, 1, 7);
    EXPECT_INT(after(&o, 2, 6), 1);
    EXPECT_INT(o.master.nth, 1);
}

TEST(office, the_same_master_is_no_change)
{
    rl_office o = {0};
    rl_place said = at(1), now;
    after(&o, 1, 7);
    EXPECT(!rl_office_hear(&o, &said, 9, &now));
    EXPECT_INT(o.epoch, 9);
}

/* The leader of a failover has the epoch before it has the address. */
TEST(office, with_the_same_epoch_the_address_that_was_not_left_counts)
{
    rl_office o = {0};
    after(&o, 1, 7);
    EXPECT_INT(after(&o, 1, 8), 1);
    EXPECT_INT(after(&o, 2, 8), 2);
    EXPECT_INT(after(&o, 1, 8), 2);
    EXPECT_INT(after(&o, 2, 8), 2);
    EXPECT_INT(o.master.nth, 2);
}

TEST(office, one_that_was_left_comes_back_by_a_higher_epoch)
{
    rl_office o = {0};
    after(&o, 1, 7);
    after(&o, 2, 8);
    EXPECT_INT(after(&o, 1, 9), 1);
    EXPECT_INT(o.master.nth, 3);
}

/* --- what they say -------------------------------------------------------- */

static rl_table list(size_t n, const char *const *words)
{
    rl_table t = {0};
    rl_table_add(&t, REDIS_REPLY_ARRAY, 0)->integer = (long long)n;
    for (size_t i = 0; i < n; i++)
        EXPECT(rl_table_add_text(&t, REDIS_REPLY_STRING, 1, words[i],
                                 strlen(words[i])));
    return t;
}

static bool reads(const char *ip, const char *port, const char *epoch,
                  rl_place *p, int64_t *e)
{
    const char *const words[] = {"ip", ip, "port", port, "config-epoch", epoch};
    static rl_table t;
    t = list(6, words);
    return rl_office_read(&t, 0, p, e);
}

TEST(office, reads_a_place_and_its_epoch)
{
    rl_place p;
    int64_t epoch;
    EXPECT(reads("10.0.0.9", "6379", "12", &p, &epoch));
    EXPECT_STR(p.host, "10.0.0.9");
    EXPECT(p.port == 6379 && epoch == 12);
}

TEST(office, refuses_what_is_no_place)
{
    rl_place p;
    int64_t epoch;
    EXPECT(!reads("", "6379", "1", &p, &epoch));
    EXPECT(!reads("h", "0", "1", &p, &epoch));
    EXPECT(!reads("h", "65536", "1", &p, &epoch));
    EXPECT(!reads("h", "-1", "1", &p, &epoch));
    EXPECT(!reads("h", "12x", "1", &p, &epoch));
    EXPECT(!reads("h", "12", "", &p, &epoch));
    EXPECT(!reads("h", "12", "99999999999999999999x", &p, &epoch));
}

TEST(office, a_list_without_an_end_is_read_no_further)
{
    const char *const words[] = {"ip", "h", "port"};
    static rl_table t;
    rl_place p;
    t = list(3, words);
    EXPECT(!rl_office_read(&t, 0, &p, NULL));
}
