/*
 * The scripts of read-write locks by themselves, as lua/README.md describes them:
 * what a server keeps, who is let in by whom, and what they answer.
 */
#include "bells.h"

#define A HOLDER_OF("a")
#define B HOLDER_OF("b")
#define C HOLDER_OF("c")
#define D HOLDER_OF("d")

#define LINE    "rlock_line:{job}"
#define WANTS   "rlock_wants:{job}"
#define LEASES  "rlock_leases:{job}"
#define TOKEN   "rlock_token:{job}"
#define MARK(h) "{job}:" h ":rwlock_timeout:1"
#define CHANNEL "redisson_rwlock:{job}"

/* Who hears the bell 1 and Redisson's channel. */
static bells place_open(const char *args)
{
    return bells_open_at(args, BELL_OF("1"), CHANNEL);
}

/* The next message, on either; valid until the next. */
static const char *heard(bells *p)
{
    return strchr(bells_heard(p), '<') + 1;
}

/* A side's scripts, and whether it has a mark. */
typedef struct side {
    const rl_layout *l;
    bool marked;
} side;

static const side reads = {&rl_layouts[RL_LAYOUT_READ], true};
static const side writes = {&rl_layouts[RL_LAYOUT_WRITE], false};

/* The keys of acquire and release. */
static const char *keys_of(const side *x, const char *holder)
{
    static char text[600];
    snprintf(text, sizeof text,
             "%d job " TOKEN " rlock_undone:{job}:%s " LINE " " WANTS " " LEASES
             "%s%s%s",
             6 + x->marked, holder + 9, x->marked ? " {job}:" : "",
             x->marked ? holder : "", x->marked ? ":rwlock_timeout:1" : "");
    return text;
}

/* words: those behind the holder. */
static redisReply *run(bells *p, rl_script_id script, const char *keys,
                       const char *holder, const char *words)
{
    char cmd[1400];
    snprintf(cmd, sizeof cmd, "EVALSHA %s %s %s %s", script_sha(script), keys,
             holder, words);
    return server_cmd(p->sv, cmd);
}

static redisReply *try_for(bells *p, const side *x, const char *holder,
                           const char *words)
{
    return run(p, x->l->acquire, keys_of(x, holder), holder, words);
}

static uint64_t take(bells *p, const side *x, const char *holder)
{
    redisReply *r = try_for(p, x, holder, "60000");
    EXPECT_INT(r->type, REDIS_REPLY_STRING);
    return strtoull(r->str, NULL, 10);
}

/* By the side's own words, for who has the other one as that field. */
static redisReply *take_too(bells *p, const side *x, const char *holder,
                            const char *other)
{
    char cmd[1400];
    snprintf(cmd, sizeof cmd, "EVALSHA %s %s %s 60000 1 %%s 0 0 %s",
             script_sha(x->l->acquire), keys_of(x, holder), holder, other);
    return server_cmd(p->sv, cmd, "");
}

static void stand(bells *p, const side *x, const char *holder, int rank)
{
    redisReply *r = try_for(p, x, holder, "60000 1 " BELL_OF("1") " 0 1000");
    EXPECT_INT(r->elements, 6);
    EXPECT_INT(r->element[0]->integer, 0);
    EXPECT_INT(r->element[4]->integer, rank);
}

static void expect_busy(const redisReply *r)
{
    EXPECT_INT(r->elements, 7);
    EXPECT_INT(r->element[0]->integer, 0);
    EXPECT_INT(r->element[4]->integer, -1);
}

static void expect_code(const redisReply *r, int code)
{
    EXPECT_INT(r->elements, 1);
    EXPECT_INT(r->element[0]->integer, code);
}

static long long release(bells *p, const side *x, const char *holder)
{
    return run(p, x->l->release, keys_of(x, holder), holder, CHANNEL)->integer;
}

static const char *mode(bells *p)
{
    redisReply *r = server_cmd(p->sv, "HGET job mode");
    return r->type == REDIS_REPLY_STRING ? r->str : "free";
}

static bool has(bells *p, const char *field)
{
    return server_int(p->sv, "HEXISTS job %s", field) == 1;
}

