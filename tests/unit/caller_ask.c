/*
 * The calling thread's waits for answers. Servers mostly have said before what they
 * will answer; a thread plays what comes later.
 */
#include "outpost.h"
#include "run/caller.h"

enum { SERVERS = 3 };

typedef struct stage {
    play p;
    outpost o[SERVERS];
    rl_op op;
    rl_part *parts[SERVERS];
    int64_t cpu_us;  /* what driving it took of the processor, */
    int64_t took_us; /* and how long it was */
} stage;

static rl_pool *pool(stage *s, size_t i)
{
    return outpost_node(&s->o[i])->pool;
}

/* Should number 0 be polled by mistake, poll() tells of it all the while. */
static void end_input(void)
{
    int fds[2];
    EXPECT_INT(pipe(fds), 0);
    EXPECT_INT(dup2(fds[0], 0), 0);
    close(fds[0]);
    close(fds[1]);
}

/* n: 1: it asks alone. Each server takes so long at most. */
static void open_stage(stage *s, size_t n, int64_t limit_ms)
{
    memset(s, 0, sizeof *s);
    end_input();
    play_open(&s->p, 1);
    rl_op_init(&s->op, s->parts);
    s->op.n = s->op.quorum = n;
    s->op.several = n > 1;
    for (size_t i = 0; i < SERVERS; i++) {
        outpost_open(&s->o[i], &s->p, (unsigned)i + 1, 1);
        s->o[i].e.core.set.command_timeout_ms = limit_ms;
    }
    for (size_t i = 0; i < n; i++) {
        s->parts[i] =
            rl_part_new_leave(&s->o[i].e.core, &play_job, rl_now_us());
        EXPECT(s->parts[i]);
        s->parts[i]->op = &s->op;
    }
}

/* Its connection is idle, and it will answer that. */
static int connect_to(stage *s, size_t i, const char *answer)
{
    outpost_add_idle(&s->o[i]);
    outpost_say(&s->o[i], answer);
    return outpost_peer(&s->o[i]);
}

static void drive(stage *s)
{
    int64_t cpu_us = test_clock_us(CLOCK_THREAD_CPUTIME_ID);
    int64_t began_us = rl_now_us();
    rl_drive(&s->op);
    s->took_us = rl_now_us() - began_us;
    s->cpu_us = test_clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu_us;
}

static void close_stage(stage *s)
{
    rl_op_let_go(&s->op);
    for (size_t i = 0; i < SERVERS; i++) {
        rl_mux_set_trim(&outpost_node(&s->o[i])->muxes);
        EXPECT_INT(pool(s, i)->places, 0);
        outpost_close(&s->o[i]);
    }
    play_close(&s->p);
}

static void expect_ok(stage *s, size_t i)
{
    EXPECT(s->parts[i] && s->parts[i]->over && s->parts[i]->ok);
}

/* --- answers -------------------------------------------------------------- */

TEST(caller_ask, all_that_are_asked_are_waited_for)
{
    stage s;
    open_stage(&s, SERVERS, SOON);
    for (size_t i = 0; i < SERVERS; i++)
        connect_to(&s, i, LEFT);
    drive(&s);
    for (size_t i = 0; i < SERVERS; i++) {
        expect_ok(&s, i);
        outpost_expect_asked(&s.o[i]);
        EXPECT_INT(pool(&s, i)->places, 0);
    }
    close_stage(&s);
}

static void expect_answer(bool heap)
{
    stage s;
    open_stage(&s, 1, SOON);
    s.parts[0]->heap = heap;
    connect_to(&s, 0, LEFT);
    drive(&s);
    expect_ok(&s, 0);
    EXPECT(s.took_us < SOON * MS / 2);
    s.parts[0]->heap = true;
    close_stage(&s);
}

TEST_CASE(caller_ask, who_asks_alone_has_his_answer_over_a_port,
          expect_answer(false))
TEST_CASE(caller_ask, who_asks_alone_has_his_answer_over_his_own_connection,
          expect_answer(true))

/* Servers that are played by a thread. */
typedef struct late {
    stage *s;
    size_t n;
    int peer[SERVERS];
    const char *answer;
} late;

static intptr_t answer_late(void *arg)
{
    late *l = arg;
    for (size_t i = 0; i < l->n; i++) {
        test_pause_ms(60);
        outpost_say_at(l->peer[i], l->answer);
    }
    return 0;
}

static void expect_sleep(size_t n, bool heap)
{
    stage s;
    late l = {.s = &s, .n = n, .answer = LEFT};
    open_stage(&s, n, SOON);
    for (size_t i = 0; i < n; i++) {
        l.peer[i] = connect_to(&s, i, "");
        s.parts[i]->heap = heap;
    }
    test_thread *t = test_spawn(answer_late, &l);
    drive(&s);
    test_join(t);
    for (size_t i = 0; i < n; i++) {
        expect_ok(&s, i);
        s.parts[i]->heap = true;
    }
    EXPECT_BETWEEN(s.took_us, 30 * MS * (int64_t)n, SOON * MS / 2);
    EXPECT(s.cpu_us < 20 * MS * test_slowness());
    close_stage(&s);
}

TEST_CASE(caller_ask, who_waits_at_a_port_leaves_the_processor_to_others,
          expect_sleep(1, false))
TEST_CASE(caller_ask, who_waits_by_himself_leaves_the_processor_to_others,
          expect_sleep(1, true))
TEST_CASE(caller_ask, who_waits_for_several_leaves_the_processor_to_others,
          expect_sleep(SERVERS, true))

/* --- no answer ------------------------------------------------------------ */

