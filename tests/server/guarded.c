/* Guarded calls: what they execute, what they answer, and for whom. */
#include "guarded.h"
#include "layouts.h"
#include "multi_scene.h"
#include "nodes.h"

static void expect_error(rlock *lk, const char *script, const char *text)
{
    redisReply *r;
    EXPECT_STATUS(eval(lk, script, &r), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "lock 'job' at unix:");
    EXPECT_CONTAINS(rlock_last_error()->message, text);
    EXPECT(r && r->type == REDIS_REPLY_ERROR);
    EXPECT_CONTAINS(r->str, text);
    freeReplyObject(r);
}

/* --- scripts -------------------------------------------------------------- */

TEST(guarded, a_script_finds_the_keys_and_arguments_that_it_was_given)
{
    scene s = scene_held(0, 0);
    redisReply *r;
    const char *argv[] = {"one", "t\0wo", "", "{\r\n}"};
    const size_t lens[] = {3, 4, 0, 4};
    EXPECT_STATUS(rlock_eval(s.lk,
                             "return {#KEYS, KEYS[1], KEYS[2], #ARGV, ARGV[1], "
                             "ARGV[2], tostring(KEYS[3]), _G.ARGV[2]}",
                             2, 2, argv, lens, &r),
                  RLOCK_OK);
    EXPECT_INT(r->element[0]->integer, 2);
    EXPECT_STR(r->element[1]->str, "one");
    EXPECT_INT(r->element[2]->len, 4);
    EXPECT(memcmp(r->element[2]->str, "t\0wo", 4) == 0);
    EXPECT_INT(r->element[3]->integer, 2);
    EXPECT_INT(r->element[4]->len, 0);
    EXPECT_STR(r->element[5]->str, "{\r\n}");
    EXPECT_STR(r->element[6]->str, "nil");
    EXPECT_STR(r->element[7]->str, "{\r\n}");
    freeReplyObject(r);
    scene_stop(&s);
}

TEST(guarded, a_script_changes_data_under_the_lock)
{
    scene s = scene_held(0, 0);
    redisReply *r;
    const char *argv[] = {"stock", "3"};
    server_cmd(s.sv, "SET stock 10");
    for (int left = 7; left > 0; left -= 3) {
        EXPECT_STATUS(rlock_eval(s.lk,
                                 "return redis.call('DECRBY', KEYS[1], "
                                 "ARGV[1]) -- and no more",
                                 1, 1, argv, NULL, &r),
                      RLOCK_OK);
        EXPECT_INT(r->integer, left);
        freeReplyObject(r);
    }
    scene_stop(&s);
}

TEST(guarded, an_error_of_the_script_is_told_with_its_text)
{
    scene s = scene_held(0, 0);
    server_cmd(s.sv, "SET n 1");
    expect_error(s.lk, "return redis.error_reply('NOSTOCK none left')",
                 "NOSTOCK none left");
    expect_error(s.lk, "return redis.call('LPUSH', 'n', 1)", "WRONGTYPE");
    expect_error(s.lk, "return redis.call('FLY')", "ommand");
    expect_error(s.lk, "return this is no Lua", "ompiling script");
    expect_error(s.lk, "\n\nerror('here')", "user_script:3: here");
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
}

/* It has been executed, whatever it says of itself. */
TEST(guarded, a_script_that_answers_the_words_of_a_server_runs_once)
{
    static const char *const words[] = {
        "BUSY try later",   "OOM not now",          "READONLY for you",
        "NOSCRIPT for you", "WRONGTYPE of mistake", "TRYAGAIN tomorrow",
        "MISCONF of what",  "NOTHELD somebody",     "max number of clients"};
    scene s = scene_held(0, 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char script[200];
        snprintf(script, sizeof script,
                 "redis.call('INCR', 'n') return redis.error_reply('%s')",
                 words[i]);
        expect_error(s.lk, script, words[i]);
        EXPECT_INT(server_int(s.sv, "INCRBY n 0"), i + 1);
    }
    EXPECT(rlock_is_held(s.lk));
    scene_stop(&s);
}

