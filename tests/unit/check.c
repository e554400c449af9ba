/* What is asked of a server before a client relies on it, and what comes of each
   answer: of the first connection of a client that has not met its server. */
#include "checked.h"

static const char *uuid_of(const checked *s)
{
    return strrchr(s->e->core.bell, ':') + 1;
}

/* --- what is asked -------------------------------------------------------- */

static void expect_heard(const checked *s, const char *wanted)
{
    EXPECT_STR(stub_heard(&s->b), wanted);
}

/* No lock has the probe's name, and no other client. */
TEST(check, asks_for_rights_then_for_the_bell_and_once)
{
    checked s;
    char wanted[1500];
    checked_open(&s);
    const char *id = uuid_of(&s);
    snprintf(wanted, sizeof wanted,
             "EVAL return 1 0\n"
             "EVALSHA probe 3 rlock_token:{rlock_probe:%s} "
             "rlock_queue:{rlock_probe:%s} rlock_undone:{rlock_probe:%s}:"
             "000000000000000000000000000000000000 rlock_bell:%s\n"
             "SUBSCRIBE rlock_bell:%s\nUNSUBSCRIBE rlock_bell:%s\n"
             "PING rlock\n",
             id, id, id, id, id, id);
    EXPECT(checked_passes(&s));
    expect_heard(&s, wanted);
    EXPECT(!atomic_load(&s.e->unchecked));
    EXPECT_INT(s.told.n, 0);
    stub_forget(&s.b);
    EXPECT(checked_passes(&s));
    expect_heard(&s, "");
    checked_close(&s);
}

/* So that a name is found for which one server answers, more are tried; here none
   does. */
TEST(check, asks_a_cluster_for_the_channels_of_its_own)
{
    checked s;
    char wanted[1500];
    checked_in_cluster(&s);
    EXPECT(checked_passes(&s));
    const char *id = uuid_of(&s);
    snprintf(wanted, sizeof wanted,
             "ASKING\nSSUBSCRIBE rlock_sbell:{rlock_probe:%s-99999}:%s\n"
             "SUNSUBSCRIBE rlock_sbell:{rlock_probe:%s-99999}:%s\nPING rlock\n"
             "SSUBSCRIBE redisson_lock__channel:{rlock_probe:%s-99999}\n"
             "SUNSUBSCRIBE redisson_lock__channel:{rlock_probe:%s-99999}\n"
             "PING rlock\n",
             id, id, id, id, id, id);
    EXPECT_STR(strstr(stub_heard(&s.b), "ASKING"), wanted);
    EXPECT_INT(s.told.n, 0);
    checked_close(&s);
}

TEST(check, is_not_for_the_way_into_a_cluster)
{
    checked s;
    checked_in_cluster(&s);
    s.node = &s.e->node;
    EXPECT(checked_passes(&s));
    expect_heard(&s, "");
    EXPECT(atomic_load(&s.e->unchecked));
    checked_close(&s);
}

TEST(check, asks_for_redissons_channel_where_its_locks_are_waited_for)
{
    checked s;
    char wanted[300];
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.redisson_channel = true;
    checked_open_with(&s, &o);
    EXPECT(checked_passes(&s));
    snprintf(wanted, sizeof wanted,
             "SUBSCRIBE redisson_lock__channel:{rlock_probe:%s}\n"
             "UNSUBSCRIBE redisson_lock__channel:{rlock_probe:%s}\n"
             "PING rlock\n",
             uuid_of(&s), uuid_of(&s));
    EXPECT_STR(strstr(stub_heard(&s.b), "SUBSCRIBE redisson"), wanted);
    EXPECT_INT(stub_asked(&s.b, "SUBSCRIBE"), 2);
    EXPECT_INT(s.told.n, 0);
    checked_close(&s);
}

