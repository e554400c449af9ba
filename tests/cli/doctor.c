/* `rlock doctor`: what threatens locks is found, and nothing passes for well
   that was not told. */
#include "cluster_scene.h"
#include "command.h"
#include "lag.h"
#include "mux.h"
#include "proxy.h"
#include "scene.h"
#include "sentinels.h"

#define WELL "--appendonly yes --appendfsync everysec"

/* The line of a check: its verdict, a blank, how it is and the remedy; of the
   last server that has it. Valid until the next. */
static const char *line_of(const char *text, const char *check)
{
    static char found[600];
    char word[40];
    found[0] = '\0';
    snprintf(word, sizeof word, "  %s  ", check);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        const char *line = at;
        while (line > text && line[-1] != '\n')
            line--;
        size_t verdict = strcspn(line, " ");
        at += strlen(word);
        at += strspn(at, " ");
        snprintf(found, sizeof found, "%.*s %.*s", (int)verdict, line,
                 (int)strcspn(at, "\n"), at);
    }
    return found;
}

/* It ends so; what it prints, valid until the next. */
static const char *doctor(server *sv, const char *const words[], int status)
{
    static char text[16384];
    command *c = command_start(sv, words);
    int is = command_status(c);
    snprintf(text, sizeof text, "%s", command_out(c));
    if (is != status)
        FAIL("status %d, wanted %d: %s%s", is, status, text, command_err(c));
    EXPECT_STR(command_err(c), "");
    command_free(c);
    return text;
}

/* After that, this check is so; and without it all is well. */
static void finds(const char *set, const char *check, int status,
                  const char *line)
{
    server *sv = server_start(WELL);
    EXPECT(!strstr(doctor(sv, WORDS("doctor"), 0), "\nwarn"));
    EXPECT_INT(
        strncmp(line_of(doctor(sv, WORDS("doctor"), 0), check), "ok ", 3), 0);
    if (set)
        EXPECT_STR(server_str(sv, set), "OK");
    const char *found = line_of(doctor(sv, WORDS("doctor"), status), check);
    EXPECT_CONTAINS(found, line);
    server_stop(sv);
}

TEST_CASE(doctor, what_is_well_is_ok, finds(NULL, "eviction", 0, "ok noevict"))
TEST_CASE(doctor, no_append_only_file,
          finds("CONFIG SET appendonly no", "persistence", 1,
                "warn no append-only file"))
TEST_CASE(doctor, a_file_that_is_not_written,
          finds("CONFIG SET appendfsync no", "persistence", 1,
                "warn append-only file, fsync no"))
TEST_CASE(doctor, an_eviction_policy,
          finds("CONFIG SET maxmemory-policy volatile-lru", "eviction", 1,
                "warn volatile-lru"))

TEST(doctor, an_eviction_policy_with_a_limit_is_bad)
{
    server *sv = server_start(WELL);
    server_cmd(sv, "CONFIG SET maxmemory 1gb");
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 0), "memory"), "ok ");
    server_cmd(sv, "CONFIG SET maxmemory-policy allkeys-lru");
    const char *found = line_of(doctor(sv, WORDS("doctor"), 2), "eviction");
    EXPECT_CONTAINS(found, "bad allkeys-lru");
    EXPECT_CONTAINS(found, "maxmemory-policy noeviction");
    server_stop(sv);
}

TEST(doctor, memory_that_is_nearly_full)
{
    server *sv = server_start(WELL);
    server_cmd(sv, "SET ballast %s", "");
    server_int(sv, "SETRANGE ballast 20000000 x");
    server_cmd(sv, "CONFIG SET maxmemory %lld",
               server_info(sv, "used_memory") * 100 / 95);
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 1), "memory"),
                    "warn 9");
    server_stop(sv);
}

static void finds_clock(int ahead_s, int status, const char *verdict)
{
    server *sv = server_start_clocked(WELL);
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 0), "clock"), "ok ");
    server_set_clock(sv, ahead_s);
    const char *found = line_of(doctor(sv, WORDS("doctor"), status), "clock");
    EXPECT_INT(strncmp(found, verdict, strlen(verdict)), 0);
    server_stop(sv);
}

