/*
 * What the tests of a cluster rely on: that one is there soon, and that its
 * slots and masters change when they are told to, and when one dies.
 */
#include "cluster.h"

enum { START_LIMIT_MS = 10000 };

TEST(support_cluster, it_is_there_soon_and_leaves_nothing)
{
    int64_t began_ms = test_now_ms();
    cluster *c = cluster_start();
    EXPECT(test_since_ms(began_ms) < START_LIMIT_MS);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        EXPECT_BETWEEN(cluster_port(c, i), 10000, 19999);
        EXPECT_CONTAINS(cluster_uri(c),
                        strrchr(cluster_node_uri(c, i), '/') + 1);
        EXPECT_INT(cluster_int(c, i, "DBSIZE"), 0);
    }
    for (int i = 0; i < 3; i++)
        EXPECT_INT(cluster_replica_of(c, i), i + 3);
    EXPECT_INT(cluster_replica_of(c, 3), -1);
    cluster_stop(c);
}

static void expect_slot(cluster *c, const char *name)
{
    int owner = cluster_owner(c, name);
    EXPECT_INT(cluster_int(c, 0, "CLUSTER KEYSLOT %s", name),
               cluster_slot(name));
    EXPECT_INT(cluster_slot_owner(c, cluster_slot(name)), owner);
    EXPECT_STR(cluster_cmd(c, owner, "SET %s 1", name)->str, "OK");
    EXPECT(cluster_has_key(c, name));
}

TEST(support_cluster, names_have_the_slots_that_the_servers_say)
{
    static const char *const names[] = {
        "",      "job",     "123456789", "{job}:queue", "a{job}b{c}",
        "{}job", "{{job}}", "{job",      "}job{",       "\xc3\xa9{\xff}"};
    cluster *c = cluster_start();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_slot(c, names[i]);
    EXPECT_INT(cluster_slot("123456789"), 0x31c3);
    for (int i = 0; i < 3; i++)
        EXPECT_INT(cluster_owner(c, cluster_name_on(c, i, "x")), i);
    EXPECT(!cluster_has_key(c, "other"));
    EXPECT_INT(cluster_slot_owner(c, 5460), 0);
    EXPECT_INT(cluster_slot_owner(c, 5461), 1);
    EXPECT_INT(cluster_slot_owner(c, 10922), 1);
    EXPECT_INT(cluster_slot_owner(c, 10923), 2);
    cluster_stop(c);
}

TEST(support_cluster, a_replica_becomes_the_master_when_told_to)
{
    cluster *c = cluster_start();
    const char *name = cluster_name_on(c, 0, "job");
    EXPECT_STR(cluster_cmd(c, 0, "SET %s 1", name)->str, "OK");
    EXPECT_INT(cluster_int(c, 0, "WAIT 1 5000"), 1);
    cluster_promote(c, 3);
    EXPECT_INT(cluster_owner(c, name), 3);
    EXPECT(cluster_has_key(c, name));
    EVENTUALLY(SOON, cluster_replica_of(c, 3) == 0);
    EVENTUALLY(SOON, cluster_int(c, 3, "WAIT 1 100") == 1);
    cluster_fail_over(c, 0);
    cluster_await_owner(c, name, 0);
    EXPECT(cluster_has_key(c, name));
    cluster_stop(c);
}

TEST(support_cluster, the_others_elect_a_replica_of_one_that_is_dead)
{
    cluster *c = cluster_start();
    const char *name = cluster_name_on(c, 1, "job");
    EXPECT_STR(cluster_cmd(c, 1, "SET %s 1", name)->str, "OK");
    EXPECT_INT(cluster_int(c, 1, "WAIT 1 5000"), 1);
    cluster_kill(c, 1);
    EXPECT_INT(cluster_owner(c, name), 1);
    cluster_await_owner(c, name, 4);
    EXPECT(cluster_has_key(c, name));
    cluster_restart(c, 1);
    EVENTUALLY(SOON, cluster_replica_of(c, 4) == 1);
    EXPECT_INT(cluster_owner(c, name), 4);
    cluster_await_ok(c);
    cluster_stop(c);
}

TEST(support_cluster, one_that_is_paused_is_replaced_and_learns_of_it)
{
    cluster *c = cluster_start();
    const char *name = cluster_name_on(c, 2, "job");
    cluster_pause(c, 2);
    cluster_await_owner(c, name, 5);
    cluster_resume(c, 2);
    EVENTUALLY(SOON, cluster_replica_of(c, 5) == 2);
    cluster_stop(c);
}

TEST(support_cluster, a_slot_moves_with_its_keys)
{
    cluster *c = cluster_start();
    const char *tag = cluster_name_on(c, 0, "job");
    unsigned slot = cluster_slot(tag);
    for (int i = 0; i < 3; i++)
        cluster_cmd(c, 0, "SET {%s}:%d 1", tag, i);
    char key[200];
    snprintf(key, sizeof key, "{%s}:1", tag);
    cluster_slot_begin(c, slot, 1);
    EXPECT(cluster_has_key(c, key));
    cluster_slot_move_key(c, key, 1);
    EXPECT(!cluster_has_key(c, key));
    EXPECT_CONTAINS(cluster_cmd(c, 0, "GET %s", key)->str, "ASK ");
    cluster_slot_move_key(c, key, 1);
    cluster_slot_move_keys(c, slot, 1);
    cluster_slot_end(c, slot, 1);
    EXPECT_INT(cluster_owner(c, key), 1);
    EXPECT_INT(cluster_int(c, 1, "CLUSTER COUNTKEYSINSLOT %u", slot), 3);
    cluster_move_slot(c, slot, 2);
    EXPECT_INT(cluster_int(c, 2, "CLUSTER COUNTKEYSINSLOT %u", slot), 3);
    EXPECT(cluster_has_key(c, key));
    cluster_move_slot(c, slot, 0);
    EXPECT(cluster_has_key(c, key));
    cluster_stop(c);
}

TEST(support_cluster, what_a_slot_leaves_behind_is_lost)
{
    cluster *c = cluster_start();
    const char *name = cluster_name_on(c, 2, "job");
    unsigned slot = cluster_slot(name);
    EXPECT_STR(cluster_cmd(c, 2, "SET %s 1", name)->str, "OK");
    cluster_slot_begin(c, slot, 0);
    cluster_slot_end(c, slot, 0);
    EXPECT_INT(cluster_owner(c, name), 0);
    EXPECT(!cluster_has_key(c, name));
    EXPECT_INT(cluster_int(c, 2, "CLUSTER COUNTKEYSINSLOT %u", slot), 0);
    cluster_stop(c);
}
