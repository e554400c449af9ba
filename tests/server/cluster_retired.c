/*
 * Masters of a cluster that have been replaced, by others at addresses that
 * nobody has seen: what the client has had for them it gives back.
 */
#include "cluster_scene.h"
#include "descriptor.h"
#include "tasks.h"

enum { PAIRS = 3 };

/* Where threads share one connection there is never more than one. */
static void settle(cluster_scene *l)
{
    l->c = cluster_start_with("--bind * --protected-mode no");
    l->opts = (rlock_options)RLOCK_OPTIONS_INIT;
    l->opts.uri = cluster_uri(l->c);
    l->opts.pool_size = 1;
    l->opts.watchdog_lease_ms = 9000; /* renewed within the test */
    l->ev = events_new();
    events_hook(l->ev, &l->opts);
    EXPECT_STATUS(rlock_client_new(&l->opts, &l->cl), RLOCK_OK);
}

static bool all_name(cluster *c, const char *address)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (!strstr(server_str(cluster_server(c, i), "CLUSTER NODES"), address))
            return false;
    return true;
}

/* The nth failover: the replica of one of the masters announces itself by an
   address of its own, and takes over. */
static void fail_over(cluster_scene *l, int nth)
{
    char ip[24], address[40];
    int master = (nth - 1) % PAIRS;
    int node = (nth - 1) / PAIRS % 2 ? master : master + PAIRS;
    snprintf(ip, sizeof ip, "127.0.1.%d", nth);
    snprintf(address, sizeof address, "%s:%d@", ip, cluster_port(l->c, node));
    EXPECT_STR(server_str(cluster_server(l->c, node),
                          "CONFIG SET cluster-announce-ip %s", ip),
               "OK");
    EVENTUALLY(SOON, all_name(l->c, address));
    cluster_fail_over(l->c, node);
    EVENTUALLY(SOON, (int)stats_of(l->cl).failovers == nth);
}

/* Somebody waits, too, so that the master has a doorbell. */
static void use(cluster_scene *l, rlock *lk)
{
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    waiter *w = waiter_start(lk, SOON, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(l->cl).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
}

static void fail_over_and_use(cluster_scene *l, rlock *lk[PAIRS], int from,
                              int to)
{
    for (int i = from; i <= to; i++) {
        fail_over(l, i);
        use(l, lk[(i - 1) % PAIRS]);
    }
}

/* What there is now is no more than what there was. */
static bool is_back(int threads_before, int fds_before)
{
    return tasks_named("") <= threads_before && fds_open() <= fds_before;
}

static void expect_back(int threads_before, int fds_before)
{
    int64_t until_ms = test_now_ms() + SOON;
    while (!is_back(threads_before, fds_before) && test_now_ms() < until_ms)
        test_pause_ms(1);
    if (!is_back(threads_before, fds_before))
        FAIL("after %d ms there are %d threads, not %d, and %d descriptors, "
             "not %d",
             SOON, tasks_named(""), threads_before, fds_open(), fds_before);
}

TEST(cluster_retired, masters_that_were_replaced_give_all_back)
{
    enum { FIRST = PAIRS, LAST = 3 * PAIRS };
    cluster_scene l;
    rlock *lk[PAIRS], *kept[PAIRS];
    settle(&l);
    for (int i = 0; i < PAIRS; i++) {
        lk[i] = cluster_scene_lock(&l, cluster_name_on(l.c, i, "job"));
        kept[i] = cluster_scene_lock(&l, cluster_name_on(l.c, i, "kept"));
        EXPECT_STATUS(rlock_lock(kept[i]), RLOCK_OK);
        use(&l, lk[i]);
    }
    int threads_first = tasks_named(""), fds_first = fds_open();
    fail_over_and_use(&l, lk, 1, FIRST); /* the test asks all six of them */
    expect_back(threads_first, fds_first + CLUSTER_NODES);
    watch_renewals(l.cl, 2 * PAIRS); /* so all new masters are connected to */
    expect_back(threads_first, fds_first + CLUSTER_NODES);
    int threads_before = tasks_named(""), fds_before = fds_open();
    fail_over_and_use(&l, lk, FIRST + 1, LAST);
    expect_back(threads_before, fds_before);
    for (int i = 0; i < PAIRS; i++) {
        EXPECT(rlock_is_held(kept[i]));
        EXPECT_STATUS(rlock_unlock(kept[i]), RLOCK_OK);
        rlock_free(kept[i]);
        rlock_free(lk[i]);
    }
    EXPECT_INT(stats_of(l.cl).lost, 0);
    cluster_scene_stop(&l);
}

/* Its threads have gone, and are started again. */
TEST(cluster_retired, a_master_that_is_back_in_office_is_served_again)
{
    cluster_scene l;
    settle(&l);
    rlock *lk = cluster_scene_lock(&l, cluster_name_on(l.c, 0, "job"));
    rlock *kept = cluster_scene_lock(&l, cluster_name_on(l.c, 0, "kept"));
    EXPECT_STATUS(rlock_lock(kept), RLOCK_OK);
    use(&l, lk);
    int before = tasks_named("");
    cluster_fail_over(l.c, PAIRS);
    EVENTUALLY(SOON, stats_of(l.cl).failovers == 1);
    use(&l, lk);
    EVENTUALLY(SOON, tasks_named("") <= before);
    cluster_fail_over(l.c, 0);
    EVENTUALLY(SOON, stats_of(l.cl).failovers == 2);
    use(&l, lk);
    EVENTUALLY(SOON, tasks_named("") <= before);
    watch_renewals(l.cl, 1);
    EXPECT_STATUS(rlock_unlock(kept), RLOCK_OK);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    rlock_free(kept);
    rlock_free(lk);
    cluster_scene_stop(&l);
}