static void expect_gone(bells *p)
{
    EXPECT(!key_exists(p->sv, "job") && !key_exists(p->sv, LEASES));
    EXPECT(!key_exists(p->sv, MARK(A)) && !key_exists(p->sv, MARK(B)));
}

/* --- what is kept --------------------------------------------------------- */

TEST(script_rw, who_reads_is_kept_as_redisson_keeps_it)
{
    bells p = place_open(NULL);
    uint64_t token = take(&p, &reads, A);
    EXPECT_INT(take(&p, &reads, B), token);
    EXPECT_STR(mode(&p), "read");
    EXPECT_INT(server_int(p.sv, "HLEN job"), 3);
    EXPECT_STR(server_str(p.sv, "HGET job " A), "1");
    EXPECT_STR(server_str(p.sv, "GET " MARK(A)), "1");
    EXPECT_BETWEEN(key_ttl(p.sv, MARK(A)), 50000, 60000);
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 50000, 60000);
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 2);
    EXPECT(key_ttl(p.sv, LEASES) > 3600000);
    EXPECT_INT(release(&p, &reads, A), 1);
    EXPECT(!has(&p, A) && has(&p, B) && !key_exists(p.sv, MARK(A)));
    EXPECT_INT(release(&p, &reads, B), 1);
    EXPECT_STR(heard(&p), "0"); /* once: whoever is left had nobody to tell */
    expect_gone(&p);
    EXPECT_INT(release(&p, &reads, B), 0);
    bells_close(&p);
}

TEST(script_rw, who_writes_is_kept_as_redisson_keeps_it)
{
    bells p = place_open(NULL);
    uint64_t token = take(&p, &writes, A);
    EXPECT_STR(mode(&p), "write");
    EXPECT_STR(server_str(p.sv, "HGET job " A ":write"), "1");
    EXPECT_INT(server_int(p.sv, "HLEN job"), 2);
    EXPECT(!key_exists(p.sv, LEASES));
    expect_busy(try_for(&p, &reads, B, "60000"));
    expect_busy(try_for(&p, &writes, B, "60000"));
    EXPECT_INT(release(&p, &writes, A), 1);
    EXPECT_STR(heard(&p), "1");
    expect_gone(&p);
    EXPECT(take(&p, &writes, B) > token);
    bells_close(&p);
}

/* A writer of Java's that was forced leaves them. */
TEST(script_rw, a_grant_on_a_free_key_deletes_the_leases_that_are_left)
{
    bells p = place_open(NULL);
    take(&p, &reads, A);
    server_cmd(p.sv, "DEL job");
    take(&p, &writes, B);
    EXPECT(!key_exists(p.sv, LEASES));
    EXPECT_INT(release(&p, &writes, B), 1);
    take(&p, &reads, A);
    server_cmd(p.sv, "DEL job");
    take(&p, &reads, B);
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 1);
    bells_close(&p);
}

TEST(script_rw, levels_are_set_and_need_the_hold)
{
    bells p = place_open(NULL);
    take(&p, &reads, A);
    EXPECT_INT(try_for(&p, &reads, A, "90000 3 - 0 0")->type,
               REDIS_REPLY_STRING);
    EXPECT_STR(server_str(p.sv, "HGET job " A), "3");
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, MARK(A)) > 80000);
    EXPECT_INT(try_for(&p, &reads, A, "1000 2 - 0 0")->type,
               REDIS_REPLY_STRING);
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, MARK(A)) > 80000);
    expect_code(try_for(&p, &reads, B, "60000 2 - 0 0"), -1);
    EXPECT_INT(
        run(&p, reads.l->release, keys_of(&reads, A), A, "- 1 0")->integer, 1);
    EXPECT_STR(server_str(p.sv, "HGET job " A), "1");
    EXPECT_INT(
        run(&p, reads.l->release, keys_of(&reads, B), B, "- 1 0")->integer, 0);
    bells_close(&p);
}

