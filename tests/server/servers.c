/*
 * What threatens locks: what rlock_servers() tells of a server, of a cluster's,
 * of a master with a replica and its Sentinels; and what a user may not ask.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "cluster_scene.h"
#include "replica_scene.h"
#include "sentinels.h"

/* What it told, copied. */
enum { SEEN_MAX = 12 };

typedef struct told {
    rlock_server_info s;
    char address[320], error[320], eviction[40], version[40], missing[200];
    char master[320], flags[80];
} told;

typedef struct seen {
    size_t n, most; /* 0: all of them */
    told of[SEEN_MAX];
} seen;

static void copy_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "not told");
}

static bool copy(const rlock_server_info *s, void *arg)
{
    seen *all = arg;
    if (all->n == SEEN_MAX)
        FAIL("more than %d servers", SEEN_MAX);
    told *t = &all->of[all->n++];
    t->s = *s;
    copy_text(t->address, sizeof t->address, s->address);
    copy_text(t->error, sizeof t->error, s->error);
    copy_text(t->eviction, sizeof t->eviction, s->eviction);
    copy_text(t->version, sizeof t->version, s->version);
    copy_text(t->missing, sizeof t->missing, s->missing);
    copy_text(t->master, sizeof t->master, s->master);
    copy_text(t->flags, sizeof t->flags, s->master_flags);
    EXPECT(s->fsync == NULL || strlen(s->fsync) > 0);
    return all->n != all->most;
}

static seen look(rlock_client *cl)
{
    seen all = {0};
    EXPECT_STATUS(rlock_servers(cl, copy, &all), RLOCK_OK);
    return all;
}

static told only(rlock_client *cl)
{
    seen all = look(cl);
    EXPECT_INT(all.n, 1);
    return all.of[0];
}

/* --- one server ----------------------------------------------------------- */

TEST(servers, a_server_is_told_with_what_it_says)
{
    scene s = scene_start(0, 0);
    long long keys = server_int(s.sv, "DBSIZE");
    told t = only(s.cl);
    EXPECT_STR(t.address, server_uri(s.sv));
    EXPECT(t.s.role == RLOCK_SERVER_MASTER && t.s.status == RLOCK_OK);
    EXPECT_STR(t.error, "");
    EXPECT_STR(t.missing, "");
    EXPECT_CONTAINS(t.version, ".");
    EXPECT(t.s.run_id != NULL && t.s.uptime_s >= 0);
    EXPECT_STR(t.eviction, "noeviction");
    EXPECT(t.s.memory_used > 0 && t.s.memory_max == 0);
    EXPECT(t.s.aof == 0 && t.s.fsync != NULL);
    EXPECT(t.s.replicas == 0 && t.s.min_replicas == 0);
    EXPECT(t.s.lag_s == RLOCK_NOT_TOLD && t.s.lag_bytes == RLOCK_NOT_TOLD);
    EXPECT_BETWEEN(t.s.clock_ahead_us, -1000000, 1000000);
    EXPECT(t.s.rtt_p50_us > 0 && t.s.rtt_p99_us >= t.s.rtt_p50_us);
    EXPECT(t.s.channels == 1 && t.s.scripts > 0 && t.s.databases == 16);
    EXPECT(t.s.cluster_ok == RLOCK_NOT_TOLD && t.s.master == NULL);
    EXPECT(t.s.same_server == 1 && t.s.own_connections == 1);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), keys); /* nothing is left */
    scene_stop(&s);
}

TEST(servers, what_it_is_set_to_is_told)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "CONFIG SET maxmemory 100mb");
    server_cmd(s.sv, "CONFIG SET maxmemory-policy allkeys-lru");
    server_cmd(s.sv, "CONFIG SET min-replicas-to-write 2");
    told t = only(s.cl);
    EXPECT_STR(t.eviction, "allkeys-lru");
    EXPECT(t.s.memory_max == 100 << 20 && t.s.min_replicas == 2);
    scene_stop(&s);
}

