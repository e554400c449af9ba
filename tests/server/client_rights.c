/*
 * Which rights a client needs of a server, and what it does, or says, when it
 * lacks some.
 */
#include "client.h"

/* All that the library's user needs; INFO only for the warning of eviction. */
static const char *const needed[] = {
    "eval", "evalsha", "ping",    "subscribe", "unsubscribe", "publish",
    "time", "exists",  "get",     "set",       "del",         "pexpire",
    "pttl", "hset",    "hexists", "hlen",      "hscan",       "hdel",
    "zadd", "zrem",    "zpopmin", "zrank",     "zrange"};

static const char *const key_patterns[] = {"~job", "~rlock_token:*",
                                           "~rlock_queue:*", "~rlock_undone:*"};

static const char *const channel_patterns[] = {"&rlock_bell:*",
                                               "&redisson_lock__channel:*"};

static size_t add_words(char *to, size_t size, const char *prefix,
                        const char *const *words, size_t n, const char *without)
{
    size_t len = strlen(to);
    for (size_t i = 0; i < n; i++) {
        if (without && strcmp(words[i], without) == 0)
            continue;
        len +=
            (size_t)snprintf(to + len, size - len, " %s%s", prefix, words[i]);
        EXPECT(len < size);
    }
    return len;
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* A user app with what is needed, without one word of it (NULL: with all). */
static void make_user(server *sv, const char *without)
{
    char cmd[1000] = "ACL SETUSER app reset resetchannels on >" SECRET;
    add_words(cmd, sizeof cmd, "", key_patterns, COUNT(key_patterns), without);
    add_words(cmd, sizeof cmd, "", channel_patterns, COUNT(channel_patterns),
              without);
    add_words(cmd, sizeof cmd, "+", needed, COUNT(needed), without);
    EXPECT_STR(server_str(sv, cmd), "OK");
}

static const char *app_uri(server *sv, char *uri, size_t size)
{
    snprintf(uri, size, "unix://app:" SECRET "@%s", server_path(sv));
    return uri;
}

static scene scene_of_app(server *sv, int64_t watchdog_lease_ms)
{
    char uri[200];
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = app_uri(sv, uri, sizeof uri);
    opts.watchdog_lease_ms = watchdog_lease_ms;
    return scene_with(sv, &opts);
}

/* Rights that were asked for and not given, but INFO. */
static void expect_nothing_denied(server *sv)
{
    redisReply *log = server_cmd(sv, "ACL LOG");
    EXPECT_INT(log->type, REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < log->elements; i++)
        EXPECT_STR(log->element[i]->element[7]->str, "info");
}

static void use_everything(scene *one, scene *two)
{
    rlock_holder h;
    EXPECT_STATUS(rlock_lock(one->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(one->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(two->lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_holder_info(two->lk, &h, sizeof h), RLOCK_OK);
    events_wait(one->ev, RLOCK_EVENT_RENEWED, 2, SOON);
    EXPECT_STATUS(rlock_acquire(two->lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_unlock(one->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(one->lk, 60000), RLOCK_OK);
    test_thread *t = test_spawn(wait_and_unlock, two->lk);
    EVENTUALLY(SOON, queued(one->sv, SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_unlock(one->lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    EXPECT_INT(stats_of(two->cl).wakeups, 1);
    EXPECT_STATUS(rlock_lock(one->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(two->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one->lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_client_ping(one->cl), RLOCK_OK);
}

/* The command as it stands in the documents, on one line and for lock k. */
static void make_documented_user(server *sv)
{
    char cmd[1200] = "", word[100];
    FILE *f = fopen(RLOCK_SOURCE_DIR "/src/doc/rights.md", "r");
    bool inside = false;
    EXPECT(f != NULL);
    while (fscanf(f, "%99s", word) == 1 && !(inside && word[0] == '`')) {
        inside = inside || strcmp(word, "ACL") == 0;
        if (!inside)
            continue;
        const char *w = strcmp(word, ">PASSWORD") == 0   ? ">" SECRET
                        : strcmp(word, "~orders:*") == 0 ? "~job"
                                                         : word;
        snprintf(cmd + strlen(cmd), sizeof cmd - strlen(cmd), "%s ", w);
    }
    fclose(f);
    cmd[strlen(cmd) - 1] = '\0';
    EXPECT_STR(server_str(sv, cmd), "OK");
}

TEST(client_rights, the_documented_user_can_do_everything)
{
    server *sv = server_start(NULL);
    make_documented_user(sv);
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    use_everything(&one, &two);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_WARNING), 0);
    expect_nothing_denied(sv);
    scene_leave(&two);
    scene_stop(&one);
}

TEST(client_rights, the_minimal_user_can_do_everything)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    use_everything(&one, &two);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_WARNING), 0);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_RENEW_FAILED), 0);
    expect_nothing_denied(sv);
    scene_leave(&two);
    scene_stop(&one);
}

TEST(client_rights, a_database_other_than_0_needs_select_as_well)
{
    server *sv = server_start(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "unix://app:" SECRET "@%s?db=2", server_path(sv));
    make_user(sv, NULL);
    expect_uri_refused(uri, RLOCK_ESERVER);
    EXPECT(strcasestr(message(), "select"));
    EXPECT_STR(server_str(sv, "ACL SETUSER app +select"), "OK");
    expect_uri_works(sv, uri, 2);
    server_stop(sv);
}

/* Tombstones, which only trouble brings, are within the rights as well. */
TEST(client_rights, the_minimal_user_can_undo_an_acquire)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 900);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK); /* it is connected */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_hold_back(sv, 100);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 30), RLOCK_EIO);
    EVENTUALLY(SOON, server_int(sv, "DBSIZE") == 2); /* token, tombstone */
    expect_nothing_denied(sv);
    scene_stop(&s);
}

