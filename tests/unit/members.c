/* The members of a Multi lock: in which order they are asked, and which two are
   the same lock; and the nodes of a Red lock. */
#include "lock/multi.h"

#include "handles.h"
#include "lock/red.h"
#include "run/client.h"

/* As the server would tell it. */
static void set_run(rlock_client *cl, const char *id)
{
    char copy[RL_RUN_ID_MAX];
    snprintf(copy, sizeof copy, "%s", id);
    rl_item told[2] = {
        {.type = REDIS_REPLY_STRING, .str = copy, .len = strlen(copy)},
        {.type = REDIS_REPLY_INTEGER, .integer = 1}};
    EXPECT(rl_server_run_note(&cl->engine.core.server_run, told, 1));
}

/* Positions in the caller's list, in the order in which they are asked. */
static void expect_order(rlock *const of[], size_t n, const char *wanted)
{
    rlock *multi;
    char got[RLOCK_MULTI_MAX + 1] = "";
    EXPECT_STATUS(rlock_multi_new(of, n, &multi), RLOCK_OK);
    const rl_multi *m = (const rl_multi *)multi;
    EXPECT_INT(m->n, strlen(wanted));
    for (size_t i = 0; i < m->n; i++) {
        got[i] = (char)('0' + m->member[i].position);
        EXPECT(m->member[i].whole == multi);
    }
    EXPECT_STR(got, wanted);
    rlock_free(multi);
}

static rlock *lock_of(rlock_client *cl, const void *name, size_t len)
{
    rlock *lk;
    EXPECT_STATUS(rlock_new_n(cl, name, len, &lk), RLOCK_OK);
    return lk;
}

TEST(members, are_asked_in_the_order_of_the_bytes_of_their_names)
{
    kit k = kit_open();
    rlock *of[] = {lock_of(k.cl, "b", 1),       lock_of(k.cl, "ab", 2),
                   lock_of(k.other, "\xff", 1), lock_of(k.other, "a", 1),
                   lock_of(k.cl, "a\0", 2),     lock_of(k.other, "A", 1)};
    expect_order(of, 6, "645213");
    for (size_t i = 0; i < 6; i++)
        rlock_free(of[i]);
    kit_close(&k);
}

TEST(members, of_one_name_are_asked_in_the_order_of_their_servers_run_ids)
{
    kit k = kit_open();
    set_run(k.cl, "1");
    set_run(k.other, "2");
    expect_order((rlock *[]){k.lk, k.theirs}, 2, "12");
    expect_order((rlock *[]){k.theirs, k.lk}, 2, "21");
    kit_close(&k);
}

/* Which of two servers it is that does not tell. */
static void expect_order_of_addresses(bool first, bool second)
{
    kit k = kit_open();
    if (first)
        set_run(k.cl, "1");
    if (second)
        set_run(k.other, "2");
    expect_order((rlock *[]){k.lk, k.theirs}, 2, "21");
    expect_order((rlock *[]){k.theirs, k.lk}, 2, "12");
    kit_close(&k);
}

TEST_CASE(members, whose_servers_do_not_tell_go_by_their_addresses,
          expect_order_of_addresses(false, false))
TEST_CASE(members, go_by_their_addresses_when_the_first_server_tells_alone,
          expect_order_of_addresses(true, false))
TEST_CASE(members, go_by_their_addresses_when_the_second_server_tells_alone,
          expect_order_of_addresses(false, true))

TEST(members, of_two_clients_of_one_server_are_the_same_lock)
{
    kit k = kit_open();
    rlock *multi, *b = lock_of(k.other, "b", 1), *joc = lock_of(k.cl, "joc", 3);
    set_run(k.cl, "1");
    set_run(k.other, "1");
    INVALID(rlock_multi_new((rlock *[]){b, k.lk, k.theirs}, 3, &multi),
            "member 3 is the same lock as an earlier one");
    EXPECT(!multi);
    expect_order((rlock *[]){k.lk, b}, 2, "21");
    EXPECT(rl_multi_same_name(k.lk, k.theirs));
    EXPECT(!rl_multi_same_name(k.lk, b) && !rl_multi_same_name(k.lk, joc));
    rlock_free(b);
    rlock_free(joc);
    kit_close(&k);
}

