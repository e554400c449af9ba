/*
 * The scripts of semaphores by themselves, as lua/README.md describes them: who gets
 * how many permits, in which order, and what becomes of those whose holder is gone.
 */
#include "permit_calls.h"

/* --- taking --------------------------------------------------------------- */

TEST(script_permit, the_first_says_how_many_there_are)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    EXPECT_INT(permits_free(&b), 1);
    EXPECT_INT(permits_of(&b, A), 2);
    EXPECT_BETWEEN(permits_lease(&b, A), 50000, 60000);
    EXPECT_INT(key_ttl(b.sv, "job"), -1);
    EXPECT_INT(key_ttl(b.sv, PERMITS), -1);
    EXPECT(permit_takes(&b, B, "60000 1 9 0")); /* what is there wins */
    EXPECT_INT(permits_free(&b), 0);
    EXPECT(!key_exists(b.sv, LINE) && !key_exists(b.sv, WANTS));
    bells_close(&b);
}

TEST(script_permit, if_nobody_says_how_many_there_are_one_waits)
{
    bells b = bells_open(NULL);
    expect_busy(permit_acquire(&b, A, "60000 1 0 0"), 0, 0);
    EXPECT(!key_exists(b.sv, "job"));
    expect_stands(permit_acquire(&b, A, "60000 1 0 0 " BELL_OF("1") " 0 7"), 0,
                  1);
    EXPECT_INT(permit_add(&b, "m", "2", "0"), 1);
    EXPECT_INT(permits_of(&b, A), 1);
    EXPECT_STR(bells_heard(&b), "1<rlock_grant:" UUID_OF("a") " 7 1 3000 job");
    EXPECT_INT(permits_free(&b), 1);
    bells_close(&b);
}

TEST(script_permit, all_are_taken_or_none)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    redisReply *r = permit_acquire(&b, B, "60000 2 3 0");
    EXPECT_BETWEEN(r->element[1]->integer, 50000, 60000);
    expect_busy(r, 1, 0);
    EXPECT_INT(permits_of(&b, B), 0);
    EXPECT_INT(permits_free(&b), 1);
    bells_close(&b);
}

TEST(script_permit, asked_for_again_they_are_the_same_with_no_shorter_lease)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    EXPECT(permit_takes(&b, A, "1000 2 3 0"));
    EXPECT_BETWEEN(permits_lease(&b, A), 50000, 60000);
    EXPECT(permit_takes(&b, A, "90000 2 3 0"));
    EXPECT_BETWEEN(permits_lease(&b, A), 80000, 90000);
    EXPECT_INT(permits_free(&b), 1);
    bells_close(&b);
}

/* Redisson takes back only as many dead ones as it wants. */
TEST(script_permit, who_has_some_of_them_only_gets_the_others_if_they_are_free)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "5000 2 3 0"));
    server_cmd(b.sv, "ZREM " PERMITS " " A ":2");
    server_cmd(b.sv, "INCR job");
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    EXPECT_INT(permits_free(&b), 1);
    EXPECT_INT(permits_of(&b, A), 2);
    EXPECT_BETWEEN(permits_lease(&b, A), 50000, 60000);
    EXPECT_INT(permit_release(&b, A, "2"), 1);
    EXPECT_INT(permits_free(&b), 3);
    bells_close(&b);
}

TEST(script_permit, where_they_are_not_he_gives_them_back_and_asks_anew)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    server_cmd(b.sv, "ZREM " PERMITS " " A ":2");
    expect_busy(permit_acquire(&b, A, "60000 3 3 0"), 2, 0);
    EXPECT_INT(permits_of(&b, A), 0);
    bells_close(&b);
}

TEST(script_permit, those_whose_lease_is_over_are_free)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    EXPECT(permit_takes(&b, B, "60000 1 3 0"));
    permits_die(&b, A, 2);
    EXPECT_INT(permit_available(&b, "3"), 2);
    EXPECT(permit_takes(&b, C, "60000 2 3 0"));
    EXPECT_INT(permits_of(&b, A), 0);
    EXPECT_INT(permits_free(&b), 0);
    bells_close(&b);
}

/* Only the counter has been deleted: what is held is not free. */
TEST(script_permit, a_counter_that_is_set_anew_knows_what_is_held)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    server_cmd(b.sv, "DEL job");
    EXPECT_INT(permit_available(&b, "3"), 1);
    expect_busy(permit_acquire(&b, B, "60000 2 3 0"), 1, 0);
    EXPECT_INT(permit_release(&b, A, "2"), 1);
    EXPECT_INT(permits_free(&b), 3);
    bells_close(&b);
}

/* Redisson's score of one without a lease. */
TEST(script_permit, no_lease_ends_while_all_have_none)
{
    bells b = bells_open(NULL);
    server_cmd(b.sv, "SET job 0");
    server_cmd(b.sv, "ZADD " PERMITS " 922337203685477 0123456789abcdef");
    redisReply *r = permit_acquire(&b, A, "60000 1 3 0");
    EXPECT_INT(r->element[1]->integer, -1);
    bells_close(&b);
}

