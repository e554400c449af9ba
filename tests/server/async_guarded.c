/* Guarded calls on an event loop: started, executed, and called back. */
#include "guarded.h"
#include "layouts.h"
#include "loop.h"
#include "nodes.h"

/* What a callback was told; the reply is gone when it returns. */
typedef struct answer {
    rlock_client *cl;
    rlock_owner *owner;
    int told, type;
    rlock_status status;
    long long number;
    char text[200], message[300];
} answer;

static void replied(rlock *lk, rlock_status s, redisReply *r, void *arg)
{
    answer *a = arg;
    EXPECT(lk);
    a->told++;
    a->status = s;
    a->type = r ? r->type : 0;
    a->number = r ? r->integer : 0;
    snprintf(a->text, sizeof a->text, "%s", r && r->str ? r->str : "");
    snprintf(a->message, sizeof a->message, "%s",
             s == RLOCK_OK ? "" : rlock_last_error()->message);
}

/* The words are gone as soon as the start has returned. */
static rlock_status start_eval(rlock *lk, answer *a, const char *script,
                               const char *key, const char *arg)
{
    char text[200], words[2][50];
    const char *argv[] = {words[0], words[1]};
    snprintf(text, sizeof text, "%s", script);
    snprintf(words[0], sizeof words[0], "%s", key);
    snprintf(words[1], sizeof words[1], "%s", arg);
    rlock_owner *former = rlock_owner_set(a->owner);
    rlock_status s = rlock_eval_start(lk, text, 1, 1, argv, NULL, replied, a);
    rlock_owner_set(former);
    memset(text, '#', sizeof text);
    memset(words, '#', sizeof words);
    return s;
}

static rlock_status start_set(rlock *lk, answer *a, const char *value)
{
    rlock_owner *former = rlock_owner_set(a->owner);
    rlock_status s = rlock_command_start(lk, replied, a, "SET n %s", value);
    rlock_owner_set(former);
    return s;
}

/* What a start comes to. */
static rlock_status outcome(answer *a, rlock_status started)
{
    int told = a->told;
    EXPECT_STATUS(started, RLOCK_OK);
    LOOP_UNTIL(a->cl, a->told > told);
    EXPECT_INT(a->told, told + 1);
    return a->status;
}

