/* Guarded calls: replies of every type, shape and size. */
#include "guarded.h"

TEST(guarded_replies, a_reply_of_each_type_comes_back)
{
    scene s = scene_held(0, 0);
    expect_answer(s.lk, "return 'text'", REDIS_REPLY_STRING);
    expect_answer(s.lk, "return 5", REDIS_REPLY_INTEGER);
    expect_answer(s.lk, "return false", REDIS_REPLY_NIL);
    expect_answer(s.lk, "return redis.status_reply('FINE')",
                  REDIS_REPLY_STATUS);
    expect_answer(s.lk, "return {}", REDIS_REPLY_ARRAY);
    expect_answer(s.lk, "local nothing", REDIS_REPLY_NIL);
    expect_answer(s.lk, "", REDIS_REPLY_NIL);
    scene_stop(&s);
}

TEST(guarded_replies, a_nested_reply_comes_back_whole)
{
    scene s = scene_held(0, 0);
    redisReply *r;
    EXPECT_STATUS(eval(s.lk,
                       "return {1, {'a', {false, {{'deep'}}}}, "
                       "redis.error_reply('ODD one'), '', "
                       "{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}",
                       &r),
                  RLOCK_OK);
    EXPECT_INT(r->elements, 5);
    const redisReply *in = r->element[1]->element[1];
    EXPECT_INT(in->element[0]->type, REDIS_REPLY_NIL);
    EXPECT_STR(in->element[1]->element[0]->element[0]->str, "deep");
    EXPECT_INT(r->element[2]->type, REDIS_REPLY_ERROR);
    EXPECT_STR(r->element[2]->str, "ODD one");
    EXPECT_INT(r->element[3]->len, 0);
    EXPECT_INT(r->element[4]->element[11]->integer, 12);
    freeReplyObject(r);
    scene_stop(&s);
}

static void expect_text(rlock *lk, size_t len)
{
    char script[80];
    redisReply *r;
    snprintf(script, sizeof script, "return ('x'):rep(%zu)", len);
    EXPECT_STATUS(eval(lk, script, &r), RLOCK_OK);
    EXPECT_INT(r->len, len);
    EXPECT_INT(strspn(r->str, "x"), len);
    freeReplyObject(r);
}

TEST(guarded_replies, a_large_reply_comes_back_whole)
{
    scene s = scene_held(0, 0);
    redisReply *r;
    expect_text(s.lk, 2000);
    expect_text(s.lk, 100 * 1000);
    expect_text(s.lk, 5 * 1000 * 1000);
    EXPECT_STATUS(eval(s.lk,
                       "local t = {} for i = 1, 100000 do t[i] = i end "
                       "return t",
                       &r),
                  RLOCK_OK);
    EXPECT_INT(r->elements, 100000);
    EXPECT_INT(r->element[99999]->integer, 100000);
    freeReplyObject(r);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* The hold is none the worse. */
TEST(guarded_replies, a_reply_beyond_all_bounds_is_refused)
{
    scene s = scene_held(0, 0);
    redisReply *r;
    EXPECT_STATUS(eval(s.lk,
                       "redis.call('INCR', 'n') "
                       "local t, a = {}, {} for i = 1, 1025 do a[i] = 1 end "
                       "for i = 1, 1024 do t[i] = a end return t",
                       &r),
                  RLOCK_EIO);
    EXPECT(!r);
    EXPECT_CONTAINS(rlock_last_error()->message, "may have been executed");
    EXPECT_INT(server_int(s.sv, "STRLEN n"), 1);
    EXPECT_STR(server_str(s.sv, "GET n"), "1");
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(guarded_replies, a_reply_that_nobody_wants_is_freed)
{
    scene s = scene_held(0, 0);
    EXPECT_STATUS(eval(s.lk, "return {1, {2, 'three'}}", NULL), RLOCK_OK);
    EXPECT_STATUS(eval(s.lk, "return redis.error_reply('NO way')", NULL),
                  RLOCK_ESERVER);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "SET n 1"), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "GET n"), "1");
    scene_stop(&s);
}

/* More than the kernel takes at once. */
TEST(guarded_replies, a_large_argument_arrives_whole)
{
    enum { LEN = 5 * 1000 * 1000 };
    scene s = scene_held(0, 0);
    char *text = malloc(LEN);
    redisReply *r;
    EXPECT(text);
    memset(text, '\r', LEN);
    EXPECT_STATUS(rlock_command(s.lk, NULL, "SET n %b", text, (size_t)LEN),
                  RLOCK_OK);
    EXPECT_STATUS(rlock_command(s.lk, &r, "GET n"), RLOCK_OK);
    EXPECT(r->len == LEN && memcmp(r->str, text, LEN) == 0);
    freeReplyObject(r);
    free(text);
    scene_stop(&s);
}