TEST_CASE(doctor, a_clock_that_is_ahead, finds_clock(20, 1, "warn +"))
TEST_CASE(doctor, a_clock_that_is_behind, finds_clock(-20, 1, "warn -"))
TEST_CASE(doctor, a_clock_that_is_far_ahead, finds_clock(1000, 2, "bad +"))

TEST(doctor, a_server_that_is_far_away)
{
    server *sv = server_start(WELL);
    lag *l = lag_start(sv);
    setenv("RLOCK_URI", lag_uri(l), 1);
    lag_set(l, 52);
    EXPECT_CONTAINS(line_of(doctor(NULL, WORDS("doctor"), 1), "round trip"),
                    "warn ");
    lag_stop(l);
    server_stop(sv);
}

static void warns_of_wake_ups_without(const char *right)
{
    server *sv = server_start(WELL);
    server_str(sv, "ACL SETUSER default %s", right);
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 1), "wake-ups"),
                    "warn none");
    server_stop(sv);
}

TEST_CASE(doctor, waiters_that_may_not_be_rung,
          warns_of_wake_ups_without("resetchannels"))
TEST_CASE(doctor, waiters_that_nobody_may_ring,
          warns_of_wake_ups_without("-publish"))

TEST(doctor, replicas_that_nobody_waits_for_and_too_few)
{
    server *sv = server_start_tcp(WELL);
    EXPECT_CONTAINS(
        line_of(doctor(sv, WORDS("--min-replicas", "1", "doctor"), 2),
                "replicas"),
        "bad 0, --min-replicas 1");
    server *replica = replica_start(sv);
    EVENTUALLY(SOON, replica_follows(sv));
    const char *text = doctor(sv, WORDS("doctor"), 1);
    EXPECT_CONTAINS(line_of(text, "replicas"), "warn 1, --min-replicas 0");
    EXPECT(*line_of(text, "lag") != '\0');
    text = doctor(sv, WORDS("--min-replicas", "1", "doctor"), 0);
    EXPECT_CONTAINS(line_of(text, "replicas"), "ok 1, --min-replicas 1");
    server_stop(replica);
    server_stop(sv);
}

TEST(doctor, a_replica_that_lags)
{
    server *sv = server_start_tcp(WELL), *replica = replica_start(sv);
    const char *const *words = WORDS("--min-replicas", "1", "doctor");
    EVENTUALLY(SOON, replica_follows(sv));
    EXPECT_CONTAINS(line_of(doctor(sv, words, 0), "lag"), "ok ");
    server_pause(replica);
    static char ballast[2 << 20];
    server_cmd(sv, "SET ballast %b", ballast, sizeof ballast);
    EXPECT_CONTAINS(line_of(doctor(sv, words, 1), "lag"), "warn ");
    server_resume(replica);
    server_stop(replica);
    server_stop(sv);
}

/* It is told of by its master, and waits for the data. */
TEST(doctor, a_replica_that_is_not_there_yet_is_no_master_that_cannot_be_asked)
{
    server *sv = server_start_tcp(WELL " --repl-diskless-sync yes"
                                       " --repl-diskless-sync-delay 600");
    server *replica = server_start_tcp(NULL);
    server_cmd(replica, "REPLICAOF 127.0.0.1 %d", server_port(sv));
    EVENTUALLY(SOON, server_info(sv, "connected_slaves") == 1);
    const char *const *words = WORDS("--min-replicas", "1", "doctor");
    EXPECT_CONTAINS(line_of(doctor(sv, words, 1), "answers"),
                    "warn its master says: ");
    server_stop(replica);
    server_stop(sv);
}

TEST(doctor, a_replica_that_is_used_as_a_master_is_bad)
{
    server *sv = server_start_tcp(WELL), *replica = replica_start(sv);
    EVENTUALLY(SOON, replica_follows(sv));
    EXPECT_STR(server_str(replica, "CONFIG SET replica-read-only no"), "OK");
    const char *text = doctor(replica, WORDS("doctor"), 2);
    EXPECT_CONTAINS(line_of(text, "replicas"), "bad it is a replica itself");
    EXPECT_CONTAINS(line_of(text, "rights"), "ok ");
    EXPECT_STR(line_of(text, "lag"), "");
    server_stop(replica);
    server_stop(sv);
}

/* --- What is between, and who else is there -------------------------------- */

