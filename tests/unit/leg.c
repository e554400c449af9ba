/*
 * How an operation gets its ways to servers, and gives them back. The test drives:
 * it makes connections, reads, and is the servers.
 */
#include "run/leg.h"

#include "outpost.h"

enum { SERVERS = 3 };

typedef struct stage {
    play p;
    outpost o[SERVERS];
    rl_op op;
    rl_part *parts[SERVERS];
    rl_part part[SERVERS];
    rl_leg leg[SERVERS];
    rl_legs legs;
    int64_t now_us;
    int64_t ahead_ms;
} stage;

static rl_pool *pool(stage *s, size_t i)
{
    return outpost_node(&s->o[i])->pool;
}

/* It leaves a queue, which each server answers alike. */
static void begin_part(stage *s, size_t i)
{
    rl_part *x = s->parts[i] = &s->part[i];
    outpost_begin_part(&s->o[i], x, &s->op);
    if (s->op.n > 1)
        rl_part_limit(x, PLAY_LEASE_MS, x->until_us);
}

/* n: 1: it asks alone. Each pool has one place. */
static void open_stage(stage *s, size_t n)
{
    memset(s, 0, sizeof *s);
    play_open(&s->p, 1);
    rl_op_init(&s->op, s->parts);
    s->op.n = n;
    s->op.quorum = n / 2 + 1;
    s->op.early = s->op.several = n > 1;
    for (size_t i = 0; i < SERVERS; i++) {
        outpost_open(&s->o[i], &s->p, (unsigned)i + 1, 1);
        begin_part(s, i); /* those behind n are none of the op's */
    }
    /* Where they begin there is anything. */
    memset(s->leg, 0xa5, sizeof s->leg);
    memset(&s->legs, 0xa5, sizeof s->legs);
    rl_legs_init(&s->legs, &s->op, s->leg, NULL);
    rl_round_begin(&s->op);
}

static void close_stage(stage *s)
{
    rl_legs_close(&s->legs);
    rl_legs_fini(&s->legs);
    for (size_t i = 0; i < SERVERS; i++) {
        EXPECT_INT(pool(s, i)->places, 0);
        EXPECT(!outpost_visitor(&s->o[i]) && !rl_pool_is_wanted(pool(s, i)));
        outpost_close(&s->o[i]);
    }
    play_close(&s->p);
}

static bool ask(stage *s)
{
    s->now_us = rl_now_us();
    return rl_legs_ask(&s->legs, &s->now_us);
}

static void look(stage *s)
{
    rl_legs_look(&s->legs, rl_now_us());
}

static void expect_asked(stage *s, size_t i)
{
    outpost_expect_asked(&s->o[i]);
    EXPECT_INT(s->part[i].ask.next, RL_ASK_WAITS);
}

/* The server answers, and that is read. */
static void answer(stage *s, size_t i)
{
    outpost_say(&s->o[i], LEFT);
    EXPECT(rl_conn_receive(rl_leg_conn(&s->leg[i])));
    EXPECT(s->part[i].over);
}

static void expect_failed(stage *s, size_t i, rlock_status status,
                          const char *text)
{
    const rl_part *x = &s->part[i];
    EXPECT(x->over && !x->ok);
    EXPECT_INT(x->fault.status, status);
    EXPECT_CONTAINS(x->fault.text, text);
}

static void expect_visit(stage *s, size_t i)
{
    const rl_leg *l = &s->leg[i];
    const rl_visitor *v = outpost_visitor(&s->o[i]);
    EXPECT(v == &l->visitor && !v->own);
    EXPECT(l->visiting && !l->in_line && l->way.expecting && !l->way.line);
    EXPECT_BETWEEN(l->way.ready_us, s->now_us - 1000 * MS, rl_now_us());
}

/* The connector has put a connection into the pool. */
static void connect_to(stage *s, size_t i)
{
    rl_fault none = {.status = RLOCK_OK};
    outpost_add_idle(&s->o[i]);
    outpost_tell(&s->o[i], NULL, &none);
}

static void set_down(stage *s, size_t i)
{
    rl_fault why;
    rl_fault_set(&why, RLOCK_EIO, 0, "it hangs");
    rl_connector_suspect(outpost_node(&s->o[i]), &why);
}

/* --- several servers ------------------------------------------------------ */