TEST(script_rw, who_has_given_up_is_refused)
{
    bells p = place_open(NULL);
    EXPECT_INT(
        run(&p, reads.l->release, keys_of(&reads, A), A, "- 0 60000")->integer,
        0);
    expect_code(try_for(&p, &reads, A, "60000"), -2);
    take(&p, &writes, B);
    EXPECT_INT(run(&p, writes.l->release, keys_of(&writes, B), B, "- 0 60000")
                   ->integer,
               1);
    expect_code(try_for(&p, &writes, B, "60000"), -2);
    bells_close(&p);
}

/* --- a lease for each ----------------------------------------------------- */

TEST(script_rw, whoever_is_over_is_taken_out_although_others_keep_the_key)
{
    bells p = place_open(NULL);
    EXPECT_INT(try_for(&p, &reads, A, "20")->type, REDIS_REPLY_STRING);
    take(&p, &reads, B);
    EVENTUALLY(SOON, key_ttl(p.sv, MARK(A)) == -2);
    expect_busy(try_for(&p, &writes, C, "60000"));
    EXPECT(!has(&p, A) && has(&p, B));
    EXPECT_INT(release(&p, &reads, B), 1);
    take(&p, &writes, C);
    bells_close(&p);
}

TEST(script_rw, who_waits_is_told_when_the_last_lease_ends)
{
    bells p = place_open(NULL);
    EXPECT_INT(try_for(&p, &reads, A, "5000")->type, REDIS_REPLY_STRING);
    server_cmd(p.sv, "PEXPIRE job 60000"); /* Java's, say */
    redisReply *r = try_for(&p, &writes, B, "60000");
    expect_busy(r);
    EXPECT_BETWEEN(r->element[1]->integer, 1, 5000);
    server_cmd(p.sv, "HSET job java:1 1"); /* whose lease is not known */
    EXPECT(try_for(&p, &writes, B, "60000")->element[1]->integer > 50000);
    bells_close(&p);
}

TEST(script_rw, renewals_only_prolong)
{
    bells p = place_open(NULL);
    char keys[300];
    snprintf(keys, sizeof keys, "4 job " TOKEN " " LEASES " " MARK(A));
    take(&p, &reads, A);
    EXPECT_INT(run(&p, reads.l->renew, keys, A, "90000")->integer, 1);
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, MARK(A)) > 80000);
    EXPECT_INT(run(&p, reads.l->renew, keys, A, "1000")->integer, 1);
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, MARK(A)) > 80000);
    server_cmd(p.sv, "PEXPIRE " TOKEN " 1000");
    EXPECT_INT(run(&p, reads.l->renew, keys, A, "0")->integer, 1);
    EXPECT(key_ttl(p.sv, TOKEN) <= 1000);
    EXPECT_INT(run(&p, reads.l->renew, keys, A, "1000")->integer, 1);
    EXPECT(key_ttl(p.sv, TOKEN) > 200000);
    EXPECT_INT(run(&p, reads.l->renew, keys, B, "1000")->integer, 0);
    EXPECT_INT(run(&p, reads.l->renew, keys, A, "1000 5")->integer, 0);
    EXPECT_INT(run(&p, reads.l->extend, keys, A, "1000")->integer, 1);
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 1, 1000);
    EXPECT_BETWEEN(key_ttl(p.sv, MARK(A)), 1, 1000);
    bells_close(&p);
}

TEST(script_rw, many_are_renewed_by_one_call)
{
    bells p = place_open(NULL);
    take(&p, &reads, A);
    server_cmd(p.sv, "SET x 1");
    server_cmd(p.sv, "PEXPIRE " TOKEN " 1000");
    redisReply *r = server_cmd(
        p.sv,
        "EVALSHA %s 10 job job x " LEASES " " LEASES
        " x:l " MARK(A) " " MARK(B) " x:m " TOKEN " 90000 " A " " B " " C,
        script_sha(reads.l->renew_many));
    EXPECT_STR(r->str, "10e");
    EXPECT(key_ttl(p.sv, "job") > 80000 && key_ttl(p.sv, TOKEN) > 200000);
    EXPECT(!key_exists(p.sv, MARK(B)));
    r = server_cmd(p.sv, "EVALSHA %s 1 job 90000 " A,
                   script_sha(reads.l->renew_many));
    EXPECT_INT(r->type, REDIS_REPLY_ERROR);
    bells_close(&p);
}

