/*
 * The way of an operation that asks one server: whether it shares a connection,
 * with other threads or with what drives on the loop, or has one of its own.
 */
#include "outpost.h"
#include "run/leg.h"

typedef struct stage {
    play p;
    outpost o;
    rl_op op;
    rl_part part;
    rl_hold *hold;
    rl_leg leg;
    rl_legs legs;
    int64_t now_us;
} stage;

static rl_pool *pool(stage *s)
{
    return outpost_node(&s->o)->pool;
}

static void begin_part(stage *s)
{
    outpost_begin_part(&s->o, &s->part, &s->op);
    rl_round_begin(&s->op);
}

/* places: so many connections may be borrowed. on_loop: it must not wait. */
static void open_stage(stage *s, unsigned places, bool on_loop)
{
    memset(s, 0, sizeof *s);
    play_open(&s->p, 1);
    outpost_open(&s->o, &s->p, 1, places);
    outpost_open_async(&s->o);
    rl_op_init(&s->op, &s->op.lent);
    s->op.n = s->op.quorum = 1;
    s->op.lent = &s->part;
    begin_part(s);
    /* Where they begin there is anything. */
    memset(&s->leg, 0xa5, sizeof s->leg);
    memset(&s->legs, 0xa5, sizeof s->legs);
    rl_legs_init(&s->legs, &s->op, &s->leg,
                 on_loop ? &s->o.e.async.trunks : NULL);
}

