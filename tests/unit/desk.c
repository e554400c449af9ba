/*
 * A desk: what an operation asks from there, what is polled for it, and when it is
 * looked at again. The test drives, makes connections, and is the servers.
 */
#include "run/desk.h"

#include "outpost.h"

enum { SERVERS = 2 };

typedef struct stage {
    play p;
    outpost o[SERVERS];
    rl_async *a; /* the first one's */
    rl_op op;
    rl_part *parts[SERVERS];
    rl_part part[SERVERS];
    rl_desk d;
} stage;

static void begin_part(stage *s, size_t i)
{
    s->parts[i] = &s->part[i];
    outpost_begin_part(&s->o[i], s->parts[i], &s->op);
}

/* It asks so many servers, and all of them have to answer. */
static void open_stage(stage *s, size_t n)
{
    memset(s, 0, sizeof *s);
    play_open(&s->p, 1);
    rl_op_init(&s->op, s->parts);
    s->op.n = s->op.quorum = n;
    s->op.several = n > 1;
    for (size_t i = 0; i < SERVERS; i++) {
        outpost_open(&s->o[i], &s->p, (unsigned)i + 1, 1);
        begin_part(s, i);
    }
    s->a = outpost_open_async(&s->o[0]);
    EXPECT(rl_desk_get_ready(&s->d, &s->op, s->a));
    EXPECT((s->d.several != NULL) == (n > 1));
    EXPECT(s->d.legs.leg == (n > 1 ? s->d.several : &s->d.leg));
    /* Legs that are not used yet are anything. */
    memset(s->d.legs.leg, 0xa5, (n > 1 ? RL_PARTS_MAX : 1) * sizeof(rl_leg));
    rl_round_begin(&s->op);
}

static void close_stage(stage *s)
{
    rl_desk_put_away(&s->d, s->a);
    EXPECT(!s->d.op && !s->d.several);
    outpost_close_async(&s->o[0]);
    for (size_t i = 0; i < SERVERS; i++) {
        EXPECT_INT(outpost_node(&s->o[i])->pool->places, 0);
        EXPECT(!outpost_visitor(&s->o[i]));
        outpost_close(&s->o[i]);
    }
    play_close(&s->p);
}

static bool go_round(stage *s)
{
    return rl_desk_go_round(&s->d, rl_now_us());
}

static void expect_asked(stage *s, size_t i)
{
    outpost_expect_asked(&s->o[i]);
}

/* Of the first so many there is a connection. */
static void open_asking(stage *s, size_t connected)
{
    open_stage(s, SERVERS);
    for (size_t i = 0; i < connected; i++)
        outpost_add_idle(&s->o[i]);
    EXPECT(!go_round(s));
    for (size_t i = 0; i < connected; i++)
        expect_asked(s, i);
}

/* What poll() tells of all legs: something has come for this one. */
static void poll_legs(stage *s, struct pollfd p[SERVERS], size_t told)
{
    for (size_t i = 0; i < SERVERS; i++) {
        p[i] = rl_desk_poll(&s->d, i);
        p[i].revents = i == told ? POLLIN : 0;
    }
}

static bool look(stage *s, const struct pollfd *p, size_t n)
{
    return rl_desk_look(&s->d, p, n, rl_now_us());
}

/* All that is asked is answered, and read. */
static void finish(stage *s)
{
    struct pollfd p[SERVERS];
    for (size_t i = 0; i < SERVERS; i++) {
        poll_legs(s, p, i);
        if (s->part[i].over || p[i].fd < 0)
            continue;
        outpost_say(&s->o[i], LEFT);
        EXPECT(look(s, p, SERVERS) && s->part[i].over);
    }
    close_stage(s);
}

/* --- several servers ------------------------------------------------------ */

TEST(desk, is_left_until_something_comes_and_done_when_all_has)
{
    stage s;
    struct pollfd p[SERVERS];
    open_asking(&s, SERVERS);
    EXPECT_INT(s.d.until_us, rl_round_wait_end(&s.op));
    for (size_t i = 0; i < SERVERS; i++) {
        EXPECT(!go_round(&s));
        outpost_say(&s.o[i], LEFT);
        poll_legs(&s, p, i);
        EXPECT(look(&s, p, SERVERS) && s.part[i].over);
    }
    EXPECT(go_round(&s));
    finish(&s);
}

