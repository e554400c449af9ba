#include "slotmap.h"

#include "base/clock.h"

TEST(slotmap, a_first_map_is_believed)
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

TEST(slotmap, an_address_of_ipv6_stands_in_brackets)
{
    land *l = begin();
    EXPECT_STR(l->name, "redis://c:6379");
    claim_at(&l->said, "d", "2001:db8::1", 9, 0, 0);
    judge(l);
    EXPECT_STR(l->name, "redis://[2001:db8::1]:6379");
    end(l);
}

TEST(slotmap, a_slot_goes_to_the_higher_epoch)
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

TEST(slotmap, fault_147_a_lower_epoch_or_the_same_changes_nothing)
{
    land *l = begin();
    claim(l, "d", 1, 0, 5460);
    claim(l, "e", 1, 5461, 10922);
    EXPECT(!judge(l));
    EXPECT_STR(owner(l, 0), "a");
    EXPECT_STR(owner(l, 10922), "b");
    end(l);
}

TEST(slotmap, fault_147_a_slot_that_nobody_is_named_for_stays_where_it_was)
{
    land *l = begin();
    claim(l, "b", 2, 5461, 10922);
    EXPECT(!judge(l));
    EXPECT_STR(owner(l, 0), "a");
    EXPECT(!server(l, "a")->retired);
    end(l);
}

TEST(slotmap, a_map_for_which_there_is_no_memory_says_so)
{
    land *l = begin();
    l->lacks_memory = true;
    claim(l, "d", 7, 0, 5460);
    EXPECT(!judge(l));
    EXPECT(l->ch.lacking);
    EXPECT_STR(owner(l, 0), "a");
    l->lacks_memory = false;
    claim(l, "d", 7, 0, 5460);
    EXPECT(judge(l));
    EXPECT(!l->ch.lacking);
    EXPECT_STR(owner(l, 0), "d");
    end(l);
}

TEST(slotmap, who_takes_all_that_another_one_had_has_replaced_it)
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

TEST(slotmap, who_has_given_all_it_had_away_is_left_without_a_failover)
{
    land *l = begin();
    claim(l, "b", 7, 0, 99);
    claim(l, "c", 8, 100, 5460);
    EXPECT(judge(l));
    EXPECT(l->ch.left == 1 && server(l, "a")->retired && !*l->ch.failover);
    EXPECT_INT(l->nodes, 2);
    end(l);
}

TEST(slotmap, fault_140_an_old_master_comes_back_only_with_a_higher_epoch)
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
TEST(slotmap, an_epoch_that_has_grown_by_other_slots_keeps_nothing)
{
    land *l = begin();
    claim(l, "a", 9, 1, 5460);
    claim(l, "b", 8, 0, 0);
    EXPECT(judge(l));
    EXPECT_STR(owner(l, 0), "b");
    end(l);
}

/* --- nodes that are elsewhere, or give away what they had ------------------
 */

TEST(slotmap, a_node_says_by_itself_who_has_what_it_had_by_any_epoch)
{
    land *l = begin();
    claim(l, "d", 9, 0, 5460); /* and a is left */
    EXPECT(judge(l));
    claim(l, "a", 1, 0, 0);
    claim(l, "d", 9, 1, 5460);
    by(&l->said, "a");
    EXPECT(!judge(l));
    claim(l, "a", 1, 0, 0);
    claim(l, "d", 9, 1, 5460);
    by(&l->said, "d");
    EXPECT(judge(l));
    EXPECT_STR(owner(l, 0), "a");
    EXPECT_STR(owner(l, 1), "d");
    EXPECT(!server(l, "a")->retired);
    end(l);
}

/* Two containers that were started anew, each with the other's address. */
TEST(slotmap, nodes_that_have_swapped_their_addresses_keep_their_slots)
{
    land *l = begin();
    claim_at(&l->said, "a", "b", 1, 0, 5460);
    claim_at(&l->said, "b", "a", 2, 5461, 10922);
    EXPECT(!judge(l)); /* nobody has complained: it may be out of date */
    server(l, "a")->suspect = server(l, "b")->suspect = true;
    claim_at(&l->said, "a", "b", 1, 0, 5460);
    claim_at(&l->said, "b", "a", 2, 5461, 10922);
    EXPECT(judge(l) && l->ch.left == 2);
    EXPECT_STR(owner(l, 0), "b");
    EXPECT_STR(node(l, 0), "a");
    EXPECT_STR(owner(l, 5461), "a");
    EXPECT_STR(node(l, 5461), "b");
    EXPECT(asked(l, 0)->epoch == 1 && asked(l, 5461)->epoch == 2);
    claim(l, "a", 1, 0, 5460); /* out of date */
    claim(l, "b", 2, 5461, 10922);
    EXPECT(!judge(l));
    end(l);
}