static void open_connected(stage *s)
{
    open_stage(s, SERVERS);
    for (size_t i = 0; i < SERVERS; i++)
        outpost_add_idle(&s->o[i]);
    EXPECT(!ask(s));
    for (size_t i = 0; i < SERVERS; i++)
        expect_asked(s, i);
}

TEST(leg, several_are_asked_at_once_and_a_quorum_is_waited_for)
{
    stage s;
    open_connected(&s);
    for (size_t i = 0; i < SERVERS; i++)
        EXPECT(pool(&s, i)->places == 1 && !outpost_visitor(&s.o[i]));
    answer(&s, 0);
    EXPECT(!ask(&s));
    answer(&s, 2);
    EXPECT(ask(&s));
    EXPECT(!s.part[1].over);
    EXPECT_INT(s.legs.signal.fd, -1); /* nobody was waited for */
    close_stage(&s);
}

TEST(leg, what_a_connection_owes_as_it_is_given_back_the_keeper_reads)
{
    stage s;
    open_connected(&s);
    rl_conn *c = rl_leg_conn(&s.leg[1]);
    answer(&s, 0);
    answer(&s, 2);
    int64_t before_us = rl_now_us();
    rl_legs_close(&s.legs);
    EXPECT_INT(s.legs.n, 0);
    EXPECT_BETWEEN(c->patient_us, before_us + PLAY_TIMEOUT_MS * MS,
                   rl_now_us() + PLAY_TIMEOUT_MS * MS);
    EXPECT(outpost_node(&s.o[1])->keeper.owing_us != RL_NEVER);
    EXPECT_INT(outpost_node(&s.o[0])->keeper.owing_us, RL_NEVER);
    EXPECT_INT(outpost_node(&s.o[2])->keeper.owing_us, RL_NEVER);
    outpost_say(&s.o[1], LEFT);
    EXPECT(rl_conn_receive(c) && s.part[1].over);
    close_stage(&s);
}

TEST(leg, a_connection_that_broke_is_closed_and_owes_nothing)
{
    stage s;
    open_connected(&s);
    rl_conn_time_out(rl_leg_conn(&s.leg[1]));
    rl_legs_close(&s.legs);
    EXPECT(outpost_is_closed(outpost_peer(&s.o[1])));
    EXPECT_INT(outpost_node(&s.o[1])->keeper.owing_us, RL_NEVER);
    outpost_say(&s.o[0], LEFT);
    outpost_say(&s.o[2], LEFT);
    close_stage(&s);
}

/* --- one round after the other -------------------------------------------- */

static void begin_round(stage *s)
{
    for (size_t i = 0; i < s->op.n; i++)
        begin_part(s, i);
    rl_round_begin(&s->op);
}

TEST(leg, the_next_round_goes_over_the_same_connections)
{
    stage s;
    open_connected(&s);
    for (size_t i = 0; i < SERVERS; i++)
        answer(&s, i);
    EXPECT(ask(&s));
    rl_conn *c = rl_leg_conn(&s.leg[0]);
    begin_round(&s);
    EXPECT(!ask(&s));
    EXPECT(s.legs.n == SERVERS && rl_leg_conn(&s.leg[0]) == c);
    for (size_t i = 0; i < SERVERS; i++) {
        expect_asked(&s, i);
        answer(&s, i);
    }
    close_stage(&s);
}

TEST(leg, a_connection_that_broke_is_replaced_in_the_next_round)
{
    stage s;
    open_connected(&s);
    for (size_t i = 0; i < SERVERS; i++)
        answer(&s, i);
    rl_conn_time_out(rl_leg_conn(&s.leg[0]));
    int server = outpost_peer(&s.o[0]);
    outpost_add_idle(&s.o[0]);
    begin_round(&s);
    EXPECT(!ask(&s));
    EXPECT(outpost_is_closed(server));
    for (size_t i = 0; i < SERVERS; i++) {
        expect_asked(&s, i);
        answer(&s, i);
    }
    close_stage(&s);
}