static void expect_time_out(size_t n, bool heap)
{
    stage s;
    open_stage(&s, n, 80);
    for (size_t i = 0; i < n; i++) {
        connect_to(&s, i, i == 0 ? "" : LEFT);
        s.parts[i]->heap = heap;
    }
    drive(&s);
    const rl_part *x = s.parts[0];
    EXPECT(x->over && !x->ok && x->outcome == RL_UNKNOWN);
    EXPECT_INT(x->fault.status, RLOCK_EIO);
    EXPECT(rl_now_us() >= x->until_us && s.took_us < SOON * MS / 2);
    EXPECT(s.cpu_us < 20 * MS * test_slowness());
    for (size_t i = 0; i < n; i++)
        s.parts[i]->heap = true;
    for (size_t i = 1; i < n; i++)
        expect_ok(&s, i);
    close_stage(&s);
}

TEST_CASE(caller_ask, at_a_port_a_silent_server_is_waited_for_in_time,
          expect_time_out(1, false))
TEST_CASE(caller_ask, who_is_by_himself_waits_for_a_silent_server_in_time,
          expect_time_out(1, true))
TEST_CASE(caller_ask, among_several_a_silent_server_is_waited_for_in_time,
          expect_time_out(SERVERS, true))

/* A quorum has answered. */
TEST(caller_ask, who_is_late_is_not_waited_for_and_frees_itself)
{
    stage s;
    open_stage(&s, SERVERS, SOON);
    s.op.quorum = 2;
    s.op.early = true;
    connect_to(&s, 0, LEFT);
    int silent = connect_to(&s, 1, "");
    connect_to(&s, 2, LEFT);
    rl_conn *c = RL_CONTAINER(rl_list_first(&pool(&s, 1)->idle), rl_conn, idle);
    drive(&s);
    expect_ok(&s, 0);
    expect_ok(&s, 2);
    EXPECT(!s.parts[1] && s.op.late == 2);
    EXPECT(c->line.pending == 1 && pool(&s, 1)->places == 0);
    outpost_say_at(silent, LEFT);
    EXPECT(rl_conn_receive(c) && c->line.pending == 0);
    close_stage(&s);
}

/* --- a rest --------------------------------------------------------------- */

/* A server that is busy at first. */
static intptr_t load_and_answer(void *arg)
{
    late *l = arg;
    char bytes[1000];
    for (int i = 0; i < 2; i++) {
        struct pollfd p = {.fd = l->peer[0], .events = POLLIN};
        EXPECT_INT(poll(&p, 1, SOON), 1);
        EXPECT(read(l->peer[0], bytes, sizeof bytes) > 0);
        outpost_say_at(l->peer[0], i == 0 ? LOADING : LEFT);
    }
    return 0;
}

/* It is asked again after a pause; until then nothing can come from it. */
static void expect_rest(size_t n, bool heap)
{
    stage s;
    open_stage(&s, n, SOON);
    for (size_t i = 0; i < n; i++) {
        connect_to(&s, i, i == 0 ? "" : LEFT);
        s.parts[i]->heap = heap;
    }
    late l = {.s = &s, .peer = {outpost_peer(&s.o[0])}};
    s.parts[0]->ask.patient = true;
    test_thread *t = test_spawn(load_and_answer, &l);
    drive(&s);
    test_join(t);
    EXPECT(s.parts[0]->ask.pause_us > 0);
    EXPECT(s.took_us >= s.parts[0]->ask.pause_us * 3 / 4);
    EXPECT(s.cpu_us < 20 * MS * test_slowness());
    for (size_t i = 0; i < n; i++) {
        expect_ok(&s, i);
        s.parts[i]->heap = true;
    }
    close_stage(&s);
}

TEST_CASE(caller_ask, at_a_port_what_rests_sleeps_until_it_is_asked_again,
          expect_rest(1, false))
TEST_CASE(caller_ask, by_itself_what_rests_sleeps_until_it_is_asked_again,
          expect_rest(1, true))
TEST_CASE(caller_ask, among_several_what_rests_sleeps_until_it_is_asked_again,
          expect_rest(SERVERS, true))

/* --- a connection that comes ---------------------------------------------- */

static rl_visitor *visitor_of(outpost *o)
{
    rl_connector *c = &outpost_node(o)->connector;
    rl_mutex_lock(&c->mutex);
    rl_visitor *v = outpost_visitor(o);
    rl_mutex_unlock(&c->mutex);
    return v;
}

/* The connector; and then a server that takes its time. */
static intptr_t connect_and_answer(void *arg)
{
    late *l = arg;
    outpost *o = &l->s->o[1];
    rl_fault none = {.status = RLOCK_OK};
    EVENTUALLY(SOON, visitor_of(o));
    test_pause_ms(40);
    outpost_add_idle(o);
    rl_connector *c = &outpost_node(o)->connector;
    rl_mutex_lock(&c->mutex);
    const rl_signal *signal = outpost_visitor(o)->signal;
    outpost_tell(o, NULL, &none);
    rl_signal_raise(signal);
    rl_mutex_unlock(&c->mutex);
    test_pause_ms(100);
    outpost_say(o, LEFT);
    return 0;
}

TEST(caller_ask, a_connection_that_has_come_is_used_at_once)
{
    stage s;
    late l = {.s = &s};
    open_stage(&s, SERVERS, SOON);
    connect_to(&s, 0, LEFT);
    connect_to(&s, 2, LEFT);
    test_thread *t = test_spawn(connect_and_answer, &l);
    drive(&s);
    test_join(t);
    for (size_t i = 0; i < SERVERS; i++)
        expect_ok(&s, i);
    EXPECT_BETWEEN(s.took_us, 70 * MS, SOON * MS / 2);
    /* Who has been told once is not told all the while. */
    EXPECT(s.cpu_us < 20 * MS * test_slowness());
    close_stage(&s);
}