TEST(servers, a_clock_that_is_ahead_is_told)
{
    server *sv = server_start_clocked(NULL);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = server_uri(sv);
    scene s = scene_with(sv, &o);
    server_set_clock(sv, 100);
    EXPECT_BETWEEN(only(s.cl).s.clock_ahead_us, 98 * 1000000, 102 * 1000000);
    scene_stop(&s);
}

TEST(servers, keys_are_those_of_the_clients_database)
{
    server *sv = server_start(NULL);
    char uri[200];
    rlock_options o = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "%s?db=3", server_uri(sv));
    o.uri = uri;
    scene s = scene_with(sv, &o);
    server_cmd(sv, "SET other 1");
    EXPECT(only(s.cl).s.keys == 0 && only(s.cl).s.evicted == 0);
    server_cmd(sv, "MOVE other 3");
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    told t = only(s.cl);
    EXPECT(t.s.volatile_keys >= 1 && t.s.keys == t.s.volatile_keys + 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- what may not be asked ------------------------------------------------ */

static told without(const char *rights)
{
    scene s = scene_start(0, 0);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default %s", rights), "OK");
    told t = only(s.cl);
    EXPECT_INT(t.s.status, RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default allchannels +@all"), "OK");
    scene_stop(&s);
    return t;
}

TEST(servers, without_info_what_it_says_is_not_told)
{
    told t = without("-info");
    EXPECT_INT(t.s.role, RLOCK_SERVER_UNKNOWN);
    EXPECT_STR(t.eviction, "not told");
    EXPECT_STR(t.version, "not told");
    EXPECT(t.s.memory_max == RLOCK_NOT_TOLD && t.s.aof == RLOCK_NOT_TOLD);
    EXPECT(t.s.replicas == RLOCK_NOT_TOLD && t.s.scripts == RLOCK_NOT_TOLD);
    EXPECT(t.s.keys == RLOCK_NOT_TOLD && t.s.evicted == RLOCK_NOT_TOLD);
    EXPECT_INT(t.s.same_server, RLOCK_NOT_TOLD);
    EXPECT(t.s.databases == 16 && t.s.rtt_p50_us > 0); /* the control */
    EXPECT_STR(t.missing, "");
}

TEST(servers, without_config_what_it_is_set_to_is_not_told)
{
    told t = without("-config");
    EXPECT(t.s.min_replicas == RLOCK_NOT_TOLD && t.s.fsync == NULL);
    EXPECT_INT(t.s.databases, RLOCK_NOT_TOLD);
    EXPECT_STR(t.eviction, "noeviction");
}

TEST(servers, without_time_its_clock_is_not_told)
{
    told t = without("-time");
    EXPECT_INT(t.s.clock_ahead_us, RLOCK_NOT_TOLD);
    EXPECT(t.s.rtt_p50_us > 0);
    EXPECT_CONTAINS(t.missing, "TIME");
}

TEST(servers, rights_that_locks_need_are_named)
{
    told t = without("-zadd");
    EXPECT_CONTAINS(t.missing, "ZADD");
    EXPECT_INT(t.s.channels, 1);
}

TEST(servers, a_bell_that_may_not_be_heard_is_told)
{
    told t = without("resetchannels");
    EXPECT_INT(t.s.channels, 0);
    EXPECT_STR(t.missing, "");
}

TEST(servers, a_bell_that_may_not_be_rung_is_told)
{
    told t = without("-publish");
    EXPECT_INT(t.s.channels, 0);
    EXPECT_STR(t.missing, "");
}

TEST(servers, without_scripts_rights_are_not_told)
{
    told t = without("-@scripting");
    EXPECT_STR(t.missing, "not told");
    EXPECT_STR(t.eviction, "noeviction");
}

/* --- several servers ------------------------------------------------------ */

TEST(servers, each_master_of_a_cluster_is_told_with_its_replica)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    seen all = look(l.cl);
    size_t masters = 0, replicas = 0;
    for (size_t i = 0; i < all.n; i++) {
        const told *t = &all.of[i];
        EXPECT_INT(t->s.status, RLOCK_OK);
        masters += t->s.role == RLOCK_SERVER_MASTER;
        replicas += t->s.role == RLOCK_SERVER_REPLICA;
        if (t->s.role != RLOCK_SERVER_MASTER)
            continue;
        EXPECT(t->s.cluster_ok == 1 && t->s.cluster_slots == CLUSTER_SLOTS);
        EXPECT(t->s.cluster_nodes == CLUSTER_NODES && t->s.replicas == 1);
        EXPECT(i + 1 < all.n && all.of[i + 1].s.role == RLOCK_SERVER_REPLICA);
    }
    EXPECT(masters == 3 && replicas == 3);
    cluster_scene_stop(&l);
}

TEST(servers, a_master_that_is_dead_is_told_as_such_beside_the_others)
{
    cluster_scene l;
    size_t well = 0, dead = 0;
    cluster_scene_start(&l, 0);
    cluster_pause(l.c, 4); /* so that it is not replaced */
    cluster_kill(l.c, 1);
    seen all = look(l.cl);
    for (size_t i = 0; i < all.n; i++) {
        const told *t = &all.of[i];
        bool is_it = strstr(t->address, "127.0.0.1") &&
                     atoi(strrchr(t->address, ':') + 1) == cluster_port(l.c, 1);
        if (is_it) {
            EXPECT_INT(t->s.status, RLOCK_EIO);
            EXPECT(*t->error && t->s.rtt_p50_us == RLOCK_NOT_TOLD);
        }
        dead += is_it;
        well += t->s.role == RLOCK_SERVER_MASTER && t->s.status == RLOCK_OK;
    }
    EXPECT(dead == 1 && well == 2);
    cluster_resume(l.c, 4);
    cluster_scene_stop(&l);
}

/* What it says of itself, and what of the master. */
static void expect_sentinel(const told *t, const char *master)
{
    EXPECT(t->s.role == RLOCK_SERVER_SENTINEL && t->s.status == RLOCK_OK);
    EXPECT_CONTAINS(t->address, "redis-sentinel://");
    EXPECT_CONTAINS(t->version, ".");
    EXPECT(t->s.run_id != NULL && t->s.uptime_s >= 0);
    EXPECT(t->s.rtt_p50_us > 0 && t->s.rtt_p99_us >= t->s.rtt_p50_us);
    EXPECT_STR(t->master, master);
    EXPECT_STR(t->flags, "master");
    EXPECT(t->s.sentinels == 3 && t->s.sentinel_replicas == 1);
    EXPECT(t->s.sentinels_quorum >= 1);
    EXPECT_STR(t->missing, "not told");
    EXPECT(t->s.databases == RLOCK_NOT_TOLD && t->s.fsync == NULL);
    EXPECT(t->s.channels == RLOCK_NOT_TOLD && t->s.keys == RLOCK_NOT_TOLD);
    EXPECT(t->s.same_server == RLOCK_NOT_TOLD);
}

TEST(servers, sentinels_and_the_replica_are_told_behind_the_master)
{
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *n = sentinels_start(master, 3);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = sentinels_uri(n);
    scene s = scene_with(master, &o);
    char place[40];
    EVENTUALLY(SOON, replica_follows(master));
    seen all = look(s.cl);
    EXPECT_INT(all.n, 5);
    EXPECT_INT(all.of[0].s.role, RLOCK_SERVER_MASTER);
    EXPECT(all.of[0].s.replicas == 1 && all.of[0].s.lag_s >= 0);
    EXPECT_INT(all.of[1].s.role, RLOCK_SERVER_REPLICA);
    snprintf(place, sizeof place, ":%d", server_port(replica));
    EXPECT_CONTAINS(all.of[1].address, place);
    snprintf(place, sizeof place, "127.0.0.1:%d", server_port(master));
    for (size_t i = 2; i < 5; i++)
        expect_sentinel(&all.of[i], place);
    sentinels_kill(n, 1);
    all = look(s.cl);
    EXPECT_INT(all.n, 5);
    EXPECT_INT(all.of[3].s.status, RLOCK_EIO);
    EXPECT_INT(all.of[3].s.role, RLOCK_SERVER_SENTINEL);
    EXPECT_STR(all.of[3].master, "not told");
    EXPECT_INT(all.of[4].s.status, RLOCK_OK);
    scene_leave(&s);
    sentinels_stop(n);
    server_stop(replica);
    server_stop(master);
}

/* --- the callback, and what goes wrong ------------------------------------ */

static bool free_it(const rlock_server_info *x, void *arg)
{
    (void)x;
    scene_free_client(arg);
    return false;
}

TEST(servers, a_callback_may_call_the_library)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_servers(s.cl, free_it, &s), RLOCK_OK);
    scene_stop(&s);
}

