/*
 * The scripts of read-write locks by themselves: leases, what ends a side from
 * outside, and what is refused.
 */
#include "rw_calls.h"

/* --- a lease for each ----------------------------------------------------- */

TEST(script_rw, whoever_is_over_is_taken_out_although_others_keep_the_key)
{
    bells p = rw_bells_open();
    EXPECT_INT(side_try(&p, &side_reads, A, "20")->type, REDIS_REPLY_STRING);
    side_take(&p, &side_reads, B);
    EVENTUALLY(SOON, key_ttl(p.sv, MARK(A)) == -2);
    expect_side_busy(side_try(&p, &side_writes, C, "60000"));
    EXPECT(!job_has(&p, A) && job_has(&p, B));
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 1);
    EXPECT_INT(side_release(&p, &side_reads, B), 1);
    side_take(&p, &side_writes, C);
    bells_close(&p);
}

TEST(script_rw, who_waits_is_told_when_the_last_lease_ends)
{
    bells p = rw_bells_open();
    EXPECT_INT(side_try(&p, &side_reads, A, "5000")->type, REDIS_REPLY_STRING);
    server_cmd(p.sv, "PEXPIRE job 60000"); /* Java's, say */
    redisReply *r = side_try(&p, &side_writes, B, "60000");
    expect_side_busy(r);
    EXPECT_BETWEEN(r->element[1]->integer, 1, 5000);
    server_cmd(p.sv, "HSET job java:1 1"); /* whose lease is not known */
    EXPECT(side_try(&p, &side_writes, B, "60000")->element[1]->integer > 50000);
    bells_close(&p);
}

TEST(script_rw, renewals_only_prolong)
{
    bells p = rw_bells_open();
    char keys[300];
    snprintf(keys, sizeof keys, "4 job " TOKEN " " LEASES " " MARK(A));
    side_take(&p, &side_reads, A);
    EXPECT_INT(side_run(&p, side_reads.l->renew, keys, A, "90000")->integer, 1);
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, MARK(A)) > 80000);
    EXPECT_INT(side_run(&p, side_reads.l->renew, keys, A, "1000")->integer, 1);
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, MARK(A)) > 80000);
    server_cmd(p.sv, "PEXPIRE " TOKEN " 1000");
    EXPECT_INT(side_run(&p, side_reads.l->renew, keys, A, "0")->integer, 1);
    EXPECT(key_ttl(p.sv, TOKEN) <= 1000);
    EXPECT_INT(side_run(&p, side_reads.l->renew, keys, A, "1000")->integer, 1);
    EXPECT(key_ttl(p.sv, TOKEN) > 200000);
    EXPECT_INT(side_run(&p, side_reads.l->renew, keys, B, "1000")->integer, 0);
    EXPECT_INT(side_run(&p, side_reads.l->renew, keys, A, "1000 5")->integer,
               0);
    EXPECT_INT(side_run(&p, side_reads.l->extend, keys, A, "1000")->integer, 1);
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 1, 1000);
    EXPECT_BETWEEN(key_ttl(p.sv, MARK(A)), 1, 1000);
    bells_close(&p);
}

/* Its key is prolonged now and then only. */
TEST(script_rw, a_lease_is_known_for_a_quarter_of_an_hour_when_it_is_over)
{
    enum { STEP_MS = 400000, BEHIND_MS = 900000 };
    bells p = rw_bells_open();
    char keys[300], ms[20];
    snprintf(keys, sizeof keys, "4 job " TOKEN " " LEASES " " MARK(A));
    side_take(&p, &side_reads, A);
    for (int i = 1; i <= 12; i++) {
        snprintf(ms, sizeof ms, "%d", i * STEP_MS);
        EXPECT_INT(side_run(&p, side_reads.l->renew, keys, A, ms)->integer, 1);
        EXPECT(key_ttl(p.sv, LEASES) > i * STEP_MS + BEHIND_MS);
    }
    bells_close(&p);
}

static long long ends_ms(server *sv)
{
    return atoll(server_str(sv, "ZSCORE " LEASES " " A));
}

static void expect_to_renew_many(bells *p, const char *sha)
{
    side_take(p, &side_reads, A);
    long long before_ms = ends_ms(p->sv);
    server_cmd(p->sv, "SET x 1");
    server_cmd(p->sv, "PEXPIRE " TOKEN " 1000");
    server_cmd(p->sv, "PERSIST " MARK(A));
    redisReply *r = server_cmd(
        p->sv,
        "EVALSHA %s 10 job job x " LEASES " " LEASES
        " x:l " MARK(A) " " MARK(B) " x:m " TOKEN " 90000 " A " " B " " C,
        sha);
    EXPECT_STR(r->str, "10e");
    EXPECT(key_ttl(p->sv, "job") > 80000 && key_ttl(p->sv, TOKEN) > 200000);
    EXPECT_BETWEEN(key_ttl(p->sv, MARK(A)), 80000, 90000);
    EXPECT(ends_ms(p->sv) > before_ms + 20000);
    EXPECT(!key_exists(p->sv, MARK(B)));
    r = server_cmd(p->sv, "EVALSHA %s 1 job 90000 " A, sha);
    EXPECT_INT(r->type, REDIS_REPLY_ERROR);
}

