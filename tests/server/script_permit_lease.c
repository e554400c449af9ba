/*
 * The scripts of semaphores by themselves: leases, how many permits there are, how
 * long the keys live, and what is refused.
 */
#include "permit_calls.h"

/* --- leases --------------------------------------------------------------- */

TEST(script_permit, a_renewal_only_prolongs)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 2 3 0"));
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, A, "60000 2 0"), 1);
    EXPECT_BETWEEN(permits_lease(&b, A), 50000, 60000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, A, "1000 2 0"), 1);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, A, "0 2 0"), 1);
    EXPECT_BETWEEN(permits_lease(&b, A), 50000, 60000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, B, "60000 1 0"), 0);
    EXPECT_INT(server_int(b.sv, "ZCARD " PERMITS), 2);
    bells_close(&b);
}

TEST(script_permit, an_extend_also_shortens)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_EXTEND, A, "5000 2 0"), 1);
    EXPECT_BETWEEN(permits_lease(&b, A), 3000, 5000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_EXTEND, A, "9000 2 0"), 1);
    EXPECT_BETWEEN(permits_lease(&b, A), 7000, 9000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_EXTEND, B, "9000 1 0"), 0);
    bells_close(&b);
}

static void expect_refused_when_one_is_missing(rl_script_id script)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 2 3 0"));
    server_cmd(b.sv, "ZREM " PERMITS " " A ":2");
    EXPECT_INT(permit_lease(&b, script, A, "60000 2 0"), 0);
    EXPECT_BETWEEN(permits_lease(&b, A), 1, 5000);
    EXPECT_INT(permits_of(&b, A), 1);
    bells_close(&b);
}

TEST_CASE(script_permit, no_renewal_of_what_is_not_all_there,
          expect_refused_when_one_is_missing(RL_SCRIPT_PERMIT_RENEW))
TEST_CASE(script_permit, no_extend_of_what_is_not_all_there,
          expect_refused_when_one_is_missing(RL_SCRIPT_PERMIT_EXTEND))

TEST(script_permit, many_are_renewed_in_one_call)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 2 3 0"));
    server_cmd(b.sv, "SET {other}:timeout x");
    redisReply *r = server_cmd(
        b.sv,
        "EVALSHA %s 8 job " PERMITS " job " PERMITS " other {other}:timeout "
        "job " PERMITS " 60000 %s 2 0 %s 1 0 %s 1 0 %s 0 0",
        script_sha(RL_SCRIPT_PERMIT_RENEW_MANY), A, B, A, A);
    EXPECT_STR(r->str, "10ee");
    EXPECT_BETWEEN(permits_lease(&b, A), 50000, 60000);
    EXPECT_STR(server_str(b.sv, "GET {other}:timeout"), "x");
    bells_close(&b);
}

TEST(script_permit, a_touch_is_a_write_that_changes_nothing)
{
    bells b = bells_open(NULL);
    EXPECT_INT(server_int(b.sv, "EVALSHA %s 1 job",
                          script_sha(RL_SCRIPT_PERMIT_TOUCH)),
               0);
    EXPECT(!key_exists(b.sv, "job"));
    server_cmd(b.sv, "SET job 3");
    long long before = server_info(b.sv, "rdb_changes_since_last_save");
    EXPECT_INT(server_int(b.sv, "EVALSHA %s 1 job",
                          script_sha(RL_SCRIPT_PERMIT_TOUCH)),
               1);
    EXPECT(server_info(b.sv, "rdb_changes_since_last_save") > before);
    EXPECT_INT(permits_free(&b), 3);
    bells_close(&b);
}

/* --- how many there are --------------------------------------------------- */

TEST(script_permit, more_and_fewer_are_counted_once)
{
    bells b = bells_open(NULL);
    EXPECT_INT(permit_available(&b, "3"), 3);
    EXPECT(!key_exists(b.sv, "job"));
    EXPECT_INT(permit_add(&b, "m", "2", "3"), 1);
    EXPECT_INT(permit_add(&b, "m", "2", "3"), 1);
    EXPECT_INT(permits_free(&b), 5);
    EXPECT_BETWEEN(key_ttl(b.sv, "m"), 50000, 60000);
    EXPECT_INT(permit_add(&b, "n", "-7", "3"), 1);
    EXPECT_INT(permit_available(&b, "3"), -2);
    expect_busy(permit_acquire(&b, A, "60000 1 3 0"), -2, 0);
    EXPECT_INT(permit_add(&b, "o", "4503599627370496", "3"), 1);
    EXPECT_INT(permit_add(&b, "p", "3", "3"), 0);
    EXPECT(!key_exists(b.sv, "p"));
    EXPECT_INT(permit_add(&b, "q", "-4503599627370496", "3"), 1);
    EXPECT_INT(permit_add(&b, "r", "-4503599627370496", "3"), 0);
    EXPECT_INT(permits_free(&b), -2);
    bells_close(&b);
}