TEST(script_permit, a_tombstone_refuses_who_still_comes)
{
    bells b = bells_open(NULL);
    EXPECT_INT(permit_release_as(&b, A, "2", "60000", "0"), 0);
    redisReply *r = permit_acquire(&b, A, "60000 2 3 0");
    EXPECT_INT(r->elements, 1);
    EXPECT_INT(r->element[0]->integer, -2);
    EXPECT(!key_exists(b.sv, "job"));
    EXPECT_BETWEEN(key_ttl(b.sv, "rlock_undone:{job}:" UUID_OF("a")), 50000,
                   60000);
    bells_close(&b);
}

/* --- in line -------------------------------------------------------------- */

TEST(script_permit, who_stands_keeps_his_place)
{
    bells b = bells_open(NULL);
    char ticket[32], words[200];
    EXPECT(permit_takes(&b, A, "60000 3 3 0"));
    redisReply *r = permit_stand(&b, B, "2", BELL_OF("1"));
    expect_stands(r, 0, 1);
    snprintf(ticket, sizeof ticket, "%s", r->element[2]->str);
    expect_stands(permit_stand(&b, C, "1", BELL_OF("1")), 1, 0);
    r = permit_stand(&b, B, "2", BELL_OF("1"));
    expect_stands(r, 0, 0);
    EXPECT_STR(r->element[2]->str, ticket);
    server_cmd(b.sv, "DEL " LINE " " WANTS);
    expect_stands(permit_stand(&b, C, "1", BELL_OF("2")), 0, 1);
    snprintf(words, sizeof words, "60000 2 3 0 %s %s 1", BELL_OF("1"), ticket);
    expect_stands(permit_acquire(&b, B, words), 0, 1);
    EXPECT_BETWEEN(key_ttl(b.sv, LINE), 1, 6000);
    bells_close(&b);
}

/* Whatever each wants: so who wants many is not starved. */
TEST(script_permit, nobody_overtakes_who_wants_more)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    expect_stands(permit_stand(&b, B, "3", BELL_OF("1")), 0, 1);
    expect_busy(permit_acquire(&b, C, "60000 1 3 0"), 1, 1);
    expect_stands(permit_stand(&b, C, "1", BELL_OF("2")), 1, 1);
    EXPECT_INT(permits_of(&b, C), 0);
    EXPECT_INT(permit_release(&b, A, "2"), 2);
    EXPECT_INT(permits_of(&b, B), 3);
    EXPECT_INT(permits_of(&b, C), 0);
    EXPECT_CONTAINS(bells_heard(&b), "1<rlock_grant:" UUID_OF("b"));
    EXPECT_INT(permit_release(&b, B, "3"), 2);
    EXPECT_INT(permits_of(&b, C), 1);
    EXPECT_CONTAINS(bells_heard(&b), "2<rlock_grant:" UUID_OF("c"));
    bells_close(&b);
}

TEST(script_permit, all_who_find_room_are_granted_theirs_at_once)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 3 3 0"));
    permit_stand(&b, B, "1", BELL_OF("1"));
    permit_stand(&b, C, "2", BELL_OF("2"));
    EXPECT_INT(permit_release(&b, A, "3"), 2);
    EXPECT_INT(permits_of(&b, B), 1);
    EXPECT_INT(permits_of(&b, C), 2);
    EXPECT_BETWEEN(permits_lease(&b, B), 2000, 3000);
    EXPECT(!key_exists(b.sv, LINE) && permits_free(&b) == 0);
    EXPECT(permit_takes(&b, B, "60000 1 3 0")); /* it confirms */
    EXPECT_BETWEEN(permits_lease(&b, B), 50000, 60000);
    bells_close(&b);
}

TEST(script_permit, while_the_first_finds_no_room_nobody_is_granted_any)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 1 3 0"));
    EXPECT(permit_takes(&b, C, "60000 2 3 0"));
    permit_stand(&b, B, "2", BELL_OF("1"));
    EXPECT_INT(permit_release(&b, A, "1"), 2); /* it waits for more */
    EXPECT_INT(permits_of(&b, B), 0);
    EXPECT_INT(permits_free(&b), 1);
    EXPECT_INT(permit_release(&b, C, "2"), 2);
    EXPECT_INT(permits_of(&b, B), 2);
    bells_close(&b);
}

/* They have no client; a release looks at so many in line. */
static void expect_let_in(int behind, int permits)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 1 1 0"));
    permit_stand(&b, B, "1", BELL_OF("1"));
    for (int i = 0; i < behind; i++)
        server_cmd(b.sv, "ZADD " LINE " 1 dead%d", i);
    EXPECT_INT(permit_release(&b, A, "1"), 2);
    EXPECT_INT(permits_of(&b, B), permits);
    bells_close(&b);
}

TEST_CASE(script_permit, behind_255_dead_ones_one_is_let_in_at_once,
          expect_let_in(255, 1))
TEST_CASE(script_permit, behind_256_dead_ones_one_looks_by_himself,
          expect_let_in(256, 0))

