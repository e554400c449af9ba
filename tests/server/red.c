/*
 * Red locks: one name on several servers, held by a majority. What happens
 * when servers fail is in ../fault/red.c.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "arena.h"

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

TEST(red, a_reentry_is_a_level_on_every_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    uint64_t token = rlock_token(p.lk);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(p.lk), 3);
    for (size_t i = 0; i < 3; i++)
        EXPECT_INT(levels(ns.sv[i], SCENE_LOCK), 3);
    EXPECT(rlock_token(p.lk) == token);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(p.lk), 2);
    for (size_t i = 0; i < 3; i++)
        EXPECT_INT(levels(ns.sv[i], SCENE_LOCK), 2);
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

/* --- extend and renewal -------------------------------------------------- */

TEST(red, extend_lengthens_and_shortens_on_every_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_extend(p.lk, 200000), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(p.lk), 200000 - SOON, 197998);
    for (size_t i = 0; i < 3; i++)
        EXPECT_BETWEEN(server_int(ns.sv[i], "PTTL job"), 200000 - SOON, 200000);
    EXPECT_STATUS(rlock_extend(p.lk, 40000), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(p.lk), 40000 - SOON, 39598);
    for (size_t i = 0; i < 3; i++)
        EXPECT_BETWEEN(server_int(ns.sv[i], "PTTL job"), 40000 - SOON, 40000);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(p.lk, 40000), RLOCK_NOT_HELD);
    party_end(&p, &ns);
}

TEST(red, every_node_is_renewed_by_its_own_client)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    for (size_t i = 0; i < 3; i++)
        events_wait(p.ev[i], RLOCK_EVENT_RENEWED, 3, SOON);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_BETWEEN(rlock_valid_ms(p.lk), 1, 1483);
    EXPECT_INT(nodes_having(&ns), 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&ns);
    party_end(&p, &ns);
}

TEST(red, an_extend_by_a_lease_stops_renewal)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    events_wait(p.ev[0], RLOCK_EVENT_RENEWED, 1, SOON);
    EXPECT_STATUS(rlock_extend(p.lk, 1200), RLOCK_OK);
    int64_t until_ms = test_now_ms() + 1200;
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_time(p.ev[0], RLOCK_EVENT_LOST) <= until_ms + 500);
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    party_end(&p, &ns);
}

