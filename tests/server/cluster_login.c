/*
 * redis-cluster:// and rediss-cluster://: passwords, and TLS to every server,
 * in failovers too.
 */
#include <stdatomic.h>

#include "cluster_scene.h"
#include "secure.h"

static void everywhere(cluster *c, const char *command)
{
    for (int i = 0; i < CLUSTER_NODES; i++) {
        const redisReply *r = cluster_cmd(c, i, command);
        EXPECT(r->type != REDIS_REPLY_ERROR);
    }
}

static cluster_scene settle_at(cluster *c, const rlock_options *opts)
{
    cluster_scene l = {.c = c, .opts = *opts};
    l.ev = events_new();
    events_hook(l.ev, &l.opts);
    EXPECT_STATUS(rlock_client_new(&l.opts, &l.cl), RLOCK_OK);
    return l;
}

/* On each master, and on one that has just taken over. */
static void expect_locks(cluster_scene *l)
{
    for (int i = 0; i < 3; i++) {
        rlock *lk = cluster_scene_lock(l, cluster_name_on(l->c, i, "job"));
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        rlock_free(lk);
    }
    rlock *lk = cluster_scene_lock(l, cluster_name_on(l->c, 0, "job"));
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, cluster_is_well(l->c)); /* its replica has the grant */
    cluster_promote(l->c, 3);
    events_wait(l->ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    watch_renewals(l->cl, 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
}

TEST(cluster_login, a_password_is_said_to_every_server)
{
    char uri[96];
    rlock_client *cl;
    cluster *c = cluster_start();
    everywhere(c, "CONFIG SET masterauth s3cr3t");
    everywhere(c, "CONFIG SET requirepass s3cr3t");
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.watchdog_lease_ms = BRISK_MS;
    o.uri = cluster_uri(c);
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "NOAUTH");
    snprintf(uri, sizeof uri, "redis-cluster://:s3cr3t@127.0.0.1:%d",
             cluster_port(c, 1));
    o.uri = uri;
    cluster_scene l = settle_at(c, &o);
    expect_locks(&l);
    cluster_scene_stop(&l);
}

static int give(rlock_credentials *out, void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    *out = (rlock_credentials){.password = "s3cr3t"};
    return 1;
}

TEST(cluster_login, credentials_are_asked_for_every_server)
{
    atomic_int asked = 0;
    cluster *c = cluster_start();
    everywhere(c, "CONFIG SET masterauth s3cr3t");
    everywhere(c, "CONFIG SET requirepass s3cr3t");
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.watchdog_lease_ms = BRISK_MS;
    o.uri = cluster_uri(c);
    o.credentials = give;
    o.credentials_arg = &asked;
    cluster_scene l = settle_at(c, &o);
    expect_locks(&l);
    EXPECT(atomic_load(&asked) >= 5);
    cluster_scene_stop(&l);
}

/*
 * Before 7.2, a server with a plain bus tells nobody its port for TLS, and
 * Valkey 8.1 does not if the port is opened later.
 */
static void need_tls_ports(cluster *c)
{
    const char *text = cluster_cmd(c, 0, "INFO server")->str;
    int major = 0, minor = 0;
    sscanf(strstr(text, "redis_version:"), "redis_version:%d.%d", &major,
           &minor);
    if (major * 100 + minor >= 702 && !strstr(text, "valkey_version:"))
        return;
    cluster_stop(c);
    SKIP("a cluster with two kinds of ports needs a Redis of 7.2");
}

TEST(cluster_login, tls_is_spoken_with_every_server)
{
    char uri[64];
    int port[CLUSTER_NODES];
    authority *a = authority_new();
    cluster *c = cluster_start();
    need_tls_ports(c);
    for (int i = 0; i < CLUSTER_NODES; i++)
        port[i] = secure_listen(cluster_server(c, i), a, "server", "no");
    rlock_options o = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "rediss-cluster://127.0.0.1:%d", port[0]);
    o.watchdog_lease_ms = BRISK_MS;
    o.uri = uri;
    o.tls_ca_file = authority_file(a, "ca");
    o.connect_timeout_ms = SOON; /* until all have heard of all ports */
    cluster_scene l = settle_at(c, &o);
    expect_locks(&l);
    cluster_scene_stop(&l);
    authority_free(a);
}

TEST(cluster_login, a_server_whose_certificate_is_wrong_is_named)
{
    char uri[64];
    rlock_client *cl;
    authority *a = authority_new();
    cluster *c = cluster_start();
    int port = secure_listen(cluster_server(c, 0), a, "expired", "no");
    rlock_options o = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "rediss-cluster://127.0.0.1:%d", port);
    o.uri = uri;
    o.tls_ca_file = authority_file(a, "ca");
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "expired");
    cluster_stop(c);
    authority_free(a);
}

/* The rights that src/doc/rights.md tells of. */
#define RIGHTS                                                                 \
    "ACL SETUSER app on >s3cr3t resetkeys resetchannels -@all ~job-* "         \
    "~rlock_token:* ~rlock_queue:* ~rlock_undone:* &rlock_sbell:* "            \
    "&redisson_lock__channel:* +ping +eval +evalsha +ssubscribe "              \
    "+sunsubscribe +spublish +time +exists +get +set +del +pexpire +pttl "     \
    "+hset +hexists +hlen +hscan +hdel +zadd +zrem +zpopmin +zrank +zrange "   \
    "+asking +cluster|nodes +cluster|slots +cluster|myid"

static cluster_scene settle_as(cluster *c, char *uri, size_t size,
                               bool redisson_channel)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    snprintf(uri, size, "redis-cluster://app:s3cr3t@127.0.0.1:%d",
             cluster_port(c, 1));
    o.watchdog_lease_ms = BRISK_MS;
    o.uri = uri;
    o.redisson_channel = redisson_channel;
    return settle_at(c, &o);
}

TEST(cluster_login, a_user_needs_the_rights_that_are_told_and_no_other)
{
    char uri[96];
    need_sharded_channels(); /* nor has it the rights to them */
    cluster *c = cluster_start();
    everywhere(c, RIGHTS);
    cluster_scene l = settle_as(c, uri, sizeof uri, false);
    EXPECT_INT(events_count(l.ev, RLOCK_EVENT_WARNING), 0);
    expect_locks(&l);
    cluster_scene_stop(&l);
}

TEST(cluster_login, a_user_who_may_not_be_sent_on_is_warned_of)
{
    char uri[96];
    need_sharded_channels(); /* nor has it the rights to them */
    cluster *c = cluster_start();
    everywhere(c, RIGHTS " -asking");
    cluster_scene l = settle_as(c, uri, sizeof uri, false);
    EXPECT_CONTAINS(events_message(l.ev, RLOCK_EVENT_WARNING), "ASKING");
    cluster_scene_stop(&l);
}

TEST(cluster_login, a_user_who_may_not_hear_redisson_is_warned_of)
{
    char uri[96];
    need_sharded_channels();
    cluster *c = cluster_start();
    everywhere(c, RIGHTS " resetchannels &rlock_sbell:*");
    cluster_scene l = settle_as(c, uri, sizeof uri, true);
    EXPECT_CONTAINS(events_message(l.ev, RLOCK_EVENT_WARNING),
                    "SSUBSCRIBE to redisson_lock__channel:* is not allowed");
    EXPECT_INT(events_count(l.ev, RLOCK_EVENT_WARNING), 1);
    cluster_scene_stop(&l);
}
