/*
 * The scripts by themselves, as lua/README.md describes them: what they answer,
 * and what they leave in Redis.
 */
#include "other_client.h"
#include "wire/script.h"

#define UUID   "6f1e1e0c-5d07-4f36-9a4e-0123456789ab"
#define HOLDER "host:7:8:" UUID
#define BELL   "rlock_bell:" UUID

#define TOKEN     "rlock_token:{" SCENE_LOCK "}"
#define QUEUE     "rlock_queue:{" SCENE_LOCK "}"
#define TOMBSTONE "rlock_undone:{" SCENE_LOCK "}:" UUID

#define FIVE_MINUTES_MS 300000

/* A test of every layout; its body has the parameters sv and layout. */
#define OF_ALL_LAYOUTS(name)                                                   \
    static void all_##name(server *sv, const rl_layout *layout);               \
    TEST_CASE(scripts, hash_##name,                                            \
              on_a_server(all_##name, RLOCK_LAYOUT_HASH))                      \
    TEST_CASE(scripts, string_##name,                                          \
              on_a_server(all_##name, RLOCK_LAYOUT_STRING))                    \
    TEST_CASE(scripts, timestamp_##name,                                       \
              on_a_server(all_##name, RLOCK_LAYOUT_TIMESTAMP))                 \
    static void all_##name(server *sv, const rl_layout *layout)

static void on_a_server(void (*test)(server *sv, const rl_layout *layout),
                        rlock_layout layout)
{
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    test(sv, &rl_layouts[layout]);
    server_stop(sv);
}

static redisReply *acquire(server *sv, const rl_layout *l, const char *holder,
                           int64_t lease_ms, const char *bell)
{
    return server_cmd(sv, "EVALSHA %s 4 %s %s %s %s %s %lld 1 %s 0",
                      rl_scripts[l->acquire].sha1, SCENE_LOCK, TOKEN, TOMBSTONE,
                      QUEUE, holder, (long long)lease_ms, bell);
}

/* The token of a hold that is free to be had. */
static unsigned long long take(server *sv, const rl_layout *l, int64_t lease_ms)
{
    redisReply *r = acquire(sv, l, HOLDER, lease_ms, "");
    if (r->type != REDIS_REPLY_STRING)
        FAIL("acquire: %s", r->str ? r->str : "no text");
    return strtoull(r->str, NULL, 10);
}

static long long release(server *sv, const rl_layout *l)
{
    return server_int(sv, "EVALSHA %s 3 %s %s %s %s channel 0 0",
                      rl_scripts[l->release].sha1, SCENE_LOCK, QUEUE, TOMBSTONE,
                      HOLDER);
}

/* --- who waits ------------------------------------------------------------ */

#define WHO "rlock_undone:{" SCENE_LOCK "}:who"

/* As a waiter does that has waited for long: with one key more. */
static void ask_again(server *sv, const rl_layout *l, const char *ticket)
{
    server_cmd(sv, "EVALSHA %s 5 %s %s %s %s %s %s 60000 1 %s %s",
               rl_scripts[l->acquire].sha1, SCENE_LOCK, TOKEN, TOMBSTONE, QUEUE,
               WHO, "host:1:2:other", "rlock_bell:x", ticket);
}

static redisReply *waits(server *sv)
{
    return server_cmd(sv, "EVALSHA %s 3 %s %s %s",
                      rl_scripts[RL_SCRIPT_WAITS].sha1, SCENE_LOCK, QUEUE, WHO);
}

OF_ALL_LAYOUTS(who_waits_for_long_is_told)
{
    EXPECT_INT(waits(sv)->elements, 2); /* nobody holds it, and nobody waits */
    take(sv, layout, 60000);
    redisReply *busy = acquire(sv, layout, "o:1:2:x", 60000, "rlock_bell:x");
    char ticket[32];
    snprintf(ticket, sizeof ticket, "%s", busy->element[2]->str);
    redisReply *r = waits(sv);
    EXPECT_INT(r->elements, 10);
    EXPECT(r->element[1]->integer == 1 && *r->element[2]->str);
    EXPECT_INT(r->element[4]->integer > 0, 1);
    EXPECT_STR(r->element[5]->str, "rlock_bell:x");
    EXPECT_STR(r->element[6]->str, ticket);
    EXPECT_STR(r->element[7]->str, "");
    EXPECT_INT(r->element[8]->integer, -1);
    ask_again(sv, layout, ticket);
    EXPECT_STR(waits(sv)->element[7]->str, "host:1:2:other");
    EXPECT_BETWEEN(server_int(sv, "PTTL " WHO), 1, 6000);
    ask_again(sv, layout, "1000");
    EXPECT_STR(waits(sv)->element[7]->str, "host:1:2:other");
    server_cmd(sv, "ZADD " QUEUE " 2000 rlock_bell:x");
    EXPECT_STR(waits(sv)->element[7]->str, "");
}

/* A key of another type there, say, is no reason not to wait. */
OF_ALL_LAYOUTS(who_waits_is_side_data)
{
    take(sv, layout, 60000);
    server_cmd(sv, "SADD " WHO " x");
    ask_again(sv, layout, "0");
    EXPECT_INT(server_int(sv, "ZCARD " QUEUE), 1);
    EXPECT_INT(waits(sv)->elements, 10);
}

TEST(scripts, of_what_is_no_queue_nobody_is_told)
{
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    server_cmd(sv, "SET " QUEUE " x");
    EXPECT_INT(waits(sv)->elements, 2);
    server_cmd(sv, "DEL " QUEUE);
    server_cmd(sv, "SADD " SCENE_LOCK " x");
    EXPECT_INT(waits(sv)->element[1]->integer, 0);
    server_stop(sv);
}

/* --- tokens ----------------------------------------------------------------
 */

OF_ALL_LAYOUTS(a_token_key_lives_for_two_leases_but_5_to_60_minutes)
{
    take(sv, layout, 1000);
    EXPECT_BETWEEN(server_int(sv, "PTTL " TOKEN), FIVE_MINUTES_MS - 20000,
                   FIVE_MINUTES_MS);
    EXPECT_INT(release(sv, layout), 1);
    take(sv, layout, 600000);
    EXPECT_BETWEEN(server_int(sv, "PTTL " TOKEN), 1180000, 1200000);
    EXPECT_INT(release(sv, layout), 1);
    take(sv, layout, RLOCK_LEASE_MAX_MS);
    EXPECT_BETWEEN(server_int(sv, "PTTL " TOKEN), 3580000, 3600000);
}

static void raise_token(server *sv, const char *token)
{
    EXPECT_INT(server_int(sv, "EVALSHA %s 1 %s %s",
                          rl_scripts[RL_SCRIPT_RAISE].sha1, TOKEN, token),
               1);
}

TEST(scripts, a_raised_token_lives_no_shorter_than_before)
{
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    raise_token(sv, "5");
    EXPECT_BETWEEN(server_int(sv, "PTTL " TOKEN), FIVE_MINUTES_MS - 20000,
                   FIVE_MINUTES_MS);
    EXPECT_INT(server_int(sv, "PEXPIRE " TOKEN " 7200000"), 1);
    raise_token(sv, "12");
    EXPECT_BETWEEN(server_int(sv, "PTTL " TOKEN), 7180000, 7200000);
    raise_token(sv, "7");
    EXPECT_STR(server_str(sv, "GET " TOKEN), "12");
    server_stop(sv);
}

static void expect_next(server *sv, const rl_layout *l, const char *last,
                        unsigned long long wanted)
{
    EXPECT_STR(server_str(sv, "SET " TOKEN " %s", last), "OK");
    unsigned long long token = take(sv, l, 60000);
    if (token != wanted)
        FAIL("the token after %s is %llu", last, token);
    EXPECT(token == strtoull(server_str(sv, "GET " TOKEN), NULL, 10));
    EXPECT_INT(release(sv, l), 1);
}

OF_ALL_LAYOUTS(tokens_go_on_behind_one_that_is_ahead_of_the_clock)
{
    expect_next(sv, layout, "2900000000000000", 2900000000000001);
    expect_next(sv, layout, "9999999999999999", 10000000000000000);
    expect_next(sv, layout, "12345678901234567", 12345678901234568);
    expect_next(sv, layout, "199999999999999999", 200000000000000000);
}

OF_ALL_LAYOUTS(what_is_no_token_is_replaced_by_the_clock)
{
    static const char *const values[] = {"x", "zzzzzzzzzzzzzzzzzzzz", "-1",
                                         "09999999999999999",
                                         "99999999999999999999"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        EXPECT_STR(server_str(sv, "SET " TOKEN " %s", values[i]), "OK");
        EXPECT_BETWEEN(take(sv, layout, 60000), 1500000000000000,
                       4000000000000000);
        EXPECT_INT(release(sv, layout), 1);
    }
}

/* --- renew and extend that are told the token ------------------------------
 */

static long long ask_lease(server *sv, rl_script_id id, const char *token)
{
    return server_int(sv, "EVALSHA %s 2 %s %s %s 60000 %s", rl_scripts[id].sha1,
                      SCENE_LOCK, TOKEN, HOLDER, token);
}

static void expect_outdone(server *sv, const rl_layout *l, rl_script_id id)
{
    char token[24], longer[32];
    snprintf(token, sizeof token, "%llu", take(sv, l, 60000));
    snprintf(longer, sizeof longer, "1%s", token);
    EXPECT_INT(ask_lease(sv, id, token), 1);
    EXPECT_INT(server_int(sv, "INCR " TOKEN), atoll(token) + 1);
    EXPECT_INT(ask_lease(sv, id, token), 0);
    EXPECT_STR(server_str(sv, "SET " TOKEN " 9"), "OK");
    EXPECT_INT(ask_lease(sv, id, token), 1);
    EXPECT_STR(server_str(sv, "SET " TOKEN " %s", longer), "OK");
    EXPECT_INT(ask_lease(sv, id, token), 0);
    EXPECT_INT(server_int(sv, "DEL " TOKEN), 1);
    EXPECT_INT(ask_lease(sv, id, token), 1);
    EXPECT_INT(release(sv, l), 1);
    EXPECT_INT(ask_lease(sv, id, token), 0);
}

OF_ALL_LAYOUTS(a_hold_that_a_later_grant_outdid_is_not_renewed)
{
    expect_outdone(sv, layout, layout->renew);
}

OF_ALL_LAYOUTS(a_hold_that_a_later_grant_outdid_is_not_extended)
{
    expect_outdone(sv, layout, layout->extend);
}

static long long look(server *sv, const rl_layout *l, const char *token)
{
    return server_int(sv, "EVALSHA %s 2 %s %s %s 0 %s",
                      rl_scripts[l->renew].sha1, SCENE_LOCK, TOKEN, HOLDER,
                      token);
}

/* Without an expiry, too, which a renewal would give it. */
OF_ALL_LAYOUTS(a_renewal_for_a_lease_of_0_only_looks)
{
    char token[24];
    EXPECT_INT(look(sv, layout, "1"), 0);
    EXPECT_INT(key_exists(sv, SCENE_LOCK), 0);
    snprintf(token, sizeof token, "%llu", take(sv, layout, 60000));
    EXPECT_INT(server_int(sv, "PERSIST " SCENE_LOCK), 1);
    EXPECT_INT(look(sv, layout, token), 1);
    EXPECT_INT(key_ttl(sv, SCENE_LOCK), -1);
    EXPECT_INT(server_int(sv, "INCR " TOKEN), atoll(token) + 1);
    EXPECT_INT(look(sv, layout, token), 0);
    EXPECT_INT(key_exists(sv, SCENE_LOCK), 1);
}

/* --- the queue -------------------------------------------------------------
 */

static void queue_dead_clients(server *sv, int n)
{
    for (int i = 0; i < n; i++)
        server_int(sv, "ZADD " QUEUE " %d rlock_bell:%d", i + 1, i);
}

OF_ALL_LAYOUTS(a_release_rings_at_most_64_clients_that_are_dead)
{
    take(sv, layout, 60000);
    queue_dead_clients(sv, 200);
    EXPECT_INT(release(sv, layout), 1);
    EXPECT_INT(server_int(sv, "ZCARD " QUEUE), 200 - 64);
    EXPECT_INT(server_int(sv, "EXISTS " SCENE_LOCK), 0);
}

/* Who is not queued is told who has it, too. */
static void expect_busy(redisReply *r, int rank, size_t elements)
{
    if (r->type != REDIS_REPLY_ARRAY)
        FAIL("acquire: %s", r->str ? r->str : "no array");
    EXPECT_INT(r->elements, elements);
    EXPECT_INT(r->element[0]->integer, 0);
    EXPECT_BETWEEN(r->element[1]->integer, 1, 61100);
    EXPECT_INT(r->element[3]->integer, 0);
    EXPECT_INT(r->element[4]->integer, rank);
}

OF_ALL_LAYOUTS(who_is_queued_is_told_its_rank)
{
    take(sv, layout, 60000);
    expect_busy(acquire(sv, layout, "other:1:1:x", 60000, BELL), 0, 5);
    EXPECT_INT(server_int(sv, "DEL " QUEUE), 1);
    queue_dead_clients(sv, 3);
    expect_busy(acquire(sv, layout, "other:1:1:x", 60000, BELL), 3, 5);
    expect_busy(acquire(sv, layout, "other:1:1:x", 60000, ""), -1, 7);
}

/* Its user may have been made for an earlier version. */
OF_ALL_LAYOUTS(who_may_not_ask_for_its_rank_waits_all_the_same)
{
    take(sv, layout, 60000);
    EXPECT_STR(server_str(sv, "ACL SETUSER default -zrank"), "OK");
    expect_busy(acquire(sv, layout, "other:1:1:x", 60000, BELL), -1, 5);
    EXPECT_INT(server_int(sv, "ZCARD " QUEUE), 1);
}

OF_ALL_LAYOUTS(a_server_that_was_demoted_queues_nobody_and_says_so)
{
    take(sv, layout, 60000);
    EXPECT_STR(server_str(sv, "REPLICAOF 127.0.0.1 1"), "OK");
    redisReply *r = acquire(sv, layout, "other:1:1:x", 60000, BELL);
    EXPECT_INT(r->type, REDIS_REPLY_ERROR);
    EXPECT_CONTAINS(r->str, "READONLY");
}

/* --- names that share a hash tag -------------------------------------------
 */

static int waiting(rlock_client *cl)
{
    return (int)stats_of(cl).waiting_now;
}

/* Until every bell that should be there is queued, whatever the queues' names
   are. */
static int bells(server *sv)
{
    redisReply *keys = server_cmd(sv, "KEYS rlock_queue:*");
    char name[8][64];
    size_t n = keys->elements;
    int sum = 0;
    EXPECT_BETWEEN(n, 0, 8);
    for (size_t i = 0; i < n; i++)
        snprintf(name[i], sizeof name[i], "%s", keys->element[i]->str);
    for (size_t i = 0; i < n; i++)
        sum += (int)server_int(sv, "ZCARD %s", name[i]);
    return sum;
}

/* Who waits for the first name came first; the second one is freed first. */
static void wake_by_name(rlock *holder[2], rlock *lk[2], rlock_client *cl[2],
                         server *sv)
{
    waiter *w[2];
    for (int i = 0; i < 2; i++) {
        EXPECT_STATUS(rlock_lock(holder[i]), RLOCK_OK);
        w[i] = waiter_start(lk[i], RLOCK_FOREVER, RLOCK_WATCHDOG);
        int wanted = cl[0] == cl[1] ? i + 1 : 1;
        EVENTUALLY(20000, waiting(cl[i]) == wanted && bells(sv) == i + 1);
    }
    for (int i = 1; i >= 0; i--) {
        int64_t freed_ms = test_now_ms();
        EXPECT_STATUS(rlock_unlock(holder[i]), RLOCK_OK);
        waiter_expect_rung(w[i], freed_ms);
        EXPECT_INT(stats_of(cl[0]).wakeups_futile, 0);
    }
    for (int i = 0; i < 2; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
}

static void wait_for_both(bool one_client)
{
    static const char *const name[] = {"{job}", "job"};
    scene s = scene_start(0, 0);
    other_client other = other_client_join(&s, NULL),
                 holder = other_client_join(&s, NULL);
    rlock_client *cl[] = {s.cl, one_client ? s.cl : other.cl};
    rlock *lk[2], *held[2];
    for (int i = 0; i < 2; i++) {
        lk[i] = test_lock(cl[i], name[i]);
        held[i] = test_lock(holder.cl, name[i]);
    }
    wake_by_name(held, lk, cl, s.sv);
    for (int i = 0; i < 2; i++) {
        rlock_free(lk[i]);
        rlock_free(held[i]);
    }
    other_client_leave(&other);
    other_client_leave(&holder);
    scene_stop(&s);
}

TEST(scripts, a_name_and_itself_in_braces_do_not_take_each_others_rings)
{
    wait_for_both(false);
}

TEST(scripts, one_client_waits_for_a_name_and_itself_in_braces)
{
    wait_for_both(true);
}

/* --- servers that are too old ----------------------------------------------
 */

/* What the probe says of a server that has this INFO, and this SET. */
static const char *probe_of(server *sv, const char *info, bool old_set)
{
    const rl_script *probe = &rl_scripts[RL_SCRIPT_PROBE];
    static const char before[] =
        "local real, info, old_set = redis, '%s', %s\n"
        "local redis = {error_reply = real.error_reply, call = real.call}\n"
        "function redis.pcall(command, ...)\n"
        "    if command == 'INFO' then\n"
        "        return info ~= '' and info or {err = 'NOPERM'}\n"
        "    end\n"
        "    if command == 'SET' and old_set and ({...})[4] == 'GET' then\n"
        "        return {err = 'ERR syntax error'}\n"
        "    end\n"
        "    return real.pcall(command, ...)\n"
        "end\n";
    char *text = calloc(1, sizeof before + strlen(info) + probe->len + 8);
    EXPECT(text);
    sprintf(text, before, info, old_set ? "true" : "false");
    strcat(text, probe->body);
    redisReply *r = server_cmd(sv, "EVAL %s 3 %s %s %s %s", text, TOKEN, QUEUE,
                               TOMBSTONE, BELL);
    free(text);
    if (r->type != REDIS_REPLY_ARRAY)
        FAIL("probe: %s", r->str ? r->str : "no array");
    EXPECT_INT(r->elements, 6);
    return r->element[4]->str;
}

static const char *probe_of_version(server *sv, const char *version)
{
    char info[100];
    snprintf(info, sizeof info, "# Server\\r\\nredis_version:%s\\r\\n",
             version);
    return probe_of(sv, info, false);
}

TEST(scripts, the_probe_finds_servers_that_are_too_old)
{
    server *sv = server_start(NULL);
    EXPECT_STR(probe_of_version(sv, "3.2.12"), "3.2.12");
    EXPECT_STR(probe_of_version(sv, "5.0.14"), "5.0.14");
    EXPECT_STR(probe_of_version(sv, "6.0.20"), "6.0.20");
    EXPECT_STR(probe_of_version(sv, "6.2.0"), "");
    EXPECT_STR(probe_of_version(sv, "7.0.15"), "");
    EXPECT_STR(probe_of_version(sv, "10.1.0"), "");
    EXPECT_STR(probe_of(sv, "", true), "not told");
    EXPECT_STR(probe_of(sv, "", false), "");
    EXPECT_INT(server_int(sv, "DBSIZE"), 0);
    server_stop(sv);
}

TEST(scripts, no_client_is_made_for_a_server_that_is_too_old)
{
    scene s = scene_proxied(0, 0);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    opts.uri = proxy_uri(s.px);
    proxy_rule(s.px, proxy_sha("probe"), 1, PROXY_ANSWER,
               "*6\r\n$0\r\n\r\n$0\r\n\r\n$1\r\na\r\n$1\r\n9\r\n"
               "$6\r\n5.0.14\r\n$0\r\n\r\n");
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_ENOTSUP);
    EXPECT(!cl);
    EXPECT_CONTAINS(rlock_last_error()->message, "5.0.14");
    EXPECT_CONTAINS(rlock_last_error()->message, "6.2");
    scene_stop(&s);
}