TEST(script_rw, many_are_renewed_by_one_call)
{
    bells p = rw_bells_open();
    expect_to_renew_many(&p, script_sha(side_reads.l->renew_many));
    bells_close(&p);
}

TEST(script_rw, servers_before_7_renew_many_by_other_commands)
{
    bells p = rw_bells_open();
    const char *text = script_before_7(script_text("read/renew_many"));
    char sha[64];
    EXPECT(text);
    snprintf(sha, sizeof sha, "%s",
             server_cmd(p.sv, "SCRIPT LOAD %s", text)->str);
    expect_to_renew_many(&p, sha);
    bells_close(&p);
}

TEST(script_rw, a_short_extend_ends_it_although_others_keep_the_key)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    side_take(&p, &side_reads, B);
    EXPECT_INT(side_run(&p, side_reads.l->extend,
                        "4 job " TOKEN " " LEASES " " MARK(A), A, "20")
                   ->integer,
               1);
    EXPECT(key_ttl(p.sv, "job") > 50000);
    EVENTUALLY(SOON, key_ttl(p.sv, MARK(A)) == -2);
    expect_side_busy(side_try(&p, &side_writes, C, "60000"));
    EXPECT(!job_has(&p, A) && job_has(&p, B));
    bells_close(&p);
}

/* --- bells ---------------------------------------------------------------- */

/* As in a cluster, where it is a channel of the name's slot. */
TEST(script_rw, whose_bell_is_sharded_is_granted_it_by_a_sharded_message)
{
    bells p = rw_bells_open();
    redisContext *ear = connect_to(server_path(p.sv), SOON);
    redisReply *r = redisCommand(ear, "SSUBSCRIBE rlock_sbell:{job}:1");
    EXPECT(r);
    if (r->type == REDIS_REPLY_ERROR)
        SKIP("the server has no sharded channels");
    freeReplyObject(r);
    side_take(&p, &side_writes, A);
    side_try(&p, &side_writes, B, "60000 1 rlock_sbell:{job}:1 0 5");
    EXPECT_INT(side_release(&p, &side_writes, A), 2);
    EXPECT(job_has(&p, B ":write"));
    EXPECT_INT(redisGetReply(ear, (void **)&r), REDIS_OK);
    EXPECT_STR(r->element[0]->str, "smessage");
    EXPECT_CONTAINS(r->element[2]->str, UUID_OF("b"));
    freeReplyObject(r);
    redisFree(ear);
    bells_close(&p);
}

/* --- signs of life -------------------------------------------------------- */

#define DEAF "60000 1 -" BELL_OF("7") " 0 5"

static long long sign_of_life_ms(bells *p)
{
    return server_int(
        p->sv, "EVAL %s 1 " WANTS " =" BELL_OF("7"),
        "local t = redis.call('TIME') "
        "return redis.call('HGET', KEYS[1], ARGV[1]):match('^%d+')"
        " - t[1] * 1000 - math.floor(t[2] / 1000)");
}

/* It may have been killed before it heard, and others of its stand, too. */
TEST(script_rw, whose_client_is_deaf_counts_as_alive_for_one_claim)
{
    bells p = rw_bells_open();
    side_take(&p, &side_writes, A);
    side_try(&p, &side_writes, B, DEAF);
    side_try(&p, &side_writes, C, DEAF);
    EXPECT(sign_of_life_ms(&p) > 5000);
    EXPECT_INT(side_release(&p, &side_writes, A), 2);
    EXPECT(job_has(&p, B ":write"));
    EXPECT_BETWEEN(sign_of_life_ms(&p), 1000, 3000);
    side_try(&p, &side_writes, C, DEAF); /* it lives */
    EXPECT(sign_of_life_ms(&p) > 5000);
    bells_close(&p);
}

/* --- being ended ---------------------------------------------------------- */

#define FORCED " 5 job " TOKEN " " LINE " " WANTS " " LEASES " " CHANNEL

static long long force(bells *p, const side *x)
{
    return server_int(p->sv, "EVALSHA %s" FORCED,
                      script_sha(x->l->force_release));
}