/* Which run it is, is asked of each connection, once somebody wants to know. */
TEST(check, asks_for_the_run_only_where_it_is_wanted)
{
    checked s;
    checked_open(&s);
    EXPECT(checked_passes(&s) && s.c->known);
    EXPECT_STR(rl_server_run_read(&s.e->core.server_run).id, "run-1");
    stub_forget(&s.b);
    stub_say(&s.b, "EVALSHA identify", "*2\r\n$1\r\nx\r\n$1\r\n5\r\n");
    atomic_store(&s.e->core.server_run.wanted, true);
    EXPECT(checked_passes(&s));
    expect_heard(&s, "EVALSHA identify 0\n");
    EXPECT_STR(rl_server_run_read(&s.e->core.server_run).id, "x");
    stub_say(&s.b, "EVALSHA identify", "*2\r\n$0\r\n\r\n$1\r\n0\r\n");
    EXPECT(!checked_passes(&s));
    EXPECT_STR(s.f.text, "the server does not tell its run_id");
    checked_close(&s);
}

TEST(check, measures_how_long_the_probe_takes)
{
    checked s;
    checked_open(&s);
    stub_row_add(
        &s.b,
        (stub_row){.words = "EVALSHA probe", .answer = STUB_WELL, .ms = 50});
    EXPECT(checked_passes(&s));
    EXPECT_BETWEEN(atomic_load(&s.e->core.rtt.smoothed_us), 50000, 1000000);
    checked_close(&s);
}

/* --- what is refused ------------------------------------------------------ */

/* The connection will not do, and the next one is checked again. */
static void expect_fails(checked *s, rlock_status status, const char *text)
{
    EXPECT(!checked_passes(s));
    EXPECT_STR(s->f.text, text);
    EXPECT_INT(s->f.status, status);
    EXPECT(atomic_load(&s->e->unchecked) && !s->e->checking);
    EXPECT_INT(s->told.n, 0);
    checked_close(s);
}

static void expect_refused(const char *words, const char *answer,
                           rlock_status status, const char *text)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, words, answer);
    expect_fails(&s, status, text);
}

#define UNEXPECTED RLOCK_EIO, "unexpected reply to the probe"
#define IN_A_CLUSTER                                                           \
    RLOCK_EINVAL, "it is a server of a cluster: use redis-cluster:// (or "     \
                  "rediss-cluster://)"
#define REFUSED_CASE(name, ...)                                                \
    TEST_CASE(check, name, expect_refused(__VA_ARGS__))

REFUSED_CASE(fails_without_eval, "EVAL return", "-NOPERM no 'eval'\r\n",
             RLOCK_ESERVER, "the server answered: NOPERM no 'eval'")
REFUSED_CASE(fails_where_eval_counts_wrong, "EVAL return", ":2\r\n", UNEXPECTED)
REFUSED_CASE(fails_without_the_probe, "EVALSHA", "-NOPERM no 'evalsha'\r\n",
             RLOCK_ESERVER, "the server answered: NOPERM no 'evalsha'")
REFUSED_CASE(names_the_keys_that_may_not_be_touched, "EVALSHA",
             "-NOPERM no such key\r\n", RLOCK_ESERVER,
             "the user lacks rights: the keys rlock_token:*, rlock_queue:* and "
             "rlock_undone:*, or some of them")
REFUSED_CASE(takes_another_error_of_a_key_as_it_is, "EVALSHA",
             "-READONLY key\r\n", RLOCK_ESERVER,
             "the server answered: READONLY key")
REFUSED_CASE(fails_where_the_probe_tells_too_little, "EVALSHA",
             "*5\r\n" STUB_NO STUB_NO "$1\r\nr\r\n$1\r\n1\r\n" STUB_NO,
             UNEXPECTED)
#define NUMBER ":1\r\n"
REFUSED_CASE(fails_where_what_is_missing_is_no_text, "EVALSHA",
             STUB_PROBED(NUMBER, STUB_NO, STUB_NO, STUB_NO), UNEXPECTED)
REFUSED_CASE(fails_where_the_warning_is_no_text, "EVALSHA",
             STUB_PROBED(STUB_NO, NUMBER, STUB_NO, STUB_NO), UNEXPECTED)
REFUSED_CASE(fails_where_the_version_is_no_text, "EVALSHA",
             STUB_PROBED(STUB_NO, STUB_NO, NUMBER, STUB_NO), UNEXPECTED)
