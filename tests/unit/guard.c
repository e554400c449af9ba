/* A guarded call: its text, its words, and what its answers mean. */
#include "op/call.h"
#include "op/verb_guard.h"

#include "deed.h"

#define SCRIPT "return redis.call('INCR', KEYS[1]) -- no more"

#define NO_SUCH_LINE                                                           \
    "-ERR Error compiling script (new function): user_script:1: unexpected "   \
    "symbol near '#'\r\n"

static const char *const argv_of[] = {"one", "two", "three"};

typedef struct
try {
    deed d;
    rl_guarded g;
}
try;

static rl_guarded a_guarded(void)
{
    return (rl_guarded){.script = SCRIPT,
                        .len = sizeof SCRIPT - 1,
                        .keys = 1,
                        .args = 2,
                        .argv = argv_of};
}

static void begin(try *t, bool single, bool cluster)
{
    open_with_hold(&t->d, LEASE_MS);
    if (cluster)
        play_in_cluster(&t->d.p, 0);
    t->g = a_guarded();
    t->g.single = single;
    EXPECT(rl_raw_reply_init(&t->g.reply));
    rl_part_guard(t->d.x, core(&t->d), t->d.h, &t->g, t->d.p.now_us);
    play_one(&t->d.p, &t->d.op, t->d.x);
    t->d.op.may_ask = rl_guard_may_ask;
    play_begin(&t->d.p, &t->d.op);
}

static void begin_guard(try *t, bool single)
{
    begin(t, single, false);
}

static void begin_in_cluster(try *t, bool single)
{
    begin(t, single, true);
}

static void end_guard(try *t)
{
    rl_raw_reply_drop(&t->g.reply);
    close_with_hold(&t->d);
}

/* --- the text ------------------------------------------------------------- */

static void expect_text(rlock_layout layout, bool compare)
{
    static char wanted[8100], text[8000];
    try t;
    rl_bytes b = {0};
    open_with_hold(&t.d, LEASE_MS);
    t.d.h->layout = (uint8_t)layout;
    t.g = a_guarded();
    t.g.compare = compare;
    snprintf(text, sizeof text, "%s%s" SCRIPT,
             compare ? rl_guards[RL_GUARD_TOKEN].text : "",
             rl_guards[rl_layouts[layout].guard].text);
    snprintf(wanted, sizeof wanted, "*%d\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n",
             compare ? 10 : 8, strlen(text), text);
    rl_call_guarded(&b, true, t.d.h, &t.g);
    EXPECT(memcmp(b.at, wanted, strlen(wanted)) == 0);
    rl_bytes_fini(&b);
    close_with_hold(&t.d);
}

TEST_CASE(guard, stands_before_the_script_in_a_hash,
          expect_text(RLOCK_LAYOUT_HASH, false))
TEST_CASE(guard, stands_before_the_script_in_a_string,
          expect_text(RLOCK_LAYOUT_STRING, false))
TEST_CASE(guard, stands_before_the_script_in_a_timestamp,
          expect_text(RLOCK_LAYOUT_TIMESTAMP, false))
TEST_CASE(guard, compares_tokens_before_all_else,
          expect_text(RLOCK_LAYOUT_HASH, true))

/* So the lines of the script keep their numbers, and a comment in the guard
   cannot swallow the script. */
TEST(guard, is_one_line_without_comments)
{
    for (int i = 0; i < RL_GUARD_COUNT; i++) {
        const char *text = rl_guards[i].text;
        EXPECT_INT(strlen(text), rl_guards[i].len);
        EXPECT(!strchr(text, '\n') && !strstr(text, "--"));
        EXPECT(strncmp(text, "do ", 3) == 0);
        EXPECT_STR(text + rl_guards[i].len - 6, " end; ");
    }
}

