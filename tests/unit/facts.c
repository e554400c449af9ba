/* What is known of a server, of what it says: and what it does not say. */
#include "client/facts.h"

#include <hiredis/hiredis.h>

#include "test.h"

#define INFO                                                                   \
    "# Server\r\nredis_version:7.0.15\r\nrun_id:abc\r\n"                       \
    "uptime_in_seconds:60\r\n# Memory\r\nused_memory:1000\r\n"                 \
    "used_memory_rss:5\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"      \
    "number_of_cached_scripts:21\r\naof_enabled:1\r\nrole:master\r\n"          \
    "connected_slaves:2\r\nevicted_keys:3\r\n"                                 \
    "slave0:ip=10.0.0.7,port=6379,state=online,offset=90,lag=1\r\n"            \
    "slave1:ip=::1,port=6380,state=wait_bgsave,offset=0,lag=7\r\n"             \
    "master_repl_offset:100\r\n# Keyspace\r\n"                                 \
    "db0:keys=70,expires=20,avg_ttl=9\r\ndb10:keys=8,expires=1\r\n"

static rl_facts facts_of(const char *info)
{
    rl_facts x;
    rl_facts_init(&x, "redis://here");
    rl_facts_read_info(&x, info);
    return x;
}

/* --- nothing -------------------------------------------------------------- */

static void expect_nothing_told(const rlock_server_info *s)
{
    const int64_t numbers[] = {s->uptime_s,
                               s->memory_used,
                               s->memory_max,
                               s->aof,
                               s->replicas,
                               s->lag_s,
                               s->lag_bytes,
                               s->min_replicas,
                               s->clock_ahead_us,
                               s->rtt_p50_us,
                               s->rtt_p99_us,
                               s->channels,
                               s->scripts,
                               s->databases,
                               s->cluster_ok,
                               s->cluster_slots,
                               s->cluster_nodes,
                               s->sentinels,
                               s->sentinels_quorum,
                               s->sentinel_replicas,
                               s->keys,
                               s->volatile_keys,
                               s->evicted,
                               s->same_server,
                               s->own_connections};
    const char *const texts[] = {s->version,     s->run_id,  s->eviction,
                                 s->fsync,       s->missing, s->master,
                                 s->master_flags};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        EXPECT(numbers[i] == RLOCK_NOT_TOLD);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        EXPECT(texts[i] == NULL);
}

TEST(facts, of_a_new_one_nothing_is_told)
{
    rl_facts x;
    rl_facts_init(&x, "redis://here");
    rlock_server_info s = rl_facts_tell(&x);
    expect_nothing_told(&s);
    EXPECT_STR(s.address, "redis://here");
    EXPECT_STR(s.error, "");
    EXPECT(s.status == RLOCK_OK && s.role == RLOCK_SERVER_UNKNOWN);
    rl_facts_init(&x, "unix:///50%25s");
    EXPECT_STR(rl_facts_tell(&x).address, "unix:///50%25s");
}

TEST(facts, what_is_answered_nothing_is_not_told)
{
    rl_facts x = facts_of("");
    rl_facts_read_cluster(&x, "");
    rl_facts_read_config(&x, "no such option", "1");
    rl_facts_note_trips(&x, NULL, 0);
    rlock_server_info s = rl_facts_tell(&x);
    expect_nothing_told(&s);
}

TEST(facts, of_one_that_failed_only_why_is_told)
{
    rl_fault why;
    rl_facts x = facts_of(INFO);
    rl_fault_set(&why, RLOCK_EIO, 0, "connection refused");
    rl_facts_fail(&x, &why);
    rlock_server_info s = rl_facts_tell(&x);
    expect_nothing_told(&s);
    EXPECT_STR(s.address, "redis://here");
    EXPECT_STR(s.error, "connection refused");
    EXPECT(s.status == RLOCK_EIO && s.role == RLOCK_SERVER_UNKNOWN);
}

/* What a server says is no format. */
TEST(facts, why_it_failed_is_told_word_for_word)
{
    rl_fault why;
    rl_facts x = facts_of("");
    rl_fault_set(&why, RLOCK_EIO, 0, "%s", "memory is 90%% full %d");
    rl_facts_fail(&x, &why);
    EXPECT_STR(x.error, "memory is 90%% full %d");
}

/* --- INFO ----------------------------------------------------------------- */