TEST(doctor, a_balancer_that_spreads_connections_over_servers_is_bad)
{
    server *sv = server_start(WELL), *other = server_start(WELL);
    lag *l = lag_start_spread(sv, other);
    setenv("RLOCK_URI", lag_uri(l), 1);
    EXPECT_CONTAINS(line_of(doctor(NULL, WORDS("doctor"), 2), "connections"),
                    "bad two lead to two servers");
    lag_stop(l);
    server_stop(other);
    server_stop(sv);
}

TEST(doctor, a_proxy_that_shares_connections_out_is_found)
{
    server *sv = server_start(WELL);
    proxy *px = proxy_start(sv);
    setenv("RLOCK_URI", proxy_uri(px), 1);
    EXPECT_CONTAINS(line_of(doctor(NULL, WORDS("doctor"), 0), "connections"),
                    "ok each its own");
    proxy_rule(px, "CLIENT", PROXY_EVERY, PROXY_ANSWER, ":7\r\n");
    EXPECT_CONTAINS(line_of(doctor(NULL, WORDS("doctor"), 1), "connections"),
                    "warn shared with others");
    proxy_stop(px);
    server_stop(sv);
}

/* As Envoy's do. */
TEST(doctor, a_proxy_that_refuses_commands_is_not_well)
{
    server *sv = server_start(WELL);
    mux *m = mux_start(sv);
    setenv("RLOCK_URI", mux_uri(m), 1);
    const char *text = doctor(NULL, WORDS("doctor"), 1);
    EXPECT_CONTAINS(line_of(text, "connections"), "unknown not told");
    EXPECT_CONTAINS(line_of(text, "wake-ups"), "warn none");
    mux_stop(m);
    server_stop(sv);
}

static const char *sharing(server *sv, int status)
{
    return line_of(doctor(sv, WORDS("doctor"), status), "sharing");
}

TEST(doctor, many_keys_of_others_that_end_are_a_cache_s)
{
    server *sv = server_start(WELL);
    server_cmd(sv, "EVAL %s 0 2000",
               "for i = 1, ARGV[1] do redis.call('SET', 'page' .. i, '') end");
    EXPECT_CONTAINS(sharing(sv, 0), "ok keys with a TTL, not of locks: 0");
    server_cmd(sv, "EVAL %s 0 2000",
               "for i = 1, ARGV[1] do redis.call('EXPIRE', 'page' .. i, 900) "
               "end");
    EXPECT_CONTAINS(sharing(sv, 1), "warn keys with a TTL, not of locks: 2000");
    server_stop(sv);
}

/* Each has a key, and a token's. */
TEST(doctor, many_locks_are_no_cache)
{
    scene s = scene_server(WELL);
    char name[20];
    scene_client(&s, 0, 0);
    for (int i = 0; i < 700; i++) {
        snprintf(name, sizeof name, "job%d", i);
        rlock *lk = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        rlock_free(lk);
    }
    EXPECT(server_int(s.sv, "DBSIZE") >= 1400);
    EXPECT_CONTAINS(sharing(s.sv, 0), "ok keys with a TTL, not of locks: 0");
    scene_stop(&s);
}

TEST(doctor, keys_that_were_evicted_are_bad_while_more_may_be)
{
    server *sv = server_start(WELL);
    server_cmd(sv, "SET page 1");
    server_cmd(sv, "CONFIG SET maxmemory-policy allkeys-lru");
    server_cmd(sv, "CONFIG SET maxmemory 1");
    EVENTUALLY(SOON, server_info(sv, "evicted_keys") == 1);
    server_cmd(sv, "CONFIG SET maxmemory 0");
    EXPECT_CONTAINS(sharing(sv, 2), "bad 1 keys were evicted");
    server_cmd(sv, "CONFIG SET maxmemory-policy noeviction");
    EXPECT_CONTAINS(sharing(sv, 1), "warn 1 keys were evicted");
    server_stop(sv);
}

/* --- What it may not ask -------------------------------------------------- */

static void is_unknown(const char *right, const char *const checks[])
{
    server *sv = server_start(WELL);
    EXPECT_STR(server_str(sv, "ACL SETUSER default -%s", right), "OK");
    const char *text = doctor(sv, WORDS("doctor"), 1);
    for (; *checks; checks++)
        EXPECT_CONTAINS(line_of(text, *checks), "unknown not told");
    server_stop(sv);
}