TEST(guard, puts_the_lock_and_the_holder_behind_the_programs_own)
{
    try t;
    begin_guard(&t, false);
    play *p = &t.d.p;
    EXPECT_STR(play_word(p, 0, 0), "EVALSHA");
    EXPECT_STR(play_word(p, 0, 1), t.g.sha1);
    EXPECT_STR(play_word(p, 0, 2), "2");
    EXPECT_STR(play_key(p, 0, 1), "one");
    EXPECT_STR(play_key(p, 0, 2), "job");
    EXPECT_INT(play_args(p, 0), 3);
    EXPECT_STR(play_arg(p, 0, 2), "three");
    EXPECT_STR(play_arg(p, 0, 3), play_holder(t.d.h).text);
    EXPECT_INT(play_answer(p, 0, ":1\r\n"), RL_DONE);
    end_guard(&t);
}

TEST(guard, takes_words_that_are_formatted_already)
{
    try t;
    rl_bytes b = {0};
    open_with_hold(&t.d, LEASE_MS);
    t.g = (rl_guarded){.script = SCRIPT,
                       .len = sizeof SCRIPT - 1,
                       .args = 2,
                       .words = "$3\r\nGET\r\n$1\r\nn\r\n",
                       .words_len = 16};
    rl_guarded_sum(&t.g, rl_hold_layout(t.d.h));
    rl_call_guarded(&b, false, t.d.h, &t.g);
    rl_put_raw(&b, "", 1);
    EXPECT_CONTAINS(b.at, "$1\r\n1\r\n$3\r\njob\r\n$3\r\nGET\r\n$1\r\nn\r\n$");
    rl_bytes_fini(&b);
    close_with_hold(&t.d);
}

/* A late copy of its acquire may get a later token. */
TEST(guard, says_the_token_of_a_hold_that_is_in_doubt)
{
    try t;
    char token[24];
    open_with_hold(&t.d, LEASE_MS);
    t.d.h->unknown = true;
    t.g = a_guarded();
    EXPECT(rl_raw_reply_init(&t.g.reply));
    rl_part_guard(t.d.x, core(&t.d), t.d.h, &t.g, t.d.p.now_us);
    EXPECT_INT(go(&t.d), RL_ASK);
    snprintf(token, sizeof token, "%llu", (unsigned long long)t.d.h->token);
    EXPECT_STR(play_key(&t.d.p, 0, 2), "job");
    EXPECT_STR(play_key(&t.d.p, 0, 3), "rlock_token:{job}");
    EXPECT_STR(play_arg(&t.d.p, 0, 3), play_holder(t.d.h).text);
    EXPECT_STR(play_arg(&t.d.p, 0, 4), token);
    EXPECT_INT(answer(&t.d, ":1\r\n"), RL_DONE);
    end_guard(&t);
}

/* --- keys of other slots ---------------------------------------------------
 */

/* What a server calls the text of a guarded SCRIPT, behind these words. */
static void sum_of(const char *words, char sum[RL_SHA1_LEN + 1])
{
    rl_sha1 s;
    const rl_guard *g = &rl_guards[rl_layouts[RLOCK_LAYOUT_HASH].guard];
    rl_sha1_begin(&s);
    rl_sha1_add(&s, words, strlen(words));
    rl_sha1_add(&s, g->text, g->len);
    rl_sha1_add(&s, SCRIPT, strlen(SCRIPT));
    rl_sha1_end(&s, sum);
}

static void expect_sent(try *t, const char *how, const char *words)
{
    char sum[RL_SHA1_LEN + 1];
    sum_of(words, sum);
    EXPECT_STR(play_word(&t->d.p, 0, 0), how);
    if (strcmp(how, "EVALSHA") == 0)
        EXPECT_STR(play_word(&t->d.p, 0, 1), sum);
    else
        EXPECT(strncmp(play_word(&t->d.p, 0, 1), "#!lua\ndo ",
                       *words ? 9 : 0) == 0);
}

