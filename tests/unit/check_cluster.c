/* How the servers of a cluster are checked whose slots are known. */
#include "checked.h"
#include "clustered.h"
#include "wire/hash_slot.h"

static void open_known(checked *s, unsigned number)
{
    checked_in_cluster(s);
    clustered_tell(s->e, 1, 8191);
    s->node = rl_cluster_server(s->e->cluster, number);
}

/* The slot of what was asked for. */
static unsigned probed_slot(const checked *s)
{
    const char *at = strstr(stub_heard(&s->b), "rlock_token:{");
    EXPECT(at);
    at += strlen("rlock_token:{");
    return rl_hash_slot(at, strcspn(at, "}"));
}

/* With another name the server would send one on. */
static void expect_own(unsigned number, unsigned first, unsigned last)
{
    checked s;
    for (int i = 0; i < 8; i++) { /* names are drawn */
        open_known(&s, number);
        EXPECT(checked_passes(&s));
        EXPECT_BETWEEN(probed_slot(&s), first, last);
        EXPECT_INT(s.told.n, 0);
        checked_close(&s);
    }
}

TEST_CASE(check_cluster, asks_the_first_for_a_name_of_its_own,
          expect_own(1, 0, 8191))
TEST_CASE(check_cluster, asks_the_second_for_a_name_of_its_own,
          expect_own(2, 8192, 16383))

static const rl_server *accused(const checked *s)
{
    rl_mutex_lock(&s->e->cluster->mutex);
    const rl_server *x = s->e->cluster->accused;
    rl_mutex_unlock(&s->e->cluster->mutex);
    return x;
}

static void expect_accused(const char *answer, bool is_accused)
{
    checked s;
    open_known(&s, 2);
    EXPECT(!accused(&s));
    stub_say(&s.b, "EVALSHA", answer);
    EXPECT(!checked_passes(&s));
    EXPECT_INT(accused(&s) == s.e->cluster->server[1], is_accused);
    EXPECT_INT(s.f.transient, is_accused);
    checked_close(&s);
}

TEST_CASE(check_cluster, complains_of_who_has_its_slots_no_more,
          expect_accused("-MOVED 9000 127.0.0.1:1\r\n", true))
TEST_CASE(check_cluster, complains_of_who_knows_of_nobody,
          expect_accused("-CLUSTERDOWN Hash slot not served\r\n", true))
TEST_CASE(check_cluster, complains_of_nobody_who_refuses,
          expect_accused("-NOPERM no\r\n", false))

/* They are set up alike: one is asked for all, and told by its name. */
TEST(check_cluster, asks_one_of_them_while_the_client_is_made)
{
    checked s;
    checked_in_cluster(&s);
    clustered_tell(s.e, 1, 8191);
    for (unsigned i = 1; i <= 2; i++)
        stub_lead(&s.b, (rl_node *)rl_cluster_server(s.e->cluster, i));
    stub_say(&s.b, "CLUSTER MYID", "$1\r\na\r\n");
    stub_say(&s.b, "EVAL return", "-NOPERM no\r\n");
    unsigned slot = rl_hash_slot(s.e->core.bell, strlen(s.e->core.bell));
    atomic_store(&s.e->unchecked, false);
    EXPECT_STATUS(rl_check_server(s.e, false), RLOCK_ESERVER);
    EXPECT_STR(rlock_last_error()->message,
               slot < 8192 ? FIRST_MASTER ": the server answered: NOPERM no"
                           : SECOND_MASTER ": the server answered: NOPERM no");
    stub_say(&s.b, "EVAL return", ":1\r\n");
    const rl_node *n = rl_cluster_server(s.e->cluster, slot < 8192 ? 1 : 2);
    rl_pool_close(n->pool, n->keeper.conn);
    EXPECT_STATUS(rl_check_server(s.e, false), RLOCK_OK);
    EXPECT(n->keeper.conn && !s.e->node.keeper.conn);
    checked_close(&s);
}