TEST(red, a_watchdog_lease_is_renewed_from_the_first_acquire_on)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 3000, 0);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, party_events(&p, RLOCK_EVENT_RENEWED) >= 4);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, a_nested_watchdog_lease_turns_renewal_on)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold(&p, 30000);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EVENTUALLY(SOON, party_events(&p, RLOCK_EVENT_RENEWED) >= 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

/* --- a loss -------------------------------------------------------------- */

TEST(red, an_explicit_lease_is_lost_at_its_deadline)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 1500), RLOCK_OK);
    int64_t until_ms = test_now_ms() + rlock_valid_ms(p.lk);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_time(p.ev[0], RLOCK_EVENT_LOST) <= until_ms + 300);
    EXPECT(!rlock_is_held(p.lk));
    EXPECT_INT(rlock_valid_ms(p.lk), 0);
    EXPECT_INT(rlock_token(p.lk), 0);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_extend(p.lk, 5000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    expect_one_loss(&p);
    EXPECT_INT(stats_of(p.cl[0]).lost, 1);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

static void delete_keys(const nodes *ns, size_t n)
{
    for (size_t i = ns->n - n; i < ns->n; i++)
        EXPECT_INT(server_int(ns->sv[i], "DEL %s", SCENE_LOCK), 1);
}

static void flush(const nodes *ns, size_t n)
{
    for (size_t i = ns->n - n; i < ns->n; i++)
        EXPECT_STR(server_str(ns->sv[i], "FLUSHALL"), "OK");
}

/* Another hold is there now. */
static void steal(const nodes *ns, size_t n)
{
    delete_keys(ns, n);
    nodes_take(ns, ns->n - n, ns->n);
}

/*
 * A majority of n nodes loses a hold. Nobody renews what is left of it, and it
 * runs out by itself.
 */
static void expect_lost(size_t n, void (*harm)(const nodes *ns, size_t n))
{
    nodes ns = nodes_start(n);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    size_t gone = n - n / 2, left = n - gone;
    harm(&ns, gone);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    nodes survivors = nodes_first(&ns, left);
    EVENTUALLY(SOON, nodes_having(&survivors) == 0);
    EXPECT(!rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    expect_one_loss(&p);
    EXPECT_INT(stats_of(p.cl[0]).lost, 1);
    EXPECT_INT(party_holding(&p), 0);
    party_end(&p, &ns);
}

TEST_CASE(red, a_deleted_majority_is_one_loss, expect_lost(3, delete_keys))
TEST_CASE(red, a_flushed_majority_is_one_loss, expect_lost(5, flush))
TEST_CASE(red, a_stolen_majority_is_one_loss, expect_lost(3, steal))
TEST_CASE(red, half_of_an_even_number_is_a_loss, expect_lost(4, delete_keys))
TEST_CASE(red, one_of_two_is_a_loss, expect_lost(2, delete_keys))
TEST_CASE(red, the_only_one_is_a_loss, expect_lost(1, delete_keys))

static void expect_kept(size_t n, void (*harm)(const nodes *ns, size_t n))
{
    nodes ns = nodes_start(n);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    size_t gone = n - n / 2 - 1;
    harm(&ns, gone);
    EVENTUALLY(SOON, party_holding(&p) == n - gone);
    for (size_t i = 0; i < n - gone; i++)
        events_wait(p.ev[i], RLOCK_EVENT_RENEWED,
                    events_count(p.ev[i], RLOCK_EVENT_RENEWED) + 2, SOON);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(p.lk, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    EXPECT_INT(stats_of(p.cl[0]).lost, 0);
    party_end(&p, &ns);
}

TEST_CASE(red, a_deleted_minority_is_no_loss, expect_kept(3, delete_keys))
TEST_CASE(red, a_flushed_minority_of_five_is_no_loss, expect_kept(5, flush))
TEST_CASE(red, a_stolen_minority_of_an_even_number_is_no_loss,
          expect_kept(4, steal))

TEST(red, a_thief_of_the_majority_keeps_what_it_stole)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    steal(&ns, 2);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EVENTUALLY(SOON, !node_has(ns.sv[0]));
    EXPECT_STR(node_holder(ns.sv[1]), "other:1:1:x");
    EXPECT_STR(node_holder(ns.sv[2]), "other:1:1:x");
    EXPECT_INT(server_int(ns.sv[2], "PTTL job"), -1);
    party_end(&p, &ns);
}

TEST(red, unlock_frees_what_is_left_of_a_lost_hold)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    delete_keys(&ns, 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    nodes_expect_all_undone(&ns);
    expect_one_loss(&p);
    party_end(&p, &ns);
}

TEST(red, unlocks_pair_after_a_loss)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    flush(&ns, 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    expect_one_loss(&p);
    party_end(&p, &ns);
}

TEST(red, a_forced_unlock_is_one_loss_for_the_holder)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0), q = party_join(&ns, 0, 0);
    party_hold_renewed(&p);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_OK);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    expect_one_loss(&p);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

static intptr_t hold_and_end(void *arg)
{
    party *p = arg;
    party_hold(p, 60000);
    EXPECT_STATUS(rlock_lock(p->lk), RLOCK_OK);
    return 0;
}

TEST(red, a_thread_that_ends_abandons_its_hold_once)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    test_join(test_spawn(hold_and_end, &p));
    events_wait(p.ev[0], RLOCK_EVENT_ABANDONED, 1, SOON);
    EVENTUALLY(SOON, party_holding(&p) == 0);
    EVENTUALLY(SOON, server_int(ns.sv[2], "PTTL job") <= 60000);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY);
    party_end(&p, &ns);
}

/* --- events and statistics ----------------------------------------------- */

