/*
 * The scripts of read-write locks by themselves, as lua/README.md describes them:
 * what a server keeps, who is let in by whom, and what they answer.
 */
#include "rw_calls.h"

/* --- what is kept --------------------------------------------------------- */

TEST(script_rw, who_reads_is_kept_as_redisson_keeps_it)
{
    bells p = rw_bells_open();
    uint64_t token = side_take(&p, &side_reads, A);
    EXPECT_INT(side_take(&p, &side_reads, B), token);
    EXPECT_STR(job_mode(&p), "read");
    EXPECT_INT(server_int(p.sv, "HLEN job"), 3);
    EXPECT_STR(server_str(p.sv, "HGET job " A), "1");
    EXPECT_STR(server_str(p.sv, "GET " MARK(A)), "1");
    EXPECT_BETWEEN(key_ttl(p.sv, MARK(A)), 50000, 60000);
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 50000, 60000);
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 2);
    EXPECT(key_ttl(p.sv, LEASES) > 3600000);
    EXPECT_INT(side_release(&p, &side_reads, A), 1);
    EXPECT(!job_has(&p, A) && job_has(&p, B) && !key_exists(p.sv, MARK(A)));
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 1);
    EXPECT_INT(side_release(&p, &side_reads, B), 1);
    EXPECT_STR(rw_heard(&p),
               "0"); /* once: whoever is left had nobody to tell */
    expect_job_gone(&p);
    EXPECT_INT(side_release(&p, &side_reads, B), 0);
    bells_close(&p);
}

TEST(script_rw, who_writes_is_kept_as_redisson_keeps_it)
{
    bells p = rw_bells_open();
    uint64_t token = side_take(&p, &side_writes, A);
    EXPECT_STR(job_mode(&p), "write");
    EXPECT_STR(server_str(p.sv, "HGET job " A ":write"), "1");
    EXPECT_INT(server_int(p.sv, "HLEN job"), 2);
    EXPECT(!key_exists(p.sv, LEASES));
    expect_side_busy(side_try(&p, &side_reads, B, "60000"));
    expect_side_busy(side_try(&p, &side_writes, B, "60000"));
    EXPECT_INT(side_release(&p, &side_writes, A), 1);
    EXPECT_STR(rw_heard(&p), "1");
    expect_job_gone(&p);
    EXPECT(side_take(&p, &side_writes, B) > token);
    bells_close(&p);
}

/* A writer of Java's that was forced leaves them. */
TEST(script_rw, a_grant_on_a_free_key_deletes_the_leases_that_are_left)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    server_cmd(p.sv, "DEL job");
    side_take(&p, &side_writes, B);
    EXPECT(!key_exists(p.sv, LEASES));
    EXPECT_INT(side_release(&p, &side_writes, B), 1);
    side_take(&p, &side_reads, A);
    server_cmd(p.sv, "DEL job");
    side_take(&p, &side_reads, B);
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 1);
    bells_close(&p);
}

TEST(script_rw, levels_are_set_and_need_the_hold)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    EXPECT_INT(side_try(&p, &side_reads, A, "90000 3 - 0 0")->type,
               REDIS_REPLY_STRING);
    EXPECT_STR(server_str(p.sv, "HGET job " A), "3");
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, MARK(A)) > 80000);
    EXPECT_INT(side_try(&p, &side_reads, A, "1000 2 - 0 0")->type,
               REDIS_REPLY_STRING);
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, MARK(A)) > 80000);
    expect_side_code(side_try(&p, &side_reads, B, "60000 2 - 0 0"), -1);
    EXPECT_INT(side_run(&p, side_reads.l->release, side_keys(&side_reads, A), A,
                        "- 1 0")
                   ->integer,
               1);
    EXPECT_STR(server_str(p.sv, "HGET job " A), "1");
    EXPECT_INT(side_run(&p, side_reads.l->release, side_keys(&side_reads, B), B,
                        "- 1 0")
                   ->integer,
               0);
    bells_close(&p);
}

