/*
 * Clients that are made far away from their servers, by default options: 300 ms
 * there and back, to each server that is asked on the way, whichever knows the
 * next one. Without that they are made, too: the control.
 */
#include "cluster.h"
#include "lag.h"
#include "rlock_config.h"
#include "scene.h"
#include "sentinels.h"

enum { ONE_WAY_MS = 150, MOST = 4 };

typedef struct place {
    char uri[96];
    lag *way[MOST];
    int ways;
    authority *a; /* NULL: plain */
} place;

static void need_tls(void)
{
#ifndef RL_HAS_OPENSSL
    SKIP("rlock was built without OpenSSL");
#endif
}

static int add_way(place *p, int port)
{
    lag *l = lag_start_tcp(port);
    p->way[p->ways++] = l;
    return lag_port(l);
}

static void end(place *p)
{
    for (int i = 0; i < p->ways; i++)
        lag_stop(p->way[i]);
    if (p->a)
        authority_free(p->a);
}

/* A machine that has stopped for a moment is not far away. */
static rlock_client *make_client(const place *p)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    o.uri = p->uri;
    o.tls_ca_file = p->a ? authority_file(p->a, "ca") : NULL;
    rlock_status s = RLOCK_EIO;
    for (int tries = 5; s != RLOCK_OK && tries > 0; tries--) {
        int64_t began_ms = test_now_ms();
        s = rlock_client_new(&o, &cl);
        EXPECT(test_since_ms(began_ms) < 1000 + 3000 + SLACK_MS);
    }
    EXPECT_STATUS(s, RLOCK_OK);
    return cl;
}

static void expect_works(const place *p)
{
    rlock_client *cl = make_client(p);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
}

static void expect_works_far_away(const place *p)
{
    expect_works(p);
    for (int i = 0; i < p->ways; i++)
        lag_set(p->way[i], ONE_WAY_MS);
    expect_works(p);
}

/* --- one server ----------------------------------------------------------- */

static void one_server(bool tls)
{
    place p = {.a = tls ? authority_new() : NULL};
    server *sv = server_start_tcp(NULL);
    int port = tls ? secure_listen(sv, p.a, "server", "no") : server_port(sv);
    snprintf(p.uri, sizeof p.uri, "%s://127.0.0.1:%d", tls ? "rediss" : "redis",
             add_way(&p, port));
    expect_works_far_away(&p);
    end(&p);
    server_stop(sv);
}

TEST(far_first, one_server)
{
    one_server(false);
}

TEST(far_first, one_server_by_tls)
{
    need_tls();
    one_server(true);
}

/* --- Sentinels ------------------------------------------------------------ */

/* Not for them: they would replace what is so slow. */
static void finish_fleet(place *p, sentinels *s, bool tls)
{
    int port = tls ? sentinels_secure_port(s) : sentinels_port(s, 0);
    sentinels_say(s, 0,
                  "SENTINEL SET " SENTINELS_MASTER
                  " down-after-milliseconds 600000");
    snprintf(p->uri, sizeof p->uri, "%s://127.0.0.1:%d/%s",
             tls ? "rediss-sentinel" : "redis-sentinel", add_way(p, port),
             SENTINELS_MASTER);
    expect_works_far_away(p);
    end(p);
    sentinels_stop(s);
}

TEST(far_first, a_master_that_a_sentinel_names)
{
    place p = {.a = NULL};
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *s = sentinels_start_at(add_way(&p, server_port(master)), 1);
    finish_fleet(&p, s, false);
    server_stop(replica);
    server_stop(master);
}

TEST(far_first, a_master_that_a_sentinel_names_by_tls)
{
    need_tls();
    int port, replicas_port;
    place p = {.a = authority_new()};
    authority *a = p.a;
    server *master = server_start_tcp(NULL);
    port = secure_listen(master, a, "server", "no");
    server *replica = replica_start_secure(master, port, a, &replicas_port);
    sentinels *s = sentinels_start_secure(add_way(&p, port), a);
    finish_fleet(&p, s, true);
    server_stop(replica);
    server_stop(master);
}