TEST(servers, a_callback_that_has_enough_gets_no_more)
{
    cluster_scene l;
    seen all = {.most = 2};
    cluster_scene_start(&l, 0);
    EXPECT_STATUS(rlock_servers(l.cl, copy, &all), RLOCK_OK);
    EXPECT_INT(all.n, 2);
    cluster_scene_stop(&l);
}

TEST(servers, one_that_is_gone_is_told_as_such)
{
    scene s = scene_start(0, 0);
    server_kill(s.sv);
    told t = only(s.cl);
    EXPECT_INT(t.s.status, RLOCK_EIO);
    EXPECT(t.s.role == RLOCK_SERVER_UNKNOWN && *t.error);
    EXPECT_STR(t.address, server_uri(s.sv));
    EXPECT_STR(t.eviction, "not told");
    scene_stop(&s);
}

/* It has told of its replica already. */
TEST(servers, of_one_that_breaks_off_no_replica_is_told)
{
    replica_scene f = replica_scene_proxied(1, 0, 0);
    EXPECT_INT(look(f.s.cl).n, 2); /* the control */
    proxy_rule(f.s.px, "CLIENT", 1, PROXY_CUT_AFTER, NULL);
    EXPECT_INT(only(f.s.cl).s.status, RLOCK_EIO);
    EXPECT(proxy_fired(f.s.px));
    replica_scene_stop(&f);
}