TEST(script_rw, who_has_given_up_is_refused)
{
    bells p = rw_bells_open();
    EXPECT_INT(side_run(&p, side_reads.l->release, side_keys(&side_reads, A), A,
                        "- 0 60000")
                   ->integer,
               0);
    expect_side_code(side_try(&p, &side_reads, A, "60000"), -2);
    side_take(&p, &side_writes, B);
    EXPECT_INT(side_run(&p, side_writes.l->release, side_keys(&side_writes, B),
                        B, "- 0 60000")
                   ->integer,
               1);
    expect_side_code(side_try(&p, &side_writes, B, "60000"), -2);
    bells_close(&p);
}

/* --- the line ------------------------------------------------------------- */

TEST(script_rw, a_release_lets_in_all_who_read_up_to_the_next_who_writes)
{
    bells p = rw_bells_open();
    side_take(&p, &side_writes, A);
    side_stand(&p, &side_reads, B, 0);
    side_stand(&p, &side_reads, C, 1);
    side_stand(&p, &side_writes, D, 2);
    EXPECT(key_ttl(p.sv, MARK(B)) > 20000); /* before it has anything */
    expect_side_busy(side_try(&p, &side_reads, HOLDER_OF("e"), "60000"));
    EXPECT_INT(side_release(&p, &side_writes, A), 2);
    char first[700];
    snprintf(first, sizeof first, "%s", rw_heard(&p));
    EXPECT(strncmp(first, "rlock_grant:" UUID_OF("b"), 48) == 0);
    const char *second = rw_heard(&p);
    EXPECT(strncmp(second, "rlock_grant:" UUID_OF("c"), 48) == 0);
    EXPECT_STR(first + 48, second + 48); /* one token */
    EXPECT_STR(rw_heard(&p), "1");
    EXPECT(job_has(&p, B) && job_has(&p, C) && !job_has(&p, D ":write"));
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 1, 3000);
    EXPECT_INT(side_release(&p, &side_reads, B), 2); /* there is one in line */
    EXPECT_INT(side_release(&p, &side_reads, C), 2);
    EXPECT(strncmp(rw_heard(&p), "rlock_grant:" UUID_OF("d"), 48) == 0);
    EXPECT(job_has(&p, D ":write") && !key_exists(p.sv, LINE));
    bells_close(&p);
}

TEST(script_rw, who_gives_up_lets_in_those_behind)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    side_stand(&p, &side_writes, B, 0);
    side_stand(&p, &side_reads, C, 1);
    EXPECT_INT(side_release(&p, &side_writes, B), 0);
    EXPECT(job_has(&p, C) && !key_exists(p.sv, LINE));
    EXPECT(strncmp(rw_heard(&p), "rlock_grant:" UUID_OF("c"), 48) == 0);
    bells_close(&p);
}

TEST(script_rw, who_gives_up_leaves_the_line_of_what_is_no_lock_any_more)
{
    bells p = rw_bells_open();
    side_take(&p, &side_writes, A);
    side_stand(&p, &side_reads, B, 0);
    server_cmd(p.sv, "SET job other");
    EXPECT_CONTAINS(side_run(&p, side_reads.l->release,
                             side_keys(&side_reads, B), B, CHANNEL)
                        ->str,
                    "WRONGTYPE");
    EXPECT(!key_exists(p.sv, LINE));
    EXPECT_INT(server_int(p.sv, "HEXISTS " WANTS " " B), 0);
    bells_close(&p);
}

#define OF_THE_DEAD "60000 1 " BELL_OF("7") " 0 1000"

TEST(script_rw, what_nobody_hears_is_taken_back)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    side_stand(&p, &side_writes, C, 0);
    side_try(&p, &side_reads, B, OF_THE_DEAD);
    EXPECT_INT(side_release(&p, &side_writes, C), 0); /* B comes in, and goes */
    EXPECT(job_has(&p, A) && !job_has(&p, B));
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 1);
    side_try(&p, &side_writes, C, OF_THE_DEAD);
    EXPECT_INT(side_release(&p, &side_reads, A), 1);
    EXPECT(!key_exists(p.sv, "job") && !key_exists(p.sv, LINE));
    bells_close(&p);
}