TEST(facts, a_master_tells_of_itself)
{
    rl_facts x = facts_of(INFO);
    rlock_server_info s = rl_facts_tell(&x);
    EXPECT_INT(s.role, RLOCK_SERVER_MASTER);
    EXPECT_STR(s.version, "7.0.15");
    EXPECT_STR(s.run_id, "abc");
    EXPECT_STR(s.eviction, "noeviction");
    EXPECT(s.uptime_s == 60 && s.memory_used == 1000 && s.memory_max == 0);
    EXPECT(s.aof == 1 && s.scripts == 21 && s.replicas == 2);
    EXPECT_INT(s.lag_s, 7);
    EXPECT_INT(s.lag_bytes, 100);
}

static void expect_lag(const char *one, const char *other)
{
    char info[200];
    snprintf(info, sizeof info, "%s\r\n%s\r\nmaster_repl_offset:100\r\n", one,
             other);
    rl_facts x = facts_of(info);
    EXPECT_INT(x.of.lag_s, 7);
    EXPECT_INT(x.of.lag_bytes, 60);
}

TEST_CASE(facts, a_masters_lag_is_that_of_the_replica_farthest_behind,
          expect_lag("slave0:ip=a,port=1,state=online,offset=90,lag=1",
                     "slave1:ip=b,port=1,state=online,offset=40,lag=7"))
TEST_CASE(facts, it_is_so_if_that_is_the_first,
          expect_lag("slave0:ip=a,port=1,state=online,offset=40,lag=7",
                     "slave1:ip=b,port=1,state=online,offset=90,lag=1"))
TEST_CASE(facts, it_is_so_if_one_is_behind_in_time_and_another_in_bytes,
          expect_lag("slave0:ip=a,port=1,state=online,offset=90,lag=7",
                     "slave1:ip=b,port=1,state=online,offset=40,lag=1"))

TEST(facts, a_master_without_replicas_has_no_lag)
{
    rl_facts x = facts_of("role:master\r\nconnected_slaves:0\r\n");
    EXPECT_INT(x.of.replicas, 0);
    EXPECT(x.of.lag_s == RLOCK_NOT_TOLD && x.of.lag_bytes == RLOCK_NOT_TOLD);
}

TEST(facts, valkey_tells_its_own_version)
{
    rl_facts x = facts_of("redis_version:7.2.4\r\nvalkey_version:8.1.0\r\n");
    EXPECT_STR(rl_facts_tell(&x).version, "8.1.0");
}

TEST(facts, of_a_longer_text_before_it_nothing_stays)
{
    rl_facts x = facts_of("redis_version:7.2.10\r\nvalkey_version:8.1\r\n");
    EXPECT_STR(x.version, "8.1");
    rl_facts_read_config(&x, "appendfsync", "everysec");
    rl_facts_read_config(&x, "appendfsync", "no");
    EXPECT_STR(x.fsync, "no");
}

TEST(facts, what_is_no_number_is_not_told)
{
    rl_facts x = facts_of("uptime_in_seconds:-1\r\nmaxmemory:1x\r\n"
                          "used_memory:\r\naof_enabled: 1\r\n"
                          "connected_slaves:123456789012345678901234\r\n");
    rlock_server_info s = rl_facts_tell(&x);
    expect_nothing_told(&s);
}

TEST(facts, what_is_too_long_is_not_told)
{
    rl_facts x = facts_of("run_id:01234567890123456789012345678901234567890123"
                          "456789\r\nrole:masterofmasters\r\n");
    EXPECT(rl_facts_tell(&x).run_id == NULL);
    EXPECT_INT(x.of.role, RLOCK_SERVER_UNKNOWN);
}

TEST(facts, a_replica_says_so)
{
    rl_facts x = facts_of("role:slave\r\n");
    EXPECT_INT(x.of.role, RLOCK_SERVER_REPLICA);
}

static void expect_keys(const char *info, int database, int64_t keys,
                        int64_t volatile_keys)
{
    rl_facts x = facts_of(info);
    rl_facts_read_keys(&x, info, database);
    EXPECT_INT(x.of.keys, keys);
    EXPECT_INT(x.of.volatile_keys, volatile_keys);
}

TEST(facts, keys_are_those_of_one_database)
{
    EXPECT_INT(facts_of(INFO).of.evicted, 3);
    expect_keys(INFO, 0, 70, 20);
    expect_keys(INFO, 10, 8, 1);
    expect_keys(INFO, 1, 0, 0);
    expect_keys("role:master\r\n", 0, RLOCK_NOT_TOLD, RLOCK_NOT_TOLD);
    expect_keys("# Keyspace\r\ndb0:\r\n", 0, RLOCK_NOT_TOLD, RLOCK_NOT_TOLD);
    expect_keys("# Keyspace\r\ndb0:keys=7\r\n", 0, 7, RLOCK_NOT_TOLD);
}

/* --- a second connection -------------------------------------------------- */

