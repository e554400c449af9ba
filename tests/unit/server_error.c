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
    EXPECT_CONTAINS(text, f.text + strlen("the server answered: "));
}

/* A test for each error: its text as servers say it, and what it means. */
#define SORT(name, sort, text)                                                 \
    TEST_CASE(server_error, name, expect_sort(text, sort))

/* --- what will never work ------------------------------------------------- */

SORT(no_memory_is_a_no, NO,
     "OOM command not allowed when used memory > 'maxmemory'.")
SORT(no_login_is_a_no, NO, "NOAUTH Authentication required.")
SORT(a_wrong_password_is_a_no, NO,
     "WRONGPASS invalid username-password pair or user is disabled.")
SORT(a_missing_right_is_a_no, NO,
     "NOPERM this user has no permissions to run the 'evalsha' command")
SORT(a_missing_right_of_redis_7_is_a_no, NO,
     "NOPERM User app has no permissions to run the 'evalsha' command")
SORT(a_key_that_is_not_allowed_is_a_no, NO,
     "NOPERM No permissions to access a key")
SORT(a_channel_that_is_not_allowed_is_a_no, NO,
     "NOPERM No permissions to access a channel")
SORT(a_slot_of_another_node_is_a_no, NO, "MOVED 3999 127.0.0.1:6381")
SORT(a_slot_that_moves_is_a_no, NO, "ASK 3999 127.0.0.1:6381")
SORT(keys_of_two_slots_are_a_no, NO,
     "CROSSSLOT Keys in request don't hash to the same slot")
SORT(a_command_that_is_missing_is_a_no, NO,
     "ERR unknown command 'EVALSHA', with args beginning with: 'abc'")
SORT(a_command_that_is_missing_is_a_no_by_redis_4, NO,
     "ERR unknown command 'EVALSHA'")
SORT(a_command_that_is_missing_is_a_no_by_old_quotes, NO,
     "ERR unknown command `EVALSHA`, with args beginning with: `abc`, ")
SORT(a_bad_argument_is_a_no, NO, "ERR rlock: bad lease")
SORT(a_key_of_another_type_is_a_no, NO,
     "WRONGTYPE Operation against a key holding the wrong kind of value")

/* --- what may work a little later ----------------------------------------- */

SORT(a_missing_script_may_be_there_later, LATER,
     "NOSCRIPT No matching script. Please use EVAL.")
SORT(loading_ends, LATER, "LOADING Redis is loading the dataset in memory")
SORT(loading_ends_by_valkey, LATER,
     "LOADING Valkey is loading the dataset in memory")
SORT(a_busy_script_ends, LATER,
     "BUSY Redis is busy running a script. You can only call SCRIPT KILL or "
     "SHUTDOWN NOSAVE.")
SORT(a_busy_module_ends, LATER, "BUSY Redis is busy running a module command")
SORT(a_slot_on_its_way_arrives, LATER,
     "TRYAGAIN Multiple keys request during rehashing of slot")
SORT(a_cluster_comes_back, LATER, "CLUSTERDOWN The cluster is down")
SORT(a_slot_is_served_again, LATER, "CLUSTERDOWN Hash slot not served")
SORT(a_full_disk_may_be_emptied, LATER,
     "MISCONF Redis is configured to save RDB snapshots, but it's currently "
     "unable to persist to disk.")
SORT(an_append_error_may_pass, LATER,
     "MISCONF Errors writing to the AOF file: No space left on device")
SORT(replicas_come_back, LATER, "NOREPLICAS Not enough good replicas to write.")

/* --- what may work on a new connection ------------------------------------ */

SORT(a_replica_is_the_wrong_server, ELSEWHERE,
     "READONLY You can't write against a read only replica.")
SORT(a_slave_of_old_is_the_wrong_server, ELSEWHERE,
     "READONLY You can't write against a read only slave.")
SORT(a_replica_without_its_master_is_the_wrong_server, ELSEWHERE,
     "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set "
     "to 'no'.")
SORT(a_full_server_closes_the_connection, ELSEWHERE,
     "ERR max number of clients reached")
SORT(a_full_cluster_node_closes_the_connection, ELSEWHERE,
     "ERR max number of clients + cluster connections reached")

/* --- what may have been executed ------------------------------------------ */

SORT(what_nobody_has_seen_before_is_unknown, UNKNOWN,
     "ERR something nobody has seen before")
SORT(an_error_without_a_text_is_unknown, UNKNOWN, "")
SORT(an_error_of_one_blank_is_unknown, UNKNOWN, " ")
SORT(a_transaction_that_was_dropped_is_unknown, UNKNOWN,
     "EXECABORT Transaction discarded because of previous errors.")
SORT(a_script_that_failed_half_way_is_unknown, UNKNOWN,
     "ERR user_script:3: attempt to index a nil value script: abc, on "
     "@user_script:3.")
SORT(a_script_that_does_not_compile_is_unknown, UNKNOWN,
     "ERR Error compiling script (new function): user_script:1: unexpected "
     "symbol near '?'")
SORT(a_script_that_was_killed_is_unknown, UNKNOWN,
     "ERR Error running script (call to f_1): @user_script:1: Script killed by "
     "user with SCRIPT KILL...")
SORT(a_wrong_number_of_arguments_is_unknown, UNKNOWN,
     "ERR wrong number of arguments for 'evalsha' command")