TEST(script_rw, force_ends_one_side_and_lets_in_who_waits)
{
    bells p = rw_bells_open();
    EXPECT_INT(force(&p, &side_reads), 0);
    side_take(&p, &side_reads, A);
    side_take(&p, &side_reads, B);
    EXPECT_INT(force(&p, &side_writes), 0);
    side_stand(&p, &side_writes, C, 0);
    EXPECT_INT(force(&p, &side_reads), 1);
    EXPECT(job_has(&p, C ":write") && !job_has(&p, A) && !job_has(&p, B));
    EXPECT_INT(force(&p, &side_reads), 0);
    side_take_too(&p, &side_reads, D, C ":write");
    EXPECT_INT(force(&p, &side_reads), 1);
    EXPECT_STR(job_mode(&p), "write");
    EXPECT(job_has(&p, C ":write") && !job_has(&p, D));
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 1);
    side_take_too(&p, &side_reads, D, C ":write");
    EXPECT_INT(force(&p, &side_writes), 1);
    EXPECT_STR(job_mode(&p), "read");
    EXPECT(job_has(&p, D) && !job_has(&p, C ":write"));
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 1);
    bells_close(&p);
}

TEST(script_rw, force_frees_what_one_writes)
{
    bells p = rw_bells_open();
    side_take(&p, &side_writes, A);
    EXPECT_INT(force(&p, &side_writes), 1);
    EXPECT_STR(rw_heard(&p), "1");
    expect_job_gone(&p);
    bells_close(&p);
}

TEST(script_rw, force_finds_nobody_whose_lease_is_over)
{
    bells p = rw_bells_open();
    EXPECT_INT(side_try(&p, &side_reads, A, "20")->type, REDIS_REPLY_STRING);
    server_cmd(p.sv, "PEXPIRE job 60000"); /* Java's, say */
    EVENTUALLY(SOON, key_ttl(p.sv, MARK(A)) == -2);
    EXPECT_INT(force(&p, &side_reads), 0);
    expect_job_gone(&p);
    bells_close(&p);
}

TEST(script_rw, drop_needs_one_key)
{
    bells p = rw_bells_open();
    const char *read = script_sha(side_reads.l->drop),
               *write = script_sha(side_writes.l->drop);
    side_take(&p, &side_writes, A);
    side_take_too(&p, &side_reads, B, A ":write");
    EXPECT_INT(server_int(p.sv, "EVALSHA %s 1 job " B, write), 0);
    EXPECT_INT(server_int(p.sv, "EVALSHA %s 1 job " A, write), 1);
    EXPECT_STR(job_mode(&p), "read");
    EXPECT_INT(server_int(p.sv, "EVALSHA %s 1 job " B, read), 1);
    EXPECT(!key_exists(p.sv, "job"));
    bells_close(&p);
}

/* --- what is refused ------------------------------------------------------ */

TEST(script_rw, words_that_cannot_be_are_refused)
{
    bells p = rw_bells_open();
    EXPECT_INT(side_try(&p, &side_reads, A, "0")->type, REDIS_REPLY_ERROR);
    EXPECT_INT(side_try(&p, &side_writes, A, "x")->type, REDIS_REPLY_ERROR);
    EXPECT_INT(side_try(&p, &side_reads, A, "60000 0 - 0 0")->type,
               REDIS_REPLY_ERROR);
    EXPECT_INT(side_run(&p, side_reads.l->release, side_keys(&side_reads, A), A,
                        "- x 0")
                   ->type,
               REDIS_REPLY_ERROR);
    EXPECT_INT(side_run(&p, side_reads.l->renew,
                        "4 job " TOKEN " " LEASES " " MARK(A), A, "-5")
                   ->type,
               REDIS_REPLY_ERROR);
    EXPECT_INT(server_int(p.sv, "DBSIZE"), 0);
    bells_close(&p);
}

TEST(script_rw, a_lock_that_gets_no_lease_does_not_stay)
{
    bells p = rw_bells_open();
    server_cmd(p.sv, "ACL SETUSER default -pexpire");
    EXPECT_INT(side_try(&p, &side_writes, A, "60000")->type, REDIS_REPLY_ERROR);
    EXPECT(!key_exists(p.sv, "job"));
    bells_close(&p);
}

/* What is refused is refused before anything is written. */
TEST(script_rw, a_server_out_of_memory_grants_nothing_and_lets_go)
{
    bells p = rw_bells_open();
    side_take(&p, &side_reads, A);
    side_take(&p, &side_reads, B);
    server_cmd(p.sv, "CONFIG SET maxmemory 1");
    EXPECT_INT(side_try(&p, &side_reads, C, "60000")->type, REDIS_REPLY_ERROR);
    EXPECT(!job_has(&p, C) && !key_exists(p.sv, MARK(C)));
    EXPECT_INT(side_release(&p, &side_reads, A), 1);
    EXPECT_INT(side_release(&p, &side_reads, B), 1);
    expect_job_gone(&p);
    EXPECT_INT(side_try(&p, &side_writes, C, "60000")->type, REDIS_REPLY_ERROR);
    EXPECT(!key_exists(p.sv, "job"));
    bells_close(&p);
}