TEST(servers, a_second_connection_that_breaks_off_tells_nothing)
{
    scene s = scene_proxied(0, 500);
    EXPECT_INT(only(s.cl).s.same_server, 1); /* the control */
    proxy_rule(s.px, "INFO", 2, PROXY_CUT_AFTER, NULL);
    told t = only(s.cl);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(t.s.status, RLOCK_OK);
    EXPECT_INT(t.s.same_server, RLOCK_NOT_TOLD);
    scene_stop(&s);
}

static void expect_broken(const char *needle, proxy_action how,
                          const char *answer)
{
    scene s = scene_proxied(0, 500);
    EXPECT_INT(only(s.cl).s.status, RLOCK_OK); /* the control */
    proxy_rule(s.px, needle, 1, how, answer);
    told t = only(s.cl);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(t.s.status, RLOCK_EIO);
    EXPECT_STR(t.eviction, "not told");
    EXPECT_INT(t.s.rtt_p50_us, RLOCK_NOT_TOLD);
    EXPECT_INT(only(s.cl).s.status, RLOCK_OK);
    scene_stop(&s);
}

TEST_CASE(servers, one_that_breaks_off_is_told_as_such,
          expect_broken("INFO", PROXY_CUT_IN_REPLY, NULL))
TEST_CASE(servers, one_that_falls_silent_is_told_as_such,
          expect_broken("CONFIG", PROXY_SWALLOW_REPLY, NULL))
TEST_CASE(servers, one_that_talks_nonsense_is_told_as_such,
          expect_broken("INFO", PROXY_ANSWER, "*1\r\n:1\r\n"))

static bool never(const rlock_server_info *x, void *arg)
{
    (void)arg;
    FAIL("a server at %s", x->address);
    return true;
}

TEST(servers, null_pointers_are_refused)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_servers(NULL, never, NULL), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "client");
    EXPECT_STATUS(rlock_servers(s.cl, NULL, NULL), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "callback");
    scene_stop(&s);
}

TEST(servers, a_forked_child_asks_nobody)
{
    scene s = scene_start(0, 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        EXPECT_STATUS(rlock_servers(s.cl, never, NULL), RLOCK_EFORKED);
        _exit(0);
    }
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT_INT(status, 0);
    scene_stop(&s);
}