TEST(slotmap, a_node_that_has_moved_is_believed_where_it_is)
{
    land *l = begin();
    claim_at(&l->said, "a", "z", 1, 0, 5460);
    by(&l->said, "a");
    EXPECT(judge(l) && l->ch.left == 1);
    EXPECT_STR(owner(l, 0), "z");
    EXPECT_STR(l->ch.failover, "slots 0-5460: z:6379 instead of a:6379");
    end(l);
}

/* --- nodes that are gone ---------------------------------------------------
 */

/* A new cluster, at the same addresses; its epochs begin anew. */
static void claim_anew(rl_slotmap_reply *said)
{
    claim_at(said, "x", "b", 1, 0, 5460);
    claim_at(said, "y", "c", 2, 5461, 10922);
    claim_at(said, "z", "a", 3, 10923, 16383);
}

static void set_absent(land *l, unsigned n)
{
    for (unsigned i = 0; i < l->c.count; i++)
        l->c.server[i]->absent = n;
}

TEST(slotmap, another_cluster_at_the_addresses_is_not_believed_at_once)
{
    land *l = begin();
    claim_anew(&l->said);
    set_absent(l, RL_ERA_ASKINGS - 1);
    claim_at(&l->said, "y", "c", 1, 7000, 7000);
    judge(l);
    EXPECT_STR(node(l, 0), "a");
    EXPECT_STR(node(l, 5461), "b");
    EXPECT(!server(l, "a")->retired);
    end(l);
}

TEST(slotmap, a_cluster_made_anew_is_followed_whatever_its_epochs)
{
    land *l = begin();
    claim(l, "a", 7, 0, 5460);
    claim(l, "b", 8, 5461, 10922);
    claim(l, "c", 9, 10923, 16383);
    judge(l);
    set_absent(l, RL_ERA_ASKINGS);
    claim_anew(&l->said);
    EXPECT(judge(l));
    EXPECT(l->ch.left == 3 && l->ch.failovers == 3 && l->nodes == 3);
    EXPECT_STR(node(l, 0), "x");
    EXPECT_STR(owner(l, 0), "b");
    EXPECT_STR(node(l, 5461), "y");
    EXPECT_STR(node(l, 16383), "z");
    EXPECT(asked(l, 0)->epoch == 1 && !asked(l, 0)->retired);
    claim_at(&l->said, "d", "d", 4, 0, 5460); /* a failover there */
    EXPECT(judge(l));
    EXPECT_STR(owner(l, 0), "d");
    end(l);
}

TEST(slotmap, a_cluster_that_is_made_anew_often_takes_no_more_servers)
{
    land *l = begin();
    for (int i = 0; i < 20; i++) {
        char id[3][24];
        set_absent(l, RL_ERA_ASKINGS);
        for (int k = 0; k < 3; k++)
            snprintf(id[k], sizeof id[k], "%d.%d", i, k);
        claim_at(&l->said, id[0], "a", 1, 0, 5460);
        claim_at(&l->said, id[1], "b", 2, 5461, 10922);
        claim_at(&l->said, id[2], "c", 3, 10923, 16383);
        EXPECT(judge(l));
        EXPECT_STR(node(l, 0), id[0]);
    }
    EXPECT_INT(l->c.count, 6);
    end(l);
}

TEST(slotmap, slots_of_a_node_that_is_gone_are_nobodys_if_nobody_claims_them)
{
    land *l = begin();
    server(l, "a")->absent = RL_ERA_ASKINGS;
    claim(l, "b", 2, 5461, 10922);
    claim_at(&l->said, "n", "n", 0, 0, 99);
    EXPECT(judge(l));
    EXPECT_STR(owner(l, 0), "n");
    EXPECT_STR(owner(l, 100), "");
    EXPECT_STR(owner(l, 16383), "c");
    EXPECT(server(l, "a")->retired && !*l->ch.failover);
    end(l);
}

TEST(slotmap, another_server_at_an_old_address_is_told_as_such)
{
    land *l = begin();
    server(l, "a")->absent = RL_ERA_ASKINGS;
    claim_at(&l->said, "n", "a", 0, 0, 5460);
    EXPECT(judge(l));
    EXPECT_STR(l->ch.failover, "slots 0-5460: another server at a:6379");
    end(l);
}

