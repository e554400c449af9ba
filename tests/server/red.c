/*
 * Red locks: making one, holding it, level by level, and as a member of a Multi
 * lock.
 */
#include "nodes.h"

/* --- making one ---------------------------------------------------------- */

static void expect_refused(rlock_client *const clients[], size_t n,
                           const char *name, rlock_status wanted,
                           const char *says)
{
    rlock *lk = (rlock *)name;
    EXPECT_STATUS(rlock_red_new(clients, n, name, &lk), wanted);
    EXPECT(!lk);
    EXPECT_INT(rlock_last_error()->status, wanted);
    EXPECT_CONTAINS(rlock_last_error()->message, says);
}

TEST(red, refuses_pointers_and_counts_that_cannot_be)
{
    nodes ns = nodes_start(1);
    party p = party_clients(&ns, 0, 0);
    rlock_client *ten[10];
    for (size_t i = 0; i < 10; i++)
        ten[i] = p.cl[0];
    expect_refused(NULL, 1, "job", RLOCK_EINVAL, "");
    expect_refused(ten, 0, "job", RLOCK_EINVAL, "1 to 9");
    expect_refused(ten, 10, "job", RLOCK_EINVAL, "1 to 9");
    expect_refused(ten, SIZE_MAX, "job", RLOCK_EINVAL, "1 to 9");
    expect_refused(ten, 1, NULL, RLOCK_EINVAL, "name");
    expect_refused(ten, 1, "", RLOCK_EINVAL, "name");
    EXPECT_STATUS(rlock_red_new(ten, 1, "job", NULL), RLOCK_EINVAL);
    party_end(&p, &ns);
}