static void expect_words(bool single, const char *words)
{
    try t;
    begin_in_cluster(&t, single);
    expect_sent(&t, "EVALSHA", words);
    EXPECT_INT(answer(&t.d, NOSCRIPT), RL_ASK);
    expect_sent(&t, "EVAL", words);
    EXPECT_INT(answer(&t.d, ":1\r\n"), RL_DONE);
    EXPECT(t.d.x->ok);
    end_guard(&t);
}

TEST_CASE(guard, has_the_server_refuse_a_commands_keys_of_other_slots,
          expect_words(true, "#!lua\n"))
TEST_CASE(guard, leaves_a_scripts_first_line_where_it_is,
          expect_words(false, ""))

TEST(guard, a_server_that_knows_no_such_line_is_asked_without_it)
{
    try t;
    begin_in_cluster(&t, true);
    EXPECT_INT(answer(&t.d, NOSCRIPT), RL_ASK);
    EXPECT_INT(answer(&t.d, NO_SUCH_LINE), RL_ASK);
    expect_sent(&t, "EVALSHA", "");
    EXPECT_INT(answer(&t.d, NOSCRIPT), RL_ASK);
    expect_sent(&t, "EVAL", "");
    EXPECT_INT(answer(&t.d, ":1\r\n"), RL_DONE);
    EXPECT(t.d.x->ok);
    EXPECT(t.d.p.client[0].line.lenient);
    end_guard(&t);
}

/* Of a script of the program that answer is one. */
TEST(guard, a_script_that_is_no_lua_is_sent_once)
{
    try t;
    begin_in_cluster(&t, false);
    EXPECT_INT(answer(&t.d, NO_SUCH_LINE), RL_DONE);
    expect_fault(&t.d, RLOCK_ESERVER, "compiling");
    end_guard(&t);
}

static void expect_refused_as_a_whole(const char *reply)
{
    try t;
    begin_in_cluster(&t, true);
    EXPECT_INT(answer(&t.d, reply), RL_ASK);
    expect_sent(&t, "EVALSHA", "");
    EXPECT(!t.d.p.client[0].line.lenient);
    EXPECT_INT(answer(&t.d, reply), RL_DONE);
    expect_fault(&t.d, RLOCK_ESERVER, "");
    end_guard(&t);
}

TEST_CASE(guard, without_memory_the_command_is_asked_for_by_itself,
          expect_refused_as_a_whole("-OOM command not allowed\r\n"))
TEST_CASE(guard, without_replicas_the_command_is_asked_for_by_itself,
          expect_refused_as_a_whole("-NOREPLICAS Not enough\r\n"))
TEST_CASE(guard, without_a_disk_the_command_is_asked_for_by_itself,
          expect_refused_as_a_whole("-MISCONF Errors writing\r\n"))

/* --- what its answers mean ------------------------------------------------ */

TEST(guard, any_reply_will_do)
{
    try t;
    begin_guard(&t, false);
    EXPECT_INT(answer(&t.d, "*2\r\n*1\r\n:4\r\n$-1\r\n"), RL_DONE);
    EXPECT(t.d.x->ok);
    EXPECT_INT(t.g.reply.reply->element[0]->element[0]->integer, 4);
    end_guard(&t);
}

static void expect_not_held(bool own, rlock_status wanted)
{
    char reply[RL_HOLDER_MAX + 20];
    try t;
    begin_guard(&t, false);
    snprintf(reply, sizeof reply, "-NOTHELD %s\r\n",
             own ? play_holder(t.d.h).text : "h:1:2:someone");
    EXPECT_INT(answer(&t.d, reply), RL_DONE);
    expect_fault(&t.d, wanted, own ? "no longer knows" : "h:1:2:someone");
    EXPECT_INT(t.d.h->state, own ? RL_LOST : RL_HELD);
    end_guard(&t);
}

TEST_CASE(guard, finds_that_the_hold_is_lost, expect_not_held(true, RLOCK_LOST))
TEST_CASE(guard, of_another_hold_says_nothing_of_this,
          expect_not_held(false, RLOCK_ESERVER))

