/*
 * Each script in each layout: whatever it may find (nobody's lock, the caller's
 * own, another's, one that was asked for before, something else) and whatever
 * it may be told, what it answers, and what is in the server afterwards, key by
 * key. The rows are in script_table/, and table.h says how to read them.
 */
#include "script_table/table.h"

#include <ctype.h>

#include "direct.h"
#include "script_text.h"

/* --- what is heard -------------------------------------------------------- */

static void subscribe(table *t)
{
    redisReply *r;
    t->ear = connect_to(server_path(t->sv), SOON);
    redisAppendCommand(t->ear, "PSUBSCRIBE rlock_bell:live* redisson* end %s",
                       "");
    for (int i = 0; i < 4; i++) {
        EXPECT_INT(redisGetReply(t->ear, (void **)&r), REDIS_OK);
        freeReplyObject(r);
    }
    static const char *const shards[] = {"s1", "R", "R2", "C", "K"};
    for (int i = 0; t->sharded && i < 5; i++) {
        r = redisCommand(t->ear, "SSUBSCRIBE %s", word_for(shards[i]));
        EXPECT(r && r->type == REDIS_REPLY_ARRAY);
        freeReplyObject(r);
    }
}

/* All messages up to now, with blanks between them. */
static const char *heard(table *t)
{
    static char all[600];
    redisReply *r;
    all[0] = '\0';
    say(t, "PUBLISH end x");
    for (;;) {
        EXPECT_INT(redisGetReply(t->ear, (void **)&r), REDIS_OK);
        const char *channel = r->element[r->elements - 2]->str;
        if (strcmp(channel, "end") == 0)
            break;
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s%s<%s", used ? " " : "",
                 strcmp(r->element[0]->str, "smessage") == 0 ? "sharded " : "",
                 word_of(channel), word_of(r->element[r->elements - 1]->str));
        freeReplyObject(r);
    }
    freeReplyObject(r);
    return all;
}

/* --- a call --------------------------------------------------------------- */

static const char *guard_text(rl_guard_id id, const char *path)
{
    const char *text = getenv("RLOCK_TEST_LUA") ? script_text(path) : NULL;
    return text ? text : rl_guards[id].text;
}

static const char *const layouts[] = {"hash", "string", "timestamp"};

/* A guard, or two, and behind it a program that sets its one key. */
static const char *guarded(rl_guard_id id, const char *folder, bool with_token)
{
    static char text[20000];
    char path[40];
    size_t used = 0;
    if (with_token)
        used = (size_t)snprintf(text, sizeof text, "%s",
                                guard_text(RL_GUARD_TOKEN, "guard_token"));
    snprintf(path, sizeof path, "%s/guard", folder);
    snprintf(text + used, sizeof text - used,
             "%sreturn redis.call('SET', KEYS[1], ARGV[1])",
             guard_text(id, path));
    return text;
}

/* NULL: it is no guard's name. */
static const char *guard_named(const table *t, const char *name)
{
    rl_guard_id own = rl_layouts[t->layout].guard;
    if (strcmp(name, "guard") == 0)
        return guarded(own, layouts[t->layout], false);
    if (strcmp(name, "guard_token") == 0)
        return guarded(own, layouts[t->layout], true);
    if (strcmp(name, "read/guard") == 0)
        return guarded(rl_layouts[RL_LAYOUT_READ].guard, "read", false);
    if (strcmp(name, "write/guard") == 0)
        return guarded(rl_layouts[RL_LAYOUT_WRITE].guard, "write", false);
    return NULL;
}

/* A script of the layout, or one for all. */
static const char *text_named(const table *t, const char *name)
{
    char path[60];
    const char *guard = guard_named(t, name);
    if (guard)
        return guard;
    snprintf(path, sizeof path, "%s/%s", layouts[t->layout], name);
    const char *text = script_text(path);
    if (!text)
        text = script_text(name);
    if (text && t->old)
        text = script_before_7(text);
    if (!text)
        FAIL("there is no script %s%s", name, t->old ? " of that kind" : "");
    return text;
}