TEST(red, takes_the_names_that_other_locks_take)
{
    char name[RLOCK_NAME_MAX + 1];
    nodes ns = nodes_start(3);
    party p = party_clients(&ns, 0, 0);
    rlock *lk = NULL;
    memset(name, 'x', sizeof name);
    EXPECT_STATUS(
        rlock_red_new_ex(p.cl, 3, name, RLOCK_NAME_MAX + 1, NULL, &lk),
        RLOCK_EINVAL);
    EXPECT(!lk);
    EXPECT_STATUS(rlock_red_new_ex(p.cl, 3, name, RLOCK_NAME_MAX, NULL, &lk),
                  RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    EXPECT_STATUS(rlock_red_new_ex(p.cl, 3, "a\0b", 3, NULL, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, server_int(ns.sv[2], "EXISTS %b", "a\0b", (size_t)3) == 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    party_end(&p, &ns);
}

TEST(red, names_the_position_of_a_client_that_is_missing_or_listed_twice)
{
    nodes ns = nodes_start(3);
    party p = party_clients(&ns, 0, 0);
    rlock_client *missing[] = {p.cl[0], NULL, p.cl[2]};
    rlock_client *first_missing[] = {NULL, p.cl[1]};
    rlock_client *twice[] = {p.cl[0], p.cl[1], p.cl[0]};
    expect_refused(missing, 3, "job", RLOCK_EINVAL, "client 2 ");
    expect_refused(first_missing, 2, "job", RLOCK_EINVAL, "client 1 ");
    expect_refused(twice, 3, "job", RLOCK_EINVAL, "client 3 ");
    party_end(&p, &ns);
}

TEST(red, names_the_position_of_a_client_that_is_closed)
{
    nodes ns = nodes_start(3);
    party p = party_clients(&ns, 0, 0);
    rlock *keeps_it_alive = test_lock(p.cl[1], "other");
    rlock_client_free(p.cl[1]);
    expect_refused(p.cl, 3, "job", RLOCK_EINVAL, "client 2 ");
    EXPECT_CONTAINS(rlock_last_error()->message, "closed");
    rlock_free(keeps_it_alive);
    p.cl[1] = NULL;
    party_end(&p, &ns);
}

static void expect_bad(party *p, rlock_red_options opts, rlock_status wanted,
                       const char *says)
{
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_red_new_ex(p->cl, p->n, "job", 3, &opts, &lk), wanted);
    EXPECT(!lk);
    EXPECT_CONTAINS(rlock_last_error()->message, says);
}

TEST(red, names_the_option_that_is_out_of_range)
{
    nodes ns = nodes_start(1);
    party p = party_clients(&ns, 0, 0);
    const rlock_red_options good = RLOCK_RED_OPTIONS_INIT;
    rlock_red_options bad = good;
    bad.size = 0;
    expect_bad(&p, bad, RLOCK_EINVAL, "size");
    bad.size = sizeof bad + 1;
    expect_bad(&p, bad, RLOCK_EINVAL, "size");
    bad = good;
    bad.layout = (rlock_layout)7;
    expect_bad(&p, bad, RLOCK_EINVAL, "layout");
    bad.layout = RLOCK_LAYOUT_TIMESTAMP;
    expect_bad(&p, bad, RLOCK_ENOTSUP, "timestamp");
    bad = good;
    bad.longest_lease_ms = -1;
    expect_bad(&p, bad, RLOCK_EINVAL, "longest_lease_ms");
    bad.longest_lease_ms = RLOCK_LEASE_MAX_MS + 1;
    expect_bad(&p, bad, RLOCK_EINVAL, "longest_lease_ms");
    bad.longest_lease_ms = RLOCK_LEASE_MAX_MS;
    rlock_free(party_lock(&p, "job", &bad));
    party_end(&p, &ns);
}

TEST(red, options_of_an_older_program_are_enough)
{
    nodes ns = nodes_start(1);
    party p = party_clients(&ns, 0, 0);
    rlock_red_options opts = RLOCK_RED_OPTIONS_INIT;
    opts.size = sizeof opts.size;
    opts.layout = (rlock_layout)7; /* beyond its end */
    rlock *lk = party_lock(&p, "job", &opts);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    party_end(&p, &ns);
}

/* INFO tells the run_id only to those who may ask. */
TEST(red, a_user_without_the_right_to_info_cannot_be_a_node)
{
    char uri[256];
    nodes ns = nodes_start(2);
    party p = party_clients(&ns, 0, 0);
    EXPECT_STR(
        server_str(ns.sv[1], "ACL SETUSER ann on >s3cret ~* &* +@all -info"),
        "OK");
    snprintf(uri, sizeof uri, "unix://ann:s3cret@%s", server_path(ns.sv[1]));
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    rlock_client *both[] = {p.cl[0], server_client(ns.sv[1], &opts)};
    expect_refused(both, 2, "job", RLOCK_ENOTSUP, "client 2 ");
    EXPECT_CONTAINS(rlock_last_error()->message, "INFO");
    rlock_client_free(both[1]);
    party_end(&p, &ns);
}

TEST(red, making_one_sends_nothing)
{
    nodes ns = nodes_start(2);
    party p = party_clients(&ns, 0, 0);
    long long before = server_info(ns.sv[1], "total_commands_processed");
    long long opened = server_info(ns.sv[1], "total_connections_received");
    rlock *lk = party_lock(&p, "job", NULL);
    EXPECT_INT(server_info(ns.sv[1], "total_commands_processed"), before + 2);
    EXPECT_INT(server_info(ns.sv[1], "total_connections_received"), opened);
    rlock_free(lk);
    party_end(&p, &ns);
}

/* --- holding ------------------------------------------------------------- */

static void lock_and_unlock(const nodes *ns)
{
    party p = party_join(ns, 0, 0);
    party_hold(&p, 20000);
    EXPECT_INT(nodes_having(ns), ns->n);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_INT(rlock_hold_count(p.lk), 1);
    EXPECT(rlock_token(p.lk) > 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT(!rlock_is_held(p.lk));
    EXPECT_INT(rlock_hold_count(p.lk), 0);
    EXPECT_INT(rlock_token(p.lk), 0);
    nodes_expect_all_undone(ns);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    party_leave(&p);
}

TEST(red, one_to_nine_nodes_are_locked_and_only_tokens_stay_behind)
{
    nodes ns = nodes_start(RLOCK_RED_MAX);
    for (size_t n = 1; n <= RLOCK_RED_MAX; n++) {
        nodes first = nodes_first(&ns, n);
        lock_and_unlock(&first);
    }
    nodes_stop(&ns);
}

TEST(red, an_undisturbed_hold_leaves_no_tombstone)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 20000);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&ns);
    party_end(&p, &ns);
}

TEST(red, every_node_has_the_same_holder_and_the_next_hold_another)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    char first[512];
    party_hold(&p, 20000);
    snprintf(first, sizeof first, "%s", node_holder(ns.sv[0]));
    EXPECT(*first);
    EXPECT_STR(node_holder(ns.sv[1]), first);
    EXPECT_STR(node_holder(ns.sv[2]), first);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_hold(&p, 20000);
    EXPECT(strcmp(node_holder(ns.sv[0]), first) != 0);
    EXPECT_STR(node_holder(ns.sv[1]), node_holder(ns.sv[0]));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red, a_lease_is_the_ttl_on_every_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    for (size_t i = 0; i < 3; i++)
        EXPECT_BETWEEN(server_int(ns.sv[i], "PTTL job"), 60000 - SOON, 60000);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