/* In a cluster a slot is elsewhere by then. */
TEST(leg, that_is_not_needed_any_more_is_taken_for_another_server)
{
    stage s;
    open_stage(&s, 1);
    s.op.several = true;
    outpost_add_idle(&s.o[0]);
    outpost_add_idle(&s.o[1]);
    EXPECT(!ask(&s));
    expect_asked(&s, 0);
    answer(&s, 0);
    rl_part_leave(&s.part[0], &s.o[1].e.core, &play_job, rl_now_us());
    EXPECT(!ask(&s));
    EXPECT_INT(s.legs.n, 1);
    EXPECT(s.leg[0].node == outpost_node(&s.o[1]));
    EXPECT(pool(&s, 0)->places == 0 && pool(&s, 1)->places == 1);
    outpost_expect_asked(&s.o[1]);
    outpost_say(&s.o[1], LEFT);
    EXPECT(rl_conn_receive(rl_leg_conn(&s.leg[0])));
    close_stage(&s);
}

TEST(leg, parts_for_one_server_share_a_leg)
{
    stage s;
    open_stage(&s, 2);
    outpost_add_idle(&s.o[0]);
    s.op.quorum = 2;
    outpost_begin_part(&s.o[0], s.parts[1], &s.op);
    EXPECT(!ask(&s));
    EXPECT(s.legs.n == 1 && s.leg[0].way.line->pending == 2);
    outpost_say(&s.o[0], LEFT LEFT);
    EXPECT(rl_conn_receive(rl_leg_conn(&s.leg[0])));
    EXPECT(s.part[0].over && s.part[1].over && ask(&s));
    close_stage(&s);
}

TEST(leg, what_is_not_to_be_asked_has_no_leg)
{
    stage s;
    open_stage(&s, SERVERS);
    outpost_add_idle(&s.o[0]);
    outpost_add_idle(&s.o[2]);
    s.part[1].due = false;
    EXPECT(!ask(&s));
    EXPECT(s.legs.n == 2 && !s.part[1].way);
    EXPECT(s.leg[1].node == outpost_node(&s.o[2]));
    outpost_say(&s.o[0], LEFT);
    EXPECT(rl_conn_receive(rl_leg_conn(&s.leg[0])));
    outpost_say(&s.o[2], LEFT);
    EXPECT(rl_conn_receive(rl_leg_conn(&s.leg[1])) && ask(&s));
    close_stage(&s);
}

/* In a cluster the slot may be elsewhere by then. */
TEST(leg, what_was_asked_is_answered_where_it_was_asked)
{
    stage s;
    open_stage(&s, 1);
    s.op.several = true;
    outpost_add_idle(&s.o[0]);
    EXPECT(!ask(&s));
    expect_asked(&s, 0);
    s.part[0].core = &s.o[1].e.core;
    EXPECT(!ask(&s));
    EXPECT(s.leg[0].node == outpost_node(&s.o[0]));
    EXPECT(!outpost_visitor(&s.o[1]));
    answer(&s, 0);
    close_stage(&s);
}

/* --- those that have no connection ---------------------------------------- */

static void open_without_last(stage *s)
{
    open_stage(s, SERVERS);
    s->op.quorum = SERVERS;
    outpost_add_idle(&s->o[0]);
    outpost_add_idle(&s->o[1]);
    EXPECT(!ask(s));
    expect_asked(s, 0);
    expect_asked(s, 1);
    expect_visit(s, 2);
}

static void answer_and_close(stage *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!s->part[i].over)
            answer(s, i);
    close_stage(s);
}

TEST(leg, one_that_is_not_connected_to_is_asked_when_the_connector_has_been)
{
    stage s;
    open_without_last(&s);
    EXPECT(outpost_visitor(&s.o[2])->signal == &s.legs.signal);
    EXPECT(!s.leg[2].way.slow);
    look(&s);
    EXPECT(!ask(&s));
    expect_visit(&s, 2);
    connect_to(&s, 2);
    s.leg[2].way.ready_us = 0;
    look(&s);
    EXPECT(!s.leg[2].visiting && !s.leg[2].way.expecting);
    EXPECT_BETWEEN(s.leg[2].way.ready_us, s.now_us, rl_now_us());
    EXPECT(!ask(&s));
    expect_asked(&s, 2);
    answer_and_close(&s, 3);
}

TEST(leg, who_finds_that_another_was_quicker_asks_the_connector_again)
{
    stage s;
    rl_fault none = {.status = RLOCK_OK};
    open_without_last(&s);
    outpost_tell(&s.o[2], NULL, &none);
    look(&s);
    expect_visit(&s, 2);
    answer_and_close(&s, 2);
}