SORT(a_disk_error_is_unknown, UNKNOWN, "IOERR error or timeout writing")
SORT(busykey_is_not_busy, UNKNOWN, "BUSYKEY Target key name already exists.")
SORT(busygroup_is_not_busy, UNKNOWN,
     "BUSYGROUP Consumer Group name already exists")
SORT(oom_is_a_word_of_its_own, UNKNOWN, "ERR no such key: ROOMS")
SORT(words_are_upper_case, UNKNOWN, "ERR loading, readonly, busy, moved")

/* --- errors within errors ------------------------------------------------- */

SORT(an_error_of_a_script_names_the_script_behind_it, NO,
     "OOM command not allowed when used memory > 'maxmemory'. script: abc, on "
     "@user_script:1.")
SORT(redis_6_wraps_readonly, ELSEWHERE,
     "ERR Error running script (call to f_1): @user_script:1: -READONLY You "
     "can't write against a read only replica.")
SORT(redis_6_wraps_misconf, LATER,
     "ERR Error running script (call to f_1): @user_script: 1: -MISCONF Redis "
     "is configured to save RDB snapshots")
SORT(redis_6_wraps_oom, NO,
     "ERR Error running script (call to f_1): @user_script:1: @user_script: 1: "
     "-OOM command not allowed when used memory > 'maxmemory'.")
SORT(redis_6_wraps_noperm, NO,
     "ERR Error running script (call to f_1): @user_script:1: -NOPERM this "
     "user has no permissions")
SORT(redis_6_wraps_noreplicas, LATER,
     "ERR Error running script (call to f_1): @user_script:1: -NOREPLICAS Not "
     "enough good replicas to write.")
SORT(redis_6_wraps_clusterdown, LATER,
     "ERR Error running script (call to f_1): @user_script:1: -CLUSTERDOWN The "
     "cluster is down")

static void expect_wrong_type(const char *text)
{
    rl_reply r = error_reply(text);
    rl_fault f;
    EXPECT_INT(rl_error_reply(&r, &f)->status, RLOCK_EWRONGTYPE);
    EXPECT_INT(f.status, RLOCK_EWRONGTYPE);
    EXPECT(!f.transient);
}

#define WRONG_TYPE(name, text)                                                 \
    TEST_CASE(server_error, name, expect_wrong_type(text))

WRONG_TYPE(a_key_of_another_type_has_its_own_status,
           "WRONGTYPE Operation against a key holding the wrong kind of value")
WRONG_TYPE(a_key_of_another_type_is_known_with_a_script_behind_it,
           "WRONGTYPE Operation against a key script: 1, on @user_script:2.")
WRONG_TYPE(a_key_of_another_type_is_known_within_an_error,
           "ERR Error running script (call to f_1): @user_script:2: WRONGTYPE")

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
    r = error_reply("NOSCRIPS No matching script.");
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

/* Redis before 7 says the place first, and at length. */
TEST(server_error, the_place_in_a_script_is_left_out)
{
    rl_fault f;
    rl_reply r = error_reply(
        "ERR Error running script (call to f_6317728e0c3bb9a6b0a5b0a3f2ae): "
        "@user_script:7: @user_script: 7: -WRONGTYPE Operation against a key");
    EXPECT_INT(rl_error_reply(&r, &f)->status, RLOCK_EWRONGTYPE);
    EXPECT_STR(f.text,
               "the server answered: WRONGTYPE Operation against a key");
}

/* --- what a script of the program may be asked for again after ------------- */

static void expect_refusal(const char *text, bool of_any, bool of_one_command)
{
    rl_reply r = error_reply(text);
    EXPECT_INT(rl_error_is_refusal(&r, false), of_any);
    EXPECT_INT(rl_error_is_refusal(&r, true), of_one_command);
    r.top.type = REDIS_REPLY_STATUS; /* its answer, whatever that says */
    EXPECT(!rl_error_is_refusal(&r, false) && !rl_error_is_refusal(&r, true));
}

#define REFUSAL(name, text)                                                    \
    TEST_CASE(server_error, name##_has_not_begun,                              \
              expect_refusal(text, true, true))
#define OF_A_COMMAND(name, text)                                               \
    TEST_CASE(server_error, name##_has_not_begun_a_command,                    \
              expect_refusal(text, false, true))
#define ANSWER(name, text)                                                     \
    TEST_CASE(server_error, name##_may_have_begun,                             \
              expect_refusal(text, false, false))

REFUSAL(noscript, "NOSCRIPT No matching script. Please use EVAL.")
REFUSAL(tryagain, "TRYAGAIN Multiple keys request during rehashing of slot")
REFUSAL(moved, "MOVED 3999 127.0.0.1:6381")
REFUSAL(ask, "ASK 3999 127.0.0.1:6381")
REFUSAL(clusterdown, "CLUSTERDOWN The cluster is down")
REFUSAL(masterdown, "MASTERDOWN Link with MASTER is down and so on")
REFUSAL(loading, "LOADING Redis is loading the dataset in memory")
OF_A_COMMAND(readonly, "READONLY You can't write against a read only replica.")
OF_A_COMMAND(a_key_that_is_elsewhere,
             "ERR Script attempted to access a non local key in a cluster node")
ANSWER(an_error_of_its_own, "ERR it said MOVED and ASK and LOADING ")
ANSWER(a_wrong_type, "WRONGTYPE Operation against a key")
ANSWER(noscript_of_its_own, "NOSCRIPT of mine")
ANSWER(no_text, "")