static int64_t same_server(const char *first, const char *second)
{
    rl_facts x = facts_of(first);
    rl_facts_note_second(&x, second);
    return x.of.same_server;
}

TEST(facts, a_second_connection_leads_to_the_same_run_or_not)
{
    EXPECT_INT(same_server("run_id:abc\r\n", "run_id:abc\r\n"), 1);
    EXPECT_INT(same_server("run_id:abc\r\n", "run_id:abd\r\n"), 0);
    EXPECT_INT(same_server("run_id:abc\r\n", ""), RLOCK_NOT_TOLD);
    EXPECT_INT(same_server("", "run_id:abc\r\n"), RLOCK_NOT_TOLD);
}

static int64_t own_connections(int64_t same, int64_t first, int64_t second,
                               int64_t first_again)
{
    rl_facts x = facts_of(INFO);
    x.of.same_server = same;
    rl_facts_note_ids(&x, first, second, first_again);
    return x.of.own_connections;
}

TEST(facts, a_connection_that_has_its_number_alone_and_keeps_it_is_its_own)
{
    EXPECT_INT(own_connections(1, 7, 8, 7), 1);
    EXPECT_INT(own_connections(1, 7, 8, 9), 0);
    EXPECT_INT(own_connections(1, 7, 7, 7), 0);
    EXPECT_INT(own_connections(0, 7, 7, 7), 1); /* each counts by itself */
    EXPECT_INT(own_connections(1, 0, 8, 7), RLOCK_NOT_TOLD);
    EXPECT_INT(own_connections(1, 7, 0, 7), RLOCK_NOT_TOLD);
    EXPECT_INT(own_connections(1, 7, 8, 0), RLOCK_NOT_TOLD);
}

/* --- replicas ------------------------------------------------------------- */

TEST(facts, a_replica_is_told_by_its_master)
{
    rl_facts x;
    EXPECT(rl_facts_read_replica(INFO, 0, "redis", &x));
    EXPECT_STR(x.address, "redis://10.0.0.7:6379");
    EXPECT(x.of.role == RLOCK_SERVER_REPLICA && x.of.status == RLOCK_OK);
    EXPECT(x.of.lag_s == 1 && x.of.lag_bytes == 10);
    EXPECT(x.of.uptime_s == RLOCK_NOT_TOLD);
}

/* The server reads two clocks: so it tells where a second has just begun. */
TEST(facts, a_replica_that_was_heard_of_a_second_from_now_has_no_lag)
{
    rl_facts x;
    EXPECT(rl_facts_read_replica("slave0:ip=a,port=1,state=online,lag=-1\r\n",
                                 0, "redis", &x));
    EXPECT_INT(x.of.lag_s, 0);
}

TEST(facts, a_replica_that_is_not_there_yet_is_not_well)
{
    rl_facts x;
    EXPECT(rl_facts_read_replica(INFO, 1, "rediss", &x));
    EXPECT_STR(x.address, "rediss://[::1]:6380");
    EXPECT_INT(x.of.status, RLOCK_EIO);
    EXPECT_STR(x.error, "its master says: wait_bgsave");
    EXPECT(!rl_facts_read_replica(INFO, 2, "redis", &x));
    EXPECT(!rl_facts_read_replica("", 0, "redis", &x));
}

TEST(facts, a_replica_that_is_further_is_not_behind)
{
    rl_facts x;
    EXPECT(rl_facts_read_replica("slave0:ip=a,port=1,state=online,offset=9,"
                                 "lag=0\r\nmaster_repl_offset:8\r\n",
                                 0, "redis", &x));
    EXPECT_INT(x.of.lag_bytes, 0);
    EXPECT(rl_facts_read_replica("slave0:ip=a,port=1,state=online\r\n", 0,
                                 "redis", &x));
    EXPECT(x.of.lag_bytes == RLOCK_NOT_TOLD && x.of.lag_s == RLOCK_NOT_TOLD);
}

static void expect_bytes_not_told(const char *info)
{
    rl_facts x;
    EXPECT(rl_facts_read_replica(info, 0, "redis", &x));
    EXPECT(x.of.lag_bytes == RLOCK_NOT_TOLD);
}

TEST_CASE(facts, how_far_one_is_behind_is_not_known_without_the_masters_offset,
          expect_bytes_not_told("slave0:ip=a,port=1,state=online,offset=9\r\n"))
TEST_CASE(facts, how_far_one_is_behind_is_not_known_without_its_own_offset,
          expect_bytes_not_told("slave0:ip=a,port=1,state=online\r\n"
                                "master_repl_offset:8\r\n"))