TEST(red, the_first_client_gets_the_locks_events_and_counts)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock_event ev;
    party_hold(&p, 60000);
    uint64_t token = rlock_token(p.lk);
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT_INT(ev.count, 1);
    EXPECT(ev.token == token);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_INT(ev.count, 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_RELEASED, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT_INT(ev.count, 0);
    EXPECT(ev.token == token);
    uint64_t acquires = stats_of(p.cl[0]).acquires;
    EXPECT_INT(acquires, party_events(&p, RLOCK_EVENT_ACQUIRED));
    EXPECT_INT(stats_of(p.cl[0]).releases, 2);
    for (size_t i = 1; i < 3; i++) {
        EXPECT_INT(stats_of(p.cl[i]).acquires, 0);
        EXPECT_INT(stats_of(p.cl[i]).releases, 0);
        EXPECT_INT(events_count(p.ev[i], RLOCK_EVENT_ACQUIRED), 0);
        EXPECT_INT(events_count(p.ev[i], RLOCK_EVENT_RELEASED), 0);
    }
    party_end(&p, &ns);
}

TEST(red, contention_is_told_once_for_a_call)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 0, 3);
    EXPECT_STATUS(rlock_acquire(p.lk, 700, 60000), RLOCK_TIMEOUT);
    EXPECT_INT(events_count(p.ev[0], RLOCK_EVENT_CONTENDED), 1);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_CONTENDED), 1);
    rlock_stats st = stats_of(p.cl[0]);
    EXPECT_INT(st.acquires_contended, 1);
    EXPECT_INT(st.acquires_failed, 1);
    EXPECT_INT(st.waiting_now, 0);
    EXPECT(st.wait_us_total >= 500000);
    party_end(&p, &ns);
}

/* --- waiting ------------------------------------------------------------- */

TEST(red, a_waiter_gets_it_after_the_release)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    uint64_t token = rlock_token(p.lk);
    waiter *w = waiter_start(q.lk, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON, stats_of(q.cl[0]).waiting_now == 1);
    EXPECT(!waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    rlock_event ev;
    EXPECT(events_last(q.ev[0], RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT(ev.token > token);
    waiter_end(w);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red, threads_of_a_process_are_served_in_the_order_they_came)
{
    enum { N = 4 };
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    waiter *w[N];
    party_hold(&p, 60000);
    for (int i = 0; i < N; i++) {
        w[i] = waiter_start(p.lk, RLOCK_FOREVER, 60000);
        EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == (uint64_t)i + 1);
    }
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(waiter_status(w[i], NULL), RLOCK_OK);
        for (int k = i + 1; k < N; k++)
            EXPECT(!waiter_returned(w[k]));
        waiter_end(w[i]);
    }
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, a_wait_runs_out_no_earlier_than_told)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 1, 3);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p.lk, 400, 60000), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 400, 400 + 3000);
    nodes first = nodes_first(&ns, 1);
    nodes_expect_all_undone(&first);
    party_end(&p, &ns);
}

TEST(red, cancel_ends_the_waits_on_its_handle)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock *other = party_lock(&p, SCENE_LOCK, NULL);
    nodes_take(&ns, 0, 3);
    waiter *w[] = {waiter_start(p.lk, RLOCK_FOREVER, 60000),
                   waiter_start(p.lk, RLOCK_FOREVER, 60000)};
    waiter *stays = waiter_start(other, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == 3);
    rlock_cancel(p.lk);
    EXPECT_STATUS(waiter_end(w[0]), RLOCK_CANCELED);
    EXPECT_STATUS(waiter_end(w[1]), RLOCK_CANCELED);
    EXPECT(!waiter_returned(stays));
    nodes_give_back(&ns, 0, 3);
    EXPECT_STATUS(waiter_end(stays), RLOCK_OK);
    nodes_expect_all_undone(&ns);
    rlock_free(other);
    party_end(&p, &ns);
}

/* --- closing ------------------------------------------------------------- */

TEST(red, closing_the_first_client_ends_a_wait)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 0, 3);
    waiter *w = waiter_start(p.lk, RLOCK_FOREVER, 60000);
    EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == 1);
    party_free_client(&p, 0);
    EXPECT_STATUS(waiter_end(w), RLOCK_ECLOSED);
    party_end(&p, &ns);
}

TEST(red, closing_another_client_is_a_node_that_failed)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_free_client(&p, 2);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 60000), RLOCK_OK);
    EXPECT(!node_has(ns.sv[2]));
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_take(&ns, 1, 2);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "1 ok");
    EXPECT_CONTAINS(rlock_last_error()->message, "2 held by another");
    EXPECT_CONTAINS(rlock_last_error()->message, "3 ");
    EXPECT_CONTAINS(rlock_last_error()->message, "closed");
    party_end(&p, &ns);
}