TEST_CASE(doctor, without_info_nothing_of_it_is_well,
          is_unknown("info",
                     WORDS("version", "eviction", "memory", "persistence",
                           "replicas", "connections", "sharing")))
TEST_CASE(doctor, without_client_connections_are_unknown,
          is_unknown("client", WORDS("connections")))
TEST_CASE(doctor, without_config_fsync_is_unknown,
          is_unknown("config", WORDS("persistence")))

TEST(doctor, a_right_that_locks_need_is_named)
{
    server *sv = server_start(WELL);
    EXPECT_STR(server_str(sv, "ACL SETUSER default -zadd"), "OK");
    command_fails(sv, WORDS("doctor"), "ZADD");
    server_stop(sv);
}

TEST(doctor, no_server_is_125)
{
    setenv("RLOCK_URI", "redis://127.0.0.1:1", 1);
    command_fails(NULL, WORDS("doctor"), "Connection refused");
}

/* --- Several servers ------------------------------------------------------ */

TEST(doctor, a_cluster_that_is_away_is_found_beside_another_server)
{
    server *sv = server_start(WELL);
    const char *text = doctor(NULL,
                              WORDS("-u", server_uri(sv), "-u",
                                    "redis-cluster://127.0.0.1:1", "doctor"),
                              1);
    EXPECT_CONTAINS(line_of(text, "answers"), "warn ");
    EXPECT_CONTAINS(text, "version");
    server_stop(sv);
}

TEST(doctor, of_a_red_lock_one_that_is_away_is_found_beside_the_others)
{
    server *sv[] = {server_start(WELL), server_start(WELL)};
    const char *text =
        doctor(NULL,
               WORDS("-u", server_uri(sv[0]), "-u", server_uri(sv[1]), "-u",
                     "redis://127.0.0.1:1", "doctor"),
               1);
    EXPECT_CONTAINS(line_of(text, "answers"), "warn cannot connect");
    EXPECT_CONTAINS(text, server_uri(sv[0]));
    EXPECT_CONTAINS(text, server_uri(sv[1]));
    server_stop(sv[0]);
    server_stop(sv[1]);
}

static void finds_clocks(int ahead_s, int status, const char *line)
{
    server *sv[] = {server_start_clocked(WELL), server_start(WELL)};
    server_set_clock(sv[0], ahead_s);
    const char *text = doctor(
        NULL, WORDS("-u", server_uri(sv[0]), "-u", server_uri(sv[1]), "doctor"),
        status);
    EXPECT_CONTAINS(line_of(text, "clocks"), line);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST_CASE(doctor, clocks_that_agree, finds_clocks(0, 0, "ok 0."))
TEST_CASE(doctor, clocks_that_are_apart, finds_clocks(20, 1, "warn "))
TEST_CASE(doctor, clocks_that_are_far_apart, finds_clocks(-1000, 2, "bad "))

/* Locks have their time by scripts, which pass. */
TEST(doctor, one_clock_that_is_not_told_leaves_the_others_unknown)
{
    server *sv[] = {server_start(WELL), server_start(WELL)};
    proxy *px = proxy_start(sv[0]);
    proxy_rule(px, "$4\r\nTIME\r\n", PROXY_EVERY, PROXY_ANSWER,
               "-ERR unknown command\r\n");
    const char *text = doctor(
        NULL, WORDS("-u", proxy_uri(px), "-u", server_uri(sv[1]), "doctor"), 1);
    EXPECT_CONTAINS(line_of(text, "clocks"), "unknown 1 of 2 not told");
    proxy_stop(px);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST(doctor, a_cluster_is_told_with_its_slots_and_replicas)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    setenv("RLOCK_URI", cluster_uri(l.c), 1);
    const char *text = doctor(NULL, WORDS("doctor"), 1);
    EXPECT_CONTAINS(line_of(text, "cluster"), "ok works, 16384 of 16384 slots");
    EXPECT(*line_of(text, "lag") != '\0');
    EXPECT_CONTAINS(line_of(text, "clocks"), "ok 0.");
    EXPECT_CONTAINS(line_of(text, "connections"), "ok each its own");
    EXPECT_CONTAINS(line_of(text, "sharing"),
                    "ok keys with a TTL, not of locks: 0");
    cluster_scene_stop(&l);
}

TEST(doctor, a_dead_master_of_a_cluster_is_bad)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    setenv("RLOCK_URI", cluster_uri(l.c), 1);
    cluster_pause(l.c, 4); /* so that it is not replaced */
    cluster_kill(l.c, 1);
    const char *text = doctor(NULL, WORDS("doctor"), 2);
    EXPECT_CONTAINS(line_of(text, "answers"), "bad ");
    EXPECT(*line_of(text, "cluster") != '\0');
    cluster_resume(l.c, 4);
    cluster_scene_stop(&l);
}

