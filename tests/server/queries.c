/*
 * Questions: those that the local clock answers, and those that the server
 * answers.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "scene.h"

#define FOREIGN_FIELDS 20000

static scene scene_hosted(void)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.host_id = "db-7";
    return scene_with(server_start(NULL), &opts);
}

/* Asks all that needs no server; adds up so that no call can be left out. */
static int64_t ask_locally(const rlock *lk)
{
    return rlock_is_held(lk) + rlock_hold_count(lk) + rlock_valid_ms(lk) +
           (int64_t)rlock_token(lk);
}

static void expect_not_held(const rlock *lk)
{
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_INT(rlock_valid_ms(lk), 0);
    EXPECT_INT(rlock_token(lk), 0);
}

static intptr_t expect_not_held_here(void *lk)
{
    expect_not_held(lk);
    return 0;
}

static rlock_holder some_holder(void)
{
    rlock_holder h;
    memset(&h, 'x', sizeof h);
    return h;
}

static void expect_zero(const rlock_holder *h)
{
    rlock_holder zero;
    memset(&zero, 0, sizeof zero);
    EXPECT_INT(memcmp(h, &zero, sizeof zero), 0);
}

/* --- by the local clock --------------------------------------------------- */

TEST(queries, local_questions_ask_no_server_while_held)
{
    scene s = scene_hosted();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    long long before = commands(s.sv);
    for (int i = 0; i < 100; i++)
        EXPECT(ask_locally(s.lk) > 0);
    EXPECT_INT(commands(s.sv) - before, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(queries, local_questions_ask_no_server_while_free)
{
    scene s = scene_hosted();
    long long before = commands(s.sv);
    for (int i = 0; i < 100; i++)
        expect_not_held(s.lk);
    EXPECT_INT(commands(s.sv) - before, 1);
    scene_stop(&s);
}

TEST(queries, local_questions_are_answered_without_a_server)
{
    scene s = scene_hosted();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_kill(s.sv);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 30000);
    EXPECT(rlock_token(s.lk) > 0);
    scene_stop(&s);
}

TEST(queries, a_hold_is_seen_through_every_handle_of_its_thread_only)
{
    scene s = scene_hosted();
    rlock *other = test_lock(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_is_held(other));
    EXPECT_INT(rlock_hold_count(other), 1);
    test_join(test_spawn(expect_not_held_here, s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_not_held(other);
    rlock_free(other);
    scene_stop(&s);
}

TEST(queries, valid_ms_runs_down_to_the_loss)
{
    scene s = scene_hosted();
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 400), RLOCK_OK);
    int64_t began = test_now_ms();
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 0, 394);
    EVENTUALLY(SOON, !rlock_is_held(s.lk));
    EXPECT_BETWEEN(test_now_ms() - began, 0, 3000);
    expect_not_held(s.lk);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* By the clock the hold ends before the key does. */
TEST(queries, a_hold_is_believed_no_longer_than_the_server_keeps_it)
{
    scene s = scene_hosted();
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    long long valid = rlock_valid_ms(s.lk);
    long long kept = server_int(s.sv, "PTTL job");
    EXPECT_BETWEEN(valid, 1, 20000 - 202);
    EXPECT_BETWEEN(kept - valid, -5000, 20000);
    EXPECT_STATUS(rlock_extend(s.lk, 150), RLOCK_OK);
    EVENTUALLY(SOON, server_int(s.sv, "EXISTS job") == 0);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(queries, a_null_handle_is_not_held)
{
    expect_not_held(NULL);
}

/* --- by the server -------------------------------------------------------- */

TEST(queries, a_free_lock_has_no_holder)
{
    scene s = scene_hosted();
    rlock_holder h = some_holder();
    bool locked = true;
    int64_t ttl = 5;
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_NOT_HELD);
    expect_zero(&h);
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl), RLOCK_OK);
    EXPECT_INT(ttl, -2);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 0);
    scene_stop(&s);
}