TEST(script_rw, a_short_extend_ends_it_although_others_keep_the_key)
{
    bells p = place_open(NULL);
    take(&p, &reads, A);
    take(&p, &reads, B);
    EXPECT_INT(
        run(&p, reads.l->extend, "4 job " TOKEN " " LEASES " " MARK(A), A, "20")
            ->integer,
        1);
    EXPECT(key_ttl(p.sv, "job") > 50000);
    EVENTUALLY(SOON, key_ttl(p.sv, MARK(A)) == -2);
    expect_busy(try_for(&p, &writes, C, "60000"));
    EXPECT(!has(&p, A) && has(&p, B));
    bells_close(&p);
}

/* --- the line ------------------------------------------------------------- */

TEST(script_rw, a_release_lets_in_all_who_read_up_to_the_next_who_writes)
{
    bells p = place_open(NULL);
    take(&p, &writes, A);
    stand(&p, &reads, B, 0);
    stand(&p, &reads, C, 1);
    stand(&p, &writes, D, 2);
    EXPECT(key_ttl(p.sv, MARK(B)) > 20000); /* before it has anything */
    expect_busy(try_for(&p, &reads, HOLDER_OF("e"), "60000"));
    EXPECT_INT(release(&p, &writes, A), 2);
    char first[700];
    snprintf(first, sizeof first, "%s", heard(&p));
    EXPECT(strncmp(first, "rlock_grant:" UUID_OF("b"), 48) == 0);
    const char *second = heard(&p);
    EXPECT(strncmp(second, "rlock_grant:" UUID_OF("c"), 48) == 0);
    EXPECT_STR(first + 48, second + 48); /* one token */
    EXPECT_STR(heard(&p), "1");
    EXPECT(has(&p, B) && has(&p, C) && !has(&p, D ":write"));
    EXPECT_BETWEEN(key_ttl(p.sv, "job"), 1, 3000);
    EXPECT_INT(release(&p, &reads, B), 2); /* there is one in line */
    EXPECT_INT(release(&p, &reads, C), 2);
    EXPECT(strncmp(heard(&p), "rlock_grant:" UUID_OF("d"), 48) == 0);
    EXPECT(has(&p, D ":write") && !key_exists(p.sv, LINE));
    bells_close(&p);
}

TEST(script_rw, who_gives_up_lets_in_those_behind)
{
    bells p = place_open(NULL);
    take(&p, &reads, A);
    stand(&p, &writes, B, 0);
    stand(&p, &reads, C, 1);
    EXPECT_INT(release(&p, &writes, B), 0);
    EXPECT(has(&p, C) && !key_exists(p.sv, LINE));
    EXPECT(strncmp(heard(&p), "rlock_grant:" UUID_OF("c"), 48) == 0);
    bells_close(&p);
}

TEST(script_rw, who_comes_first_in_line_lets_in_those_behind_him)
{
    bells p = place_open(NULL);
    take(&p, &writes, A);
    stand(&p, &reads, B, 0);
    stand(&p, &reads, C, 1);
    server_cmd(p.sv, "DEL job"); /* its lease has run out */
    redisReply *r = try_for(&p, &reads, B, "60000 1 " BELL_OF("1") " 0 1000");
    EXPECT_INT(r->type, REDIS_REPLY_STRING);
    EXPECT(has(&p, B) && has(&p, C));
    bells_close(&p);
}

/* --- both sides of one owner ---------------------------------------------- */

TEST(script_rw, the_only_one_who_reads_may_write_before_all_in_line)
{
    bells p = place_open(NULL);
    uint64_t before = take(&p, &reads, A);
    stand(&p, &writes, C, 0);
    redisReply *r = take_too(&p, &writes, B, A);
    EXPECT_INT(r->type, REDIS_REPLY_STRING);
    EXPECT(strtoull(r->str, NULL, 10) > before);
    EXPECT_STR(mode(&p), "write");
    EXPECT(has(&p, A) && has(&p, B ":write") && !has(&p, C ":write"));
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 2);
    EXPECT_INT(release(&p, &writes, B), 2);
    EXPECT_STR(mode(&p), "read");
    EXPECT_STR(heard(&p), "1");
    EXPECT_INT(release(&p, &reads, A), 2);
    EXPECT(has(&p, C ":write"));
    bells_close(&p);
}