/* Each thread has a lock and a few scripts of its own. */
static intptr_t write_often(void *lk)
{
    char script[80];
    for (int i = 0; i < 50; i++) {
        snprintf(script, sizeof script, "return redis.call('INCR', 'n%d')",
                 i % 40);
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        expect_answer(lk, script, REDIS_REPLY_INTEGER);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    return 0;
}

TEST(guarded, threads_write_at_the_same_time)
{
    enum { THREADS = 6 };
    scene s = scene_start(0, 0);
    rlock *lk[THREADS];
    test_thread *t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        lk[i] = test_lock(s.cl, i < 3 ? SCENE_LOCK : i < 5 ? "two" : "three");
        t[i] = test_spawn(write_often, lk[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        test_join(t[i]);
        rlock_free(lk[i]);
    }
    EXPECT_STR(server_str(s.sv, "GET n3"), "12");
    EXPECT_STR(server_str(s.sv, "GET n39"), "6");
    scene_stop(&s);
}

/* Nothing in the program's text can come before the guard. */
TEST(guarded, a_script_that_ends_the_function_early_changes_nothing_unguarded)
{
    scene s = scene_held(0, 0);
    server_cmd(s.sv, "DEL " SCENE_LOCK);
    rlock_status st =
        eval(s.lk, "return 1 end redis.call('SET', 'n', 1) do local x", NULL);
    EXPECT(st == RLOCK_ESERVER || st == RLOCK_LOST);
    EXPECT(!key_exists(s.sv, "n"));
    scene_stop(&s);
}

TEST(guarded, a_script_is_sent_whole_once_and_again_when_it_was_flushed)
{
    scene s = scene_held(0, 0);
    long long before = server_calls(s.sv, "eval");
    for (int flushes = 1; flushes <= 2; flushes++) {
        for (int i = 0; i < 3; i++)
            expect_answer(s.lk, "return 42", REDIS_REPLY_INTEGER);
        EXPECT_INT(server_calls(s.sv, "eval") - before, flushes);
        server_cmd(s.sv, "SCRIPT FLUSH");
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- commands ------------------------------------------------------------- */

TEST(guarded, a_command_is_put_together_as_hiredis_does)
{
    scene s = scene_held(0, 0);
    redisReply *r;
    EXPECT_STATUS(
        rlock_command(s.lk, &r, "SET key:%s %b", "a b", "x\0y z", (size_t)5),
        RLOCK_OK);
    EXPECT_INT(r->type, REDIS_REPLY_STATUS);
    EXPECT_STR(r->str, "OK");
    freeReplyObject(r);
    EXPECT_INT(server_int(s.sv, "STRLEN %s", "key:a b"), 5);
    EXPECT_STATUS(rlock_command(s.lk, &r, "INCRBY n %d", 41), RLOCK_OK);
    EXPECT_INT(r->integer, 41);
    freeReplyObject(r);
    const char *argv[] = {"APPEND", "n", "\0"};
    const size_t lens[] = {6, 1, 1};
    EXPECT_STATUS(rlock_command_argv(s.lk, &r, 3, argv, lens), RLOCK_OK);
    EXPECT_INT(r->integer, 3);
    freeReplyObject(r);
    scene_stop(&s);
}

TEST(guarded, a_command_that_fails_tells_the_servers_words)
{
    scene s = scene_held(0, 0);
    redisReply *r;
    server_cmd(s.sv, "SET n 1");
    EXPECT_STATUS(rlock_command(s.lk, &r, "LPUSH n 1"), RLOCK_ESERVER);
    EXPECT(strncmp(r->str, "WRONGTYPE Operation", 19) == 0);
    freeReplyObject(r);
    EXPECT_STATUS(rlock_command(s.lk, &r, "SUBSCRIBE n"), RLOCK_ESERVER);
    EXPECT_CONTAINS(r->str, "not allowed from script");
    freeReplyObject(r);
    scene_stop(&s);
}

static rlock_status command_of(rlock *lk, int words)
{
    static const char *argv[9000];
    for (int i = 0; i < words; i++)
        argv[i] = i == 0 ? "RPUSH" : i == 1 ? "list" : "x";
    return rlock_command_argv(lk, NULL, words, argv, NULL);
}

TEST(guarded, a_command_has_at_most_what_lua_can_unpack)
{
    scene s = scene_held(0, 0);
    EXPECT_STATUS(command_of(s.lk, 7000), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "LLEN list"), 6998);
    EXPECT_STATUS(command_of(s.lk, 9000), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "unpack");
    EXPECT_INT(server_int(s.sv, "LLEN list"), 6998);
    scene_stop(&s);
}

/* --- who may -------------------------------------------------------------- */

static void expect_refused(rlock *lk, rlock_status wanted)
{
    redisReply *r = (redisReply *)&r;
    EXPECT_STATUS(rlock_command(lk, &r, "SET n late"), wanted);
    EXPECT(!r);
    EXPECT_STATUS(eval(lk, "return redis.call('SET', 'n', 'late')", &r),
                  wanted);
    EXPECT(!r);
}

static intptr_t expect_not_held(void *lk)
{
    expect_refused(lk, RLOCK_NOT_HELD);
    return 0;
}

TEST(guarded, who_does_not_hold_it_is_refused_without_asking_the_server)
{
    scene s = scene_start(0, 0);
    long long calls = script_calls(s.sv);
    expect_not_held(s.lk);
    EXPECT_INT(script_calls(s.sv), calls);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_join(test_spawn(expect_not_held, s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_not_held(s.lk);
    EXPECT(!key_exists(s.sv, "n"));
    scene_stop(&s);
}

TEST(guarded, each_level_of_a_hold_may_write)
{
    scene s = scene_held(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "INCR n"), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "INCR n"), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "INCR n"), RLOCK_NOT_HELD);
    EXPECT_STR(server_str(s.sv, "GET n"), "2");
    scene_stop(&s);
}

/* The hold is lost from then on, and that is told once. */
static void expect_lost(scene *s)
{
    server_cmd(s->sv, "SET n untouched");
    EXPECT_STATUS(rlock_command(s->lk, NULL, "SET n late"), RLOCK_LOST);
    EXPECT_CONTAINS(rlock_last_error()->message,
                    "the server no longer knows it");
    EXPECT(!rlock_is_held(s->lk));
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, SOON);
    expect_refused(s->lk, RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_LOST);
    EXPECT_INT(events_count(s->ev, RLOCK_EVENT_LOST), 1);
    EXPECT_STR(server_str(s->sv, "GET n"), "untouched");
    scene_stop(s);
}

static void expect_guards(rlock_layout layout)
{
    scene s = scene_of_held(layout, 0);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "SET n 1"), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "GET n"), "1");
    other_client r = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_command(r.lk, NULL, "SET n 2"), RLOCK_OK);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "SET n late"), RLOCK_LOST);
    EXPECT_STR(server_str(s.sv, "GET n"), "2");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    other_client_leave(&r);
    expect_lost(&s);
}