TEST(script_rw, who_comes_first_in_line_lets_in_those_behind_him)
{
    bells p = rw_bells_open();
    side_take(&p, &side_writes, A);
    side_stand(&p, &side_reads, B, 0);
    side_stand(&p, &side_reads, C, 1);
    server_cmd(p.sv, "DEL job"); /* its lease has run out */
    redisReply *r =
        side_try(&p, &side_reads, B, "60000 1 " BELL_OF("1") " 0 1000");
    EXPECT_INT(r->type, REDIS_REPLY_STRING);
    EXPECT(job_has(&p, B) && job_has(&p, C));
    bells_close(&p);
}

/* What it is granted would not be what it asked for. */
static void expect_not_granted(const char *want)
{
    bells p = rw_bells_open();
    bells_want(&p, want);
    side_stand(&p, &side_writes, A, 1);
    EXPECT_INT(side_release(&p, &side_writes, B), 0);
    expect_side_busy(side_try(&p, &side_reads, C, "60000"));
    EXPECT(!key_exists(p.sv, "job"));
    EXPECT_INT(server_int(p.sv, "ZCARD " LINE), 2);
    bells_close(&p);
}

TEST_CASE(script_rw, who_waits_for_a_fair_lock_is_granted_no_side,
          expect_not_granted("f"))
TEST_CASE(script_rw, who_waits_for_permits_is_granted_no_side,
          expect_not_granted("1"))

/* --- both sides of one owner ---------------------------------------------- */

TEST(script_rw, the_only_one_who_reads_may_write_before_all_in_line)
{
    bells p = rw_bells_open();
    uint64_t before = side_take(&p, &side_reads, A);
    side_stand(&p, &side_writes, C, 0);
    redisReply *r = side_take_too(&p, &side_writes, B, A);
    EXPECT_INT(r->type, REDIS_REPLY_STRING);
    EXPECT(strtoull(r->str, NULL, 10) > before);
    EXPECT_STR(job_mode(&p), "write");
    EXPECT(job_has(&p, A) && job_has(&p, B ":write") &&
           !job_has(&p, C ":write"));
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 2);
    EXPECT_INT(side_release(&p, &side_writes, B), 2);
    EXPECT_STR(job_mode(&p), "read");
    EXPECT_STR(rw_heard(&p), "1");
    EXPECT_INT(side_release(&p, &side_reads, A), 2);
    EXPECT(job_has(&p, C ":write"));
    bells_close(&p);
}

TEST(script_rw, whoever_reads_beside_others_is_refused_at_once)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    EXPECT_INT(side_try(&p, &side_reads, C, "20")->type, REDIS_REPLY_STRING);
    expect_side_code(side_take_too(&p, &side_writes, B, A), -3);
    EXPECT_STR(job_mode(&p), "read");
    EVENTUALLY(SOON, key_ttl(p.sv, MARK(C)) == -2); /* that one is over */
    EXPECT_INT(side_take_too(&p, &side_writes, B, A)->type, REDIS_REPLY_STRING);
    bells_close(&p);
}

TEST(script_rw, who_writes_may_read_and_goes_on_reading)
{
    bells p = rw_bells_open();
    uint64_t token = side_take(&p, &side_writes, A);
    side_stand(&p, &side_reads, C, 0);
    redisReply *r = side_take_too(&p, &side_reads, B, A ":write");
    EXPECT_INT(strtoull(r->str, NULL, 10), token);
    EXPECT_STR(job_mode(&p), "write");
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 2);
    EXPECT_INT(side_release(&p, &side_writes, A), 2);
    EXPECT_STR(job_mode(&p), "read");
    EXPECT(job_has(&p, B) && job_has(&p, C) && !job_has(&p, A ":write"));
    bells_close(&p);
}

TEST(script_rw, a_writer_that_reads_has_a_lease_of_its_own)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    char keys[300];
    EXPECT_INT(side_take_too(&p, &side_writes, B, A)->type, REDIS_REPLY_STRING);
    snprintf(keys, sizeof keys, "3 job " TOKEN " " LEASES);
    EXPECT_INT(side_run(&p, side_writes.l->extend, keys, B, "20")->integer, 1);
    EXPECT(key_ttl(p.sv, "job") > 50000);
    EVENTUALLY(SOON, side_try(&p, &side_reads, C, "60000")->type ==
                         REDIS_REPLY_STRING);
    EXPECT_STR(job_mode(&p), "read");
    EXPECT(job_has(&p, A) && !job_has(&p, B ":write"));
    EXPECT_INT(side_run(&p, side_writes.l->renew, keys, B, "60000")->integer,
               0);
    bells_close(&p);
}

