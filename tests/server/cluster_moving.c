/* Defects of locks in a cluster that were found, each with the way to it. */
#include <arpa/inet.h>
#include <unistd.h>

#include "cluster_scene.h"
#include "server_process.h"

/* The client of the scene, with other options. */
static void renew(cluster_scene *l)
{
    rlock_client_free(l->cl);
    EXPECT_STATUS(rlock_client_new(&l->opts, &l->cl), RLOCK_OK);
}

TEST(cluster_moving, a_lock_that_is_handed_over_while_its_slot_moves_is_freed)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    l.opts.command_timeout_ms = 1000;
    renew(&l);
    const char *name = cluster_name_on(l.c, 0, "job");
    unsigned slot = cluster_slot(name);
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(l.cl).waiting_now == 1);
    cluster_slot_begin(l.c, slot, 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT(!cluster_has_key(l.c, name));
    cluster_slot_move_keys(l.c, slot, 1);
    cluster_slot_end(l.c, slot, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_moving, locks_of_one_slot_are_freed_together_while_it_moves)
{
    cluster_scene l;
    char a[80], b[80];
    cluster_scene_start(&l, 0);
    l.opts.command_timeout_ms = 1000;
    renew(&l);
    const char *name = cluster_name_on(l.c, 0, "job");
    snprintf(a, sizeof a, "{%s}a", name);
    snprintf(b, sizeof b, "{%s}b", name);
    rlock *both, *of[] = {cluster_scene_lock(&l, a), cluster_scene_lock(&l, b)};
    EXPECT_STATUS(rlock_multi_new(of, 2, &both), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(both), RLOCK_OK);
    cluster_slot_begin(l.c, cluster_slot(name), 1);
    EXPECT_STATUS(rlock_unlock(both), RLOCK_OK);
    EXPECT(!cluster_has_key(l.c, a) && !cluster_has_key(l.c, b));
    rlock_free(both);
    rlock_free(of[0]);
    rlock_free(of[1]);
    cluster_scene_stop(&l);
}

TEST(cluster_moving, a_lock_of_several_is_unlocked_while_a_master_is_replaced)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    l.opts.command_timeout_ms = SOON; /* the others may take long to agree */
    renew(&l);
    rlock *both, *of[] = {cluster_scene_lock(&l, cluster_name_on(l.c, 0, "a")),
                          cluster_scene_lock(&l, cluster_name_on(l.c, 1, "b"))};
    EXPECT_STATUS(rlock_multi_new(of, 2, &both), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(both), RLOCK_OK);
    EVENTUALLY(SOON, cluster_int(l.c, 0, "WAIT 1 100") == 1);
    cluster_kill(l.c, 0);
    EXPECT_STATUS(rlock_unlock(both), RLOCK_OK);
    rlock_free(both);
    rlock_free(of[0]);
    rlock_free(of[1]);
    cluster_scene_stop(&l);
}

static void move_house(cluster *c, int node)
{
    cluster_kill(c, node);
    process_set_port(cluster_server(c, node), cluster_take_port());
    cluster_restart(c, node);
    cluster_await_ok(c);
}

/* A container that is started anew has its id and epoch, and another address.
 */
TEST(cluster_moving, a_master_that_comes_back_at_another_address_is_followed)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    cluster_cmd(l.c, 3, "CONFIG SET cluster-replica-no-failover yes");
    move_house(l.c, 0);
    cluster_await_owner(l.c, name, 0);
    EXPECT_STATUS(rlock_acquire(lk, 8000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

/* As a move of slots leaves it that was broken off. */
TEST(cluster_moving, a_renewal_that_is_sent_in_a_circle_fails_and_is_told)
{
    cluster_scene l;
    cluster_scene_start(&l, 6000);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    cluster_cmd(l.c, 0, "DEL %s rlock_token:{%s}", name, name);
    cluster_cmd(l.c, 0, "CLUSTER SETSLOT %u NODE %s", cluster_slot(name),
                cluster_id(l.c, 1));
    events_wait(l.ev, RLOCK_EVENT_RENEW_FAILED, 2, SOON);
    EXPECT_BETWEEN(stats_of(l.cl).redirects, 5, 200);
    EXPECT_CONTAINS(events_message(l.ev, RLOCK_EVENT_RENEW_FAILED), "MOVED");
    rlock_free(lk);
    cluster_scene_stop(&l);
}

static int silent_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    EXPECT(bind(fd, (struct sockaddr *)&a, sizeof a) == 0);
    EXPECT(listen(fd, 100) == 0);
    EXPECT(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
    return ntohs(a.sin_port);
}

/* Each of them costs the thread that asks them its patience. */
TEST(cluster_moving, a_client_of_a_silent_cluster_is_given_up_in_time)
{
    char uri[200] = "redis-cluster://";
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    for (int i = 0; i < 6; i++)
        snprintf(uri + strlen(uri), sizeof uri - strlen(uri), "%s127.0.0.1:%d",
                 i ? "," : "", silent_port());
    o.uri = uri;
    o.connect_timeout_ms = 200;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT(test_since_ms(began_ms) < 700 + SLACK_MS);
}

static intptr_t promote(void *c)
{
    cluster_promote(c, 3);
    return 0;
}

/* Its threads would have been nobody's. */
TEST(cluster_moving,
     a_server_that_becomes_known_to_a_client_that_ends_is_not_used)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    l.opts.command_timeout_ms = 300;
    renew(&l);
    rlock *lk = cluster_scene_lock(&l, cluster_name_on(l.c, 0, "job"));
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    cluster_pause(l.c, 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_EIO);
    rlock_free(lk);
    test_thread *t = test_spawn(promote, l.c);
    rlock_client_free(l.cl);
    test_join(t);
    events_free(l.ev);
    cluster_resume(l.c, 0);
    cluster_stop(l.c);
}

/* A lock that moves while its renewal is confirmed is renewed once more. */
TEST(cluster_moving, a_renewal_that_replicas_confirm_goes_by_ask)
{
    cluster_scene l;
    cluster_scene_start(&l, 2 * BRISK_MS);
    l.opts.min_replicas = 1;
    renew(&l);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    cluster_slot_begin(l.c, cluster_slot(name), 2);
    cluster_slot_move_key(l.c, name, 2);
    watch_renewals(l.cl, 1); /* perhaps the one that was under way */
    uint64_t shortfalls = stats_of(l.cl).replica_shortfalls;
    watch_renewals(l.cl, 2);
    EXPECT_INT(stats_of(l.cl).replica_shortfalls, shortfalls);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

/* Whoever is still saying hello does not wait for the answer. */
TEST(cluster_moving, a_first_connection_to_a_master_that_hangs_is_given_up)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    l.opts.connect_timeout_ms = l.opts.command_timeout_ms = 10000;
    renew(&l);
    const char *name = cluster_name_on(l.c, 1, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    cluster_pause(l.c, 1);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(test_since_ms(began_ms) < 5000 + SLACK_MS);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    cluster_resume(l.c, 1);
    rlock_free(lk);
    cluster_scene_stop(&l);
}