TEST(queries, holder_info_takes_the_holder_id_apart)
{
    scene s = scene_hosted();
    rlock_holder h = some_holder();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_STR(h.host, "db-7");
    EXPECT_INT(h.pid, getpid());
    EXPECT_INT(h.tid, syscall(SYS_gettid));
    EXPECT_INT(strlen(h.hold_id), 36);
    EXPECT_INT(h.count, 2);
    EXPECT_BETWEEN(h.ttl_ms, 40000, 60000);
    EXPECT_INT(server_int(s.sv, "HEXISTS job %s", h.raw), 1);
    EXPECT_STR(h.raw + strlen(h.raw) - 36, h.hold_id);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(queries, everybody_sees_the_same_holder)
{
    scene s = scene_hosted();
    rlock_client *other = server_client(s.sv, NULL);
    rlock *lk = test_lock(other, SCENE_LOCK);
    rlock_holder mine, theirs;
    bool locked = false;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(s.lk, &mine, sizeof mine), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(lk, &theirs, sizeof theirs), RLOCK_OK);
    EXPECT_STR(theirs.raw, mine.raw);
    EXPECT_STATUS(rlock_is_locked(lk, &locked), RLOCK_OK);
    EXPECT(locked);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST(queries, ttl_is_what_is_left_of_the_lease)
{
    scene s = scene_hosted();
    int64_t ttl = 0;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl), RLOCK_OK);
    EXPECT_BETWEEN(ttl, 40000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl), RLOCK_OK);
    EXPECT_INT(ttl, -2);
    scene_stop(&s);
}

TEST(queries, a_lock_without_expiry_has_ttl_minus_one)
{
    scene s = scene_hosted();
    rlock_holder h;
    int64_t ttl = 0;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "PERSIST job"), 1);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl), RLOCK_OK);
    EXPECT_INT(ttl, -1);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(h.ttl_ms, -1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

static void expect_foreign(rlock *lk, const char *raw)
{
    rlock_holder h = some_holder();
    EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
    EXPECT_STR(h.raw, raw);
    EXPECT_STR(h.host, "");
    EXPECT_STR(h.hold_id, "");
    EXPECT_INT(h.pid, 0);
    EXPECT_INT(h.tid, 0);
}

/* Redisson's holder. */
TEST(queries, a_foreign_holder_fills_raw_count_and_ttl_only)
{
    scene s = scene_hosted();
    rlock_holder h;
    const char *raw = "8743c9c0-0795-4907-87fd-6c719a6b4586:42";
    server_cmd(s.sv, "HSET job %s 3", raw);
    server_cmd(s.sv, "PEXPIRE job 60000");
    expect_foreign(s.lk, raw);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(h.count, 3);
    EXPECT_BETWEEN(h.ttl_ms, 40000, 60000);
    scene_stop(&s);
}

TEST(queries, holders_that_only_look_like_ours_are_foreign)
{
    static const char *const fields[] = {
        "x",
        ":",
        ":::",
        "a:b:c:d",
        "h:1:2:too-short",
        "h:1:x:8743c9c0-0795-4907-87fd-6c719a6b4586",
        "h:y:2:8743c9c0-0795-4907-87fd-6c719a6b4586",
        "h:1::8743c9c0-0795-4907-87fd-6c719a6b4586",
        "1:2:8743c9c0-0795-4907-87fd-6c719a6b4586"};
    scene s = scene_hosted();
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        server_cmd(s.sv, "DEL job");
        server_cmd(s.sv, "HSET job %s 1", fields[i]);
        expect_foreign(s.lk, fields[i]);
    }
    scene_stop(&s);
}

TEST(queries, a_long_foreign_field_is_cut)
{
    scene s = scene_hosted();
    rlock_holder h;
    char field[2001], cut[512];
    memset(field, 'f', sizeof field - 1);
    field[sizeof field - 1] = '\0';
    snprintf(cut, sizeof cut, "%.511s", field);
    server_cmd(s.sv, "HSET job %s 1", field);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_STR(h.raw, cut);
    scene_stop(&s);
}

TEST(queries, foreign_values_that_are_no_counts_do_no_harm)
{
    static const char *const values[] = {
        "abc", "", "1.5", "-3", "99999999999999999999999999999999999999999"};
    scene s = scene_hosted();
    bool locked = false;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        server_cmd(s.sv, "HSET job holder %b", values[i], strlen(values[i]));
        expect_foreign(s.lk, "holder");
        EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
        EXPECT(locked);
    }
    scene_stop(&s);
}

/* Makes a hash of another program, with n fields that begin with its name. */
static void fill_hash(server *sv, const char *key, int n)
{
    static const char script[] =
        "for i = 1, tonumber(ARGV[1]) do "
        "redis.call('HSET', KEYS[1], KEYS[1] .. i, i) end";
    server_cmd(sv, "EVAL %s 1 %s %d", script, key, n);
    EXPECT_INT(server_int(sv, "HLEN %s", key), n);
}