REFUSED_CASE(fails_at_a_server_that_is_too_old, "EVALSHA",
             STUB_PROBED(STUB_NO, STUB_NO, "$5\r\n6.0.9\r\n", STUB_NO),
             RLOCK_ENOTSUP,
             "the server is too old: rlock needs Redis 6.2 or newer, its "
             "version is 6.0.9")
REFUSED_CASE(names_rights_that_are_missing, "EVALSHA",
             STUB_PROBED("$10\r\nHSET, ZADD\r\n", STUB_NO, STUB_NO, STUB_NO),
             RLOCK_ESERVER, "the user lacks rights: HSET, ZADD")
REFUSED_CASE(fails_at_a_server_that_says_it_is_of_a_cluster, "EVALSHA",
             STUB_PROBED(STUB_NO, STUB_NO, STUB_NO, "$7\r\ncluster\r\n"),
             IN_A_CLUSTER)
REFUSED_CASE(fails_at_a_server_whose_slot_is_elsewhere, "EVALSHA",
             "-MOVED 7 10.0.0.1:6379\r\n", IN_A_CLUSTER)
REFUSED_CASE(fails_at_a_server_of_a_cluster_that_is_down, "EVALSHA",
             "-CLUSTERDOWN The cluster is down\r\n", IN_A_CLUSTER)
REFUSED_CASE(fails_where_one_may_listen_and_not_cease, "UNSUBSCRIBE",
             "-NOPERM no\r\n", RLOCK_ESERVER,
             "the user lacks rights: UNSUBSCRIBE")
REFUSED_CASE(fails_where_it_is_listened_on_afterwards, "PING",
             "*2\r\n$4\r\npong\r\n$5\r\nrlock\r\n", UNEXPECTED)
REFUSED_CASE(fails_where_nothing_is_answered_afterwards, "PING", NULL,
             RLOCK_EIO, "connection closed by the server")

/* Its mode may also be told as nothing. */
TEST(check, passes_where_no_mode_is_told)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, "EVALSHA",
             STUB_PROBED(STUB_NO, STUB_NO, STUB_NO, "$-1\r\n"));
    EXPECT(checked_passes(&s));
    checked_close(&s);
}

/* --- Sentinels ------------------------------------------------------------ */

#define UNKNOWN "-ERR unknown command 'eval'\r\n"

static void expect_explained(const char *role, rlock_status status,
                             const char *text)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, "EVAL", UNKNOWN);
    stub_say(&s.b, "ROLE", role);
    expect_fails(&s, status, text);
}

#define SAYS_IT_HAS_NO_EVAL                                                    \
    RLOCK_ESERVER, "the server answered: ERR unknown command 'eval'"

TEST_CASE(check, names_the_master_of_a_sentinel,
          expect_explained("*2\r\n$8\r\nsentinel\r\n*2\r\n$4\r\nmain\r\n"
                           "$5\r\nother\r\n",
                           RLOCK_EINVAL,
                           "it is a Sentinel: use redis-sentinel://host:port/"
                           "name (or rediss-sentinel://), here with the name "
                           "main"))
TEST_CASE(check, knows_a_sentinel_without_masters,
          expect_explained("*2\r\n$8\r\nsentinel\r\n*0\r\n", RLOCK_EINVAL,
                           "it is a Sentinel: use redis-sentinel://host:port/"
                           "name (or rediss-sentinel://), here with the name "
                           "of a master"))
TEST_CASE(check, takes_a_master_without_eval_for_no_sentinel,
          expect_explained("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n",
                           SAYS_IT_HAS_NO_EVAL))
TEST_CASE(check, takes_who_has_no_role_either_for_no_sentinel,
          expect_explained("-ERR unknown command 'role'\r\n",
                           SAYS_IT_HAS_NO_EVAL))
TEST_CASE(check, takes_who_tells_nothing_for_no_sentinel,
          expect_explained("*0\r\n", SAYS_IT_HAS_NO_EVAL))
TEST_CASE(check, takes_who_tells_a_number_for_no_sentinel,
          expect_explained("*1\r\n:7\r\n", SAYS_IT_HAS_NO_EVAL))

