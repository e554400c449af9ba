/*
 * Jobs that ask, at their desks: who is looked at when, and who goes on. What is
 * asked rests all the time; the test says when it has been answered.
 */
#include <poll.h>

#include "engine.h"
#include "run/completion.h"
#include "stage.h"

typedef struct bureau {
    stage g;
    play p;
    rl_engine e; /* of another client, whose server is asked */
} bureau;

/* A job of one operation: it sleeps first, or does not, asks, and has ended. */
typedef struct asker {
    rl_started s;
    rl_job job;
    rl_op op;
    rl_part part, *parts[1];
    rl_target what;
    bool sleeps_first, sleeps_last;
    bool told;
    bool at_once; /* the answer is there before anybody has asked */
    int resumed, overs;
    rl_wake why; /* the latest */
    rl_completion letter;
} asker;

static bureau *here;

static rl_next lie_down(asker *x, int64_t now_us)
{
    x->op.sleep_us = now_us + LONG_US;
    return RL_SLEEP;
}

static rl_next resume(rl_op *op, rl_wake why, int64_t now_us)
{
    asker *x = RL_CONTAINER(op, asker, op);
    bool sleeps_first = x->sleeps_first, sleeps_last = x->sleeps_last;
    EXPECT(op->lent == &x->s.desk->part && x->s.desk->who == &x->s);
    EXPECT(rl_async_driven_here() == &here->g.a);
    EXPECT(rl_async_telling_here() == &x->s.telling);
    x->resumed++;
    x->why = why;
    if (sleeps_first) {
        x->sleeps_first = false;
        return lie_down(x, now_us);
    }
    if (!x->part.over) {
        op->decided_us = 1; /* as the last round may have left it */
        x->part.over = x->part.ok = x->at_once;
        return RL_ASK;
    }
    x->sleeps_last = false;
    return sleeps_last ? lie_down(x, now_us) : RL_DONE;
}

static rl_op *no_more(rl_job *j)
{
    return rl_job_over(j, RLOCK_OK);
}

static rl_op *first(rl_job *j)
{
    return rl_job_ask(j, &RL_CONTAINER(j, asker, job)->op, no_more);
}

static void over(rl_started *s)
{
    RL_CONTAINER(s, asker, s)->overs++;
}

static void open_bureau(bureau *b)
{
    memset(b, 0, sizeof *b);
    here = b;
    engine_open(&b->e, &b->p);
    open_stage(&b->g);
}

static void close_bureau(bureau *b)
{
    EXPECT(!rl_async_driven_here() && !rl_async_telling_here());
    EXPECT(rl_list_is_empty(&b->g.a.asking));
    close_stage(&b->g);
    engine_close(&b->e, b->p.now_us);
    play_close_core(&b->e.core);
    play_close(&b->p);
}

/* Its round lasts for so long, if nothing comes. */
static void prepare(bureau *b, asker *x, int64_t round_us)
{
    int64_t now_us = rl_now_us();
    *x = (asker){.job = {.next = first}, .what = {.name = "job", .len = 3}};
    x->part = (rl_part){.core = &b->e.core,
                        .what = &x->what,
                        .due = true,
                        .awaited = true,
                        .limit_us = RL_NEVER,
                        .until_us = now_us + round_us};
    x->part.ask.next = RL_ASK_RESTS;
    x->part.ask.rest_until_us = now_us + 2 * round_us;
    x->parts[0] = &x->part;
    x->op = (rl_op){.resume = resume, .n = 1, .quorum = 1, .part = x->parts};
}

static void begin(bureau *b, asker *x)
{
    put(&b->g, &x->s, &x->job, over);
    drive(&b->g);
}

static void ask(bureau *b, asker *x, int64_t round_us)
{
    prepare(b, x, round_us);
    begin(b, x);
    EXPECT(x->resumed == 1 && x->overs == 0 && x->s.desk);
}

static void answer(asker *x)
{
    x->part.over = x->part.ok = true;
}

/* What it waits for has come. */
static void call(asker *x)
{
    x->s.desk->legs.leg[0].way.expecting = true;
}

static size_t asking(const bureau *b)
{
    size_t n = 0;
    for (rl_link *k = rl_list_first(&b->g.a.asking); k && n < 100;
         k = rl_list_next(&b->g.a.asking, k))
        n++;
    return n;
}

static size_t look(bureau *b, size_t steps)
{
    b->g.a.most_steps = steps;
    rl_async_look_at_desks(&b->g.a, NULL, 0);
    return steps - b->g.a.most_steps;
}

/* --- when ----------------------------------------------------------------- */