TEST(script_rw, whoever_reads_beside_others_is_refused_at_once)
{
    bells p = place_open(NULL);
    take(&p, &reads, A);
    EXPECT_INT(try_for(&p, &reads, C, "20")->type, REDIS_REPLY_STRING);
    expect_code(take_too(&p, &writes, B, A), -3);
    EXPECT_STR(mode(&p), "read");
    EVENTUALLY(SOON, key_ttl(p.sv, MARK(C)) == -2); /* that one is over */
    EXPECT_INT(take_too(&p, &writes, B, A)->type, REDIS_REPLY_STRING);
    bells_close(&p);
}

TEST(script_rw, who_writes_may_read_and_goes_on_reading)
{
    bells p = place_open(NULL);
    uint64_t token = take(&p, &writes, A);
    stand(&p, &reads, C, 0);
    redisReply *r = take_too(&p, &reads, B, A ":write");
    EXPECT_INT(strtoull(r->str, NULL, 10), token);
    EXPECT_STR(mode(&p), "write");
    EXPECT_INT(server_int(p.sv, "ZCARD " LEASES), 2);
    EXPECT_INT(release(&p, &writes, A), 2);
    EXPECT_STR(mode(&p), "read");
    EXPECT(has(&p, B) && has(&p, C) && !has(&p, A ":write"));
    bells_close(&p);
}

TEST(script_rw, a_writer_that_reads_has_a_lease_of_its_own)
{
    bells p = place_open(NULL);
    take(&p, &reads, A);
    char keys[300];
    EXPECT_INT(take_too(&p, &writes, B, A)->type, REDIS_REPLY_STRING);
    snprintf(keys, sizeof keys, "3 job " TOKEN " " LEASES);
    EXPECT_INT(run(&p, writes.l->extend, keys, B, "20")->integer, 1);
    EXPECT(key_ttl(p.sv, "job") > 50000);
    EVENTUALLY(SOON,
               try_for(&p, &reads, C, "60000")->type == REDIS_REPLY_STRING);
    EXPECT_STR(mode(&p), "read");
    EXPECT(has(&p, A) && !has(&p, B ":write"));
    EXPECT_INT(run(&p, writes.l->renew, keys, B, "60000")->integer, 0);
    bells_close(&p);
}

/* --- the rest ------------------------------------------------------------- */

#define INSPECTED " 2 job " LEASES

TEST(script_rw, each_side_tells_of_itself)
{
    bells p = place_open(NULL);
    const char *of_reads = script_sha(reads.l->inspect);
    const char *of_writes = script_sha(writes.l->inspect);
    EXPECT_INT(server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_reads)->elements, 0);
    take(&p, &writes, A);
    EXPECT_INT(server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_reads)->elements, 0);
    redisReply *r = server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_writes);
    EXPECT_STR(r->element[0]->str, A);
    EXPECT_STR(r->element[1]->str, "1");
    EXPECT(r->element[2]->integer > 50000);
    take_too(&p, &reads, B, A ":write");
    r = server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_reads);
    EXPECT_STR(r->element[0]->str, B);
    EXPECT_INT(release(&p, &writes, A), 1);
    EXPECT_INT(server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_writes)->elements,
               0);
    server_cmd(p.sv, "ZADD " LEASES " 1 " B); /* it is over */
    EXPECT_INT(server_cmd(p.sv, "EVALSHA %s" INSPECTED, of_reads)->elements, 0);
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
    bells p = place_open(NULL);
    expect_state(&p, "0 0 0");
    take(&p, &reads, A);
    take(&p, &reads, B);
    stand(&p, &writes, C, 0);
    expect_state(&p, "1 2 1");
    server_cmd(p.sv, "ZADD " LEASES " 1 " B);
    expect_state(&p, "1 1 1");
    EXPECT_INT(release(&p, &reads, A), 2);
    expect_state(&p, "2 1 0");
    take_too(&p, &reads, D, C ":write");
    expect_state(&p, "2 1 0");
    bells_close(&p);
}