TEST(red, closing_the_first_client_while_holding_ends_the_hold)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    bool locked;
    party_hold_renewed(&p);
    party_free_client(&p, 0);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_extend(p.lk, 1500), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_force_unlock(p.lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_ECLOSED);
    EXPECT(!rlock_is_held(p.lk));
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    party_end(&p, &ns);
}

TEST(red, closing_a_minority_while_holding_keeps_the_hold)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    party_free_client(&p, 1);
    EVENTUALLY(SOON, !node_has(ns.sv[1])); /* its lease runs out */
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, closing_a_majority_while_holding_is_a_loss)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    party_free_client(&p, 1);
    party_free_client(&p, 2);
    EVENTUALLY(SOON, !rlock_is_held(p.lk));
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, 8000);
    EVENTUALLY(SOON, nodes_having(&ns) == 0); /* nobody renews it */
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_INT(events_count(p.ev[0], RLOCK_EVENT_LOST), 1);
    party_end(&p, &ns);
}

static void expect_closed(rlock *lk)
{
    rlock_holder holder;
    bool locked;
    int64_t ttl_ms;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_acquire(lk, 100, 0), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_extend(lk, 1000), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_force_unlock(lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_is_locked(lk, &locked), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_ttl(lk, &ttl_ms), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_holder_info(lk, &holder), RLOCK_ECLOSED);
    EXPECT_INT(rlock_last_error()->status, RLOCK_ECLOSED);
    rlock_cancel(lk);
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_INT(rlock_valid_ms(lk), 0);
    EXPECT_INT(rlock_token(lk), 0);
}

TEST(red, clients_may_be_freed_in_any_order_and_before_the_lock)
{
    static const size_t order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                      {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    nodes ns = nodes_start(3);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        party p = party_join(&ns, 0, 0);
        party_hold(&p, 60000);
        for (size_t k = 0; k < 3; k++)
            party_free_client(&p, order[i][k]);
        expect_closed(p.lk);
        nodes_give_back(&ns, 0, 3); /* it is not released */
        party_leave(&p);
    }
    nodes_stop(&ns);
}

/* --- fork ---------------------------------------------------------------- */