/* --- redirects ------------------------------------------------------------ */

TEST(slotmap, moved_is_followed_for_its_slot_and_a_map_is_asked_for)
{
    land *l = begin();
    moved(l, 7, "c", 6379);
    EXPECT_STR(owner(l, 7), "c");
    EXPECT_STR(owner(l, 8), "a");
    EXPECT(l->redirects == 1 && l->c.suspected);
    end(l);
}

TEST(slotmap, fault_148_moved_to_a_server_that_nobody_knew_makes_it_known)
{
    land *l = begin();
    moved(l, 7, "new", 7000);
    EXPECT_STR(owner(l, 7), "new");
    EXPECT(l->c.count == 4 && rl_cluster_route(&l->c, 7) == &l->made[3]);
    end(l);
}

TEST(slotmap, fault_148_moved_without_a_host_is_another_port_of_the_same)
{
    land *l = begin();
    moved(l, 7, "", 7000);
    EXPECT_STR(owner(l, 7), "a");
    EXPECT_INT(l->c.server[l->c.owner[7] - 1]->place.port, 7000);
    end(l);
}

/* Until it was asked, a map is followed. */
TEST(slotmap, a_map_has_the_last_word_on_what_moved_has_said)
{
    land *l = begin();
    moved(l, 7, "new", 7000);
    claim(l, "a", 1, 0, 5460);
    EXPECT(!judge(l));
    EXPECT_STR(owner(l, 7), "a");
    end(l);
}

TEST(slotmap, moved_to_one_that_was_left_has_who_is_in_office_asked)
{
    land *l = begin();
    claim(l, "d", 7, 0, 5460);
    EXPECT(judge(l));
    moved(l, 0, "a", 6379);
    EXPECT_STR(owner(l, 0), "d");
    EXPECT(l->c.witness == server(l, "d") && l->c.suspected);
    end(l);
}

TEST(slotmap, a_server_that_moved_has_named_is_the_node_that_a_map_has_there)
{
    land *l = begin();
    moved(l, 7, "n", 6379);
    claim(l, "n", 9, 7, 7);
    EXPECT(judge(l));
    EXPECT_STR(node(l, 7), "n");
    EXPECT_INT(l->c.count, 4);
    end(l);
}

TEST(slotmap, ask_names_a_server_and_changes_no_slot)
{
    land *l = begin();
    EXPECT_INT(l->c.redirects.ask(&l->c.redirects, 7, "b", 6379), 2);
    EXPECT_STR(owner(l, 7), "a");
    EXPECT(!l->c.suspected);
    end(l);
}

static void expect_known(land *l, bool ours, bool all)
{
    rl_mutex_lock(&l->c.mutex);
    EXPECT_INT(rl_slotmap_is_ours(&l->c, &l->said), ours);
    EXPECT_INT(rl_slotmap_is_known(&l->c, &l->said), all);
    rl_mutex_unlock(&l->c.mutex);
}

TEST(slotmap, who_is_in_office_is_there_if_he_is_named_were_it_for_one_slot)
{
    land *l = begin();
    claim(l, "d", 9, 0, 0);
    EXPECT(judge(l));
    claim(l, "a", 1, 1, 5460);
    claim(l, "b", 2, 5461, 10922);
    claim(l, "c", 3, 10923, 16383);
    expect_known(l, true, false);
    claim(l, "d", 9, 0, 0);
    expect_known(l, true, true);
    rl_slotmap_reply_init(&l->said);
    claim(l, "d", 9, 0, 0);
    expect_known(l, true, false);
    rl_slotmap_reply_init(&l->said);
    claim(l, "x", 9, 0, 16383);
    expect_known(l, false, false);
    end(l);
}

/* Whichever it is, it is no master of which there is one before or behind. */
TEST(slotmap, any_server_that_is_in_office_and_not_suspected_is_found)
{
    land *l = begin();
    rl_place found = {.nth = 7};
    rl_fault f;
    l->c.known = true;
    l->c.server[0]->suspect = l->c.server[1]->retired = true;
    EXPECT_INT(rl_cluster_locate(&l->c, rl_now_us(), &found, &f), RLOCK_OK);
    EXPECT_STR(found.host, "c");
    EXPECT(found.port == 6379 && found.nth == 0);
    end(l);
}