TEST(script_permit, what_nobody_hears_is_taken_back)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 3 3 0"));
    permit_stand(&b, HOLDER_OF("1"), "2",
                 BELL_OF("7")); /* a client that is gone */
    permit_stand(&b, HOLDER_OF("2"), "1", BELL_OF("7"));
    permit_stand(&b, B, "3", BELL_OF("1"));
    EXPECT_INT(permit_release(&b, A, "3"), 2);
    EXPECT_INT(permits_of(&b, B), 3);
    EXPECT_INT(server_int(b.sv, "ZCARD " PERMITS), 3);
    EXPECT_INT(permits_free(&b), 0);
    EXPECT_CONTAINS(bells_heard(&b), UUID_OF("b"));
    bells_close(&b);
}

TEST(script_permit, a_try_finds_what_dead_holders_had_for_the_first_in_line)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 3 3 0"));
    permit_stand(&b, B, "3", BELL_OF("1"));
    permits_die(&b, A, 3);
    expect_stands(permit_stand(&b, C, "1", BELL_OF("2")), 0, 1);
    EXPECT_INT(permits_of(&b, B), 3);
    EXPECT_CONTAINS(bells_heard(&b), UUID_OF("b"));
    bells_close(&b);
}

TEST(script_permit, who_finds_room_for_those_behind_grants_them_theirs)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 3 3 0"));
    permit_stand(&b, B, "1", BELL_OF("1"));
    permit_stand(&b, C, "2", BELL_OF("2"));
    permits_die(&b, A, 3);
    EXPECT_STR(permit_stand(&b, B, "1", BELL_OF("1"))->str, "1");
    EXPECT_INT(permits_of(&b, C), 2);
    EXPECT_CONTAINS(bells_heard(&b), UUID_OF("c"));
    EXPECT(!key_exists(b.sv, LINE) && permits_free(&b) == 0);
    bells_close(&b);
}

TEST(script_permit, who_gives_up_leaves_the_line_and_what_he_was_granted)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    permit_stand(&b, B, "3", BELL_OF("1"));
    permit_stand(&b, C, "1", BELL_OF("2"));
    EXPECT_INT(permit_release(&b, B, "3"), 0); /* and C goes on */
    EXPECT_INT(permits_of(&b, C), 1);
    EXPECT(!key_exists(b.sv, LINE));
    EXPECT_INT(permit_release(&b, C, "1"), 1);
    EXPECT_INT(permits_free(&b), 1);
    bells_close(&b);
}

/* What it is granted would not be what it asked for. */
static void expect_not_granted(const char *want)
{
    bells b = bells_open(NULL);
    bells_want(&b, want);
    expect_stands(permit_stand(&b, A, "1", BELL_OF("2")), 1, 1);
    EXPECT_INT(permit_release(&b, B, "1"), 0);
    expect_busy(permit_acquire(&b, C, "60000 1 3 0"), 3, 2);
    EXPECT_INT(permits_free(&b), 3);
    bells_close(&b);
}

TEST_CASE(script_permit, who_waits_for_a_fair_lock_is_granted_no_permits,
          expect_not_granted("f"))
TEST_CASE(script_permit, who_waits_to_write_is_granted_no_permits,
          expect_not_granted("w"))

/* --- giving back ---------------------------------------------------------- */

TEST(script_permit, given_back_twice_they_are_free_once)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    EXPECT_INT(permit_release(&b, A, "2"), 1);
    EXPECT_INT(permit_release(&b, A, "2"), 0);
    EXPECT_INT(permits_free(&b), 3);
    EXPECT(!key_exists(b.sv, PERMITS));
    bells_close(&b);
}

TEST(script_permit, who_has_lost_some_gives_the_others_back)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    server_cmd(b.sv, "ZREM " PERMITS " " A ":1");
    EXPECT_INT(permit_release(&b, A, "2"), 0);
    EXPECT_INT(permits_free(&b), 2);
    bells_close(&b);
}

TEST(script_permit, without_a_counter_nothing_is_counted)
{
    bells b = bells_open(NULL);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    server_cmd(b.sv, "DEL job");
    EXPECT_INT(permit_release(&b, A, "2"), 1);
    EXPECT(!key_exists(b.sv, "job") && !key_exists(b.sv, PERMITS));
    bells_close(&b);
}

TEST(script_permit, redissons_clients_are_told_how_many_are_free)
{
    bells b = bells_open(NULL);
    redisReply *r = redisCommand(b.ear, "SUBSCRIBE " CHANNEL);
    freeReplyObject(r);
    EXPECT(permit_takes(&b, A, "60000 2 3 0"));
    EXPECT_INT(permit_release(&b, A, "2"), 1);
    EXPECT_STR(bells_heard(&b), "}<3");
    EXPECT_INT(permit_add(&b, "m", "-1", "0"), 1); /* of that nobody is told */
    EXPECT_INT(permit_add(&b, "n", "4", "0"), 1);
    EXPECT_STR(bells_heard(&b), "}<6");
    bells_close(&b);
}