static void expect_forked(party *p)
{
    rlock_holder holder;
    rlock *lk = NULL;
    bool locked;
    int64_t ttl_ms;
    EXPECT_STATUS(rlock_red_new(p->cl, p->n, "x", &lk), RLOCK_EFORKED);
    EXPECT(!lk);
    EXPECT_STATUS(rlock_lock(p->lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_trylock(p->lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_acquire(p->lk, 10, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_extend(p->lk, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_force_unlock(p->lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_is_locked(p->lk, &locked), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_ttl(p->lk, &ttl_ms), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_holder_info(p->lk, &holder), RLOCK_EFORKED);
    EXPECT_INT(rlock_last_error()->status, RLOCK_EFORKED);
    rlock_cancel(p->lk);
    EXPECT(!rlock_is_held(p->lk));
    EXPECT_INT(rlock_hold_count(p->lk), 0);
    EXPECT_INT(rlock_token(p->lk), 0);
    rlock_free(p->lk);
    for (size_t i = 0; i < p->n; i++)
        rlock_client_free(p->cl[i]);
}

TEST(red, in_a_forked_child_every_call_answers_forked)
{
    int status;
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    fflush(NULL);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        alarm(TEST_LIMIT_S / 2);
        expect_forked(&p);
        _exit(0);
    }
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT(WIFEXITED(status));
    EXPECT_INT(WEXITSTATUS(status), 0);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_INT(levels(ns.sv[1], SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

/* --- questions ----------------------------------------------------------- */

TEST(red, tells_who_holds_it)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    rlock_holder holder;
    bool locked = false;
    int64_t ttl_ms = 0;
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(q.lk, &holder), RLOCK_OK);
    EXPECT_STR(holder.raw, node_holder(ns.sv[0]));
    EXPECT_INT(holder.pid, getpid());
    EXPECT_INT(holder.count, 2);
    EXPECT_BETWEEN(holder.ttl_ms, 60000 - SOON, 60000);
    EXPECT_STATUS(rlock_is_locked(q.lk, &locked), RLOCK_OK);
    EXPECT(locked);
    EXPECT_STATUS(rlock_ttl(q.lk, &ttl_ms), RLOCK_OK);
    EXPECT_BETWEEN(ttl_ms, 60000 - SOON, 60000);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    EXPECT_STATUS(rlock_holder_info(q.lk, &holder), RLOCK_NOT_HELD);
    EXPECT_STR(holder.raw, "");
    EXPECT_STATUS(rlock_is_locked(q.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_ttl(q.lk, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -2);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red, what_is_on_a_minority_is_not_locked)
{
    nodes ns = nodes_start(4);
    party p = party_join(&ns, 0, 0);
    bool locked = true;
    int64_t ttl_ms = 0;
    nodes_take(&ns, 1, 3);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_ttl(p.lk, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -2);
    nodes_take(&ns, 0, 1);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    EXPECT(locked);
    EXPECT_STATUS(rlock_ttl(p.lk, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -1);
    party_end(&p, &ns);
}

TEST(red, the_ttl_is_that_of_the_worst_in_the_best_majority)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    int64_t ttl_ms;
    party_hold(&p, 200000);
    server_int(ns.sv[0], "PEXPIRE job 50000");
    EXPECT_STATUS(rlock_ttl(p.lk, &ttl_ms), RLOCK_OK);
    EXPECT_BETWEEN(ttl_ms, 200000 - SOON, 200000);
    server_int(ns.sv[2], "PEXPIRE job 100000");
    EXPECT_STATUS(rlock_ttl(p.lk, &ttl_ms), RLOCK_OK);
    EXPECT_BETWEEN(ttl_ms, 100000 - SOON, 100000);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red, force_unlock_frees_every_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_NOT_HELD);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_OK);
    EXPECT_INT(nodes_having(&ns), 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    nodes_take(&ns, 2, 3);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_OK);
    EXPECT_INT(nodes_having(&ns), 0);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_NOT_HELD);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

/* --- tokens -------------------------------------------------------------- */

static uint64_t stored_token(server *sv)
{
    return strtoull(server_str(sv, "GET rlock_token:{job}"), NULL, 10);
}

/* A majority has it written down, so that no later hold can get less. */
static size_t nodes_with_token(const nodes *ns, uint64_t token)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += stored_token(ns->sv[i]) >= token;
    return n;
}

static uint64_t token_of_a_hold(const nodes *ns, party *p)
{
    EXPECT_STATUS(rlock_acquire(p->lk, SOON, 60000), RLOCK_OK);
    uint64_t token = rlock_token(p->lk);
    EXPECT(token > 0);
    EXPECT(nodes_with_token(ns, token) >= ns->n / 2 + 1);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    return token;
}

TEST(red, tokens_grow_from_hold_to_hold_and_are_on_a_majority)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    uint64_t last = 0;
    for (int i = 0; i < 20; i++) {
        uint64_t token = token_of_a_hold(&ns, i % 2 ? &p : &q);
        EXPECT(token > last);
        last = token;
    }
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red, tokens_grow_over_majorities_that_share_one_node)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    uint64_t far = UINT64_C(3000000000000000), last = far;
    server_cmd(ns.sv[0], "SET rlock_token:{job} %llu", (unsigned long long)far);
    for (int i = 0; i < 6; i++) {
        bool low = i % 2 == 0; /* nodes 1 to 3, then 3 to 5 */
        size_t from = low ? 3 : 0, to = low ? 5 : 2;
        nodes_take(&ns, from, to);
        uint64_t token = token_of_a_hold(&ns, low ? &p : &q);
        EXPECT(token > last);
        last = token;
        nodes_give_back(&ns, from, to);
    }
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red, a_token_far_ahead_on_one_node_is_passed_on)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    uint64_t far = UINT64_C(8000000000000000);
    server_cmd(ns.sv[1], "SET rlock_token:{job} %llu", (unsigned long long)far);
    party_hold(&p, 60000);
    bool counted = rlock_token(p.lk) > far;
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    /* Node 2 need not be in the first majority, but is in this one. */
    nodes_take(&ns, 0, 1);
    uint64_t token = token_of_a_hold(&ns, &p);
    EXPECT(token > far + counted);
    EXPECT(stored_token(ns.sv[2]) >= token);
    party_end(&p, &ns);
}

TEST(red, a_token_far_ahead_on_all_nodes_is_passed)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    uint64_t far = UINT64_C(8000000000000000);
    for (size_t i = 0; i < 3; i++)
        server_cmd(ns.sv[i], "SET rlock_token:{job} %llu",
                   (unsigned long long)far);
    uint64_t first = token_of_a_hold(&ns, &p);
    EXPECT(first > far);
    EXPECT(token_of_a_hold(&ns, &p) > first);
    party_end(&p, &ns);
}

