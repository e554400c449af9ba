/*
 * Locks without tokens: what they spare, what they give up, and how they stand
 * beside those that have one.
 */
#include <rlock/guard.h>
#include <rlock/multi.h>
#include <rlock/rw.h>

#include "busy.h"
#include "other_client.h"
#include "scanned.h"

#define TOKEN_KEY "rlock_token:{" SCENE_LOCK "}"

static rlock *without(rlock_client *cl)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    o.no_tokens = true;
    EXPECT_STATUS(rlock_new_ex(cl, SCENE_LOCK, strlen(SCENE_LOCK), &o, &lk),
                  RLOCK_OK);
    return lk;
}

/* A client's lock without tokens, and one with. */
typedef struct both {
    scene s;
    rlock *lk;
} both;

static both both_start(void)
{
    both b = {.s = scene_start(0, 0)};
    b.lk = without(b.s.cl);
    return b;
}

static void both_stop(both *b)
{
    rlock_free(b->lk);
    scene_stop(&b->s);
}

static void expect_held_without(const both *b, rlock *lk, int count)
{
    EXPECT(rlock_is_held(lk) && rlock_valid_ms(lk) > 0);
    EXPECT_INT(rlock_hold_count(lk), count);
    EXPECT(rlock_token(lk) == 0);
    EXPECT(!key_exists(b->s.sv, TOKEN_KEY));
}

/* --- what is spared --------------------------------------------------------- */

static long long calls_of(server *sv, const char *command)
{
    char at[60];
    snprintf(at, sizeof at, "cmdstat_%s:calls=", command);
    const char *told = server_cmd(sv, "INFO commandstats")->str;
    told = strstr(told, at);
    return told ? atoll(told + strlen(at)) : 0;
}

TEST(tokenless, a_pair_reads_no_clock_and_writes_one_key)
{
    both b = both_start();
    server_cmd(b.s.sv, "CONFIG RESETSTAT");
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    static const char *const none[] = {"time", "get", "set"};
    for (int i = 0; i < 3; i++)
        EXPECT_INT(calls_of(b.s.sv, none[i]), 0);
    EXPECT_INT(calls_of(b.s.sv, "exists"), 2); /* each of both */
    EXPECT_INT(calls_of(b.s.sv, "zpopmin"), 0);
    EXPECT_INT(calls_of(b.s.sv, "hset"), 1);
    EXPECT_INT(calls_of(b.s.sv, "pexpire"), 1);
    EXPECT_INT(server_int(b.s.sv, "DBSIZE"), 0);
    both_stop(&b);
}

TEST(tokenless, it_is_renewed_and_extended_and_leaves_nothing)
{
    scene s = scene_start(BRISK_MS, 0);
    rlock *lk = without(s.cl);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    expect_renewals(&s, 2);
    EXPECT_STATUS(rlock_extend(lk, 60000), RLOCK_OK);
    EXPECT(rlock_valid_ms(lk) > 50000);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 0);
    rlock_free(lk);
    scene_stop(&s);
}

/* --- beside those that have one --------------------------------------------- */

TEST(tokenless, the_outermost_handle_decides)
{
    both b = both_start();
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(b.s.lk), RLOCK_OK);
    expect_held_without(&b, b.s.lk, 2);
    expect_held_without(&b, b.lk, 2);
    unlock_times(b.lk, 2, RLOCK_OK);
    EXPECT_STATUS(rlock_lock(b.s.lk), RLOCK_OK);
    uint64_t token = rlock_token(b.s.lk);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    EXPECT(token > 0 && rlock_token(b.lk) == token);
    unlock_times(b.s.lk, 2, RLOCK_OK);
    EXPECT(!key_exists(b.s.sv, SCENE_LOCK));
    both_stop(&b);
}

TEST(tokenless, it_excludes_those_with_tokens_whose_tokens_go_on_growing)
{
    both b = both_start();
    other_client o = other_client_join(&b.s, NULL);
    uint64_t before = 0;
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_trylock(o.lk), RLOCK_BUSY);
        EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_trylock(o.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
        EXPECT(rlock_token(o.lk) > before);
        before = rlock_token(o.lk);
        EXPECT_STATUS(rlock_unlock(o.lk), RLOCK_OK);
    }
    other_client_leave(&o);
    both_stop(&b);
}

static void expect_rung(rlock *holds, other_client *o, const scene *s)
{
    EXPECT_STATUS(rlock_lock(holds), RLOCK_OK);
    other_client_wait(s, o, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_unlock(holds), RLOCK_OK);
    expect_woken(o);
    EXPECT_STATUS(waiter_end(o->w), RLOCK_OK);
    o->w = NULL;
}

TEST(tokenless, who_waits_for_it_is_rung_and_so_is_it)
{
    both b = both_start();
    other_client o = other_client_join(&b.s, NULL);
    expect_rung(b.lk, &o, &b.s);
    rlock *with = o.lk;
    o.lk = without(o.cl);
    expect_rung(b.s.lk, &o, &b.s);
    rlock_free(with);
    other_client_leave(&o);
    both_stop(&b);
}

/* --- from thread to thread --------------------------------------------------- */

static atomic_int inside, doubled;
static atomic_uint_fast64_t largest;

static void enter(busy *b)
{
    uint64_t token = rlock_token(b->lk);
    if (atomic_fetch_add(&inside, 1) != 0)
        doubled++;
    if (token && token <= largest)
        doubled++;
    if (token)
        largest = token;
    atomic_fetch_sub(&inside, 1);
}

enum { SECTIONS = SANITIZED ? 300 : 3000 };