#define FORCED " 5 job " TOKEN " " LINE " " WANTS " " LEASES " " CHANNEL

static long long force(bells *p, const side *x)
{
    return server_int(p->sv, "EVALSHA %s" FORCED,
                      script_sha(x->l->force_release));
}

TEST(script_rw, force_ends_one_side_and_lets_in_who_waits)
{
    bells p = place_open(NULL);
    EXPECT_INT(force(&p, &reads), 0);
    take(&p, &reads, A);
    take(&p, &reads, B);
    EXPECT_INT(force(&p, &writes), 0);
    stand(&p, &writes, C, 0);
    EXPECT_INT(force(&p, &reads), 1);
    EXPECT(has(&p, C ":write") && !has(&p, A) && !has(&p, B));
    EXPECT_INT(force(&p, &reads), 0);
    take_too(&p, &reads, D, C ":write");
    EXPECT_INT(force(&p, &reads), 1);
    EXPECT_STR(mode(&p), "write");
    take_too(&p, &reads, D, C ":write");
    EXPECT_INT(force(&p, &writes), 1);
    EXPECT_STR(mode(&p), "read");
    EXPECT(has(&p, D));
    bells_close(&p);
}

TEST(script_rw, drop_needs_one_key)
{
    bells p = place_open(NULL);
    const char *read = script_sha(reads.l->drop),
               *write = script_sha(writes.l->drop);
    take(&p, &writes, A);
    take_too(&p, &reads, B, A ":write");
    EXPECT_INT(server_int(p.sv, "EVALSHA %s 1 job " B, write), 0);
    EXPECT_INT(server_int(p.sv, "EVALSHA %s 1 job " A, write), 1);
    EXPECT_STR(mode(&p), "read");
    EXPECT_INT(server_int(p.sv, "EVALSHA %s 1 job " B, read), 1);
    EXPECT(!key_exists(p.sv, "job"));
    bells_close(&p);
}

TEST(script_rw, words_that_cannot_be_are_refused)
{
    bells p = place_open(NULL);
    EXPECT_INT(try_for(&p, &reads, A, "0")->type, REDIS_REPLY_ERROR);
    EXPECT_INT(try_for(&p, &writes, A, "x")->type, REDIS_REPLY_ERROR);
    EXPECT_INT(try_for(&p, &reads, A, "60000 0 - 0 0")->type,
               REDIS_REPLY_ERROR);
    EXPECT_INT(run(&p, reads.l->release, keys_of(&reads, A), A, "- x 0")->type,
               REDIS_REPLY_ERROR);
    EXPECT_INT(
        run(&p, reads.l->renew, "4 job " TOKEN " " LEASES " " MARK(A), A, "-5")
            ->type,
        REDIS_REPLY_ERROR);
    EXPECT_INT(server_int(p.sv, "DBSIZE"), 0);
    bells_close(&p);
}

/* What is refused is refused before anything is written. */
TEST(script_rw, a_server_out_of_memory_grants_nothing_and_lets_go)
{
    bells p = place_open(NULL);
    take(&p, &reads, A);
    take(&p, &reads, B);
    server_cmd(p.sv, "CONFIG SET maxmemory 1");
    EXPECT_INT(try_for(&p, &reads, C, "60000")->type, REDIS_REPLY_ERROR);
    EXPECT(!has(&p, C) && !key_exists(p.sv, MARK(C)));
    EXPECT_INT(release(&p, &reads, A), 1);
    EXPECT_INT(release(&p, &reads, B), 1);
    expect_gone(&p);
    EXPECT_INT(try_for(&p, &writes, C, "60000")->type, REDIS_REPLY_ERROR);
    EXPECT(!key_exists(p.sv, "job"));
    bells_close(&p);
}