TEST(client_rights, a_missing_command_is_named)
{
    server *sv = server_start(NULL);
    char uri[200];
    app_uri(sv, uri, sizeof uri);
    for (size_t i = 0; i < COUNT(needed); i++) {
        const char *command = needed[i];
        if (strcmp(command, "publish") == 0 ||
            strcmp(command, "subscribe") == 0 ||
            strcmp(command, "unsubscribe") == 0 ||
            strcmp(command, "zrank") == 0 || strcmp(command, "zrange") == 0)
            continue; /* waiters can poll, and need not know who waits */
        server_cmd(sv, "SCRIPT FLUSH");
        make_user(sv, command);
        expect_uri_refused(uri, RLOCK_ESERVER);
        if (!strcasestr(message(), command))
            FAIL("\"%s\" does not name %s", message(), command);
    }
    server_stop(sv);
}

/* It would be missed when the server has lost its scripts. */
TEST(client_rights, missing_eval_is_named_also_when_the_scripts_are_loaded)
{
    server *sv = server_start(NULL);
    char uri[200];
    make_user(sv, "eval");
    server_load_scripts(sv);
    expect_uri_refused(app_uri(sv, uri, sizeof uri), RLOCK_ESERVER);
    EXPECT(strcasestr(message(), "eval"));
    server_stop(sv);
}

TEST(client_rights, several_missing_commands_are_named_together)
{
    server *sv = server_start(NULL);
    char uri[200];
    make_user(sv, NULL);
    server_cmd(sv, "ACL SETUSER app -hscan -zpopmin -hset");
    expect_uri_refused(app_uri(sv, uri, sizeof uri), RLOCK_ESERVER);
    EXPECT(strcasestr(message(), "hscan"));
    EXPECT(strcasestr(message(), "zpopmin"));
    EXPECT(strcasestr(message(), "hset"));
    server_stop(sv);
}

TEST(client_rights, a_missing_key_pattern_is_named)
{
    static const char *const prefixes[] = {
        "rlock_token:", "rlock_queue:", "rlock_undone:"};
    server *sv = server_start(NULL);
    char uri[200];
    app_uri(sv, uri, sizeof uri);
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        char pattern[32];
        snprintf(pattern, sizeof pattern, "~%s*", prefixes[i]);
        make_user(sv, pattern);
        expect_uri_refused(uri, RLOCK_ESERVER);
        EXPECT_CONTAINS(message(), prefixes[i]);
    }
    server_stop(sv);
}

TEST(client_rights, a_lock_outside_the_users_keys_is_refused_and_named)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 0);
    rlock *lk = test_lock(s.cl, "elsewhere");
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "elsewhere");
    EXPECT_CONTAINS(message(), "permission");
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_INT(server_int(sv, "DBSIZE"), 0);
    rlock_free(lk);
    scene_stop(&s);
}