/* With cluster-require-full-coverage, as it is by default. */
TEST(doctor, a_cluster_that_is_down_is_bad)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    setenv("RLOCK_URI", cluster_uri(l.c), 1);
    for (int i = 0; i < 3; i++) {
        cluster_cmd(l.c, i, "CONFIG SET cluster-require-full-coverage yes");
        cluster_cmd(l.c, i, "CLUSTER DELSLOTS 0");
    }
    for (int i = 0; i < 3; i++)
        EVENTUALLY(SOON, strstr(cluster_cmd(l.c, i, "CLUSTER INFO")->str,
                                "cluster_state:fail"));
    const char *text = doctor(NULL, WORDS("doctor"), 2);
    EXPECT_CONTAINS(line_of(text, "cluster"), "bad is down, 16383 of 16384");
    EXPECT_STR(line_of(text, "rights"), "");
    EXPECT_STR(line_of(text, "locks"), "");
    cluster_scene_stop(&l);
}

TEST(doctor, a_cluster_that_may_not_be_asked_is_unknown)
{
    need_sharded_channels(); /* before Redis 7 no part of a right is denied */
    cluster_scene l;
    cluster_scene_start(&l, 0);
    setenv("RLOCK_URI", cluster_uri(l.c), 1);
    for (int i = 0; i < CLUSTER_NODES; i++)
        EXPECT_STR(server_str(cluster_server(l.c, i),
                              "ACL SETUSER default -cluster|info"),
                   "OK");
    const char *text = doctor(NULL, WORDS("doctor"), 1);
    EXPECT_CONTAINS(line_of(text, "cluster"), "unknown not told");
    cluster_scene_stop(&l);
}

TEST(doctor, sentinels_are_told_and_one_that_is_away)
{
    server *master = server_start_tcp(WELL), *replica = replica_start(master);
    sentinels *n = sentinels_start(master, 3);
    const char *const *words = WORDS("--min-replicas", "1", "doctor");
    setenv("RLOCK_URI", sentinels_uri(n), 1);
    EVENTUALLY(SOON, replica_follows(master));
    const char *text = doctor(NULL, words, 0);
    EXPECT_CONTAINS(line_of(text, "quorum"), "ok ");
    EXPECT_CONTAINS(line_of(text, "master"), "ok 127.0.0.1:");
    sentinels_kill(n, 1);
    text = doctor(NULL, words, 1);
    EXPECT_CONTAINS(line_of(text, "answers"), "warn ");
    sentinels_stop(n);
    server_stop(replica);
    server_stop(master);
}

TEST(doctor, sentinels_are_asked_about_a_master_that_is_away)
{
    server *master = server_start_tcp(WELL), *replica = replica_start(master);
    sentinels *n = sentinels_start(master, 1);
    setenv("RLOCK_URI", sentinels_uri(n), 1);
    EVENTUALLY(SOON, sentinels_agree(n, master));
    server_kill(replica); /* so that nobody takes its place */
    server_kill(master);
    const char *text = doctor(NULL, WORDS("doctor"), 2);
    EXPECT_CONTAINS(line_of(text, "answers"), "bad ");
    EXPECT(*line_of(text, "quorum") != '\0');
    EXPECT(*line_of(text, "master") != '\0');
    sentinels_stop(n);
    server_stop(replica);
    server_stop(master);
}

TEST(doctor, a_master_that_writes_only_with_more_replicas_gives_no_lock)
{
    server *sv = server_start(WELL);
    server_str(sv, "CONFIG SET min-replicas-to-write 1");
    const char *text = doctor(sv, WORDS("doctor"), 2);
    EXPECT_CONTAINS(line_of(text, "replicas"),
                    "bad 0, min-replicas-to-write 1");
    server_stop(sv);
}