/* --- met later ------------------------------------------------------------ */

/* It is checked with the first connection, in the time of a command. */
TEST(far_first, a_server_that_a_lazy_client_meets_later)
{
    place p = {.a = NULL};
    server *sv = server_start(NULL);
    proxy *px = proxy_start_tcp(sv);
    rlock_options o = RLOCK_OPTIONS_INIT;
    int port = 0;
    sscanf(proxy_uri(px), "redis://127.0.0.1:%d", &port);
    snprintf(p.uri, sizeof p.uri, "redis://127.0.0.1:%d", add_way(&p, port));
    o.uri = p.uri;
    o.lazy = true;
    proxy_refuse(px, true);
    rlock_client *cl = server_client(sv, &o);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    proxy_refuse(px, false);
    lag_set(p.way[0], ONE_WAY_MS);
    rlock_status s = RLOCK_EIO;
    for (int tries = 5; s != RLOCK_OK && tries > 0; tries--)
        s = rlock_trylock(lk);
    EXPECT_STATUS(s, RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    end(&p);
    proxy_stop(px);
    server_stop(sv);
}

/* --- a cluster ------------------------------------------------------------ */

static bool names_port(const redisReply *slots, int port)
{
    for (size_t i = 0; i < slots->elements; i++)
        if (slots->element[i]->element[2]->element[1]->integer == port)
            return true;
    return false;
}

static bool names_all(cluster *c, const int *port)
{
    const redisReply *r = cluster_cmd(c, 0, "CLUSTER SLOTS");
    return r->type == REDIS_REPLY_ARRAY && r->elements == 3 &&
           names_port(r, port[0]) && names_port(r, port[1]) &&
           names_port(r, port[2]);
}

static bool is_suspected(rlock_client *cl, rlock *lk)
{
    uint64_t refreshes = stats_of(cl).refreshes;
    for (int i = 0; i < 4; i++) {
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    return stats_of(cl).refreshes > refreshes + 1;
}

/*
 * An answer takes longer than a server nearby would be waited for. Now and then
 * a busy machine makes one late; a server that is suspected for its distance is
 * suspected each time.
 */
static void expect_no_suspicion(const place *p)
{
    rlock_client *cl = make_client(p);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    int tries = 5;
    while (is_suspected(cl, lk))
        EXPECT(--tries > 0);
    rlock_free(lk);
    rlock_client_free(cl);
}

/* It tells everybody that the way to its masters is the long one. */
static void a_cluster(bool tls)
{
    place p = {.a = tls ? authority_new() : NULL};
    int port[3];
    cluster *c = cluster_start();
    for (int i = 0; i < 3; i++) {
        port[i] = add_way(
            &p, tls ? secure_listen(cluster_server(c, i), p.a, "server", "no")
                    : cluster_port(c, i));
        cluster_cmd(c, i, "CONFIG SET cluster-announce-tls-port %d", port[i]);
        if (cluster_cmd(c, i, "CONFIG SET cluster-announce-port %d", port[i])
                ->type == REDIS_REPLY_ERROR) {
            end(&p);
            cluster_stop(c);
            SKIP("the server announces no other port while it runs");
        }
    }
    EVENTUALLY(SOON, names_all(c, port));
    snprintf(p.uri, sizeof p.uri, "%s://127.0.0.1:%d",
             tls ? "rediss-cluster" : "redis-cluster", port[0]);
    expect_works_far_away(&p);
    expect_no_suspicion(&p);
    end(&p);
    cluster_stop(c);
}

TEST(far_first, a_cluster)
{
    a_cluster(false);
}

TEST(far_first, a_cluster_by_tls)
{
    need_tls();
    a_cluster(true);
}