TEST(desk, its_connections_are_polled_while_they_owe_an_answer)
{
    stage s;
    struct pollfd p[SERVERS];
    open_asking(&s, SERVERS);
    EXPECT(rl_desk_is_unseen(&s.d) && !s.d.polled);
    for (size_t i = 0; i < SERVERS; i++) {
        struct pollfd q = rl_desk_poll(&s.d, i);
        EXPECT_INT(q.fd, rl_leg_conn(&s.d.legs.leg[i])->io.fd);
        EXPECT_INT(q.events, POLLIN);
        EXPECT(s.d.polled && !rl_desk_is_unseen(&s.d));
    }
    outpost_say(&s.o[0], LEFT);
    poll_legs(&s, p, 0);
    EXPECT(look(&s, p, SERVERS));
    s.d.polled = false;
    struct pollfd q = rl_desk_poll(&s.d, 0);
    EXPECT(q.fd == -1 && q.events == 0 && !s.d.polled);
    EXPECT(rl_desk_is_unseen(&s.d)); /* the other one is not answered */
    rl_leg_conn(&s.d.legs.leg[1])->io.holds = true;
    EXPECT_INT(rl_desk_poll(&s.d, 1).events, POLLIN | POLLOUT);
    rl_leg_conn(&s.d.legs.leg[1])->io.holds = false;
    finish(&s);
}

TEST(desk, what_was_polled_before_stays_so_whatever_is_looked_at_next)
{
    stage s;
    open_asking(&s, 1);
    EXPECT(rl_desk_poll(&s.d, 0).fd >= 0);
    EXPECT_INT(rl_desk_poll(&s.d, 1).fd, -1);
    EXPECT(s.d.polled);
    finish(&s);
}

TEST(desk, a_connection_that_broke_is_not_polled)
{
    stage s;
    open_asking(&s, SERVERS);
    rl_conn_time_out(rl_leg_conn(&s.d.legs.leg[0]));
    EXPECT_INT(rl_desk_poll(&s.d, 0).fd, -1);
    finish(&s);
}

static void expect_expecting(size_t connected, bool expecting)
{
    stage s;
    open_asking(&s, connected);
    EXPECT_INT(rl_desk_is_expecting(&s.d), expecting);
    EXPECT_INT(rl_desk_is_unseen(&s.d), connected > 0);
    /* The connector may have had news at any time. */
    EXPECT_INT(look(&s, NULL, 0), expecting);
    finish(&s);
}

TEST_CASE(desk, expects_no_connection_when_there_are_all,
          expect_expecting(SERVERS, false))
TEST_CASE(desk, expects_a_connection_when_one_lacks, expect_expecting(1, true))
TEST_CASE(desk, expects_connections_when_there_are_none,
          expect_expecting(0, true))

/* --- when it is looked at ------------------------------------------------- */

TEST(desk, is_left_alone_while_nothing_has_come)
{
    stage s;
    struct pollfd p[SERVERS];
    open_asking(&s, SERVERS);
    outpost_say(&s.o[0], LEFT); /* which poll() has not told yet */
    poll_legs(&s, p, SERVERS);
    EXPECT(!look(&s, p, SERVERS) && !look(&s, NULL, 0));
    EXPECT(!s.part[0].over);
    poll_legs(&s, p, 0);
    p[0].fd = outpost_peer(&s.o[0]); /* it is another one by now */
    EXPECT(!look(&s, p, SERVERS));
    EXPECT(!s.part[0].over);
    poll_legs(&s, p, 0);
    EXPECT(!look(&s, p, 0) && !s.part[0].over);
    EXPECT(look(&s, p, 1) && s.part[0].over);
    EXPECT(!look(&s, NULL, 0)); /* the other one is waited for */
    finish(&s);
}

TEST(desk, the_last_of_its_connections_may_not_have_been_polled)
{
    stage s;
    struct pollfd p[SERVERS];
    open_asking(&s, SERVERS);
    outpost_say(&s.o[1], LEFT);
    poll_legs(&s, p, 1);
    EXPECT(!look(&s, p, 1) && !s.part[1].over);
    EXPECT(look(&s, p, SERVERS) && s.part[1].over);
    finish(&s);
}

TEST(desk, is_looked_at_when_its_time_is_over)
{
    stage s;
    open_asking(&s, SERVERS);
    int64_t us = s.d.until_us;
    EXPECT(!rl_desk_look(&s.d, NULL, 0, us - 1));
    EXPECT(!s.part[0].over && !s.part[1].over);
    EXPECT(rl_desk_look(&s.d, NULL, 0, us));
    EXPECT(rl_conn_is_broken(rl_leg_conn(&s.d.legs.leg[0])));
    finish(&s);
}

TEST(desk, a_connection_that_has_come_is_used)
{
    stage s;
    rl_fault none = {.status = RLOCK_OK};
    open_asking(&s, 1);
    outpost_add_idle(&s.o[1]);
    outpost_tell(&s.o[1], NULL, &none);
    EXPECT(look(&s, NULL, 0));
    EXPECT(!rl_desk_is_expecting(&s.d));
    EXPECT(!go_round(&s));
    expect_asked(&s, 1);
    finish(&s);
}

TEST(desk, a_connection_that_ends_is_noticed)
{
    stage s;
    struct pollfd p[SERVERS];
    open_asking(&s, SERVERS);
    EXPECT_INT(shutdown(outpost_peer(&s.o[0]), SHUT_WR), 0);
    poll_legs(&s, p, 0);
    EXPECT(look(&s, p, SERVERS));
    EXPECT(rl_conn_is_broken(rl_leg_conn(&s.d.legs.leg[0])));
    EXPECT_INT(s.part[0].ask.next, RL_ASK_AGAIN);
    finish(&s);
}