TEST(started_asks, who_asks_goes_on_when_his_answer_has_come)
{
    bureau b;
    asker x;
    open_bureau(&b);
    ask(&b, &x, LONG_US);
    EXPECT(asking(&b) == 1 && b.g.a.at_desks == 1);
    EXPECT_INT(x.op.decided_us, 0);
    EXPECT_INT(x.s.desk->until_us, x.part.until_us);
    EXPECT_INT(look(&b, 10), 0);
    answer(&x);
    EXPECT_INT(look(&b, 10), 0); /* nothing says so */
    EXPECT_INT(x.resumed, 1);
    call(&x);
    EXPECT_INT(look(&b, 10), 1);
    EXPECT(x.resumed == 2 && x.overs == 1 && x.why == RL_WAKE_NONE);
    EXPECT(asking(&b) == 0 && b.g.a.at_desks == 0 && b.g.a.desks == 1);
    close_bureau(&b);
}

TEST(started_asks, who_has_been_answered_at_once_goes_on_at_once)
{
    bureau b;
    asker x;
    open_bureau(&b);
    prepare(&b, &x, LONG_US);
    x.at_once = true;
    begin(&b, &x);
    EXPECT(x.resumed == 2 && x.overs == 1 && asking(&b) == 0);
    EXPECT_INT(x.op.decided_us, 0);
    close_bureau(&b);
}

/* The loop has the connections that it polls. */
TEST(started_asks, whose_connections_are_polled_is_left_to_the_loop)
{
    bureau b;
    asker x;
    open_bureau(&b);
    ask(&b, &x, LONG_US);
    answer(&x);
    call(&x);
    x.s.desk->polled = true;
    EXPECT(look(&b, 10) == 0 && x.resumed == 1);
    x.s.desk->polled = false;
    EXPECT(look(&b, 10) == 1 && x.overs == 1);
    close_bureau(&b);
}

TEST(started_asks, who_gets_no_answer_goes_on_in_time)
{
    bureau b;
    asker x;
    open_bureau(&b);
    ask(&b, &x, LONG_US);
    x.s.desk->until_us = rl_now_us();
    answer(&x);
    EXPECT(look(&b, 10) == 1 && x.overs == 1);
    close_bureau(&b);
}

/* One that has asked anew is a step of those that a turn has; a connection that
   is not there yet is none. */
static void expect_step(bool expecting, size_t steps)
{
    bureau b;
    asker x;
    open_bureau(&b);
    ask(&b, &x, LONG_US);
    x.s.desk->until_us = 0;
    x.s.desk->legs.leg[0].way.expecting = expecting;
    EXPECT_INT(look(&b, 10), steps);
    EXPECT(x.resumed == 1 && asking(&b) == 1);
    EXPECT_INT(x.s.desk->until_us, x.part.until_us);
    answer(&x);
    call(&x);
    look(&b, 10);
    EXPECT_INT(x.overs, 1);
    close_bureau(&b);
}

TEST_CASE(started_asks, who_asks_anew_has_had_a_step, expect_step(false, 1))
TEST_CASE(started_asks, who_waits_for_a_connection_has_not,
          expect_step(true, 0))

/* Whichever began first. */
static void expect_first(int64_t one_us, int64_t other_us)
{
    bureau b;
    asker x[2];
    open_bureau(&b);
    ask(&b, &x[0], one_us);
    EXPECT_INT(b.g.a.first_us, x[0].part.until_us);
    ask(&b, &x[1], other_us);
    EXPECT_INT(b.g.a.first_us, rl_min(x[0].part.until_us, x[1].part.until_us));
    EXPECT(asking(&b) == 2 && !b.g.a.unseen);
    for (int i = 0; i < 2; i++) {
        answer(&x[i]);
        call(&x[i]);
    }
    EXPECT_INT(look(&b, 10), 2);
    EXPECT(x[0].overs == 1 && x[1].overs == 1);
    EXPECT_INT(b.g.a.most, 2);
    close_bureau(&b);
}

TEST_CASE(started_asks, the_desks_are_looked_at_when_the_first_has_its_time,
          expect_first(LONG_US, LONG_US / 2))
TEST_CASE(started_asks, they_are_so_if_that_began_first,
          expect_first(LONG_US / 2, LONG_US))

/* --- how many at a time --------------------------------------------------- */

TEST(started_asks, no_more_go_on_than_there_are_steps)
{
    bureau b;
    asker x[3];
    open_bureau(&b);
    for (int i = 0; i < 3; i++) {
        ask(&b, &x[i], LONG_US);
        answer(&x[i]);
        call(&x[i]);
    }
    EXPECT_INT(look(&b, 1), 1);
    EXPECT(x[0].overs == 1 && x[1].overs == 0 && asking(&b) == 2);
    EXPECT_INT(look(&b, 2), 2);
    EXPECT(x[1].overs == 1 && x[2].overs == 1);
    close_bureau(&b);
}