/* Threads with tokens and threads without hand it to each other. */
static void expect_mixed(int64_t turn_ms)
{
    scene s = scene_server(NULL);
    s.opts.turn_ms = turn_ms;
    scene_client(&s, 0, 0);
    rlock *lk = without(s.cl);
    busy with = {.lk = s.lk, .inside = enter},
         none = {.lk = lk, .inside = enter};
    busy_start(&with, 1);
    busy_start(&none, SECTIONS);
    busy_stop(&none);
    busy_stop(&with);
    EXPECT_INT(doubled, 0);
    EXPECT(with.sections > 0 && stats_of(s.cl).lost == 0);
    expect_nothing_left(s.sv);
    rlock_free(lk);
    scene_stop(&s);
}

TEST_CASE(tokenless, it_is_handed_over_to_those_with_tokens_and_back,
          expect_mixed(0))
TEST_CASE(tokenless, the_same_with_turns, expect_mixed(5))

TEST(tokenless, with_turns_many_sections_cost_one_call)
{
    scene s = scene_server(NULL);
    s.opts.turn_ms = 5;
    scene_client(&s, 0, 0);
    rlock *lk = without(s.cl);
    busy b = {.lk = lk, .inside = enter};
    long long before = script_calls(s.sv);
    busy_start(&b, SECTIONS);
    busy_stop(&b);
    EXPECT(script_calls(s.sv) - before < b.sections / 2);
    EXPECT_INT(doubled, 0);
    EXPECT(largest == 0 && !key_exists(s.sv, TOKEN_KEY));
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 0);
    rlock_free(lk);
    scene_stop(&s);
}

/* --- what else is done with it ------------------------------------------------ */

TEST(tokenless, a_guarded_call_needs_no_token)
{
    both b = both_start();
    redisReply *r;
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_command(b.lk, &r, "SET {job}x 1"), RLOCK_OK);
    freeReplyObject(r);
    EXPECT_STATUS(rlock_force_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_command(b.lk, &r, "SET {job}x 2"), RLOCK_LOST);
    EXPECT_STR(server_cmd(b.s.sv, "GET {job}x")->str, "1");
    server_cmd(b.s.sv, "DEL {job}x");
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_LOST);
    both_stop(&b);
}

TEST(tokenless, a_multi_lock_may_have_one_and_tells_the_others_token)
{
    both b = both_start();
    rlock *other = test_lock(b.s.cl, "other"), *all;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){b.lk, other}, 2, &all), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(all), RLOCK_OK);
    expect_held_without(&b, b.lk, 1);
    EXPECT(rlock_token(other) > 0 && rlock_token(all) == rlock_token(other));
    EXPECT_STATUS(rlock_unlock(all), RLOCK_OK);
    rlock_free(all);
    rlock_free(other);
    expect_nothing_left(b.s.sv);
    both_stop(&b);
}

/* It is found by its type, or by who waits. */
TEST(tokenless, a_scan_finds_it_when_it_looks_at_all)
{
    both b = both_start();
    other_client o = other_client_join(&b.s, NULL);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    EXPECT_INT(scan_look(b.s.cl, NULL, 0).n, 0);
    scan_told t = scan_only(b.s.cl, NULL, RLOCK_SCAN_ALL);
    EXPECT(t.l.holders && t.l.token == 0 && t.l.held_ms == -1);
    other_client_wait(&b.s, &o, 1, RLOCK_FOREVER);
    EXPECT_INT(scan_only(b.s.cl, NULL, 0).l.waiting, 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(o.w), RLOCK_OK);
    o.w = NULL;
    other_client_leave(&o);
    both_stop(&b);
}

/* --- where there are none ----------------------------------------------------- */

static void expect_refused(rlock_client *cl, const rlock_lock_options *o,
                           const char *why)
{
    rlock *lk = (rlock *)&lk;
    EXPECT_STATUS(rlock_new_ex(cl, "x", 1, o, &lk), RLOCK_ENOTSUP);
    EXPECT(!lk);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
}

TEST(tokenless, other_kinds_have_tokens)
{
    scene s = scene_start(0, 0);
    rlock *read = NULL, *write = NULL;
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.no_tokens = true;
    EXPECT_STATUS(rlock_rw_new_ex(s.cl, "x", 1, &o, &read, &write),
                  RLOCK_ENOTSUP);
    EXPECT(!read && !write);
    o.fair = true;
    expect_refused(s.cl, &o, "fair");
    o.fair = false;
    o.layout = RLOCK_LAYOUT_STRING;
    expect_refused(s.cl, &o, "hash layout");
    o.layout = RLOCK_LAYOUT_TIMESTAMP;
    expect_refused(s.cl, &o, "hash layout");
    scene_stop(&s);
}

/* Asks nobody. */
static void expect_refused_at(const char *uri, unsigned min_replicas)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock_client *cl;
    rlock *lk;
    opts.uri = uri;
    opts.lazy = true;
    opts.min_replicas = min_replicas;
    o.no_tokens = true;
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_OK);
    expect_refused(cl, &o, "another may take over");
    o.min_replicas = -1;
    if (min_replicas) {
        EXPECT_STATUS(rlock_new_ex(cl, "x", 1, &o, &lk), RLOCK_OK);
        rlock_free(lk);
        opts.min_replicas = 0;
    }
    rlock_client_free(cl);
}

TEST_CASE(tokenless, a_cluster_may_fail_over,
          expect_refused_at("redis-cluster://127.0.0.1:1", 0))
TEST_CASE(tokenless, sentinels_fail_over,
          expect_refused_at("redis-sentinel://127.0.0.1:1/name", 0))
TEST_CASE(tokenless, who_wants_replicas_expects_that,
          expect_refused_at("redis://127.0.0.1:1", 1))