TEST_CASE(guarded, a_hash_is_guarded, expect_guards(RLOCK_LAYOUT_HASH))
TEST_CASE(guarded, a_string_is_guarded, expect_guards(RLOCK_LAYOUT_STRING))
TEST_CASE(guarded, a_timestamp_is_guarded,
          expect_guards(RLOCK_LAYOUT_TIMESTAMP))

static void expect_foreign(rlock_layout layout)
{
    scene s = scene_of_held(layout, 0);
    server_cmd(s.sv, "DEL " SCENE_LOCK);
    server_cmd(s.sv, "RPUSH " SCENE_LOCK " something");
    expect_lost(&s);
}

TEST_CASE(guarded, a_key_that_is_no_hash_any_more_is_lost,
          expect_foreign(RLOCK_LAYOUT_HASH))
TEST_CASE(guarded, a_key_that_is_no_string_any_more_is_lost,
          expect_foreign(RLOCK_LAYOUT_STRING))
TEST_CASE(guarded, a_key_that_is_no_timestamp_any_more_is_lost,
          expect_foreign(RLOCK_LAYOUT_TIMESTAMP))

/* That says nothing of the hold. */
static void expect_right_told(rlock_layout layout, const char *right)
{
    scene s = scene_of_held(layout, 0);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "INCR n"), RLOCK_OK);
    server_cmd(s.sv, "ACL SETUSER default -%s", right);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "INCR n"), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "the server answered");
    server_cmd(s.sv, "ACL SETUSER default +%s", right);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "INCR n"), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "GET n"), "2");
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
}