/* A request that holds the scene's lock, and what it will be told. */
static request holder_of(scene *s, answer *a)
{
    request r = request_new(s->lk);
    EXPECT_STATUS(loop_acquire(s->cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    *a = (answer){.cl = s->cl, .owner = r.owner};
    return r;
}

static void expect_guards(rlock_layout layout)
{
    scene s = scene_start(0, 0);
    rlock *lk = lock_of(s.cl, layout, SCENE_LOCK);
    request r = request_new(lk);
    answer a = {.cl = s.cl, .owner = r.owner};
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(outcome(&a, start_set(lk, &a, "1")), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "GET n"), "1");
    server_cmd(s.sv, "DEL " SCENE_LOCK);
    EXPECT_STATUS(outcome(&a, start_set(lk, &a, "2")), RLOCK_LOST);
    EXPECT_CONTAINS(a.message, "lock 'job' at unix:");
    EXPECT_STR(server_str(s.sv, "GET n"), "1");
    request_free(&r);
    rlock_free(lk);
    scene_stop(&s);
}

TEST_CASE(async_guarded, a_hash_is_guarded, expect_guards(RLOCK_LAYOUT_HASH))
TEST_CASE(async_guarded, a_string_is_guarded,
          expect_guards(RLOCK_LAYOUT_STRING))
TEST_CASE(async_guarded, a_timestamp_is_guarded,
          expect_guards(RLOCK_LAYOUT_TIMESTAMP))

TEST(async_guarded, script_and_words_are_copied_and_the_reply_comes_whole)
{
    scene s = scene_start(0, 0);
    answer a;
    request r = holder_of(&s, &a);
    const char *script = "redis.call('SET', KEYS[1], ARGV[1]) "
                         "return KEYS[1] .. '=' .. ARGV[1]";
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(outcome(&a, start_eval(s.lk, &a, script, "key", "value")),
                      RLOCK_OK);
        EXPECT_INT(a.type, REDIS_REPLY_STRING);
        EXPECT_STR(a.text, "key=value");
    }
    EXPECT_STR(server_str(s.sv, "GET key"), "value");
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_guarded, words_with_any_bytes_arrive_as_they_are)
{
    scene s = scene_start(0, 0);
    answer a;
    request r = holder_of(&s, &a);
    const char *argv[] = {"APPEND", "n", "a\0b\r\n"};
    const size_t lens[] = {6, 1, 5};
    rlock_owner_set(r.owner);
    EXPECT_STATUS(
        outcome(&a, rlock_command_argv_start(s.lk, 3, argv, lens, replied, &a)),
        RLOCK_OK);
    EXPECT_INT(a.number, 5);
    EXPECT_STATUS(outcome(&a, rlock_command_start(s.lk, replied, &a,
                                                  "APPEND n %b", "\0", 1UL)),
                  RLOCK_OK);
    EXPECT_INT(a.number, 6);
    rlock_owner_set(NULL);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_guarded, an_error_of_the_script_is_told_with_its_reply)
{
    scene s = scene_start(0, 0);
    answer a;
    request r = holder_of(&s, &a);
    EXPECT_STATUS(
        outcome(&a, start_eval(s.lk, &a, "return redis.error_reply(ARGV[1])",
                               "n", "NOSTOCK none left")),
        RLOCK_ESERVER);
    EXPECT_INT(a.type, REDIS_REPLY_ERROR);
    EXPECT_CONTAINS(a.text, "NOSTOCK none left");
    EXPECT_CONTAINS(a.message, "NOSTOCK none left");
    EXPECT(request_holds(&r));
    request_free(&r);
    scene_stop(&s);
}

TEST(async_guarded, who_holds_nothing_is_told_without_asking_the_server)
{
    scene s = scene_start(0, 0);
    request r = request_new(s.lk);
    answer a = {.cl = s.cl, .owner = r.owner};
    long long calls = script_calls(s.sv);
    EXPECT_STATUS(outcome(&a, start_set(s.lk, &a, "1")), RLOCK_NOT_HELD);
    EXPECT_INT(a.type, 0);
    EXPECT_INT(script_calls(s.sv), calls);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_guarded, what_is_wrong_is_said_by_the_start)
{
    scene s = scene_start(0, 0);
    answer a;
    request r = holder_of(&s, &a);
    EXPECT_STATUS(
        rlock_eval_start(s.lk, "return 1", 0, 0, NULL, NULL, replied, &a),
        RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "rlock_owner_set");
    rlock_owner_set(r.owner);
    EXPECT_STATUS(
        rlock_eval_start(NULL, "return 1", 0, 0, NULL, NULL, replied, &a),
        RLOCK_EINVAL);
    EXPECT_STATUS(rlock_eval_start(s.lk, NULL, 0, 0, NULL, NULL, replied, &a),
                  RLOCK_EINVAL);
    EXPECT_STATUS(
        rlock_eval_start(s.lk, "return 1", 1, 0, NULL, NULL, replied, &a),
        RLOCK_EINVAL);
    EXPECT_STATUS(rlock_command_start(s.lk, replied, &a, "SET n %q"),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_command_argv_start(s.lk, 0, NULL, NULL, replied, &a),
                  RLOCK_EINVAL);
    EXPECT(rlock_is_held(s.lk));
    rlock_owner_set(NULL);
    EXPECT_INT(a.told, 0);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_guarded, a_red_lock_has_no_guard)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    request r = request_new(p.lk);
    answer a = {.owner = r.owner};
    EXPECT_STATUS(start_set(p.lk, &a, "1"), RLOCK_ENOTSUP);
    EXPECT_INT(a.told, 0);
    request_free(&r);
    party_end(&p, &ns);
}