/* Two clients of an address of which nobody knows who is there. */
TEST(members, of_one_address_may_still_be_two_servers)
{
    kit k = kit_open();
    rlock_client *again = client_of("unix:///nowhere");
    rlock *of[] = {k.lk, lock_of(again, "job", 3)};
    expect_order(of, 2, k.cl < again ? "12" : "21");
    rlock_free(of[1]);
    rlock_client_free(again);
    kit_close(&k);
}

TEST(members, of_a_multi_lock_in_it_have_its_position)
{
    kit k = kit_open();
    rlock *inner, *b = lock_of(k.cl, "b", 1), *multi;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){k.lk, k.theirs}, 2, &inner),
                  RLOCK_OK);
    expect_order((rlock *[]){b, inner}, 2, "122");
    INVALID(rlock_multi_new((rlock *[]){b, inner, k.lk}, 3, &multi),
            "member 3 is the same lock as an earlier one");
    INVALID(rlock_multi_new((rlock *[]){k.lk, inner}, 2, &multi),
            "member 2 is the same lock as an earlier one");
    rlock_free(inner);
    rlock_free(b);
    kit_close(&k);
}

/* --- nodes ---------------------------------------------------------------- */

TEST(members, nodes_of_one_server_are_refused)
{
    kit k = kit_open();
    rlock *red;
    rlock_client *third = client_of("unix:///third");
    rlock_client *of[] = {third, k.cl, k.other};
    set_run(k.cl, "1");
    set_run(k.other, "1");
    INVALID(rlock_red_new(of, 3, "job", &red),
            "client 3 leads to the same server as client 2");
    EXPECT(!red);
    EXPECT_STATUS(rlock_red_new(of, 2, "job", &red), RLOCK_OK);
    rlock_free(red);
    rlock_client_free(third);
    kit_close(&k);
}

/* One that was away may tell yet. */
TEST(members, a_node_that_does_not_tell_who_it_is_is_refused)
{
    kit k = kit_open();
    rlock *red;
    k.other->engine.core.server_run.awaited = false;
    REFUSED(rlock_red_new((rlock_client *[]){k.cl, k.other}, 2, "job", &red),
            RLOCK_ENOTSUP,
            "client 2 does not know its server's run_id: its user needs the "
            "right to INFO");
    set_run(k.other, "1");
    EXPECT_STATUS(
        rlock_red_new((rlock_client *[]){k.cl, k.other}, 2, "job", &red),
        RLOCK_OK);
    EXPECT(k.cl->engine.core.server_run.wanted);
    rlock_free(red);
    kit_close(&k);
}

/* What a Red lock of these clients is, in a table of holds. */
static uint64_t scope_of(rlock_client *const of[], size_t n,
                         rlock_layout layout)
{
    rlock *red;
    rlock_red_options o = RLOCK_RED_OPTIONS_INIT;
    o.layout = layout;
    EXPECT_STATUS(rlock_red_new_ex(of, n, "job", 3, &o, &red), RLOCK_OK);
    uint64_t scope = red->target.scope;
    rlock *copy = red->kind->copy(red);
    EXPECT(copy->target.scope == scope && copy->target.layout == layout);
    EXPECT_INT(rl_red_of(copy)->n, n);
    rlock_free(copy);
    rlock_free(red);
    return scope;
}

TEST(members, nodes_are_one_lock_in_any_order_and_no_other)
{
    kit k = kit_open();
    rlock_client *of[] = {k.cl, k.other}, *back[] = {k.other, k.cl};
    uint64_t scope = scope_of(of, 2, RLOCK_LAYOUT_HASH);
    EXPECT(scope > RL_SINGLE_SCOPES);
    EXPECT(scope_of(back, 2, RLOCK_LAYOUT_HASH) == scope);
    EXPECT(scope_of(of, 2, RLOCK_LAYOUT_STRING) != scope);
    EXPECT(scope_of(of, 1, RLOCK_LAYOUT_HASH) != scope);
    EXPECT(scope_of(back, 1, RLOCK_LAYOUT_HASH) !=
           scope_of(of, 1, RLOCK_LAYOUT_HASH));
    kit_close(&k);
}