TEST(started_asks, no_more_begin_than_there_are_steps)
{
    bureau b;
    asker x[3];
    open_bureau(&b);
    for (int i = 0; i < 3; i++) {
        prepare(&b, &x[i], LONG_US);
        answer(&x[i]);
        put(&b.g, &x[i].s, &x[i].job, over);
    }
    b.g.a.most_steps = 1;
    rl_async_take_inbox(&b.g.a);
    rl_async_admit(&b.g.a);
    EXPECT(x[0].overs == 1 && x[1].resumed == 0 && b.g.a.most_steps == 0);
    drive(&b.g);
    EXPECT(x[1].overs == 1 && x[2].overs == 1);
    EXPECT_INT(b.g.a.most_steps, 98);
    close_bureau(&b);
}

/* --- a sleep, and a question ---------------------------------------------- */

TEST(started_asks, who_wakes_at_another_desk_has_what_is_there)
{
    bureau b;
    asker x, other;
    open_bureau(&b);
    prepare(&b, &x, LONG_US);
    x.sleeps_first = true;
    begin(&b, &x);
    rl_desk *former = RL_CONTAINER(rl_list_first(&b.g.a.idle), rl_desk, link);
    ask(&b, &other, LONG_US);
    EXPECT(other.s.desk == former);
    rl_started_cancel(&x.s);
    drive(&b.g);
    EXPECT(x.resumed == 2 && x.s.desk && x.s.desk != former);
    answer(&x);
    answer(&other);
    call(&x);
    call(&other);
    look(&b, 10);
    EXPECT(x.overs == 1 && other.overs == 1);
    close_bureau(&b);
}

/* What rings while he asks is kept until he sleeps. */
TEST(started_asks, who_is_woken_while_he_asks_wakes_up_as_he_lies_down)
{
    bureau b;
    asker x;
    open_bureau(&b);
    prepare(&b, &x, LONG_US);
    x.sleeps_last = true;
    begin(&b, &x);
    x.s.waker.wake(&x.s.waker, RL_WAKE_LOOK, 0);
    drive(&b.g);
    EXPECT(x.resumed == 1 && rl_list_is_empty(&b.g.a.in_line));
    answer(&x);
    call(&x);
    look(&b, 10);
    EXPECT(x.resumed == 3 && x.overs == 1 && x.why == RL_WAKE_LOOK);
    close_bureau(&b);
}

/* It is told why it wakes up, and not once more with its answer. */
TEST(started_asks, who_was_woken_and_asks_is_told_nothing_with_the_answer)
{
    bureau b;
    asker x;
    open_bureau(&b);
    prepare(&b, &x, LONG_US);
    x.sleeps_first = true;
    begin(&b, &x);
    rl_started_cancel(&x.s);
    drive(&b.g);
    EXPECT(x.resumed == 2 && x.why == RL_WAKE_CANCEL && asking(&b) == 1);
    answer(&x);
    call(&x);
    look(&b, 10);
    EXPECT(x.overs == 1 && x.why == RL_WAKE_NONE);
    close_bureau(&b);
}

/* Nobody who tells the program something has a connection of it. */
static void expect_no_legs(rl_op *op)
{
    asker *x = RL_CONTAINER(op, asker, op);
    EXPECT_INT(x->s.desk->legs.n, 0);
    x->told = true;
}

TEST(started_asks, the_legs_of_who_lies_down_are_given_back)
{
    bureau b;
    asker x;
    open_bureau(&b);
    prepare(&b, &x, LONG_US);
    x.sleeps_last = true;
    x.op.tell = expect_no_legs;
    begin(&b, &x);
    rl_desk *d = x.s.desk;
    EXPECT(d->legs.n == 1 && !x.told);
    answer(&x);
    call(&x);
    look(&b, 10);
    EXPECT(x.resumed == 2 && x.told && !x.s.desk && d->legs.n == 0);
    rl_started_cancel(&x.s);
    drive(&b.g);
    EXPECT_INT(x.overs, 1);
    close_bureau(&b);
}

/* --- what poll() has told ------------------------------------------------- */

static int receives;

static ssize_t receive(rl_transport *t, char *bytes, size_t room, rl_fault *f)
{
    (void)t, (void)bytes, (void)room, (void)f;
    receives++;
    return 0;
}

static const rl_transport_ops reads = {.read = receive,
                                       .close = engine_close_nothing};

/* It has a connection, descriptor 5, which owes it an answer. */
static rl_conn *connect_leg(asker *x)
{
    rl_conn *c = rl_conn_new((rl_transport){.ops = &reads, .fd = 5});
    EXPECT(c);
    c->line.pending = 1;
    x->s.desk->legs.leg[0].way.line = &c->line;
    receives = 0;
    return c;
}

static void end_leg(bureau *b, asker *x, rl_conn *c)
{
    x->s.desk->legs.leg[0].way.line = NULL;
    c->line.pending = 0;
    rl_conn_free(c);
    answer(x);
    call(x);
    look(b, 10);
    EXPECT_INT(x->overs, 1);
}