TEST(async_guarded, a_server_that_is_silent_ends_it_in_time)
{
    scene s = scene_start(0, 300);
    answer a;
    request r = holder_of(&s, &a);
    EXPECT_STATUS(outcome(&a, start_set(s.lk, &a, "0")), RLOCK_OK);
    server_pause(s.sv);
    int64_t began = test_now_ms();
    EXPECT_STATUS(start_set(s.lk, &a, "1"), RLOCK_OK);
    EXPECT_BETWEEN(test_now_ms() - began, 0, SLACK_MS);
    LOOP_UNTIL(s.cl, a.told == 2);
    EXPECT_STATUS(a.status, RLOCK_EIO);
    EXPECT_CONTAINS(a.message, "it may have been executed");
    EXPECT_BETWEEN(test_now_ms() - began, 300, SLACK_MS);
    server_resume(s.sv);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_guarded, an_owner_that_is_freed_keeps_what_was_written)
{
    scene s = scene_start(0, 0);
    answer a;
    request r = holder_of(&s, &a);
    EXPECT_STATUS(start_set(s.lk, &a, "1"), RLOCK_OK);
    EVENTUALLY(SOON, key_exists(s.sv, "n"));
    request_free(&r);
    LOOP_UNTIL(s.cl, a.told == 1);
    EXPECT_STATUS(a.status, RLOCK_OK);
    scene_stop(&s);
}

/* A callback may start the next call as the same owner. */
static void again(rlock *lk, rlock_status s, redisReply *r, void *arg)
{
    answer *a = arg;
    EXPECT_STATUS(s, RLOCK_OK);
    a->number = r->integer;
    a->told++;
    if (a->told < 100)
        EXPECT_STATUS(rlock_command_start(lk, again, a, "INCR n"), RLOCK_OK);
}

TEST(async_guarded, a_callback_starts_the_next)
{
    scene s = scene_start(0, 0);
    answer a;
    request r = holder_of(&s, &a);
    rlock_owner_set(r.owner);
    EXPECT_STATUS(rlock_command_start(s.lk, again, &a, "INCR n"), RLOCK_OK);
    rlock_owner_set(NULL);
    LOOP_UNTIL(s.cl, a.told == 100);
    EXPECT_INT(a.number, 100);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}

TEST(async_guarded, a_client_that_is_freed_calls_back_what_is_under_way)
{
    scene s = scene_start(0, 0);
    answer a;
    request r = holder_of(&s, &a);
    EXPECT_STATUS(start_set(s.lk, &a, "1"), RLOCK_OK);
    scene_free_client(&s);
    EXPECT_INT(a.told, 1);
    EXPECT_STATUS(a.status, RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}

/* --- many at a time --------------------------------------------------------
 */

/* Each has a lock of its own, which it holds. */
typedef struct caller {
    request r;
    answer a;
} caller;

static void callers_begin(caller *c, rlock_client *cl, int n)
{
    char name[32];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "caller:%d", i);
        c[i].r = request_new(test_lock(cl, name));
        EXPECT_STATUS(loop_acquire(cl, &c[i].r, 0, RLOCK_WATCHDOG), RLOCK_OK);
        c[i].a = (answer){.cl = cl, .owner = c[i].r.owner};
    }
}

static void callers_end(caller *c, rlock_client *cl, int n)
{
    for (int i = 0; i < n; i++) {
        EXPECT_STATUS(loop_unlock(cl, &c[i].r), RLOCK_OK);
        request_free(&c[i].r);
        rlock_free(c[i].r.lk);
    }
}

static int answers(const caller *c, int n)
{
    int told = 0;
    for (int i = 0; i < n; i++)
        told += c[i].a.told;
    return told;
}