/* What is left: lease - elapsed - (lease / 100 + 2 ms). */
TEST(red, valid_is_the_lease_less_what_passed_and_the_drift)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    int64_t before_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 40000), RLOCK_OK);
    int64_t valid_ms = rlock_valid_ms(p.lk);
    int64_t took_ms = test_now_ms() - before_ms;
    EXPECT_BETWEEN(valid_ms, 40000 - 402 - took_ms - 2, 40000 - 402);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(rlock_valid_ms(p.lk), 0);
    party_end(&p, &ns);
}

TEST(red, excludes_threads_and_clients)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    EXPECT_STATUS(on_another_thread(rlock_trylock, p.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_trylock(q.lk), RLOCK_BUSY);
    EXPECT_STATUS(on_another_thread(rlock_unlock, p.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_unlock(q.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_extend(q.lk, 1000), RLOCK_NOT_HELD);
    EXPECT(rlock_is_held(p.lk) && !rlock_is_held(q.lk));
    EXPECT_INT(nodes_having(&ns), 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

/* Redlock of one node is a lock like others, but no level of theirs. */
TEST(red, a_plain_lock_of_the_name_is_another_owner)
{
    nodes ns = nodes_start(1);
    party p = party_join(&ns, 0, 0);
    rlock *plain = test_lock(p.cl[0], SCENE_LOCK);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_trylock(plain), RLOCK_BUSY);
    EXPECT(!rlock_is_held(plain));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(plain), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(plain), RLOCK_OK);
    rlock_free(plain);
    party_end(&p, &ns);
}

/* --- levels -------------------------------------------------------------- */

/* A node that is late is not waited for. */
static void expect_levels_everywhere(nodes *ns, int wanted)
{
    for (size_t i = 0; i < ns->n; i++)
        EVENTUALLY(SOON, levels(ns->sv[i], SCENE_LOCK) == wanted);
}

TEST(red, a_reentry_is_a_level_on_every_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    uint64_t token = rlock_token(p.lk);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(p.lk), 3);
    expect_levels_everywhere(&ns, 3);
    EXPECT(rlock_token(p.lk) == token);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(p.lk), 2);
    expect_levels_everywhere(&ns, 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    nodes_expect_nothing_left(&ns);
    party_end(&p, &ns);
}

TEST(red, handles_of_the_same_clients_in_any_order_are_one_lock)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock_client *turned[] = {p.cl[2], p.cl[0], p.cl[1]};
    rlock *other = NULL;
    EXPECT_STATUS(rlock_red_new(turned, 3, SCENE_LOCK, &other), RLOCK_OK);
    party_hold(&p, 60000);
    uint64_t token = rlock_token(p.lk);
    EXPECT_INT(rlock_hold_count(other), 1);
    EXPECT_STATUS(rlock_trylock(other), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(p.lk), 2);
    EXPECT(rlock_token(other) == token);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    rlock_free(p.lk);
    p.lk = NULL;
    EXPECT(rlock_is_held(other));
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    nodes_expect_nothing_left(&ns);
    rlock_free(other);
    party_end(&p, &ns);
}

TEST(red, a_lock_of_other_clients_is_another_owner)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock *pair = NULL;
    EXPECT_STATUS(rlock_red_new(p.cl, 2, SCENE_LOCK, &pair), RLOCK_OK);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_trylock(pair), RLOCK_BUSY);
    EXPECT_INT(rlock_hold_count(pair), 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    rlock_free(pair);
    party_end(&p, &ns);
}