TEST_CASE(guarded, a_right_that_the_guard_lacks_is_told,
          expect_right_told(RLOCK_LAYOUT_HASH, "hexists"))
TEST_CASE(guarded, a_right_that_the_guard_of_a_string_lacks_is_told,
          expect_right_told(RLOCK_LAYOUT_STRING, "get"))
TEST_CASE(guarded, a_right_that_the_guard_of_a_timestamp_lacks_is_told,
          expect_right_told(RLOCK_LAYOUT_TIMESTAMP, "get"))
TEST_CASE(guarded, a_right_that_the_command_needs_is_told,
          expect_right_told(RLOCK_LAYOUT_HASH, "incr"))

TEST(guarded, past_the_deadline_the_server_is_not_asked)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 300), RLOCK_OK);
    EVENTUALLY(SOON, !rlock_is_held(s.lk));
    long long calls = script_calls(s.sv);
    expect_refused(s.lk, RLOCK_LOST);
    EXPECT_INT(script_calls(s.sv), calls);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(guarded, a_red_lock_has_no_guard)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    expect_refused(p.lk, RLOCK_ENOTSUP);
    EXPECT_CONTAINS(rlock_last_error()->message, "lock 'job': ");
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(guarded, a_multi_lock_has_those_of_its_members)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    expect_refused(m.all, RLOCK_ENOTSUP);
    EXPECT_STATUS(rlock_command(m.lk[1], NULL, "SET n 1"), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_refused(m.lk[1], RLOCK_NOT_HELD);
    EXPECT_STR(server_str(s.sv, "GET n"), "1");
    multi_scene_end(&m, &s);
}

/* --- arguments, and handles that are of no use ---------------------------- */

static void expect_why(rlock *lk, int keys, int args, const char **argv,
                       const char *text)
{
    redisReply *r;
    EXPECT_STATUS(rlock_eval(lk, "return 1", keys, args, argv, NULL, &r),
                  RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, text);
    EXPECT(!r);
}

TEST(guarded, bad_arguments_are_refused_by_name)
{
    scene s = scene_held(0, 0);
    const char *argv[] = {"one", NULL};
    redisReply *r = (redisReply *)&s;
    EXPECT_STATUS(eval(NULL, "return 1", &r), RLOCK_EINVAL);
    EXPECT(!r);
    EXPECT_STATUS(eval(s.lk, NULL, &r), RLOCK_EINVAL);
    EXPECT_STATUS(eval(s.lk, "#!lua flags=no-writes\nreturn 1", &r),
                  RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "lock 'job' at unix:");
    EXPECT_CONTAINS(rlock_last_error()->message, "\"#!\"");
    expect_why(s.lk, -1, 2, argv, "is negative");
    expect_why(s.lk, 2, -1, argv, "is negative");
    expect_why(s.lk, INT32_MAX, INT32_MAX, argv, "more than 1,000,000");
    expect_why(s.lk, 1000001, 0, argv, "more than 1,000,000");
    expect_why(s.lk, 600000, 400001, argv, "more than 1,000,000");
    expect_why(s.lk, 1, 0, NULL, "is NULL");
    expect_why(s.lk, 1, 1, argv, "is NULL");
    expect_why(s.lk, 600000, 400000, argv, "is NULL");
    EXPECT_STATUS(rlock_command(s.lk, &r, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_command(s.lk, &r, ""), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_command(s.lk, &r, "SET a %q"), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_command_argv(s.lk, &r, 0, argv, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_command_argv(s.lk, &r, 1, NULL, NULL), RLOCK_EINVAL);
    EXPECT(!r && rlock_is_held(s.lk));
    scene_stop(&s);
}

TEST(guarded, a_client_that_is_closed_says_so)
{
    scene s = scene_held(0, 0);
    rlock_client_free(s.cl);
    s.cl = NULL;
    expect_refused(s.lk, RLOCK_ECLOSED);
    EXPECT(!key_exists(s.sv, "n"));
    rlock_free(s.lk);
    s.lk = NULL;
    scene_stop(&s);
}