TEST(script_permit, more_are_granted_to_who_waits)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 3 3 0"));
    permit_stand(&b, B, "2", BELL_OF("1"));
    EXPECT_INT(permit_add(&b, "m", "1", "3"), 1);
    EXPECT_INT(permits_of(&b, B), 0);
    EXPECT_INT(permit_add(&b, "n", "1", "3"), 1);
    EXPECT_INT(permits_of(&b, B), 2);
    EXPECT_CONTAINS(bells_heard(&b), UUID_OF("b"));
    EXPECT_INT(permits_free(&b), 0);
    bells_close(&b);
}

/* However many are missing that were taken away. */
TEST(script_permit, all_that_are_dead_are_found_by_who_wants_many)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "1 1000 2500 0"));
    EXPECT(permit_takes(&b, B, "1 1000 2500 0"));
    EXPECT(permit_takes(&b, C, "1 500 2500 0"));
    EVENTUALLY(SOON, permit_available(&b, "2500") == 2500);
    EXPECT_INT(permit_add(&b, "m", "-1500", "2500"), 1);
    EXPECT(permit_takes(&b, HOLDER_OF("d"), "60000 1000 2500 0"));
    EXPECT_INT(permits_free(&b), 0);
    bells_close(&b);
}

/* Those that are held count, too. */
TEST(script_permit, there_are_never_more_than_2_to_the_52_in_all)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 10 4503599627370490 0"));
    EXPECT_INT(permit_add(&b, "m", "7", "0"), 0);
    EXPECT_INT(permit_add(&b, "n", "6", "0"), 1);
    EXPECT_INT(permit_release(&b, A, "10"), 1);
    EXPECT_STR(server_str(b.sv, "GET job"), "4503599627370496");
    bells_close(&b);
}

/* --- how long the keys live ----------------------------------------------- */

static void expect_lives(bells *b, long long least, long long most)
{
    EXPECT_BETWEEN(key_ttl(b->sv, "job"), least, most);
    if (key_exists(b->sv, PERMITS))
        EXPECT_BETWEEN(key_ttl(b->sv, PERMITS), least, most);
}

TEST(script_permit, idle_keys_go_after_their_time_but_not_before_a_lease)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 1 3 10"));
    expect_lives(&b, 9000, 10000);
    EXPECT(permit_takes(&b, B, "60000 1 3 10"));
    expect_lives(&b, 50000, 60000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, A, "90000 1 10"), 1);
    expect_lives(&b, 80000, 90000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_EXTEND, A, "1000 1 10"), 1);
    expect_lives(&b, 50000, 60000);
    EXPECT_INT(permit_release_as(&b, B, "1", "0", "10"), 1);
    expect_lives(&b, 9000, 10000);
    EXPECT_INT(permit_release_as(&b, A, "1", "0", "10"), 1);
    expect_lives(&b, 9000, 10000);
    bells_close(&b);
}

/* Who wants no end of theirs does not shorten, and does not lose his lease. */
TEST(script_permit, a_lease_outlives_the_keys_of_others)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "1000 1 3 10"));
    EXPECT(permit_takes(&b, B, "60000 1 3 0"));
    expect_lives(&b, 50000, 60000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, B, "90000 1 0"), 1);
    expect_lives(&b, 80000, 90000);
    EXPECT_INT(permit_release(&b, B, "1"), 1);
    expect_lives(&b, 80000, 90000);
    bells_close(&b);
}

/* Or those who hold when the other ends would be missing for ever. */
TEST(script_permit, a_counter_that_was_deleted_ends_with_its_permits)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 1 3 10"));
    server_cmd(b.sv, "DEL job");
    EXPECT(permit_takes(&b, B, "60000 1 3 0"));
    EXPECT_INT(permits_free(&b) + server_int(b.sv, "ZCARD " PERMITS), 3);
    expect_lives(&b, 50000, 60000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, B, "90000 1 0"), 1);
    expect_lives(&b, 80000, 90000);
    bells_close(&b);
}

TEST(script_permit, without_their_counter_permits_are_kept)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 1 3 10"));
    server_cmd(b.sv, "DEL job");
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, A, "60000 1 0"), 1);
    EXPECT_BETWEEN(key_ttl(b.sv, PERMITS), 50000, 60000);
    bells_close(&b);
}

/* --- what is refused ------------------------------------------------------ */