static redisReply *call(table *t, const char *line)
{
    enum { MOST = 24 };
    const char *argv[MOST] = {"EVAL"};
    char copy[300], *rest = copy;
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *w; (w = strtok_r(rest, " ", &rest)) != NULL; argc++) {
        EXPECT(argc < MOST);
        argv[argc] = argc == 1 ? text_named(t, w) : word_for(w);
    }
    redisReply *r = redisCommandArgv(t->cx, argc, argv, NULL);
    EXPECT(r);
    return r;
}

/* --- a reply -------------------------------------------------------------- */

/* Its words, each behind a line's end, as a text may have blanks. */
static void write_reply(const redisReply *r, char *out, size_t size)
{
    size_t used = strlen(out);
    if (r->type == REDIS_REPLY_ARRAY) {
        snprintf(out + used, size - used, "{\n");
        for (size_t i = 0; i < r->elements; i++)
            write_reply(r->element[i], out, size);
        used = strlen(out);
        snprintf(out + used, size - used, "}\n");
    } else if (r->type == REDIS_REPLY_INTEGER) {
        snprintf(out + used, size - used, "%lld\n", r->integer);
    } else {
        snprintf(out + used, size - used, "%s\n", r->str ? r->str : "nil");
    }
}

/* Of take_many: tokens with blanks between them. */
static void split_tokens(char *text)
{
    if (isdigit((unsigned char)*text))
        for (; *text; text++)
            *text = *text == ' ' ? '\n' : *text;
}

static bool reply_is(table *t, const char *wanted, const redisReply *r,
                     char *said, size_t size)
{
    char copy[200], lines[1000], *rest = copy, *at = lines;
    bool same = true;
    *said = '\0';
    write_reply(r, said, size);
    if (r->type == REDIS_REPLY_ERROR)
        return *wanted == '!' && strstr(r->str, wanted + 1);
    snprintf(copy, sizeof copy, "%s", wanted);
    snprintf(lines, sizeof lines, "%s", said);
    split_tokens(lines);
    for (char *w; same && (w = strtok_r(rest, " ", &rest)) != NULL;) {
        char *end = strchr(at, '\n');
        if (!end)
            return false;
        *end = '\0';
        same = word_is(t, w, at);
        at = end + 1;
    }
    return same && !*at;
}

/* --- a row ---------------------------------------------------------------- */

static void deny(table *t, const char *rule, bool denied)
{
    char limit[20], policy[20];
    if (!rule)
        return;
    if (strcmp(rule, BEFORE_7) == 0) {
        t->old = denied;
    } else if (strcmp(rule, READONLY) == 0) {
        say(t, denied ? "REPLICAOF 127.0.0.1 1" : "REPLICAOF NO ONE");
    } else if (sscanf(rule, "memory %19s %19s", limit, policy) == 2) {
        say(t, "CONFIG SET maxmemory %s", denied ? limit : "0");
        say(t, "CONFIG SET maxmemory-policy %s",
            denied ? policy : "noeviction");
    } else {
        say(t, "ACL SETUSER default %s", denied ? rule : "+@all");
    }
}

/* "" if all is as it says. */
static const char *try_row(table *t, const row *x)
{
    static char wrong[4000];
    char said[1000];
    wrong[0] = '\0';
    say(t, "FLUSHALL");
    state_put(t, x->before);
    deny(t, x->deny, true);
    redisReply *r = call(t, x->call);
    deny(t, x->deny, false);
    const char *differs =
        state_differs(t, x->after == SAME ? x->before : x->after);
    const char *sounds = heard(t);
    if (*differs)
        snprintf(wrong, sizeof wrong, "afterwards %s\n", differs);
    if (!reply_is(t, x->reply, r, said, sizeof said))
        snprintf(wrong + strlen(wrong), 1200, "the answer is %s\n", said);
    if (strcmp(sounds, x->heard ? x->heard : "") != 0)
        snprintf(wrong + strlen(wrong), 700, "heard is %s\n", sounds);
    freeReplyObject(r);
    return wrong;
}