/* Takes the first n of them out. */
static void thin_out(server *sv, const char *key, int n)
{
    static const char script[] = "for i = 1, tonumber(ARGV[1]) do "
                                 "redis.call('HDEL', KEYS[1], KEYS[1] .. i) "
                                 "end";
    server_cmd(sv, "EVAL %s 1 %s %d", script, key, n);
}

TEST(queries, a_huge_foreign_hash_costs_one_small_reply)
{
    scene s = scene_hosted();
    rlock_holder h;
    int64_t ttl = 0;
    fill_hash(s.sv, SCENE_LOCK, FOREIGN_FIELDS);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT(strncmp(h.raw, SCENE_LOCK, strlen(SCENE_LOCK)) == 0);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl), RLOCK_OK);
    EXPECT_INT(ttl, -1);
    EXPECT_INT(server_int(s.sv, "HLEN job"), FOREIGN_FIELDS);
    scene_stop(&s);
}

/*
 * A hash that has lost most of its fields: a scan's first page can be empty.
 * Whether it is depends on the server's hash seed, hence the many hashes.
 */
TEST(queries, a_sparse_foreign_hash_has_a_holder)
{
    scene s = scene_hosted();
    for (int i = 0; i < 30; i++) {
        char name[16];
        bool locked = false;
        rlock_holder h;
        snprintf(name, sizeof name, "h%d", i);
        fill_hash(s.sv, name, 1000);
        thin_out(s.sv, name, 880);
        rlock *lk = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_is_locked(lk, &locked), RLOCK_OK);
        EXPECT(locked);
        EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
        EXPECT_INT(h.raw[0], 'h');
        rlock_free(lk);
    }
    scene_stop(&s);
}

TEST(queries, questions_change_nothing)
{
    scene s = scene_hosted();
    bool locked;
    int64_t ttl;
    rlock_holder h;
    server_cmd(s.sv, "HSET job holder abc");
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    EXPECT_INT(server_int(s.sv, "PTTL job"), -1);
    EXPECT_STR(server_str(s.sv, "HGET job holder"), "abc");
    scene_stop(&s);
}

TEST(queries, a_failed_question_zeroes_the_holder)
{
    scene s = scene_hosted();
    rlock_holder h = some_holder();
    server_cmd(s.sv, "SET job v");
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_EWRONGTYPE);
    expect_zero(&h);
    scene_stop(&s);
}

TEST(queries, a_dead_server_is_reported_as_such)
{
    scene s = scene_hosted();
    bool locked;
    int64_t ttl;
    rlock_holder h;
    server_kill(s.sv);
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_EIO);
    EXPECT_STATUS(rlock_ttl(s.lk, &ttl), RLOCK_EIO);
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, SCENE_LOCK);
    EXPECT_CONTAINS(rlock_last_error()->message, "unix://");
    scene_stop(&s);
}

/* What a program has that was compiled against an older header, or a newer. */
TEST(queries, a_holder_is_as_long_as_the_program_says)
{
    scene s = scene_hosted();
    struct {
        rlock_holder h;
        char behind[16];
    } program;
    memset(&program, 0xee, sizeof program);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(s.lk, &program.h, sizeof program.h),
                  RLOCK_OK);
    EXPECT_INT(program.h.count, 1);
    EXPECT_INT((unsigned char)program.behind[0], 0xee);
    EXPECT_STATUS(rlock_holder_info(s.lk, &program.h, sizeof program),
                  RLOCK_OK);
    EXPECT_INT(program.behind[0], 0);
    EXPECT_STATUS(rlock_holder_info(s.lk, &program.h, 8), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message,
                    "no rlock_holder has 8 bytes (use sizeof)");
    scene_stop(&s);
}

TEST(queries, questions_need_somewhere_to_put_the_answer)
{
    scene s = scene_hosted();
    bool locked;
    int64_t ttl;
    rlock_holder h;
    EXPECT_STATUS(rlock_is_locked(s.lk, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_ttl(s.lk, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_holder_info(s.lk, NULL, sizeof h), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_is_locked(NULL, &locked), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_ttl(NULL, &ttl), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_holder_info(NULL, &h, sizeof h), RLOCK_EINVAL);
    scene_stop(&s);
}