TEST(red, a_nested_lease_never_shortens)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 25000), RLOCK_OK);
    EXPECT(rlock_valid_ms(p.lk) > 60000 - SOON);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 100000), RLOCK_OK);
    EXPECT(rlock_valid_ms(p.lk) > 100000 - SOON);
    for (size_t i = 0; i < 3; i++)
        EXPECT(server_int(ns.sv[i], "PTTL job") > 100000 - SOON);
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red, bad_arguments_of_an_acquire_are_refused)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_acquire(p.lk, -2, 0), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, -1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, RLOCK_LEASE_MAX_MS + 1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_extend(p.lk, -1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, RLOCK_LEASE_MAX_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

/* --- lost on a majority --------------------------------------------------- */

/* Held by the first node alone, as the others were stopped when it was extended. */
static void lose_all_but_the_first(const nodes *ns, party *p)
{
    party_hold(p, 60000);
    EXPECT_STATUS(rlock_extend(p->lk, 2000), RLOCK_OK);
    server_pause(ns->sv[1]);
    server_pause(ns->sv[2]);
    EXPECT_STATUS(rlock_extend(p->lk, 60000), RLOCK_EQUORUM);
    events_wait(p->ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(server_int(ns->sv[0], "PTTL job"), 40000, 60000);
}

static void expect_unchanged(const nodes *ns, const party *p)
{
    const char *holder = node_holder(ns->sv[0]);
    EXPECT_INT(server_int(ns->sv[0], "HINCRBY job %s 0", holder), 1);
    EXPECT_BETWEEN(server_int(ns->sv[0], "PTTL job"), 40000, 60000);
    EXPECT(!rlock_is_held(p->lk));
}

/* Nothing is asked of a node that has it still, and none is waited for. */
TEST(red, what_is_lost_is_neither_extended_nor_entered_again)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 300);
    lose_all_but_the_first(&ns, &p);
    long long calls = script_calls(ns.sv[0]);
    EXPECT_STATUS(rlock_extend(p.lk, 30000), RLOCK_LOST);
    expect_unchanged(&ns, &p);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 30000), RLOCK_LOST);
    expect_unchanged(&ns, &p);
    EXPECT_INT(script_calls(ns.sv[0]), calls);
    server_resume(ns.sv[1]);
    server_resume(ns.sv[2]);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

/* --- as a member of a Multi lock ----------------------------------------- */

typedef struct several {
    nodes ns;
    party p;
    rlock *plain, *multi;
} several;

static several several_start(void)
{
    several s = {.ns = nodes_start(3)};
    s.p = party_join(&s.ns, 1500, 0);
    s.plain = test_lock(s.p.cl[1], "plain");
    EXPECT_STATUS(rlock_multi_new((rlock *[]){s.plain, s.p.lk}, 2, &s.multi),
                  RLOCK_OK);
    return s;
}

static void several_stop(several *s)
{
    rlock_free(s->multi);
    rlock_free(s->plain);
    party_leave(&s->p);
    nodes_stop(&s->ns);
}

TEST(red, a_multi_lock_may_have_it_as_a_member)
{
    several s = several_start();
    EXPECT_STATUS(rlock_acquire(s.multi, SOON, 30000), RLOCK_OK);
    EXPECT(rlock_is_held(s.multi) && rlock_is_held(s.p.lk));
    EXPECT(rlock_token(s.multi) >= rlock_token(s.p.lk));
    EXPECT_STATUS(rlock_lock(s.p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.p.lk), 2);
    EXPECT_INT(rlock_hold_count(s.multi), 1);
    EXPECT_STATUS(rlock_unlock(s.p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.multi, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.multi), RLOCK_OK);
    EXPECT(!rlock_is_held(s.multi) && !rlock_is_held(s.p.lk));
    nodes_expect_all_undone(&s.ns);
    EXPECT_STATUS(rlock_unlock(s.multi), RLOCK_NOT_HELD);
    several_stop(&s);
}

TEST(red, a_multi_lock_without_its_majority_takes_nothing)
{
    several s = several_start();
    nodes_take(&s.ns, 0, 2);
    EXPECT_STATUS(rlock_acquire(s.multi, 0, 30000), RLOCK_BUSY);
    EXPECT(!rlock_is_held(s.multi) && !rlock_is_held(s.plain));
    nodes_give_back(&s.ns, 0, 2);
    nodes_expect_all_undone(&s.ns);
    EXPECT_INT(server_int(s.ns.sv[1], "EXISTS plain"), 0);
    several_stop(&s);
}

TEST(red, a_multi_lock_is_lost_with_its_majority)
{
    several s = several_start();
    EXPECT_STATUS(rlock_acquire(s.multi, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, nodes_having(&s.ns) >= 2);
    nodes_flush(&s.ns, 3);
    EVENTUALLY(SOON, !rlock_is_held(s.multi));
    EVENTUALLY(SOON, party_events(&s.p, RLOCK_EVENT_LOST) > 0);
    EXPECT_STATUS(rlock_unlock(s.multi), RLOCK_LOST);
    several_stop(&s);
}
