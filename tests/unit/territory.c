#include "route/territory.h"

#include <stdlib.h>
#include <string.h>

#include "../support/test.h"

/* Three servers, a third of the slots each; what they say is put together by
   hand. */
typedef struct land {
    rl_cluster c;
    rl_claims said;
    rl_change ch;
    atomic_uint_fast64_t refreshes, redirects, nodes;
    int made[16], count;
} land;

static void *add(void *arg, rl_server *s, const char *name)
{
    land *l = arg;
    (void)s, (void)name;
    return &l->made[l->count++];
}

/* A server says that it has the slots from first to last, by this epoch. */
static void claim(land *l, const char *host, int64_t epoch, int first, int last)
{
    rl_claimant *n = &l->said.node[l->said.count++];
    *n = (rl_claimant){.port = 6379, .epoch = epoch};
    strcpy(n->host, host);
    for (int i = first; i <= last; i++) {
        l->said.owner[i] = (uint16_t)l->said.count;
        l->said.claimed++;
    }
}

/* Answers whether anything has changed; what was said is forgotten. */
static bool judge(land *l)
{
    rl_mutex_lock(&l->c.mutex);
    bool changed = rl_territory_judge(&l->c, &l->said, &l->ch);
    rl_territory_publish(&l->c, &l->ch);
    rl_mutex_unlock(&l->c.mutex);
    rl_claims_init(&l->said);
    return changed;
}

static land *begin(void)
{
    land *l = calloc(1, sizeof *l);
    EXPECT(l);
    l->c.o = (rl_cluster_options){.add = add,
                                  .arg = l,
                                  .refreshes = &l->refreshes,
                                  .redirects = &l->redirects,
                                  .nodes = &l->nodes};
    rl_mutex_init(&l->c.mutex);
    EXPECT(rl_signal_init(&l->c.signal));
    rl_territory_init(&l->c);
    rl_claims_init(&l->said);
    claim(l, "a", 1, 0, 5460);
    claim(l, "b", 2, 5461, 10922);
    claim(l, "c", 3, 10923, 16383);
    EXPECT(judge(l));
    return l;
}

static void end(land *l)
{
    for (unsigned i = 0; i < l->c.count; i++)
        free(l->c.server[i]);
    rl_signal_fini(&l->c.signal);
    free(l);
}

static const char *owner(land *l, unsigned slot)
{
    unsigned number = l->c.owner[slot];
    return number ? l->c.server[number - 1]->place.host : "";
}

static void moved(land *l, unsigned slot, const char *host, int port)
{
    l->c.redirects.moved(&l->c.redirects, slot, host, port);
}

static rl_server *server(land *l, const char *host)
{
    rl_mutex_lock(&l->c.mutex);
    rl_server *s = rl_territory_find(&l->c, host, 6379);
    rl_mutex_unlock(&l->c.mutex);
    return s;
}

TEST(territory, a_first_map_is_believed)
{
    land *l = begin();
    EXPECT_STR(owner(l, 0), "a");
    EXPECT_STR(owner(l, 5461), "b");
    EXPECT_STR(owner(l, 16383), "c");
    EXPECT(l->nodes == 3 && l->ch.left == 0);
    EXPECT(rl_cluster_route(&l->c, 0) == &l->made[0]);
    EXPECT(rl_cluster_server(&l->c, 2) == &l->made[1]);
    EXPECT_INT(rl_cluster_count(&l->c), 3);
    end(l);
}

TEST(territory, a_slot_goes_to_the_higher_epoch)
{
    land *l = begin();
    claim(l, "a", 1, 1, 5460);
    claim(l, "c", 9, 0, 0);
    EXPECT(judge(l));
    EXPECT_STR(owner(l, 0), "c");
    EXPECT_STR(owner(l, 1), "a");
    EXPECT(l->ch.left == 0 && !*l->ch.failover);
    end(l);
}