static bool needs_shards(const row *x)
{
    return strstr(x->call, "SPUBLISH") || strstr(x->before, "s1:") ||
           strstr(x->call, " s1");
}

/* Its clock stands still, so that each time and each TTL is to the unit what it
   has to be; and TIME tells so many microseconds with fewer digits, or six. */
static void open_table(table *t, rlock_layout layout)
{
    static const long long still_us[] = {
        [RLOCK_LAYOUT_HASH] = 1800000000000345,
        [RLOCK_LAYOUT_STRING] = 1800000000012345,
        [RLOCK_LAYOUT_TIMESTAMP] = 1800000000912345};
    *t = (table){.layout = layout, .sv = server_start_clocked(NULL)};
    server_stop_clock(t->sv, still_us[layout]);
    t->cx = connect_to(server_path(t->sv), SOON);
    t->sharded = say(t, "SPUBLISH x y")->type == REDIS_REPLY_INTEGER;
    subscribe(t);
}

static void close_table(table *t)
{
    redisFree(t->ear);
    redisFree(t->cx);
    server_stop(t->sv);
}

void try_rows(rlock_layout layout, const row *rows, size_t n)
{
    table t;
    char all[8000] = "";
    size_t tried = 0, bad = 0;
    open_table(&t, layout);
    for (const row *x = rows; x < rows + n; x++) {
        if (!(x->layouts >> layout & 1) || (needs_shards(x) && !t.sharded))
            continue;
        const char *wrong = try_row(&t, x);
        size_t used = strlen(all);
        tried++;
        if (*wrong && ++bad < 8)
            snprintf(all + used, sizeof all - used, "\n%s: %s%s\n  %s",
                     x->before, x->call, x->deny ? x->deny : "", wrong);
    }
    close_table(&t);
    EXPECT(tried > 0);
    if (bad > 0)
        FAIL("%zu of %zu rows: %s", bad, tried, all);
}

/* --- what shows in no key ------------------------------------------------- */

/* A replica is told of it, though nothing changes. */
TEST(script_table, touch_writes)
{
    table t;
    open_table(&t, RLOCK_LAYOUT_HASH);
    state_put(&t, "L=A@20000");
    long long before = server_info(t.sv, "rdb_changes_since_last_save");
    redisReply *r = call(&t, "touch 1 L");
    EXPECT_INT(r->integer, 1);
    EXPECT_INT(server_info(t.sv, "rdb_changes_since_last_save"), before + 1);
    freeReplyObject(r);
    close_table(&t);
}

/* --- what is many ---------------------------------------------------------- */

/* Of clients that are gone, and that of one that lives behind them. */
static void queue_behind(table *t, int dead)
{
    for (int i = 0; i < dead; i++)
        say(t, "ZADD %s %d rlock_bell:dead%02d", word_for("Q"), i, i);
    say(t, "ZADD %s %d %s", word_for("Q"), dead, word_for("b1"));
}

static void expect_rung_behind(int dead, long long code, long long left)
{
    table t;
    open_table(&t, RLOCK_LAYOUT_STRING);
    state_put(&t, "L=A@20000");
    queue_behind(&t, dead);
    redisReply *r = call(&t, "release 2 L Q A ''");
    EXPECT_INT(r->integer, code);
    EXPECT_INT(say(&t, "ZCARD %s", word_for("Q"))->integer, left);
    freeReplyObject(r);
    close_table(&t);
}

TEST_CASE(script_table, behind_63_bells_of_the_dead_one_that_lives_is_rung,
          expect_rung_behind(63, 2, 0))