/* What it says to a release. */
static const char *release_says(bells *b, const char *holder, const char *n,
                                const char *idle)
{
    return server_str(
        b->sv, "EVALSHA %s 5 job " PERMITS " t " LINE " " WANTS " %s c %s 0 %s",
        script_sha(RL_SCRIPT_PERMIT_RELEASE), holder, n, idle);
}

static void expect_left_alone(const char *key, const char *value)
{
    bells b = bells_open(NULL);
    server_cmd(b.sv, "SET job 3");
    server_cmd(b.sv, "SET %s %s", key, value);
    EXPECT_CONTAINS(permit_stand(&b, A, "1", BELL_OF("1"))->str, "WRONGTYPE");
    EXPECT_CONTAINS(release_says(&b, A, "1", "0"), "WRONGTYPE");
    EXPECT_CONTAINS(server_str(b.sv,
                               "EVALSHA %s 5 job " PERMITS " t " LINE " " WANTS
                               " 1 3 0 60000 c",
                               script_sha(RL_SCRIPT_PERMIT_ADD)),
                    "WRONGTYPE");
    EXPECT_STR(server_str(b.sv, "GET %s", key), value);
    EXPECT(!key_exists(b.sv, LINE) && !key_exists(b.sv, "t"));
    bells_close(&b);
}

TEST_CASE(script_permit, a_counter_that_is_no_number_is_left_alone,
          expect_left_alone("job", "x"))
TEST_CASE(script_permit, a_counter_with_a_fraction_is_left_alone,
          expect_left_alone("job", "1.5"))
TEST_CASE(script_permit, permits_of_another_type_are_left_alone,
          expect_left_alone(PERMITS, "x"))

/* The key has become something else, but he must not be granted anything later. */
TEST(script_permit, who_gives_up_leaves_the_line_of_what_is_no_counter_any_more)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 3 3 0"));
    permit_stand(&b, B, "2", BELL_OF("1"));
    server_cmd(b.sv, "DEL job");
    server_cmd(b.sv, "HSET job a b");
    EXPECT_CONTAINS(release_says(&b, B, "2", "0"), "WRONGTYPE");
    EXPECT(!key_exists(b.sv, LINE));
    EXPECT_INT(server_int(b.sv, "HEXISTS " WANTS " " B), 0);
    bells_close(&b);
}

static void expect_told(const char *deny, const char *before, const char *idle,
                        const char *text)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    if (before)
        server_cmd(b.sv, before);
    server_cmd(b.sv, "ACL SETUSER default %s", deny);
    EXPECT_CONTAINS(release_says(&b, A, "2", idle), text);
    bells_close(&b);
}

TEST_CASE(script_permit, what_may_not_be_counted_up_is_told,
          expect_told("-incrby", NULL, "0", "can't run this"))
TEST_CASE(script_permit, and_so_it_is_when_the_keys_are_not_for_ever,
          expect_told("-incrby", NULL, "9", "can't run this"))
TEST_CASE(script_permit, what_is_no_counter_any_more_is_told,
          expect_told("+@all", "SET job x", "0", "WRONGTYPE"))

TEST(script_permit, without_memory_they_are_given_back_and_granted)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 3 3 0"));
    permit_stand(&b, B, "2", BELL_OF("1"));
    server_cmd(b.sv, "CONFIG SET maxmemory 1");
    expect_busy(permit_acquire(&b, C, "60000 1 3 0"), 0, 1);
    expect_stands(permit_stand(&b, B, "2", BELL_OF("1")), 0, 0);
    EXPECT_INT(permit_release_as(&b, A, "3", "60000", "0"),
               12); /* no tombstone */
    EXPECT_INT(permits_of(&b, B), 2);
    EXPECT_INT(permits_free(&b), 1);
    EXPECT_CONTAINS(bells_heard(&b), UUID_OF("b"));
    EXPECT_INT(permit_release(&b, B, "2"), 1);
    EXPECT_CONTAINS(permit_acquire(&b, C, "60000 1 3 0")->str, "OOM");
    EXPECT_INT(permits_free(&b), 3);
    bells_close(&b);
}

/* Whichever of the two writes of a try is refused. */
static void expect_none_is_taken_without(const char *command)
{
    bells b = bells_open(NULL);
    EXPECT_INT(permit_add(&b, "m", "2", "3"), 1);
    server_cmd(b.sv, "ACL SETUSER default -%s", command);
    EXPECT_INT(permit_acquire(&b, A, "60000 2 3 0")->type, REDIS_REPLY_ERROR);
    server_cmd(b.sv, "ACL SETUSER default +%s", command);
    EXPECT_INT(permits_free(&b), 5);
    EXPECT_INT(permits_of(&b, A), 0);
    bells_close(&b);
}

TEST_CASE(script_permit, what_cannot_be_counted_is_not_taken,
          expect_none_is_taken_without("decrby"))