TEST(facts, a_replica_whose_port_is_not_told_has_port_nought)
{
    rl_facts x;
    EXPECT(
        rl_facts_read_replica("slave0:ip=a,state=online\r\n", 0, "redis", &x));
    EXPECT_STR(x.address, "redis://a:0");
}

/* --- the others ----------------------------------------------------------- */

TEST(facts, options_are_told_by_their_names)
{
    rl_facts x = facts_of("");
    rl_facts_read_config(&x, "appendfsync", "everysec");
    rl_facts_read_config(&x, "min-replicas-to-write", "1");
    rl_facts_read_config(&x, "databases", "16");
    rlock_server_info s = rl_facts_tell(&x);
    EXPECT_STR(s.fsync, "everysec");
    EXPECT(s.min_replicas == 1 && s.databases == 16);
    rl_facts_read_config(&x, "cluster-databases", "4");
    EXPECT_INT(x.of.databases, 4);
}

TEST(facts, a_cluster_says_whether_it_works)
{
    rl_facts x = facts_of("");
    rl_facts_read_cluster(&x, "cluster_state:ok\r\ncluster_slots_ok:16384\r\n"
                              "cluster_known_nodes:6\r\n");
    EXPECT(x.of.cluster_ok == 1 && x.of.cluster_slots == 16384);
    EXPECT_INT(x.of.cluster_nodes, 6);
    rl_facts_read_cluster(&x, "cluster_state:fail\r\n");
    EXPECT(x.of.cluster_ok == 0 && x.of.cluster_slots == RLOCK_NOT_TOLD);
}

static void add_pair(rl_table *t, const char *name, const char *value)
{
    rl_table_add_text(t, REDIS_REPLY_STRING, 1, name, strlen(name));
    rl_table_add_text(t, REDIS_REPLY_STRING, 1, value, strlen(value));
}

TEST(facts, a_sentinel_says_whom_it_watches)
{
    static rl_table t;
    rl_facts x = facts_of("");
    rl_facts_read_sentinel(&x, &t);
    EXPECT(rl_facts_tell(&x).master == NULL);
    rl_table_add(&t, REDIS_REPLY_ARRAY, 0);
    add_pair(&t, "ip", "10.0.0.7");
    add_pair(&t, "port", "6379");
    add_pair(&t, "flags", "master,s_down");
    add_pair(&t, "num-slaves", "1");
    add_pair(&t, "num-other-sentinels", "2");
    add_pair(&t, "quorum", "2");
    rl_facts_read_sentinel(&x, &t);
    rlock_server_info s = rl_facts_tell(&x);
    EXPECT_STR(s.master, "10.0.0.7:6379");
    EXPECT_STR(s.master_flags, "master,s_down");
    EXPECT(s.sentinels == 3 && s.sentinels_quorum == 2);
    EXPECT_INT(s.sentinel_replicas, 1);
}

static rlock_server_info watched(rl_facts *x, const char *name,
                                 const char *value)
{
    rl_table t = {.count = 0};
    *x = facts_of("");
    rl_table_add(&t, REDIS_REPLY_ARRAY, 0);
    add_pair(&t, name, value);
    rl_facts_read_sentinel(x, &t);
    return rl_facts_tell(x);
}

TEST(facts, a_sentinel_may_not_say_all_of_it)
{
    rl_facts x;
    EXPECT(watched(&x, "ip", "10.0.0.7").master == NULL);
    EXPECT(watched(&x, "port", "6379").master == NULL);
    EXPECT_STR(watched(&x, "flags", "master").master_flags, "master");
    rlock_server_info s = watched(&x, "name", "mymaster");
    expect_nothing_told(&s);
}

/* Of a copy it is the copy's, as all texts are. */
TEST(facts, what_is_missing_is_told_if_that_is_known)
{
    rl_facts x = facts_of("");
    snprintf(x.missing, sizeof x.missing, "wait");
    EXPECT(rl_facts_tell(&x).missing == NULL);
    x.of.missing = "it is known";
    rl_facts copy = x;
    EXPECT(rl_facts_tell(&copy).missing == copy.missing);
    EXPECT_STR(rl_facts_tell(&copy).missing, "wait");
}

TEST(facts, round_trips_are_told_by_the_middle_and_the_slowest)
{
    static const int64_t orders[][5] = {
        {9, 1, 5, 3, 7}, {1, 3, 5, 7, 9}, {9, 7, 5, 3, 1}, {5, 9, 1, 7, 3}};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        int64_t us[5];
        rl_facts x = facts_of("");
        memcpy(us, orders[i], sizeof us);
        rl_facts_note_trips(&x, us, 5);
        EXPECT(x.of.rtt_p50_us == 5 && x.of.rtt_p99_us == 9);
    }
}