TEST_CASE(script_table, behind_64_bells_of_the_dead_nobody_is_rung,
          expect_rung_behind(64, 1, 1))

/* So many that they are told page by page, in an order of the server's. */
TEST(script_table, waits_tells_who_each_is_among_thousands)
{
    enum { THOUSANDS = 5000, TOLD = 9 };
    table t;
    char bell[3] = "b1", ticket[8];
    open_table(&t, RLOCK_LAYOUT_HASH);
    for (int i = 0; i < THOUSANDS; i++)
        say(&t, "HSET %s rlock_bell:gone%d x", word_for("W"), i);
    for (int i = 1; i <= TOLD; i++, bell[1]++) {
        snprintf(ticket, sizeof ticket, "%d", 100 * i);
        say(&t, "ZADD %s %s %s", word_for("Q"), ticket, word_for(bell));
        snprintf(ticket, sizeof ticket, "%d id%d", 100 * i, i);
        say(&t, "HSET %s %s %s", word_for("W"), word_for(bell), ticket);
    }
    redisReply *r = call(&t, "waits 3 L Q W");
    EXPECT_INT(r->elements, 2 + 5 * TOLD);
    for (size_t i = 0; i < TOLD; i++) {
        snprintf(ticket, sizeof ticket, "id%zu", i + 1);
        EXPECT_STR(r->element[2 + 5 * i + 2]->str, ticket);
    }
    freeReplyObject(r);
    close_table(&t);
}

/* Of what had many fields the one that is left may be on any page. */
static void expect_found_alone(const char *line, size_t at)
{
    table t;
    open_table(&t, RLOCK_LAYOUT_HASH);
    say(&t, "EVAL %s 1 %s %s",
        "for i = 1, 5000 do redis.call('HSET', KEYS[1], i, 1) end "
        "redis.call('HSET', KEYS[1], ARGV[1], 1) "
        "for i = 1, 5000 do redis.call('HDEL', KEYS[1], i) end",
        word_for("L"), word_for("A"));
    redisReply *r = call(&t, line);
    EXPECT(r->type == REDIS_REPLY_ARRAY && r->elements > at);
    EXPECT_STR(r->element[at]->str, word_for("A"));
    freeReplyObject(r);
    close_table(&t);
}

TEST_CASE(script_table, inspect_finds_the_one_field_that_is_left,
          expect_found_alone("inspect 1 L", 0))
TEST_CASE(script_table, leave_finds_the_one_field_that_is_left,
          expect_found_alone("leave 3 L Q T b1", 1))

TEST(script_table, a_hash_of_two_holders_is_no_lock)
{
    table t;
    open_table(&t, RLOCK_LAYOUT_HASH);
    say(&t, "HSET %s %s 1 %s 1", word_for("L"), word_for("A"), word_for("B"));
    redisReply *r = call(&t, "force_release 2 L Q R");
    EXPECT(r->type == REDIS_REPLY_ERROR);
    EXPECT_CONTAINS(r->str, "WRONGTYPE");
    EXPECT_INT(say(&t, "HLEN %s", word_for("L"))->integer, 2);
    freeReplyObject(r);
    close_table(&t);
}

/* --- what is tried --------------------------------------------------------- */

/* The next command of a script, in the words of a row; "": there was the last. */
static const char *next_command(redisContext *monitor)
{
    static char all[600];
    redisReply *r;
    for (;;) {
        EXPECT_INT(redisGetReply(monitor, (void **)&r), REDIS_OK);
        const char *lua = strstr(r->str, " lua] ");
        bool last = strstr(r->str, "\"end\"") != NULL;
        all[0] = '\0';
        char *rest = lua ? strdup(lua + 6) : NULL, *at = rest;
        for (char *w; at && (w = strtok_r(at, "\"", &at)) != NULL;)
            if (*w != ' ' || w[1])
                snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
                         *all ? " " : "", word_of(w));
        free(rest);
        freeReplyObject(r);
        if (lua || last)
            return all;
    }
}