/* Does it still let one client wait for the other? */
static void expect_polling_works(scene *one, scene *two)
{
    EXPECT_STATUS(rlock_acquire(one->lk, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(two->lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    events_wait(two->ev, RLOCK_EVENT_RENEWED, 2, SOON);
    EXPECT_STATUS(rlock_unlock(two->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one->lk), RLOCK_LOST);
    EXPECT_INT(events_count(two->ev, RLOCK_EVENT_RENEW_FAILED), 0);
}

static void expect_warned_and_working(const char *without, const char *word)
{
    server *sv = server_start(NULL);
    make_user(sv, without);
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_WARNING), 1);
    EXPECT_CONTAINS(events_message(one.ev, RLOCK_EVENT_WARNING), word);
    expect_polling_works(&one, &two);
    scene_leave(&two);
    scene_stop(&one);
}

TEST(client_rights, without_publish_waiters_poll)
{
    expect_warned_and_working("publish", "PUBLISH");
}

TEST(client_rights, without_subscribe_waiters_poll)
{
    expect_warned_and_working("subscribe", "SUBSCRIBE");
}

TEST(client_rights, without_zrank_waiters_do_without_their_rank)
{
    expect_warned_and_working("zrank", "ZRANK");
}

static void count_waits(const rlock_wait *w, void *n)
{
    *(int *)n += w->waiter != NULL;
}

/* Who has the rights that the manual lists tells who waits, and with one more
   sees it. */
TEST(client_rights, with_scan_one_sees_who_waits)
{
    int n = 0;
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 0), t = scene_of_app(sv, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    waiter *w = waiter_start(t.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EXPECT_STATUS(rlock_waits_for(s.cl, count_waits, &n), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "scan");
    EXPECT_STR(server_str(sv, "ACL SETUSER app +scan"), "OK");
    EVENTUALLY(SOON,
               rlock_waits_for(s.cl, count_waits, &n) == RLOCK_OK && n > 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_leave(&t);
    scene_stop(&s);
}

static rlock_status lock_and_unlock(rlock *lk)
{
    rlock_status s = rlock_lock(lk);
    return s == RLOCK_OK ? rlock_unlock(lk) : s;
}

TEST(client_rights, without_zrange_threads_free_the_lock_for_each_other)
{
    server *sv = server_start(NULL);
    make_user(sv, "zrange");
    scene s = scene_of_app(sv, 0);
    EXPECT(events_count(s.ev, RLOCK_EVENT_WARNING) >= 1);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(lock_and_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(client_rights, without_the_bells_channel_waiters_poll)
{
    server *sv = server_start(NULL);
    make_user(sv, "&rlock_bell:*");
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    EXPECT(events_count(one.ev, RLOCK_EVENT_WARNING) >= 1);
    expect_polling_works(&one, &two);
    scene_leave(&two);
    scene_stop(&one);
}

TEST(client_rights, without_redissons_channel_all_works)
{
    server *sv = server_start(NULL);
    make_user(sv, "&redisson_lock__channel:*");
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    use_everything(&one, &two);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_WARNING), 0);
    scene_leave(&two);
    scene_stop(&one);
}

/* Either answer will do; but no connection may stay subscribed unnoticed. */
TEST(client_rights, missing_unsubscribe_is_named_or_does_no_harm)
{
    server *sv = server_start(NULL);
    char uri[200];
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    make_user(sv, "unsubscribe");
    opts.uri = app_uri(sv, uri, sizeof uri);
    rlock_status made = rlock_client_new(&opts, &cl);
    rlock_client_free(cl);
    if (made != RLOCK_OK) {
        EXPECT_STATUS(made, RLOCK_ESERVER);
        EXPECT(strcasestr(message(), "unsubscribe"));
        server_stop(sv);
        return;
    }
    scene s = scene_of_app(sv, 900);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, events_count(s.ev, RLOCK_EVENT_RENEWED) >= 2 ||
                         events_count(s.ev, RLOCK_EVENT_LOST) > 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(client_rights, a_right_that_is_taken_away_later_is_reported)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 0);
    EXPECT_STR(server_str(sv, "ACL SETUSER app -evalsha"), "OK");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "evalsha");
    expect_no_secret();
    scene_stop(&s);
}

/* Is the password in any message or event that trouble brings about? */
TEST(client_rights, no_trouble_brings_the_password_out)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 300);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(sv, "ACL SETUSER app resetpass");
    server_cmd(sv, "CLIENT KILL TYPE normal");
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    EXPECT(!strstr(events_message(s.ev, RLOCK_EVENT_RENEW_FAILED), SECRET));
    EXPECT(rlock_unlock(s.lk) != RLOCK_OK);
    expect_no_secret();
    EXPECT(rlock_client_ping(s.cl) != RLOCK_OK);
    expect_no_secret();
    scene_stop(&s);
}
