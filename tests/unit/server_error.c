/* What a server's error text means for a lock. */
#include "test.h"
#include "wire/error.h"

static rl_reply error_reply(const char *text)
{
    rl_reply r = {0};
    r.top =
        (rl_item){.type = REDIS_REPLY_ERROR, .str = text, .len = strlen(text)};
    return r;
}

typedef enum sort { UNKNOWN, NO, LATER, ELSEWHERE } sort;

static void expect_sort(const char *text, sort wanted)
{
    rl_reply r = error_reply(text);
    rl_fault f;
    const rl_error_kind *k = rl_error_reply(&r, &f);
    if (k->definite != (wanted != UNKNOWN) ||
        k->transient != (wanted == LATER || wanted == ELSEWHERE) ||
        k->elsewhere != (wanted == ELSEWHERE))
        FAIL("%s: definite %d, transient %d, elsewhere %d", text, k->definite,
             k->transient, k->elsewhere);
    EXPECT_INT(f.status, k->status);
    EXPECT_INT(f.transient, k->transient);
    EXPECT_CONTAINS(f.text, text);
}

TEST(server_error, the_commands_that_will_never_work)
{
    expect_sort("OOM command not allowed when used memory > 'maxmemory'.", NO);
    expect_sort("NOAUTH Authentication required.", NO);
    expect_sort("WRONGPASS invalid username-password pair", NO);
    expect_sort("NOPERM this user has no permissions to run 'evalsha'", NO);
    expect_sort("MOVED 3999 127.0.0.1:6381", NO);
    expect_sort("ASK 3999 127.0.0.1:6381", NO);
    expect_sort("CROSSSLOT Keys in request don't hash to the same slot", NO);
    expect_sort("ERR unknown command 'EVALSHA', with args beginning with:", NO);
    expect_sort("ERR rlock: bad lease", NO);
}

TEST(server_error, those_that_may_work_later)
{
    expect_sort("NOSCRIPT No matching script. Please use EVAL.", LATER);
    expect_sort("LOADING Redis is loading the dataset in memory", LATER);
    expect_sort("BUSY Redis is busy running a script.", LATER);
    expect_sort("TRYAGAIN Multiple keys request during rehashing", LATER);
    expect_sort("CLUSTERDOWN The cluster is down", LATER);
    expect_sort("MISCONF Redis is configured to save RDB snapshots", LATER);
    expect_sort("NOREPLICAS Not enough good replicas to write.", LATER);
}

TEST(server_error, those_of_the_wrong_server)
{
    expect_sort("READONLY You can't write against a read only replica.",
                ELSEWHERE);
    expect_sort("MASTERDOWN Link with MASTER is down", ELSEWHERE);
    expect_sort("ERR max number of clients reached", ELSEWHERE);
}

TEST(server_error, what_is_unknown_may_have_been_executed)
{
    expect_sort("ERR something nobody has seen before", UNKNOWN);
    expect_sort("", UNKNOWN);
    expect_sort("EXECABORT Transaction discarded", UNKNOWN);
}

TEST(server_error, servers_wrap_errors_of_scripts)
{
    expect_sort("OOM command not allowed when used memory > 'maxmemory'. "
                "script: abc, on @user_script:1.",
                NO);
    expect_sort("ERR Error running script (call to f_1): @user_script:1: "
                "-READONLY You can't write against a read only replica.",
                ELSEWHERE);
    expect_sort("ERR Error running script (call to f_1): @user_script: 1: "
                "-MISCONF Redis is configured to save RDB snapshots",
                LATER);
}

TEST(server_error, a_key_of_another_type_has_its_own_status)
{
    static const char *const texts[] = {
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "WRONGTYPE Operation against a key script: 1, on @user_script:2.",
        "ERR Error running script (call to f_1): @user_script:2: WRONGTYPE"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rl_reply r = error_reply(texts[i]);
        rl_fault f;
        EXPECT_INT(rl_error_reply(&r, &f)->status, RLOCK_EWRONGTYPE);
        EXPECT(!f.transient);
    }
}

TEST(server_error, every_other_error_is_the_servers)
{
    rl_reply r = error_reply("READONLY x");
    EXPECT_INT(rl_error_reply(&r, NULL)->status, RLOCK_ESERVER);
    r = error_reply("x");
    EXPECT_INT(rl_error_reply(&r, NULL)->status, RLOCK_ESERVER);
}

/* A user's key name may hold such a word, and errors may repeat it. */
TEST(server_error, noscript_counts_only_at_the_beginning)
{
    rl_reply r = error_reply("NOSCRIPT No matching script.");
    EXPECT(rl_error_is_noscript(&r));
    r = error_reply("ERR no such key: NOSCRIPT");
    EXPECT(!rl_error_is_noscript(&r));
    r = error_reply("NOSCRIPT");
    r.top.type = REDIS_REPLY_STATUS;
    EXPECT(!rl_error_is_noscript(&r));
}

TEST(server_error, a_long_text_is_cut_in_the_message)
{
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rl_reply r = error_reply(text);
    rl_fault f;
    rl_error_reply(&r, &f);
    EXPECT_INT(strlen(f.text), sizeof f.text - 1);
}