/* Each with the words that the scripts say it with, on the key that they do. */
TEST(script_table, probe_tries_each_right_on_the_key_that_it_is_needed_for)
{
    static const char *const tried[] = {
        "INFO server",   "SET T 1 XX GET",  "HSET T f 1",     "HEXISTS T f",
        "HLEN T",        "HSCAN T 0",       "PEXPIRE T 1000", "PTTL T",
        "HDEL T f",      "DEL T",           "GET T",          "SET T 1 XX PX 1",
        "ZADD Q XX 1 m", "PEXPIRE Q 1000",  "ZREM Q m",       "ZPOPMIN Q",
        "EXISTS U",      "SET U 1 XX PX 1", "TIME",           "PUBLISH b1",
        "ZRANK Q m",     "ZRANGE Q 0 0",    "INFO memory",
    };
    table t;
    open_table(&t, RLOCK_LAYOUT_HASH);
    redisContext *monitor = connect_to(server_path(t.sv), SOON);
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    freeReplyObject(call(&t, "probe 3 T Q U b1"));
    say(&t, "PUBLISH end x");
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
        EXPECT_STR(next_command(monitor), tried[i]);
    EXPECT_STR(next_command(monitor), "");
    redisFree(monitor);
    close_table(&t);
}

/* What INFO says of the version, "" if nothing; does SET know GET beside XX? */
static void expect_version(const char *version, bool knows_get,
                           const char *too_old)
{
    table t;
    char text[20000];
    open_table(&t, RLOCK_LAYOUT_HASH);
    snprintf(text, sizeof text,
             "local real = redis local redis = {call = real.call, pcall = "
             "function(what, ...) if what == 'INFO' then return "
             "'# Server\\r\\nredis_version:%s\\r\\nrun_id:x\\r\\n' end "
             "if what == 'SET' and select('#', ...) == 4 and not %s then "
             "return {err = 'ERR syntax error'} end "
             "return real.pcall(what, ...) end} %s",
             version, knows_get ? "true" : "false", text_named(&t, "probe"));
    redisReply *r =
        redisCommand(t.cx, "EVAL %s 3 %s %s %s %s", text, word_for("T"),
                     word_for("Q"), word_for("U"), word_for("b1"));
    EXPECT(r && r->type == REDIS_REPLY_ARRAY && r->elements == 6);
    EXPECT_STR(r->element[4]->str, too_old);
    EXPECT_STR(r->element[2]->str, "x");
    EXPECT_INT(say(&t, "DBSIZE")->integer, 0);
    EXPECT_STR(heard(&t), *too_old ? "" : "b1<''");
    freeReplyObject(r);
    close_table(&t);
}