static void expect_refusal(bool patient)
{
    stage s;
    open_without_last(&s);
    s.part[2].ask.patient = patient;
    outpost_refuse(&s.o[2]);
    look(&s);
    EXPECT(!s.leg[2].visiting && !s.leg[2].way.expecting);
    EXPECT_CONTAINS(s.part[2].fault.text, "it is away");
    EXPECT(s.part[2].over != patient);
    if (patient)
        EXPECT_INT(s.part[2].ask.next, RL_ASK_RESTS);
    EXPECT(!ask(&s));
    outpost_pass(&s.ahead_ms, RL_GRACE_US / MS);
    EXPECT(ask(&s) != patient); /* what the others say is no matter then */
    EXPECT(!s.part[0].fault.at);
    if (!patient)
        EXPECT_STR(s.part[2].fault.at, "its server");
    answer_and_close(&s, 2);
}

TEST_CASE(leg, one_that_cannot_be_connected_to_is_not_asked,
          expect_refusal(false))
TEST_CASE(leg, another_server_may_take_over_where_that_is_hoped_for,
          expect_refusal(true))

TEST(leg, what_rests_is_asked_again_when_its_rest_is_over)
{
    stage s;
    open_without_last(&s);
    s.part[2].ask.patient = true;
    outpost_refuse(&s.o[2]);
    look(&s);
    EXPECT(!ask(&s));
    EXPECT(!outpost_visitor(&s.o[2]));
    int64_t rest_us = s.part[2].ask.rest_until_us - rl_now_us();
    outpost_pass(&s.ahead_ms, rest_us / MS + 1);
    EXPECT(!ask(&s));
    expect_visit(&s, 2);
    answer_and_close(&s, 2);
}

TEST(leg, a_connection_that_takes_long_already_is_not_about_to_come)
{
    stage s;
    open_stage(&s, SERVERS);
    outpost_node(&s.o[1])->connector.since_us = rl_now_us() - RL_GRACE_US;
    outpost_node(&s.o[2])->connector.since_us = rl_now_us() + 1000 * MS;
    EXPECT(!ask(&s));
    EXPECT(!s.leg[0].way.slow && s.leg[1].way.slow && !s.leg[2].way.slow);
    close_stage(&s);
}

TEST(leg, without_a_descriptor_to_wait_with_nothing_is_waited_for)
{
    stage s;
    open_stage(&s, SERVERS);
    shim_fail(shim_here(), SHIM_EVENTFD, 1, SHIM_EVER, EMFILE);
    EXPECT(ask(&s));
    shim_clear(shim_here());
    for (size_t i = 0; i < SERVERS; i++) {
        expect_failed(&s, i, RLOCK_ENOMEM, "no descriptor to wait with: ");
        EXPECT_INT(s.part[i].fault.sys_errno, EMFILE);
        EXPECT(!outpost_visitor(&s.o[i]));
    }
    close_stage(&s);
}

TEST(leg, a_server_that_is_silent_is_suspected)
{
    stage s;
    rl_fault why;
    open_connected(&s);
    answer(&s, 0);
    EXPECT(!rl_connector_is_down(&outpost_node(&s.o[1])->connector, &why));
    outpost_pass(&s.ahead_ms, 1600);
    look(&s);
    EXPECT(!rl_connector_is_down(&outpost_node(&s.o[0])->connector, &why));
    EXPECT(rl_connector_is_down(&outpost_node(&s.o[1])->connector, &why));
    EXPECT(rl_connector_is_down(&outpost_node(&s.o[2])->connector, &why));
    answer_and_close(&s, 3);
}

/* --- servers that are down ------------------------------------------------ */

/* Two of them. quorum: so many are needed. */
static void open_down(stage *s, size_t quorum, bool insist)
{
    open_stage(s, SERVERS);
    s->op.quorum = quorum;
    s->op.insist = insist;
    set_down(s, 1);
    set_down(s, 2);
    outpost_add_idle(&s->o[0]);
    outpost_add_idle(&s->o[1]);
}

TEST(leg, servers_that_are_down_are_left_out_and_told)
{
    stage s;
    open_down(&s, 2, false);
    EXPECT(!ask(&s));
    expect_asked(&s, 0);
    for (size_t i = 1; i < SERVERS; i++) {
        expect_failed(&s, i, RLOCK_EIO, "it hangs");
        EXPECT(s.leg[i].way.down && !s.leg[i].way.line);
        EXPECT(pool(&s, i)->places == 0 && !outpost_visitor(&s.o[i]));
    }
    EXPECT_STR(outpost_read(&s.o[1]), "");
    answer_and_close(&s, 1);
}