/* --- being told of -------------------------------------------------------- */

#define INSPECTED " 2 job " LEASES

TEST(script_rw, each_side_tells_of_itself)
{
    bells p = rw_bells_open();
    const char *of_reads = script_sha(side_reads.l->inspect);
    const char *of_writes = script_sha(side_writes.l->inspect);
    EXPECT_INT(server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_reads)->elements, 0);
    side_take(&p, &side_writes, A);
    EXPECT_INT(server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_reads)->elements, 0);
    redisReply *r = server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_writes);
    EXPECT_STR(r->element[0]->str, A);
    EXPECT_STR(r->element[1]->str, "1");
    EXPECT(r->element[2]->integer > 50000);
    side_take_too(&p, &side_reads, B, A ":write");
    r = server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_reads);
    EXPECT_STR(r->element[0]->str, B);
    EXPECT_INT(side_release(&p, &side_writes, A), 1);
    EXPECT_INT(server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_writes)->elements,
               0);
    server_cmd(p.sv, "ZADD " LEASES " 1 " B); /* it is over */
    EXPECT_INT(server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_reads)->elements, 0);
    bells_close(&p);
}

/* Who is told when that one is asked about; "": nobody. */
static const char *told(bells *p, const side *x, const char *wanted)
{
    redisReply *r = server_cmd(p->sv, "EVALSHA %s" INSPECTED " %s",
                               script_sha(x->l->inspect), wanted);
    return r->elements == 0 ? "" : r->element[0]->str;
}

TEST(script_rw, who_is_asked_about_is_told_before_others)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    side_take(&p, &side_reads, B);
    EXPECT_STR(told(&p, &side_reads, A), A);
    EXPECT_STR(told(&p, &side_reads, B), B);
    EXPECT(*told(&p, &side_reads, C) && *told(&p, &side_reads, "mode"));
    EXPECT_STR(told(&p, &side_writes, A), "");
    server_cmd(p.sv, "ZADD " LEASES " 1 " B); /* it is over */
    EXPECT_STR(told(&p, &side_reads, B), A);
    EXPECT_INT(side_release(&p, &side_reads, A), 1);
    server_cmd(p.sv, "DEL job " LEASES);
    side_take(&p, &side_writes, C);
    EXPECT_STR(told(&p, &side_writes, C), C);
    EXPECT_STR(told(&p, &side_writes, A), C);
    EXPECT_STR(told(&p, &side_reads, C), "");
    bells_close(&p);
}

static void expect_state(bells *p, const char *wanted)
{
    char got[60];
    redisReply *r = server_cmd(p->sv, "EVALSHA %s 3 job " LINE " " LEASES,
                               script_sha(RL_SCRIPT_RW_STATE));
    snprintf(got, sizeof got, "%lld %lld %lld", r->element[0]->integer,
             r->element[1]->integer, r->element[2]->integer);
    EXPECT_STR(got, wanted);
    EXPECT((r->element[3]->integer == -2) == (*wanted == '0'));
}

TEST(script_rw, its_state_is_told_whichever_side_it_is)
{
    bells p = rw_bells_open();
    expect_state(&p, "0 0 0");
    side_take(&p, &side_reads, A);
    side_take(&p, &side_reads, B);
    side_stand(&p, &side_writes, C, 0);
    expect_state(&p, "1 2 1");
    server_cmd(p.sv, "ZADD " LEASES " 1 " B);
    expect_state(&p, "1 1 1");
    EXPECT_INT(side_release(&p, &side_reads, A), 2);
    expect_state(&p, "2 1 0");
    side_take_too(&p, &side_reads, D, C ":write");
    expect_state(&p, "2 1 0");
    bells_close(&p);
}