/* Room for a connection is no connection yet: somebody has to open one. */
TEST(async_guarded, those_in_line_go_on_when_the_only_connection_breaks)
{
    enum { CALLS = 4, LEASE_MS = 60000 };
    static caller c[CALLS];
    scene s = scene_server(NULL);
    s.px = proxy_start(s.sv);
    s.opts.pool_size = 1;
    scene_client(&s, LEASE_MS, 0);
    callers_begin(c, s.cl, CALLS);
    proxy_rule(s.px, "n=", 1, PROXY_HOLD_REPLY, NULL);
    for (int i = 0; i < CALLS; i++)
        EXPECT_STATUS(
            start_eval(c[i].r.lk, &c[i].a, "return 'n=' .. KEYS[1]", "n", ""),
            RLOCK_OK);
    EVENTUALLY(SOON, proxy_fired(s.px));
    int64_t since_ms = test_now_ms();
    proxy_cut_all(s.px);
    LOOP_UNTIL(s.cl, answers(c, CALLS) == CALLS);
    EXPECT_BETWEEN(test_now_ms() - since_ms, 0, 1500);
    int good = 0;
    for (int i = 0; i < CALLS; i++)
        good += c[i].a.status == RLOCK_OK;
    EXPECT_INT(good, CALLS - 1);
    callers_end(c, s.cl, CALLS);
    scene_stop(&s);
}

/* Those beyond stand in line for a connection. */
TEST(async_guarded, more_calls_than_pool_size_are_in_flight)
{
    enum { POOL = 3, CALLS = 100 };
    static caller c[CALLS];
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.pool_size = POOL;
    rlock_client *cl = server_client(sv, &opts);
    callers_begin(c, cl, CALLS);
    for (int i = 0; i < CALLS; i++)
        EXPECT_STATUS(start_eval(c[i].r.lk, &c[i].a,
                                 "return redis.call('INCR', KEYS[1])", "n", ""),
                      RLOCK_OK);
    LOOP_UNTIL(cl, answers(c, CALLS) == CALLS);
    for (int i = 0; i < CALLS; i++)
        EXPECT_STATUS(c[i].a.status, RLOCK_OK);
    EXPECT_STR(server_str(sv, "GET n"), "100");
    callers_end(c, cl, CALLS);
    rlock_client_free(cl);
    server_stop(sv);
}

/* Pairs, one after the other, until the large reply has come. */
typedef struct small {
    request r;
    const answer *large;
    int pairs;
    bool over;
} small;

static void pair_again(request *r)
{
    small *x = r->arg;
    EXPECT_STATUS(r->status, RLOCK_OK);
    if (request_holds(r)) {
        EXPECT_STATUS(request_unlock(r), RLOCK_OK);
        return;
    }
    x->over = x->large->told > 0;
    x->pairs += !x->over;
    if (!x->over)
        EXPECT_STATUS(request_acquire(r, RLOCK_FOREVER, RLOCK_WATCHDOG),
                      RLOCK_OK);
}

static void replied_large(rlock *lk, rlock_status s, redisReply *r, void *arg)
{
    answer *a = arg;
    (void)lk;
    a->told++;
    a->status = s;
    a->number = r ? (long long)r->len : 0;
}

TEST(async_guarded, small_pairs_go_on_while_a_large_reply_comes)
{
    enum { SIZE = 32 * 1024 * 1024 };
    scene s = scene_start(0, SOON); /* seconds, on a busy machine */
    answer a;
    request r = holder_of(&s, &a);
    rlock *lk = test_lock(s.cl, "small");
    small x = {.r = request_new(lk), .large = &a};
    x.r.then = pair_again;
    x.r.arg = &x;
    server_cmd(s.sv, "SETRANGE big %d x", SIZE - 1);
    rlock_owner_set(r.owner);
    EXPECT_STATUS(rlock_command_start(s.lk, replied_large, &a, "GET big"),
                  RLOCK_OK);
    rlock_owner_set(NULL);
    EXPECT_STATUS(request_acquire(&x.r, RLOCK_FOREVER, RLOCK_WATCHDOG),
                  RLOCK_OK);
    LOOP_UNTIL(s.cl, x.over);
    EXPECT_STATUS(a.status, RLOCK_OK);
    EXPECT_INT(a.number, SIZE);
    EXPECT(x.pairs > 0);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    request_free(&r);
    request_free(&x.r);
    rlock_free(lk);
    scene_stop(&s);
}