/* --- layouts and scripts ------------------------------------------------- */

static const rlock_red_options as_string = {.size = sizeof as_string,
                                            .layout = RLOCK_LAYOUT_STRING};

TEST(red, a_string_is_shared_with_other_programs)
{
    nodes ns = nodes_start(3);
    party p = party_join_with(&ns, 0, 0, &as_string);
    for (size_t i = 0; i < 2; i++)
        EXPECT_STR(server_str(ns.sv[i], "SET job abc NX PX 60000"), "OK");
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(p.lk, 100, 60000), RLOCK_TIMEOUT);
    EVENTUALLY(SOON, !node_has(ns.sv[2]));
    EXPECT_STR(server_str(ns.sv[0], "GET job"), "abc");
    EXPECT_INT(server_int(ns.sv[0], "DEL job"), 1);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 60000), RLOCK_OK);
    EXPECT_STR(server_str(ns.sv[0], "SET job xyz NX PX 60000"), "");
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STR(server_str(ns.sv[1], "GET job"), "abc");
    party_end(&p, &ns);
}

TEST(red, a_string_is_reentrant_renewed_and_released)
{
    nodes ns = nodes_start(3);
    party p = party_join_with(&ns, 1500, 0, &as_string);
    party_hold_renewed(&p);
    char holder[512];
    snprintf(holder, sizeof holder, "%s", server_str(ns.sv[0], "GET job"));
    EXPECT(strchr(holder, ':'));
    EXPECT_STR(server_str(ns.sv[1], "GET job"), holder);
    EXPECT_STR(server_str(ns.sv[2], "GET job"), holder);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(p.lk), 2);
    events_wait(p.ev[2], RLOCK_EVENT_RENEWED, 2, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(nodes_having(&ns), 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&ns);
    party_end(&p, &ns);
}

TEST(red, a_string_that_was_overwritten_on_a_majority_is_lost)
{
    nodes ns = nodes_start(3);
    party p = party_join_with(&ns, 1500, 0, &as_string);
    party_hold_renewed(&p);
    server_cmd(ns.sv[0], "SET job abc");
    server_cmd(ns.sv[2], "SET job abc");
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STR(server_str(ns.sv[0], "GET job"), "abc");
    EXPECT_STR(server_str(ns.sv[2], "GET job"), "abc");
    EVENTUALLY(SOON, !node_has(ns.sv[1]));
    party_end(&p, &ns);
}

TEST(red, a_key_of_another_type_on_a_minority_is_a_failed_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    server_cmd(ns.sv[1], "SET job text");
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    server_cmd(ns.sv[0], "LPUSH job x");
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "WRONGTYPE");
    EXPECT_STR(server_str(ns.sv[1], "GET job"), "text");
    EVENTUALLY(SOON, !node_has(ns.sv[2]));
    party_end(&p, &ns);
}

static void forget_scripts(const nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++)
        EXPECT_STR(server_str(ns->sv[i], "SCRIPT FLUSH"), "OK");
}

TEST(red, servers_that_lack_the_scripts_get_them)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    bool locked = false;
    forget_scripts(&ns);
    party_hold(&p, 60000);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_extend(p.lk, 60000), RLOCK_OK);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    EXPECT(locked);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&ns);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_force_unlock(p.lk), RLOCK_NOT_HELD);
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
    flush(&s.ns, 3);
    EVENTUALLY(SOON, !rlock_is_held(s.multi));
    EVENTUALLY(SOON, party_events(&s.p, RLOCK_EVENT_LOST) > 0);
    EXPECT_STATUS(rlock_unlock(s.multi), RLOCK_LOST);
    several_stop(&s);
}

/* --- exclusion ----------------------------------------------------------- */

