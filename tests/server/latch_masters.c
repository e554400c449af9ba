/*
 * Latches where a name has several servers, or one that is replaced: in a
 * cluster, also while a slot moves, and behind Sentinels.
 */
#include "cluster_scene.h"
#include "gate.h"
#include "sentinels.h"

static long long sharded_queue(cluster *c, int node, const char *name)
{
    return cluster_int(c, node, "ZCARD rlock_queue:{%s}", name);
}

/* --- a cluster ------------------------------------------------------------ */

TEST(latch_masters, in_a_cluster_all_who_wait_are_woken_at_once)
{
    need_sharded_channels();
    cluster_scene a, b;
    cluster_scene_start(&a, 0);
    cluster_scene_join(&a, &b);
    const char *name = cluster_name_on(a.c, 1, GATE);
    rlock_latch *l = test_latch(a.cl, name), *m = test_latch(b.cl, name);
    EXPECT_STATUS(rlock_latch_set(l, 2, 0), RLOCK_OK);
    gate_waiter *v = gate_wait(l, RLOCK_FOREVER);
    gate_waiter *w = gate_wait(m, RLOCK_FOREVER);
    EVENTUALLY(SOON, sharded_queue(a.c, 1, name) == 2);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    int64_t opened_ms = test_now_ms(), at_ms;
    EXPECT_STATUS(rlock_latch_count_down(m, 1), RLOCK_OK);
    EXPECT_STATUS(gate_end(v, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - opened_ms, 0, WELL_BEFORE_POLL_MS);
    EXPECT_STATUS(gate_end(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - opened_ms, 0, WELL_BEFORE_POLL_MS);
    EXPECT(!cluster_has_key(a.c, name));
    rlock_latch_free(l);
    rlock_latch_free(m);
    cluster_scene_leave(&b);
    cluster_scene_stop(&a);
}

TEST(latch_masters, a_name_whose_keys_have_no_common_slot_is_refused)
{
    cluster_scene l;
    rlock_latch *none;
    cluster_scene_start(&l, 0);
    EXPECT_STATUS(rlock_latch_new(l.cl, "a{}b", &none), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "slots");
    cluster_scene_stop(&l);
}

TEST(latch_masters, a_latch_whose_slot_has_moved_is_found)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, GATE);
    rlock_latch *gate = test_latch(l.cl, name);
    EXPECT_STATUS(rlock_latch_set(gate, 2, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(gate, RLOCK_FOREVER);
    EVENTUALLY(SOON, sharded_queue(l.c, 0, name) == 1);
    cluster_move_slot(l.c, cluster_slot(name), 1);
    EXPECT_STATUS(rlock_latch_count_down(gate, 1), RLOCK_OK);
    EXPECT_INT(left_of(gate), 1);
    EXPECT_STATUS(rlock_latch_count_down(gate, 1), RLOCK_OK);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    rlock_latch_free(gate);
    cluster_scene_stop(&l);
}

/* The mark is a key that is not there, and counts as one that has moved. */
TEST(latch_masters, while_its_slot_moves_a_count_down_is_put_off_and_counted)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    l.opts.command_timeout_ms = 500;
    rlock_client_free(l.cl);
    EXPECT_STATUS(rlock_client_new(&l.opts, &l.cl), RLOCK_OK);
    const char *name = cluster_name_on(l.c, 0, GATE);
    unsigned slot = cluster_slot(name);
    rlock_latch *gate = test_latch(l.cl, name);
    EXPECT_STATUS(rlock_latch_set(gate, 3, 0), RLOCK_OK);
    cluster_slot_begin(l.c, slot, 1);
    EXPECT_STATUS(rlock_latch_count_down(gate, 1), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "TRYAGAIN");
    cluster_slot_move_keys(l.c, slot, 1);
    cluster_slot_end(l.c, slot, 1);
    EVENTUALLY(SOON, left_of(gate) == 2);
    EXPECT_STATUS(rlock_latch_count_down(gate, 1), RLOCK_OK);
    EXPECT_INT(left_of(gate), 1);
    rlock_latch_free(gate);
    cluster_scene_stop(&l);
}

TEST(latch_masters, in_a_cluster_who_waits_goes_on_at_the_next_master)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, GATE);
    rlock_latch *gate = test_latch(l.cl, name);
    EXPECT_STATUS(rlock_latch_set(gate, 1, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(gate, RLOCK_FOREVER);
    EVENTUALLY(SOON, sharded_queue(l.c, 0, name) == 1);
    EVENTUALLY(SOON, cluster_int(l.c, 0, "WAIT 1 100") == 1);
    cluster_kill(l.c, 0);
    cluster_await_owner(l.c, name, 3);
    EXPECT(!gate_has_returned(w));
    rlock_status s = rlock_latch_count_down(gate, 1);
    EXPECT(s == RLOCK_OK || s == RLOCK_EIO);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    rlock_latch_free(gate);
    cluster_scene_stop(&l);
}

/* --- Sentinels ------------------------------------------------------------ */

static bool is_replica(server *sv)
{
    return strcmp(server_cmd(sv, "ROLE")->element[0]->str, "slave") == 0;
}

/* What was read of the one before might be out of date: nobody is let go by a
   master that has become a replica, or is gone. */
TEST(latch_masters, behind_sentinels_who_waits_goes_on_at_the_next_master)
{
    server *master = server_start_tcp(NULL), *heir = replica_start(master);
    sentinels *of = sentinels_start(master, 1);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = sentinels_uri(of);
    rlock_client *cl = server_client(NULL, &opts);
    rlock_latch *l = test_latch(cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 2, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(master, GATE, 1);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EVENTUALLY(SOON, replica_follows(master));
    EXPECT(sentinels_fail_over(of, heir, ELECTED_SOON));
    /* Until then it would count, and forget. */
    EVENTUALLY(SOON, is_replica(master));
    EXPECT(!gate_has_returned(w));
    rlock_status s = rlock_latch_count_down(l, 1);
    EXPECT(s == RLOCK_OK || s == RLOCK_EIO);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    EVENTUALLY(SOON, !key_exists(heir, GATE));
    rlock_latch_free(l);
    rlock_client_free(cl);
    sentinels_stop(of);
    server_stop(heir);
    server_stop(master);
}