/* --- one server, on a trunk ----------------------------------------------- */

/* Its connection is there, and the operation asks on it. */
static rl_conn *open_on_trunk(stage *s)
{
    open_stage(s, 1);
    EXPECT(!go_round(s));
    EXPECT(rl_desk_is_expecting(&s->d) && !rl_desk_is_unseen(&s->d));
    rl_conn *c = outpost_give(&s->o[0]);
    rl_trunks_look(&s->a->trunks);
    EXPECT(look(s, NULL, 0));
    EXPECT(!go_round(s) && s->d.leg.trunk);
    rl_trunks_serve(&s->a->trunks, NULL, 0, true);
    expect_asked(s, 0);
    EXPECT(!look(s, NULL, 0));
    return c;
}

TEST(desk, the_loop_polls_a_trunk_for_all_and_for_no_desk)
{
    stage s;
    open_on_trunk(&s);
    EXPECT(!rl_desk_is_expecting(&s.d) && !rl_desk_is_unseen(&s.d));
    EXPECT_INT(rl_desk_poll(&s.d, 0).fd, -1);
    EXPECT(!s.d.polled);
    close_stage(&s);
}

TEST(desk, is_looked_at_when_its_answer_has_come_over_the_trunk)
{
    stage s;
    open_on_trunk(&s);
    outpost_say(&s.o[0], LEFT);
    rl_trunks_serve(&s.a->trunks, NULL, 0, true);
    EXPECT(s.part[0].over);
    EXPECT(look(&s, NULL, 0) && go_round(&s));
    close_stage(&s);
}

TEST(desk, is_looked_at_when_the_trunk_has_broken)
{
    stage s;
    rl_conn *c = open_on_trunk(&s);
    rl_conn_time_out(c);
    EXPECT_INT(s.part[0].ask.next, RL_ASK_AGAIN);
    EXPECT(look(&s, NULL, 0));
    EXPECT(!go_round(&s));
    EXPECT(outpost_visitor(&s.o[0]));
    close_stage(&s);
}

/* Another server may take over, and is waited for. */
TEST(desk, that_has_to_rest_for_less_than_it_was_to_be_left_is_looked_at)
{
    stage s;
    rl_conn *c = open_on_trunk(&s);
    s.part[0].ask.patient = true;
    rl_conn_time_out(c);
    EXPECT_INT(s.part[0].ask.next, RL_ASK_RESTS);
    int64_t us = s.d.until_us;
    EXPECT(s.part[0].ask.rest_until_us < us);
    s.d.until_us = s.part[0].ask.rest_until_us;
    EXPECT(!rl_desk_look(&s.d, NULL, 0, s.d.until_us - 1));
    s.d.until_us = us;
    EXPECT(look(&s, NULL, 0));
    EXPECT(!go_round(&s));
    EXPECT_INT(s.d.until_us, s.part[0].ask.rest_until_us);
    EXPECT(!rl_desk_look(&s.d, NULL, 0, s.d.until_us - 1));
    EXPECT(rl_desk_look(&s.d, NULL, 0, s.d.until_us));
    close_stage(&s);
}

TEST(desk, what_fails_at_once_is_tried_again_at_once)
{
    stage s;
    open_stage(&s, 1);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool over = go_round(&s);
    long tries = shim_failed(shim_here(), SHIM_ALLOC);
    shim_clear(shim_here());
    EXPECT(over && !s.part[0].ok && tries == RL_ASK_TRIES);
    EXPECT_INT(s.part[0].fault.status, RLOCK_ENOMEM);
    close_stage(&s);
}

/* --- legs ----------------------------------------------------------------- */

TEST(desk, gives_back_what_the_operation_has_and_keeps_one_set_of_legs)
{
    stage s;
    open_asking(&s, SERVERS);
    rl_leg *legs = s.d.several;
    EXPECT(rl_desk_get_ready(&s.d, &s.op, s.a)); /* it has them already */
    EXPECT(s.d.several == legs && s.d.legs.n == SERVERS);
    for (size_t i = 0; i < SERVERS; i++)
        EXPECT_INT(outpost_node(&s.o[i])->pool->places, 1);
    for (size_t i = 0; i < SERVERS; i++) {
        outpost_say(&s.o[i], LEFT);
        EXPECT(rl_conn_receive(rl_leg_conn(&s.d.legs.leg[i])));
    }
    rl_desk_put_away(&s.d, s.a);
    EXPECT(s.a->spare == legs);
    for (size_t i = 0; i < SERVERS; i++)
        EXPECT_INT(outpost_node(&s.o[i])->pool->places, 0);
    rl_desk_put_away(&s.d, s.a); /* nobody's */
    close_stage(&s);
}