static void close_stage(stage *s)
{
    rl_legs_close(&s->legs);
    rl_legs_fini(&s->legs);
    rl_mux_set_trim(&outpost_node(&s->o)->muxes);
    EXPECT_INT(pool(s)->places, 0);
    outpost_close_async(&s->o);
    EXPECT(!outpost_visitor(&s->o));
    outpost_close(&s->o);
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

static void expect_failed(stage *s, rlock_status status, const char *text)
{
    EXPECT(s->part.over && !s->part.ok);
    EXPECT_INT(s->part.fault.status, status);
    EXPECT_CONTAINS(s->part.fault.text, text);
    EXPECT_STR(s->part.fault.at, "its server");
}

/* --- a thread that may wait ----------------------------------------------- */

TEST(leg_alone, a_thread_shares_a_connection_with_others)
{
    stage s;
    open_stage(&s, 3, false);
    outpost_add_idle(&s.o);
    EXPECT(!ask(&s));
    EXPECT(s.leg.port && s.leg.way.line == &s.leg.port->line);
    EXPECT(!rl_leg_conn(&s.leg) && !s.leg.way.shared);
    EXPECT_INT(s.part.ask.next, RL_ASK_WAITS);
    outpost_say(&s.o, LEFT);
    rl_port_exchange(s.leg.port, rl_now_us() + SOON * MS, rl_now_us());
    EXPECT(s.part.over && ask(&s));
    rl_port *port = s.leg.port;
    begin_part(&s); /* the next round has the same port */
    EXPECT(!ask(&s));
    EXPECT(s.leg.port == port);
    outpost_say(&s.o, LEFT);
    rl_port_exchange(s.leg.port, rl_now_us() + SOON * MS, rl_now_us());
    EXPECT(s.part.over && ask(&s));
    rl_legs_close(&s.legs);
    EXPECT(!s.leg.port && !s.leg.way.line);
    close_stage(&s);
}

/* It writes in any case, so nothing is written for them besides. */
static void replicas(stage *s)
{
    s->part.ask.script = RL_SCRIPT_HASH_ACQUIRE;
    s->part.ask.confirm.replicas = 1;
    s->part.ask.confirm.wait_ms = 100;
}

static void heap(stage *s)
{
    s->part.heap = true;
}

static void exclusive(stage *s)
{
    pool(s)->exclusive = true;
}

static void guarded(stage *s)
{
    s->part.ask.script = RL_SCRIPT_COUNT;
}

/* It borrows one; on the loop, as one of several would. */
static void expect_own(void (*because)(stage *s), bool on_loop)
{
    stage s;
    open_stage(&s, 3, on_loop);
    rl_conn *c = outpost_add_idle(&s.o);
    because(&s);
    EXPECT(!ask(&s));
    EXPECT(!s.leg.port && !s.leg.trunk && rl_leg_conn(&s.leg) == c);
    EXPECT_INT(pool(&s)->places, 1);
    outpost_expect_asked(&s.o);
    rl_conn_time_out(c);
    s.part.heap = false;
    s.part.ask.tries = 0;
    close_stage(&s);
}

TEST_CASE(leg_alone, who_waits_for_replicas_shares_with_nobody,
          expect_own(replicas, false))
TEST_CASE(leg_alone, whose_part_may_be_late_shares_with_nobody,
          expect_own(heap, false))
TEST_CASE(leg_alone, what_a_program_has_made_is_shared_with_nobody,
          expect_own(exclusive, false))
TEST_CASE(leg_alone, a_guarded_script_shares_with_nobody,
          expect_own(guarded, false))
TEST_CASE(leg_alone, on_the_loop_who_waits_for_replicas_shares_with_nobody,
          expect_own(replicas, true))
TEST_CASE(leg_alone, on_the_loop_whose_part_may_be_late_shares_with_nobody,
          expect_own(heap, true))
TEST_CASE(leg_alone, on_the_loop_what_a_program_has_made_is_not_shared,
          expect_own(exclusive, true))
TEST_CASE(leg_alone, on_the_loop_a_guarded_script_shares_with_nobody,
          expect_own(guarded, true))

/* In the next round something else is asked. */
TEST(leg_alone, who_may_not_share_any_more_leaves_the_port)
{
    stage s;
    open_stage(&s, 3, false);
    outpost_add_idle(&s.o);
    EXPECT(!ask(&s));
    outpost_say(&s.o, LEFT);
    rl_port_exchange(s.leg.port, rl_now_us() + SOON * MS, rl_now_us());
    EXPECT(s.part.over && ask(&s) && s.leg.port);
    begin_part(&s);
    replicas(&s);
    EXPECT(!ask(&s));
    EXPECT(!s.leg.port && rl_leg_conn(&s.leg));
    rl_conn_time_out(rl_leg_conn(&s.leg));
    s.part.ask.tries = 0;
    close_stage(&s);
}

/* There is no server at all. */
static void expect_no_connection(void (*because)(stage *s))
{
    stage s;
    open_stage(&s, 3, false);
    if (because)
        because(&s);
    s.part.ask.tries = 1;
    EXPECT(ask(&s));
    expect_failed(&s, RLOCK_EIO, strerror(ENOENT));
    close_stage(&s);
}

TEST_CASE(leg_alone, without_a_server_there_is_no_port,
          expect_no_connection(NULL))
TEST_CASE(leg_alone, without_a_server_there_is_no_connection,
          expect_no_connection(replicas))

TEST(leg_alone, that_cannot_be_connected_to_counts_as_one_try)
{
    stage s;
    open_stage(&s, 3, false);
    s.part.ask.tries = 2;
    EXPECT(!ask(&s));
    EXPECT(!s.part.over && s.part.ask.tries == 1);
    EXPECT_INT(s.part.ask.next, RL_ASK_AGAIN);
    EXPECT(rl_round_has_work(&s.op));
    EXPECT(ask(&s));
    expect_failed(&s, RLOCK_EIO, strerror(ENOENT));
    close_stage(&s);
}

TEST(leg_alone, whose_time_is_over_connects_no_more)
{
    stage s;
    open_stage(&s, 3, false);
    s.part.until_us = rl_now_us();
    EXPECT(!ask(&s));
    EXPECT(!s.leg.way.line && s.part.fault.status == RLOCK_OK);
    look(&s);
    EXPECT(ask(&s));
    expect_failed(&s, RLOCK_EIO, "no time is left");
    close_stage(&s);
}

/* --- on the loop ---------------------------------------------------------- */

static void expect_call(stage *s)
{
    const rl_visitor *v = outpost_visitor(&s->o);
    EXPECT(v && v->own && v->signal == &s->o.e.loop.signal);
    EXPECT(s->leg.calling && s->leg.way.expecting && !s->leg.way.line);
    EXPECT_BETWEEN(s->leg.way.ready_us, s->part.began_us, s->now_us);
}

/* Its connection is there, and the operation asks on it. */
static rl_conn *open_on_trunk(stage *s)
{
    open_stage(s, 3, true);
    EXPECT(!ask(s));
    expect_call(s);
    EXPECT(!rl_round_has_work(&s->op));
    rl_conn *c = outpost_give(&s->o);
    rl_trunks_look(&s->o.e.async.trunks);
    look(s);
    EXPECT(!s->leg.calling && !s->leg.way.expecting);
    EXPECT(!ask(s));
    EXPECT(s->leg.trunk && s->leg.way.shared && s->leg.way.line == &c->line);
    EXPECT(!rl_leg_conn(&s->leg));
    EXPECT_INT(s->leg.trunk->users, 1);
    return c;
}

static void serve(stage *s)
{
    rl_trunks_serve(&s->o.e.async.trunks, NULL, 0, true);
}

/* What was asked is sent, and its answer read; then nothing is left to ask. */
static void have_answered(stage *s)
{
    serve(s);
    outpost_expect_asked(&s->o);
    outpost_say(&s->o, LEFT);
    serve(s);
    EXPECT(s->part.over && ask(s));
}

TEST(leg_alone, on_the_loop_it_asks_on_a_trunk_and_waits_for_nothing)
{
    stage s;
    rl_conn *c = open_on_trunk(&s);
    EXPECT_STR(outpost_read(&s.o), ""); /* who drives sends for all */
    have_answered(&s);
    rl_trunk *t = s.leg.trunk;
    rl_legs_close(&s.legs);
    EXPECT(t->users == 0 && t->conn == c && !rl_conn_is_broken(c));
    EXPECT(!s.leg.trunk && !s.leg.way.shared);
    close_stage(&s);
}

TEST(leg_alone, on_the_loop_the_next_round_has_the_same_trunk)
{
    stage s;
    rl_conn *c = open_on_trunk(&s);
    have_answered(&s);
    begin_part(&s);
    EXPECT(!ask(&s));
    EXPECT(s.leg.way.line == &c->line && s.leg.trunk->users == 1);
    outpost_say(&s.o, LEFT);
    serve(&s);
    EXPECT(s.part.over);
    close_stage(&s);
}

/* Others may wait there for answers yet. */
TEST(leg_alone, on_the_loop_a_trunk_that_is_asked_no_more_is_left)
{
    stage s;
    rl_conn *c = open_on_trunk(&s);
    have_answered(&s);
    rl_trunk *t = s.leg.trunk;
    c->line.retired = true;
    t->users++; /* another one */
    begin_part(&s);
    EXPECT(!ask(&s));
    EXPECT(t->users == 1 && t->old && !s.leg.trunk);
    expect_call(&s);
    rl_trunk_leave(t);
    close_stage(&s);
}

TEST(leg_alone, on_the_loop_it_fails_as_the_trunks_connection_does)
{
    stage s;
    open_stage(&s, 3, true);
    s.part.ask.tries = 1;
    EXPECT(!ask(&s));
    expect_call(&s);
    int64_t ready_us = s.leg.way.ready_us = rl_now_us() - 5000;
    look(&s);
    EXPECT(s.leg.calling && s.leg.way.ready_us == ready_us);
    outpost_refuse(&s.o);
    rl_trunks_look(&s.o.e.async.trunks);
    look(&s);
    EXPECT(!s.leg.calling && !s.leg.way.expecting);
    EXPECT(ask(&s));
    expect_failed(&s, RLOCK_EIO, "it is away");
    EXPECT(!outpost_visitor(&s.o));
    close_stage(&s);
}

TEST(leg_alone, on_the_loop_a_try_that_failed_is_followed_by_another_visit)
{
    stage s;
    open_stage(&s, 3, true);
    s.part.ask.tries = 2;
    EXPECT(!ask(&s));
    outpost_refuse(&s.o);
    rl_trunks_look(&s.o.e.async.trunks);
    look(&s);
    EXPECT(!s.part.over && s.part.ask.tries == 1);
    EXPECT(!ask(&s));
    expect_call(&s);
    close_stage(&s);
}

/* It may be freed before the connection is. */
TEST(leg_alone, on_the_loop_of_another_client_it_does_not_share)
{
    stage s;
    rl_trunks others;
    open_stage(&s, 3, true);
    rl_trunks_init(&others, &s.o.e.loop.signal, &s.o.e.completions);
    s.legs.trunks = &others;
    rl_conn *c = outpost_add_idle(&s.o);
    EXPECT(!ask(&s));
    EXPECT(!s.leg.trunk && rl_leg_conn(&s.leg) == c);
    EXPECT(rl_list_is_empty(&others.all));
    outpost_say(&s.o, LEFT);
    EXPECT(rl_conn_receive(c) && s.part.over);
    close_stage(&s);
}

/* As one of several does; the signal is the loop's. */
TEST(leg_alone, on_the_loop_who_does_not_share_leaves_connecting_to_others)
{
    stage s;
    open_stage(&s, 3, true);
    replicas(&s);
    EXPECT(!ask(&s));
    EXPECT(s.leg.visiting && !s.leg.calling && s.leg.way.expecting);
    EXPECT(outpost_visitor(&s.o)->signal == &s.o.e.loop.signal);
    EXPECT_INT(s.legs.signal.fd, -1);
    begin_part(&s); /* what is asked now may share */
    EXPECT(!ask(&s));
    EXPECT(s.leg.calling && !s.leg.visiting);
    expect_call(&s);
    EXPECT(rl_list_is_empty(&outpost_node(&s.o)->connector.others));
    close_stage(&s);
}