TEST(red, threads_and_clients_take_turns)
{
    enum { ROUNDS = 60 };
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    arena *a = arena_new();
    runner of_p = {a, p.lk, ROUNDS, 60000, false},
           of_q = {a, q.lk, ROUNDS, 60000, false};
    test_thread *t[] = {
        test_spawn(arena_run, &of_p), test_spawn(arena_run, &of_p),
        test_spawn(arena_run, &of_q), test_spawn(arena_run, &of_q)};
    for (size_t i = 0; i < 4; i++)
        test_join(t[i]);
    arena_end(a, 4 * ROUNDS);
    nodes_expect_all_undone(&ns);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red, processes_take_turns)
{
    enum { ROUNDS = 60, PROCESSES = 3 };
    arena *a = arena_new();
    runner r = {a, NULL, ROUNDS, 60000, false};
    child *c[PROCESSES];
    for (size_t i = 0; i < PROCESSES; i++)
        c[i] = child_start(arena_run_in_child, &r);
    nodes ns = nodes_start(3);
    arena_start_children(&ns, c, PROCESSES);
    for (size_t i = 0; i < PROCESSES; i++)
        child_end(c[i]);
    arena_end(a, PROCESSES * ROUNDS);
    nodes_expect_all_undone(&ns);
    nodes_stop(&ns);
}

/* Any number of threads may make and free handles of one lock. */
static intptr_t make_and_free(void *arg)
{
    party *p = arg;
    for (int i = 0; i < 50; i++) {
        rlock *lk = party_lock(p, SCENE_LOCK, NULL);
        EXPECT_STATUS(rlock_acquire(lk, SOON, 60000), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        rlock_free(lk);
    }
    return 0;
}

TEST(red, threads_may_have_handles_of_their_own)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    test_thread *t[3];
    for (size_t i = 0; i < 3; i++)
        t[i] = test_spawn(make_and_free, &p);
    for (size_t i = 0; i < 3; i++)
        test_join(t[i]);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

enum { LONERS = 6 };

/* A lock of its own, so that nobody is in its way. */
typedef struct loner {
    party *p;
    int number;
} loner;

static intptr_t lock_and_unlock_alone(void *arg)
{
    const loner *l = arg;
    char name[16];
    snprintf(name, sizeof name, "job-%d", l->number);
    rlock *lk = party_lock(l->p, name, NULL);
    for (int i = 0; i < 200; i++) {
        EXPECT_STATUS(rlock_acquire(lk, SOON, 60000), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    }
    rlock_free(lk);
    return 0;
}

/* Six threads, each with a lock of its own. */
static void lock_and_unlock_all(party *p)
{
    loner l[LONERS];
    test_thread *t[LONERS];
    for (int i = 0; i < LONERS; i++) {
        l[i] = (loner){p, i};
        t[i] = test_spawn(lock_and_unlock_alone, &l[i]);
    }
    for (int i = 0; i < LONERS; i++)
        test_join(t[i]);
}

/* On a busy machine there is nearly always some node whose grant is late. */
TEST(red, a_grant_that_comes_during_the_release_is_released)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0);
    lock_and_unlock_all(&p);
    for (size_t i = 0; i < ns.n; i++) {
        EXPECT_INT(stats_of(p.cl[i]).held_now, 0);
        for (int k = 0; k < LONERS; k++)
            EVENTUALLY(SOON, server_int(ns.sv[i], "EXISTS job-%d", k) == 0);
        expect_all_undone(ns.sv[i]);
    }
    party_end(&p, &ns);
}

/* The same with nodes that others hold, and whose answer is late. */
TEST(red, a_refusal_that_comes_during_the_release_is_no_hold)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0);
    for (size_t i = 0; i < 2; i++) {
        for (int k = 0; k < LONERS; k++)
            server_cmd(ns.sv[i], "HSET job-%d other:1:1:x 1", k);
    }
    for (int i = 0; i < 5; i++)
        lock_and_unlock_all(&p);
    for (size_t i = 0; i < ns.n; i++) {
        EXPECT_INT(stats_of(p.cl[i]).held_now, 0);
        for (int k = 0; k < LONERS; k++)
            EVENTUALLY(SOON,
                       server_int(ns.sv[i], "EXISTS job-%d", k) == (i < 2));
    }
    party_end(&p, &ns);
}