TEST_CASE(script_permit, what_cannot_be_taken_is_not_counted,
          expect_none_is_taken_without("zadd"))

TEST(script_permit, more_that_were_refused_are_counted_when_asked_for_again)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    server_cmd(b.sv, "ACL SETUSER default -incrby");
    EXPECT_INT(server_cmd(b.sv,
                          "EVALSHA %s 5 job " PERMITS " m " LINE " " WANTS
                          " 2 3 0 60000 c",
                          script_sha(RL_SCRIPT_PERMIT_ADD))
                   ->type,
               REDIS_REPLY_ERROR);
    server_cmd(b.sv, "ACL SETUSER default +incrby");
    EXPECT_INT(permit_add(&b, "m", "2", "3"), 1);
    EXPECT_INT(permits_free(&b), 3);
    bells_close(&b);
}

/* By a try that confirms it, though there are others free. */
TEST(script_permit, without_memory_what_was_granted_is_prolonged)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 1 3 0"));
    server_cmd(b.sv, "CONFIG SET maxmemory 1");
    EXPECT(permit_takes(&b, A, "60000 1 3 0"));
    EXPECT_BETWEEN(permits_lease(&b, A), 50000, 60000);
    EXPECT_CONTAINS(permit_acquire(&b, B, "60000 1 3 0")->str, "OOM");
    EXPECT_INT(permits_free(&b), 2);
    bells_close(&b);
}

TEST(script_permit, without_memory_leases_are_prolonged)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 2 3 0"));
    server_cmd(b.sv, "CONFIG SET maxmemory 1");
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_RENEW, A, "60000 2 0"), 1);
    EXPECT_BETWEEN(permits_lease(&b, A), 50000, 60000);
    EXPECT_INT(permit_lease(&b, RL_SCRIPT_PERMIT_EXTEND, A, "90000 2 0"), 1);
    EXPECT_STR(server_str(b.sv, "EVALSHA %s 2 job " PERMITS " 120000 %s 2 0",
                          script_sha(RL_SCRIPT_PERMIT_RENEW_MANY), A),
               "1");
    EXPECT_BETWEEN(permits_lease(&b, A), 110000, 120000);
    EXPECT(permit_takes(&b, A, "150000 2 3 0"));
    EXPECT_BETWEEN(permits_lease(&b, A), 140000, 150000);
    bells_close(&b);
}

static void expect_bad(rl_script_id script, const char *words)
{
    bells b = bells_open(NULL);
    char call[500];
    snprintf(call, sizeof call,
             "EVALSHA %s 5 job " PERMITS " t " LINE " " WANTS " %s",
             script_sha(script), words);
    EXPECT_CONTAINS(server_str(b.sv, call), "ERR rlock: bad");
    EXPECT_INT(server_int(b.sv, "DBSIZE"), 0);
    bells_close(&b);
}

#define BAD(name, script, words)                                               \
    TEST_CASE(script_permit, name, expect_bad(RL_SCRIPT_PERMIT_##script, words))

BAD(a_lease_of_none_is_refused, ACQUIRE, A " 0 1 3 0")
BAD(none_at_all_are_refused, ACQUIRE, A " 100 0 3 0")
BAD(too_many_at_a_time_are_refused, ACQUIRE, A " 100 1001 3 0")
BAD(a_bad_number_of_all_is_refused, ACQUIRE, A " 100 1 -3 0")
BAD(a_bad_idle_time_is_refused, ACQUIRE, A " 100 1 3 x")
BAD(a_bad_ticket_is_refused, ACQUIRE, A " 100 1 3 0 " BELL_OF("1") " x 1")
BAD(a_bad_beat_is_refused, ACQUIRE, A " 100 1 3 0 " BELL_OF("1") " 0 1.5")
BAD(a_release_of_none_is_refused, RELEASE, A " c 0 60000 0")
BAD(a_release_with_a_bad_tombstone_is_refused, RELEASE, A " c 1 x 0")
BAD(a_release_with_a_bad_idle_time_is_refused, RELEASE, A " c 1 60000 -1")
BAD(a_bad_number_more_is_refused, ADD, "1.5 3 0 60000 c")
BAD(less_than_nothing_is_refused, ADD, "-0 3 0 60000 c")
BAD(a_bad_mark_is_refused, ADD, "1 3 0 x c")
BAD(a_renewal_of_too_many_is_refused, RENEW, A " 100 1001 0")
BAD(an_extend_to_nothing_is_refused, EXTEND, A " 0 1 0")
BAD(a_renewal_of_many_with_too_few_words_is_refused, RENEW_MANY,
    "100 " A " 1 0")
BAD(a_bad_number_to_begin_with_is_refused, AVAILABLE, "x")