TEST(leg, servers_that_are_down_are_tried_where_it_does_not_go_without_them)
{
    stage s;
    open_down(&s, 2, true);
    EXPECT(!ask(&s));
    expect_asked(&s, 0);
    expect_visit(&s, 1);
    expect_visit(&s, 2);
    answer_and_close(&s, 1);
}

TEST(leg, servers_that_are_down_are_tried_where_all_are_needed)
{
    stage s;
    open_down(&s, 3, false);
    EXPECT(!ask(&s));
    expect_visit(&s, 1);
    expect_visit(&s, 2);
    answer_and_close(&s, 1);
}

/* The connector makes one to another, which may be of use. */
TEST(leg, servers_that_are_down_are_left_out_while_a_quorum_may_come)
{
    stage s;
    open_down(&s, 1, true);
    EXPECT(!ask(&s));
    EXPECT(!outpost_visitor(&s.o[1]) && !outpost_visitor(&s.o[2]));
    expect_failed(&s, 1, RLOCK_EIO, "it hangs");
    answer_and_close(&s, 1);
}

/* --- in line for a connection --------------------------------------------- */

/* All of the first are out. */
static void open_in_line(stage *s)
{
    open_stage(s, SERVERS);
    s->op.quorum = SERVERS;
    pool(s, 0)->places = 1;
    outpost_add_idle(&s->o[1]);
    outpost_add_idle(&s->o[2]);
    EXPECT(!ask(s));
    const rl_leg *l = &s->leg[0];
    EXPECT(l->in_line && !l->visiting && l->way.expecting && !l->way.slow);
    EXPECT_INT(l->way.ready_us, RL_NEVER);
    EXPECT(rl_pool_is_wanted(pool(s, 0)) && !outpost_visitor(&s->o[0]));
    expect_asked(s, 1);
    expect_asked(s, 2);
}

static void leave_line(stage *s)
{
    answer(s, 1);
    answer(s, 2);
    rl_legs_close(&s->legs);
    EXPECT(!rl_pool_is_wanted(pool(s, 0)));
    pool(s, 0)->places = 0;
    close_stage(s);
}

TEST(leg, who_stands_in_line_leaves_it_when_he_goes)
{
    stage s;
    open_in_line(&s);
    look(&s);
    EXPECT(s.leg[0].in_line);
    leave_line(&s);
}

TEST(leg, who_stands_in_one_line_keeps_nobody_waiting_in_another)
{
    stage s;
    open_in_line(&s);
    outpost_say(&s.o[1], LEFT);
    EXPECT(rl_conn_receive(rl_leg_conn(&s.leg[1])));
    EXPECT_INT(pool(&s, 1)->places, 1);
    EXPECT(!ask(&s));
    EXPECT(pool(&s, 1)->places == 0 && !s.leg[1].way.line);
    EXPECT_INT(pool(&s, 2)->places, 1); /* it is to answer yet */
    answer(&s, 2);
    rl_legs_close(&s.legs);
    pool(&s, 0)->places = 0;
    close_stage(&s);
}

TEST(leg, who_has_his_turn_gets_the_connection_that_was_given_back)
{
    stage s;
    open_in_line(&s);
    rl_conn *c = outpost_connect(&s.o[0]);
    rl_pool_give_back(pool(&s, 0), c);
    struct pollfd p = {.fd = s.legs.signal.fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, 0), 1);
    look(&s);
    EXPECT(rl_leg_conn(&s.leg[0]) == c);
    EXPECT(!s.leg[0].in_line && !s.leg[0].way.expecting);
    EXPECT_BETWEEN(s.leg[0].way.ready_us, s.now_us, rl_now_us());
    EXPECT(!ask(&s));
    expect_asked(&s, 0);
    answer_and_close(&s, 3);
}

/* Others like him would pass it round and round, and nobody would open one. */
TEST(leg, who_is_given_room_for_a_connection_leaves_that_to_the_connector)
{
    stage s;
    open_in_line(&s);
    rl_pool_leave_place(pool(&s, 0));
    look(&s);
    expect_visit(&s, 0);
    EXPECT_INT(pool(&s, 0)->places, 0);
    EXPECT(outpost_visitor(&s.o[0])->signal == &s.legs.signal);
    answer(&s, 1);
    answer(&s, 2);
    close_stage(&s);
}