static void expect_final(const char *reply, const char *text)
{
    try t;
    begin_guard(&t, false);
    EXPECT_INT(answer(&t.d, reply), RL_DONE);
    expect_fault(&t.d, RLOCK_ESERVER, text);
    EXPECT(!t.d.x->ask.unknown && t.d.h->state == RL_HELD);
    EXPECT_INT(t.d.p.client[0].calls, 1);
    EXPECT_INT(t.g.reply.reply->type, REDIS_REPLY_ERROR);
    end_guard(&t);
}

TEST_CASE(guard, an_error_of_the_script_is_an_answer,
          expect_final(STRANGE, "nobody has heard of"))
TEST_CASE(guard, an_error_of_the_programs_data_is_an_answer,
          expect_final(WRONGTYPE, "WRONGTYPE"))
TEST_CASE(guard, a_script_that_may_not_write_is_not_asked_again,
          expect_final(READONLY, "READONLY"))
TEST_CASE(guard, words_of_a_server_inside_a_text_say_nothing,
          expect_final("-ODD it said LOADING and MOVED 1 a:1\r\n", "ODD"))

/* Others had better not ask there. */
static void expect_retired(const char *reply, bool retired)
{
    try t;
    begin_guard(&t, false);
    EXPECT_INT(answer(&t.d, reply), RL_DONE);
    EXPECT_INT(t.d.p.client[0].line.retired, retired);
    end_guard(&t);
}

TEST_CASE(guard, a_script_that_may_not_write_tells_that_it_is_the_wrong_server,
          expect_retired(READONLY, true))
TEST_CASE(guard, an_error_of_the_script_says_nothing_of_the_server,
          expect_retired(STRANGE, false))

static void expect_again_for(const char *reply, bool single)
{
    try t;
    begin_guard(&t, single);
    EXPECT_INT(answer(&t.d, reply), RL_ASK);
    EXPECT_INT(answer(&t.d, ":1\r\n"), RL_DONE);
    EXPECT(t.d.x->ok);
    EXPECT_INT(t.g.reply.reply->integer, 1);
    end_guard(&t);
}

TEST_CASE(guard, a_server_that_is_loading_is_asked_again,
          expect_again_for(LOADING, false))
TEST_CASE(guard, a_command_that_a_replica_refuses_is_asked_again,
          expect_again_for(READONLY, true))

/* Never twice what may have been executed. */
TEST(guard, without_an_answer_it_is_not_asked_again)
{
    try t;
    begin_guard(&t, true);
    EXPECT_INT(play_cut(&t.d.p, 0), RL_DONE);
    expect_fault(&t.d, RLOCK_EIO, "(it may have been executed)");
    EXPECT(t.d.h->astray && t.d.h->state == RL_HELD);
    EXPECT_INT(t.d.p.client[0].calls, 1);
    end_guard(&t);
}

TEST(guard, past_the_deadline_nothing_is_sent)
{
    try t;
    open_with_hold(&t.d, LEASE_MS);
    t.g = a_guarded();
    EXPECT(rl_raw_reply_init(&t.g.reply));
    rl_part_guard(t.d.x, core(&t.d), t.d.h, &t.g, t.d.p.now_us);
    play_one(&t.d.p, &t.d.op, t.d.x);
    t.d.op.may_ask = rl_guard_may_ask;
    t.d.p.now_us = t.d.h->expiry.due_us;
    EXPECT_INT(play_begin(&t.d.p, &t.d.op), RL_DONE);
    expect_fault(&t.d, RLOCK_LOST, "ran out");
    EXPECT_INT(t.d.p.client[0].calls, 0);
    end_guard(&t);
}

/* It was executed while the server knew the hold. */
TEST(guard, an_answer_after_the_deadline_is_one)
{
    try t;
    begin_guard(&t, false);
    t.d.p.now_us = t.d.h->expiry.due_us;
    EXPECT_INT(answer(&t.d, ":1\r\n"), RL_DONE);
    EXPECT(t.d.x->ok);
    end_guard(&t);
}