static void renamed(const char *command, const char *message)
{
    char args[120];
    snprintf(args, sizeof args, WELL " --rename-command %s \"\"", command);
    server *sv = server_start(args);
    command_fails(sv, WORDS("doctor"), message);
    server_stop(sv);
}

TEST(doctor, a_command_that_is_not_there_is_a_right_that_is_missing)
{
    renamed("TIME", "the user lacks rights: TIME");
    renamed("ZPOPMIN", "the user lacks rights: ZPOPMIN");
}

/* --- The locks that there are ---------------------------------------------- */

TEST(doctor, a_lock_without_an_end_is_named)
{
    server *sv = server_start(WELL);
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 0), "leases"),
                    "ok 0 held, each with an end");
    for (int i = 1; i <= 5; i++) {
        char name[20];
        snprintf(name, sizeof name, "job%d", i);
        hold_by_hand(sv, name);
    }
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 1), "leases"),
                    "warn 'job1', 'job2', 'job3' and 2 more");
    server_stop(sv);
}

TEST(doctor, a_lock_that_is_held_for_long_is_named_if_that_is_asked_for)
{
    scene s = scene_server(WELL);
    scene_client(&s, 0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STR(line_of(doctor(s.sv, WORDS("doctor"), 0), "long holds"), "");
    const char *text = doctor(s.sv, WORDS("doctor", "--long", "3600"), 0);
    EXPECT_CONTAINS(line_of(text, "long holds"), "ok none");
    text = doctor(s.sv, WORDS("doctor", "--long", "0"), 1);
    EXPECT_CONTAINS(line_of(text, "long holds"), "warn '" SCENE_LOCK "'");
    EXPECT_CONTAINS(line_of(text, "leases"), "ok 1 held, each with an end");
    scene_stop(&s);
}

#define HOLD "00000000-0000-4000-8000-00000000000"

/* The n-th process has one lock, and stands in the queue of another. */
static void has_and_wants(server *sv, int n, const char *has, const char *wants)
{
    server_cmd(sv, "HSET %s host:%d:%d:" HOLD "%d 1", has, n, n, n);
    server_cmd(sv, "PEXPIRE %s 60000", has);
    server_cmd(sv, "ZADD rlock_queue:{%s} 1000 rlock_bell:%d", wants, n);
    server_cmd(sv,
               "EVAL %s 1 rlock_undone:{%s}:who rlock_bell:%d "
               "host:%d:%d:" HOLD "%d",
               "redis.call('HSET', KEYS[1], ARGV[1], '1000 ' .. ARGV[2])",
               wants, n, n, n, n + 2);
}

TEST(doctor, a_circle_of_those_who_wait_for_each_other_is_bad)
{
    server *sv = server_start(WELL);
    has_and_wants(sv, 1, "a", "b");
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 0), "circles"), "ok ");
    has_and_wants(sv, 2, "b", "a");
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 2), "circles"),
                    "bad 'a', 'b'");
    server_stop(sv);
}

TEST(doctor, without_the_right_to_scan_locks_are_unknown)
{
    server *sv = server_start(WELL);
    server_cmd(sv, "ACL SETUSER default -scan");
    EXPECT_CONTAINS(line_of(doctor(sv, WORDS("doctor"), 1), "locks"),
                    "unknown not told");
    server_stop(sv);
}

TEST_CASE(doctor, a_long_that_is_no_time_is_misuse,
          command_is_misused(WORDS("doctor", "--long", "x"),
                             "--long is seconds, and not 'x'"))

/* --- How it is told ------------------------------------------------------- */

TEST(doctor, tells_json_and_leaves_nothing_behind)
{
    char wanted[300];
    server *sv = server_start(NULL);
    const char *text = doctor(sv, WORDS("doctor", "--json"), 1);
    snprintf(wanted, sizeof wanted,
             "{\"server\":\"%s\",\"check\":\"eviction\",\"verdict\":\"ok\","
             "\"is\":\"noeviction\",\"remedy\":null}\n",
             server_uri(sv));
    EXPECT_CONTAINS(text, wanted);
    EXPECT_CONTAINS(text, "\"check\":\"persistence\",\"verdict\":\"warn\","
                          "\"is\":\"no append-only file\",\"remedy\":\"");
    EXPECT_INT(server_int(sv, "DBSIZE"), 0);
    server_stop(sv);
}
