/* What is asked of the masters of a cluster, of which one may be down. */
#include "clustered.h"
#include "surveyed.h"

static void open_clustered(scene *s, const char *info)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    o.uri = CLUSTERED;
    s->cl = stub_client(NULL, o);
    s->e = &s->cl->engine;
    clustered_open(&s->b, s->cl);
    stub_say_text(&s->b, "CLUSTER INFO", info, 0);
    stub_say_text(&s->b, "INFO", INFO, 0);
    stub_say(&s->b, "CONFIG GET cluster-databases",
             "*2\r\n$17\r\ncluster-databases\r\n$1\r\n4\r\n");
}

#define WELL "cluster_state:ok\r\ncluster_slots_ok:16384\r\n"
#define DOWN "cluster_state:fail\r\ncluster_slots_ok:8000\r\n"

TEST(servers_cluster, has_masters_that_are_told_one_by_one)
{
    scene s;
    open_clustered(&s, WELL);
    EXPECT_STATUS(look(&s), RLOCK_OK);
    EXPECT_INT(s.t.n, 2);
    EXPECT_STR(s.t.address[0], FIRST_MASTER);
    EXPECT_STR(s.t.address[1], SECOND_MASTER);
    for (int i = 0; i < 2; i++) {
        const rlock_server_info *x = &s.t.at[i];
        EXPECT(x->status == RLOCK_OK && x->role == RLOCK_SERVER_MASTER);
        EXPECT(x->cluster_ok == 1 && x->cluster_slots == 16384);
        EXPECT(x->databases == 4 && x->channels == 1 && x->same_server == 1);
        EXPECT_STR(s.t.missing[i], "");
    }
    EXPECT_INT(stub_asked(&s.b, "CONFIG GET databases"), 0);
    EXPECT_INT(stub_asked(&s.b, "CLUSTER INFO"), 2);
    close_scene(&s);
}

/* What would be refused there is not asked. */
TEST(servers_cluster, that_is_down_is_asked_for_nothing_of_keys)
{
    scene s;
    open_clustered(&s, DOWN);
    EXPECT_STATUS(look(&s), RLOCK_OK);
    EXPECT_INT(s.t.n, 2);
    for (int i = 0; i < 2; i++) {
        const rlock_server_info *x = &s.t.at[i];
        EXPECT(x->cluster_ok == 0 && x->cluster_slots == 8000);
        EXPECT(x->databases == 4 && x->same_server == RLOCK_NOT_TOLD);
        EXPECT_STR(s.t.missing[i], "not told");
        EXPECT_STR(s.t.eviction[i], "noeviction");
    }
    EXPECT_INT(stub_asked(&s.b, "EVAL"), 0);
    EXPECT_INT(stub_asked(&s.b, "SSUBSCRIBE"), 0);
    EXPECT(stub_asked(&s.b, "CLIENT ID") == 0 && s.b.conns == 2);
    close_scene(&s);
}

/* Of the check that a first connection has to pass. */
static void expect_met(const char *answer, rlock_status status)
{
    scene s;
    open_clustered(&s, DOWN);
    atomic_store(&s.e->unchecked, true);
    stub_say(&s.b, "EVALSHA", answer);
    EXPECT_STATUS(look(&s), RLOCK_OK);
    EXPECT_INT(s.t.n, 2);
    for (int i = 0; i < 2; i++)
        EXPECT_INT(s.t.at[i].status, status);
    EXPECT_INT(stub_asked(&s.b, "CLUSTER INFO"), status == RLOCK_OK ? 2 : 0);
    close_scene(&s);
}

TEST_CASE(servers_cluster, that_is_down_is_told_though_it_does_not_pass,
          expect_met("-CLUSTERDOWN The cluster is down\r\n", RLOCK_OK))
TEST_CASE(servers_cluster, that_refuses_is_told_as_that,
          expect_met("-NOPERM no\r\n", RLOCK_ESERVER))

TEST(servers_cluster, may_not_be_asked_whether_it_is_well)
{
    scene s;
    open_clustered(&s, WELL);
    stub_say(&s.b, "CLUSTER INFO", "-NOPERM no\r\n");
    EXPECT_STATUS(look(&s), RLOCK_OK);
    EXPECT(s.t.n == 2 && s.t.at[0].cluster_ok == RLOCK_NOT_TOLD);
    EXPECT_INT(s.t.at[0].channels, 1);
    EXPECT_STR(s.t.missing[0], "");
    close_scene(&s);
}

TEST(servers_cluster, has_masters_that_can_be_told_beside_one_that_breaks_off)
{
    scene s;
    open_clustered(&s, WELL);
    stub_hang_up(&s.b, "TIME", 1);
    EXPECT_STATUS(look(&s), RLOCK_OK);
    EXPECT_INT(s.t.n, 2);
    EXPECT(s.t.at[0].status == RLOCK_EIO && s.t.at[1].status == RLOCK_OK);
    EXPECT_STR(s.t.address[0], FIRST_MASTER);
    close_scene(&s);
}