/* Where its descriptor is among those that were polled, how many these are. */
static void expect_receives(size_t at_poll, int fd, size_t n, int wanted)
{
    struct pollfd p[3];
    bureau b;
    asker x;
    open_bureau(&b);
    ask(&b, &x, LONG_US);
    rl_conn *c = connect_leg(&x);
    x.s.desk->at_poll = at_poll;
    for (size_t i = 0; i < 3; i++)
        p[i] = (struct pollfd){.fd = i == 1 ? fd : 6, .revents = POLLIN};
    b.g.a.most_steps = 10;
    rl_async_look_at_desks(&b.g.a, p, n);
    EXPECT_INT(receives, wanted);
    end_leg(&b, &x, c);
    close_bureau(&b);
}

TEST_CASE(started_asks, what_has_come_on_a_connection_is_read,
          expect_receives(1, 5, 3, 1))
TEST_CASE(started_asks, it_is_read_if_that_was_polled_last,
          expect_receives(1, 5, 2, 1))
TEST_CASE(started_asks, what_has_come_for_another_is_not_read,
          expect_receives(1, 6, 3, 0))
TEST_CASE(started_asks, of_what_was_not_polled_nothing_is_read,
          expect_receives(1, 5, 1, 0))

/* The second of its legs was not polled, whatever is behind what was. */
static void expect_second_unread(const struct pollfd *p, size_t n)
{
    bureau b;
    asker x;
    open_bureau(&b);
    ask(&b, &x, LONG_US);
    rl_desk *d = x.s.desk;
    rl_conn *c = connect_leg(&x);
    rl_leg two[2] = {{.node = &b.e.node}, d->leg};
    d->legs.leg = two;
    d->legs.n = 2;
    d->at_poll = 1;
    b.g.a.most_steps = 10;
    rl_async_look_at_desks(&b.g.a, p, n);
    EXPECT_INT(receives, 0);
    d->legs.leg = &d->leg;
    d->legs.n = 1;
    end_leg(&b, &x, c);
    close_bureau(&b);
}

static const struct pollfd fives[] = {{.fd = 5, .revents = POLLIN},
                                      {.fd = 5, .revents = POLLIN},
                                      {.fd = 5, .revents = POLLIN}};

TEST_CASE(started_asks, what_is_behind_what_was_polled_is_not_read,
          expect_second_unread(fives, 2))
TEST_CASE(started_asks, where_nothing_was_polled_nothing_is_read,
          expect_second_unread(NULL, 0))

TEST(started_asks, that_the_loop_does_not_poll_a_connection_is_known)
{
    bureau b;
    asker x;
    open_bureau(&b);
    ask(&b, &x, LONG_US);
    rl_conn *c = connect_leg(&x);
    EXPECT(!b.g.a.unseen);
    x.s.desk->until_us = 0;
    look(&b, 10);
    EXPECT(x.resumed == 1 && b.g.a.unseen);
    end_leg(&b, &x, c);
    EXPECT(b.g.a.unseen);
    close_bureau(&b);
}

TEST(started_asks, what_a_large_request_has_needed_is_given_back)
{
    static char much[200000];
    bureau b;
    open_bureau(&b);
    rl_trunk t = {.conn = rl_conn_new((rl_transport){.ops = &reads, .fd = 5})};
    EXPECT(t.conn);
    rl_list_add_last(&b.g.a.trunks.all, &t.link);
    rl_bytes *out = rl_line_begin(&t.conn->line);
    rl_put_raw(out, much, sizeof much);
    rl_bytes_cut(out, 0);
    EXPECT(out->room >= sizeof much);
    rl_async_tidy(&b.g.a, b.g.a.tidied_us + 1000 * MS);
    EXPECT_INT(out->room, 0);
    rl_list_remove(&t.link);
    rl_conn_free(t.conn);
    close_bureau(&b);
}

/* --- the end -------------------------------------------------------------- */

static void post(rl_started *s)
{
    asker *x = RL_CONTAINER(s, asker, s);
    over(s);
    rl_started_post(s, &x->letter);
}

TEST(started_asks, that_it_is_over_is_the_last_thing_to_be_told_of_a_call)
{
    bureau b;
    asker x;
    rl_completions to = {.fd = 0};
    open_bureau(&b);
    rl_completions_init(&to);
    b.g.a.completions = &to;
    prepare(&b, &x, LONG_US);
    answer(&x);
    put(&b.g, &x.s, &x.job, post);
    drive(&b.g);
    EXPECT(x.overs == 1 && to.count == 1);
    EXPECT(rl_list_first(&to.completions) == &x.letter.link);
    EXPECT(x.letter.ends && x.letter.busy == &x.s.telling);
    rl_completions_fini(&to, false);
    close_bureau(&b);
}