#define VERSION(name, ...)                                                     \
    TEST_CASE(script_table, version_##name, expect_version(__VA_ARGS__))

VERSION(2_8_is_too_old, "2.8.4", false, "2.8.4")
VERSION(5_9_is_too_old, "5.9.99", true, "5.9.99")
VERSION(6_0_is_too_old, "6.0.16", false, "6.0.16")
VERSION(6_1_is_too_old, "6.1.240", true, "6.1.240")
VERSION(6_2_is_new_enough, "6.2.0", true, "")
VERSION(6_10_is_new_enough, "6.10.1", true, "")
VERSION(7_0_is_new_enough, "7.0.0", true, "")
VERSION(10_0_is_new_enough, "10.0.1", true, "")
VERSION(7_0_that_does_not_know_a_word_is_too_old, "7.0.0", false, "7.0.0")
VERSION(that_is_not_told_is_tried, "", true, "")
VERSION(that_is_not_told_may_be_too_old, "", false, "not told")

/* --- what is cut ----------------------------------------------------------- */

/* A lock of somebody's: his name has so many letters, his count so many digits. */
static void put_long(table *t, size_t name, size_t count)
{
    char who[1000] = "", digits[100] = "";
    memset(who, 'n', name);
    memset(digits, '1', count);
    if (t->layout == RLOCK_LAYOUT_HASH)
        say(t, "HSET %s %s %s", word_for("L"), who, digits);
    else
        say(t, "SET %s %s", word_for("L"), who);
}

static void expect_cut(rlock_layout layout, const char *line, size_t at,
                       size_t len)
{
    table t;
    open_table(&t, layout);
    put_long(&t, 600, 40);
    redisReply *r = call(&t, line);
    EXPECT(r->type == REDIS_REPLY_ARRAY && r->elements > at + 1);
    EXPECT_INT(r->element[at]->len, len);
    if (layout == RLOCK_LAYOUT_HASH && r->element[at + 1]->str)
        EXPECT_INT(r->element[at + 1]->len, 32);
    freeReplyObject(r);
    close_table(&t);
}

#define CUT(name, layout, line, at, len)                                       \
    TEST_CASE(script_table, name,                                              \
              expect_cut(RLOCK_LAYOUT_##layout, line, at, len))

CUT(inspect_cuts_a_long_field, HASH, "inspect 1 L", 0, 511)
CUT(inspect_cuts_a_long_value, STRING, "inspect 1 L", 0, 511)
/* Of a time with ever so many digits behind the point. */
TEST(script_table, inspect_cuts_a_long_time)
{
    table t;
    char text[700] = "1900000000.";
    open_table(&t, RLOCK_LAYOUT_TIMESTAMP);
    memset(text + strlen(text), '5', 600);
    say(&t, "SET %s %s", word_for("L"), text);
    redisReply *r = call(&t, "inspect 1 L");
    EXPECT(r->type == REDIS_REPLY_ARRAY && r->elements == 3);
    EXPECT_INT(r->element[0]->len, 511);
    freeReplyObject(r);
    close_table(&t);
}

CUT(waits_cuts_a_long_field, HASH, "waits 3 L Q W", 2, 511)
CUT(waits_cuts_a_long_value, STRING, "waits 3 L Q W", 2, 511)
CUT(survey_cuts_a_long_field, HASH, "survey 3 L Q T", 2, 511)
CUT(survey_cuts_a_long_value, STRING, "survey 3 L Q T", 2, 511)
CUT(leave_cuts_a_long_holder, STRING, "leave 3 L Q T b1", 1, 127)

/* The id by which somebody asks, who waits. */
TEST(script_table, waits_cuts_a_long_id)
{
    table t;
    char who[700] = "100 ";
    open_table(&t, RLOCK_LAYOUT_STRING);
    state_put(&t, "Q=b1:100");
    memset(who + 4, 'w', 600);
    say(&t, "HSET %s %s %s", word_for("W"), word_for("b1"), who);
    redisReply *r = call(&t, "waits 3 L Q W");
    EXPECT_INT(r->elements, 7);
    EXPECT_INT(r->element[4]->len, 511);
    freeReplyObject(r);
    close_table(&t);
}

/* One of ours, on a host with a long name. */
TEST(script_table, leave_cuts_a_holder_and_tells_since_when)
{
    table t;
    char who[300] = "";
    open_table(&t, RLOCK_LAYOUT_STRING);
    state_put(&t, "T=now-7000@200000");
    memset(who, 'h', 150);
    snprintf(who + 150, sizeof who - 150, ":1:2:%s",
             word_for("A") + strlen(word_for("A")) - 36);
    say(&t, "SET %s %s PX 20000", word_for("L"), who);
    redisReply *r = call(&t, "leave 3 L Q T b1");
    EXPECT(r->type == REDIS_REPLY_ARRAY && r->elements == 3);
    EXPECT_INT(r->element[1]->len, 127);
    EXPECT_INT(r->element[2]->integer, 7000);
    freeReplyObject(r);
    close_table(&t);
}