TEST(check, asks_only_who_knows_no_command_for_his_role)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, "EVALSHA", "-NOPERM no\r\n");
    EXPECT(!checked_passes(&s));
    EXPECT_INT(stub_asked(&s.b, "ROLE"), 0);
    checked_close(&s);
}

TEST(check, may_go_on_over_the_connection_that_was_asked_for_its_role)
{
    checked s;
    rl_reply r;
    checked_open(&s);
    stub_say(&s.b, "EVAL", UNKNOWN);
    stub_say(&s.b, "ROLE", "*0\r\n");
    EXPECT(!checked_passes(&s) && !s.c->line.reply.table);
    stub_say(&s.b, "TIME", "*1\r\n:5\r\n");
    EXPECT_STATUS(
        rl_conn_ask(s.c, in_ms(SOON), &r, &s.f, 1, (const char *[]){"TIME"}),
        RLOCK_OK);
    EXPECT(r.count == 1 && r.item[0].integer == 5);
    checked_close(&s);
}

/* --- what is warned of ---------------------------------------------------- */

static void expect_warned(checked *s, int n, const char *const *texts)
{
    EXPECT(checked_passes(s));
    for (int i = 0; i < s->told.n; i++) {
        EXPECT_INT(s->told.type[i], RLOCK_EVENT_WARNING);
        EXPECT(i < n);
        EXPECT_STR(s->told.message[i], texts[i]);
    }
    EXPECT_INT(s->told.n, n);
    EXPECT(!atomic_load(&s->e->unchecked));
    checked_close(s);
}

#define TEXTS(...)                                                             \
    (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)),        \
        (const char *const[])                                                  \
    {                                                                          \
        __VA_ARGS__                                                            \
    }
#define NO_RIGHT "-NOPERM no permissions\r\n"
#define DEAF     "SUBSCRIBE to rlock_bell:* is not allowed, so waiters poll"

TEST(check, warns_of_all_that_is_found_once_it_has_passed)
{
    checked s;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.redisson_channel = true;
    o.min_replicas = 3;
    checked_open_with(&s, &o);
    stub_say(&s.b, "EVALSHA",
             STUB_PROBED(STUB_NO, "$11\r\nINFO is 9%%\r\n", STUB_NO, STUB_NO));
    stub_say(&s.b, "SUBSCRIBE", NO_RIGHT);
    stub_say(&s.b, "UNSUBSCRIBE", NO_RIGHT);
    expect_warned(&s,
                  TEXTS("INFO is 9%%",
                        "2 of the 3 replicas of min_replicas are there, so no "
                        "lock is granted",
                        DEAF,
                        "SUBSCRIBE to redisson_lock__channel:* is not allowed, "
                        "so waiters for locks of Redisson poll"));
}

/* What it listened to needs no end. */
TEST(check, warns_where_one_may_not_listen)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, "SUBSCRIBE", NO_RIGHT);
    expect_warned(&s, TEXTS(DEAF));
}

TEST(check, warns_of_what_a_cluster_lacks)
{
    checked s;
    checked_in_cluster(&s);
    stub_say(&s.b, "SSUBSCRIBE", NO_RIGHT);
    stub_say(&s.b, "SUNSUBSCRIBE", NO_RIGHT);
    stub_say(&s.b, "ASKING", "-ERR unknown command\r\n");
    expect_warned(
        &s, TEXTS("SSUBSCRIBE to rlock_sbell:* is not allowed, or not known "
                  "(before Redis 7), so waiters poll",
                  "SSUBSCRIBE to redisson_lock__channel:* is not allowed, or "
                  "not known (before Redis 7), so waiters for locks of "
                  "Redisson poll",
                  "ASKING is not allowed, or not known, so a lock whose slot "
                  "moves may be lost"));
}

/* A program hears of what threatens it, not of why it failed. */
TEST(check, warns_of_nothing_when_it_fails)
{
    checked s;
    checked_open(&s);
    stub_say(&s.b, "EVALSHA",
             STUB_PROBED(STUB_NO, "$11\r\nINFO is 9%%\r\n", STUB_NO, STUB_NO));
    stub_say(&s.b, "PING", NULL);
    expect_fails(&s, RLOCK_EIO, "connection closed by the server");
}