TEST(territory, fault_147_a_lower_epoch_or_the_same_changes_nothing)
{
    land *l = begin();
    claim(l, "d", 1, 0, 5460);
    claim(l, "e", 1, 5461, 10922);
    EXPECT(!judge(l));
    EXPECT_STR(owner(l, 0), "a");
    EXPECT_STR(owner(l, 10922), "b");
    end(l);
}

TEST(territory, fault_147_a_slot_that_nobody_is_named_for_stays_where_it_was)
{
    land *l = begin();
    claim(l, "b", 2, 5461, 10922);
    EXPECT(!judge(l));
    EXPECT_STR(owner(l, 0), "a");
    EXPECT(!server(l, "a")->retired);
    end(l);
}

TEST(territory, who_takes_all_that_another_one_had_has_replaced_it)
{
    land *l = begin();
    uint64_t nth = server(l, "a")->place.nth;
    claim(l, "d", 7, 0, 5460);
    EXPECT(judge(l));
    EXPECT(l->ch.left == 1 && l->ch.leaves[0] == server(l, "a"));
    EXPECT_STR(l->ch.failover, "slots 0-5460: d:6379 instead of a:6379");
    EXPECT(server(l, "a")->retired && server(l, "a")->place.nth == nth + 1);
    EXPECT(l->nodes == 3 && l->c.count == 4);
    end(l);
}

TEST(territory, who_has_given_all_it_had_away_is_left_without_a_failover)
{
    land *l = begin();
    claim(l, "b", 7, 0, 99);
    claim(l, "c", 8, 100, 5460);
    EXPECT(judge(l));
    EXPECT(l->ch.left == 1 && server(l, "a")->retired && !*l->ch.failover);
    EXPECT_INT(l->nodes, 2);
    end(l);
}

TEST(territory, fault_140_an_old_master_comes_back_only_with_a_higher_epoch)
{
    land *l = begin();
    claim(l, "d", 7, 0, 5460);
    EXPECT(judge(l));
    claim(l, "a", 1, 0, 5460); /* it was cut off, and knows nothing */
    EXPECT(!judge(l));
    moved(l, 0, "a", 6379);
    EXPECT_STR(owner(l, 0), "d");
    claim(l, "a", 8, 0, 5460);
    EXPECT(judge(l));
    EXPECT_STR(owner(l, 0), "a");
    EXPECT(!server(l, "a")->retired && server(l, "d")->retired);
    end(l);
}

/* It has taken slots since, which another server has not heard of. */
TEST(territory, an_epoch_that_has_grown_by_other_slots_keeps_nothing)
{
    land *l = begin();
    claim(l, "a", 9, 1, 5460);
    claim(l, "b", 8, 0, 0);
    EXPECT(judge(l));
    EXPECT_STR(owner(l, 0), "b");
    end(l);
}

/* --- redirects ------------------------------------------------------------ */

TEST(territory, moved_is_followed_for_its_slot_and_a_map_is_asked_for)
{
    land *l = begin();
    moved(l, 7, "c", 6379);
    EXPECT_STR(owner(l, 7), "c");
    EXPECT_STR(owner(l, 8), "a");
    EXPECT(l->redirects == 1 && l->c.suspected);
    end(l);
}

TEST(territory, fault_148_moved_to_a_server_that_nobody_knew_makes_it_known)
{
    land *l = begin();
    moved(l, 7, "new", 7000);
    EXPECT_STR(owner(l, 7), "new");
    EXPECT(l->c.count == 4 && rl_cluster_route(&l->c, 7) == &l->made[3]);
    end(l);
}

TEST(territory, fault_148_moved_without_a_host_is_another_port_of_the_same)
{
    land *l = begin();
    moved(l, 7, "", 7000);
    EXPECT_STR(owner(l, 7), "a");
    EXPECT_INT(l->c.server[l->c.owner[7] - 1]->place.port, 7000);
    end(l);
}

TEST(territory, ask_names_a_server_and_changes_no_slot)
{
    land *l = begin();
    EXPECT_INT(l->c.redirects.ask(&l->c.redirects, 7, "b", 6379), 2);
    EXPECT_STR(owner(l, 7), "a");
    EXPECT(!l->c.suspected);
    end(l);
}
