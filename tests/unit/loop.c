/* The loop: whose turn comes when, and that no nudge is lost. */
#include "run/loop.h"

#include <unistd.h>

#include "base/clock.h"
#include "test.h"

/* A watcher that counts its turns. */
typedef struct counter {
    rl_watcher watcher;
    atomic_int turns;
    atomic_int came;      /* turns in which its descriptor was readable */
    atomic_llong next_us; /* until when it may wait, from a turn on; or LEAVE */
    int fd;               /* -1: none */
} counter;

static int64_t turn(rl_watcher *w, int64_t now_us)
{
    counter *c = RL_CONTAINER(w, counter, watcher);
    char byte;
    if (w->n > 0 && w->polled[0].revents) {
        EXPECT_INT(read(c->fd, &byte, 1), 1);
        atomic_fetch_add(&c->came, 1);
    }
    atomic_fetch_add(&c->turns, 1);
    int64_t us = atomic_load(&c->next_us);
    return us == RL_NEVER || us == RL_LOOP_LEAVE ? us : now_us + us;
}

static size_t look(rl_watcher *w, struct pollfd *p, size_t room)
{
    const counter *c = RL_CONTAINER(w, counter, watcher);
    EXPECT(room > 0);
    p[0] = (struct pollfd){.fd = c->fd, .events = POLLIN};
    return 1;
}

static void count(counter *c, int fd)
{
    *c =
        (counter){.watcher = {.turn = turn, .look = look, .most = 1}, .fd = fd};
    atomic_init(&c->next_us, RL_NEVER);
}

static void begin(rl_loop *l)
{
    memset(l, 0, sizeof *l);
    rl_loop_init(l);
    EXPECT(rl_loop_open(l));
    EXPECT(rl_loop_start(l));
}

/* With one that has had its first turn. */
static void begin_with(rl_loop *l, counter *c)
{
    begin(l);
    count(c, -1);
    EXPECT(rl_loop_add(l, &c->watcher));
    EVENTUALLY(1000, atomic_load(&c->turns) == 1);
}

static void end(rl_loop *l)
{
    rl_loop_stop(l);
    rl_loop_fini(l, false);
}

static void take_out(rl_loop *l, counter *c)
{
    atomic_store(&c->next_us, RL_LOOP_LEAVE);
    rl_loop_nudge(l, &c->watcher);
    rl_loop_await_end(l, &c->watcher);
}

TEST(loop, who_is_added_has_a_turn_at_once_and_then_waits)
{
    rl_loop l;
    counter c;
    begin_with(&l, &c);
    take_out(&l, &c);
    EXPECT_INT(atomic_load(&c.turns), 2);
    end(&l);
}

/* Whoever adds it has found that it was not to leave any more. */
TEST(loop, who_is_added_before_it_has_left_has_another_turn)
{
    rl_loop l;
    counter c;
    begin_with(&l, &c);
    EXPECT(rl_loop_add(&l, &c.watcher));
    take_out(&l, &c);
    EXPECT_INT(atomic_load(&c.turns), 3);
    end(&l);
}

TEST(loop, who_was_added_before_it_runs_has_a_turn_when_it_does)
{
    rl_loop l;
    counter c;
    memset(&l, 0, sizeof l);
    rl_loop_init(&l);
    EXPECT(rl_loop_open(&l));
    count(&c, -1);
    EXPECT(rl_loop_add(&l, &c.watcher));
    EXPECT(rl_loop_start(&l));
    EVENTUALLY(1000, atomic_load(&c.turns) == 1);
    take_out(&l, &c);
    end(&l);
}

TEST(loop, a_turn_comes_when_it_is_due)
{
    rl_loop l;
    counter c;
    begin(&l);
    count(&c, -1);
    atomic_store(&c.next_us, 5000);
    EXPECT(rl_loop_add(&l, &c.watcher));
    EVENTUALLY(1000, atomic_load(&c.turns) >= 5);
    take_out(&l, &c);
    end(&l);
}

TEST(loop, what_comes_for_one_is_not_the_turn_of_another)
{
    rl_loop l;
    counter c, other;
    int pipes[2];
    EXPECT_INT(pipe(pipes), 0);
    begin(&l);
    count(&c, pipes[0]);
    count(&other, -1);
    EXPECT(rl_loop_add(&l, &other.watcher));
    EXPECT(rl_loop_add(&l, &c.watcher));
    for (int i = 1; i <= 10; i++) {
        EXPECT_INT(write(pipes[1], "x", 1), 1);
        EVENTUALLY(1000, atomic_load(&c.came) == i);
    }
    EXPECT_INT(atomic_load(&other.turns), 1);
    take_out(&l, &c);
    take_out(&l, &other);
    end(&l);
    close(pipes[0]);
    close(pipes[1]);
}

/* Each is seen before the next, so none may be lost. */
TEST(loop, no_nudge_is_lost)
{
    rl_loop l;
    counter c;
    begin_with(&l, &c);
    for (int i = 2; i < 3000; i++) {
        rl_loop_nudge(&l, &c.watcher);
        EVENTUALLY(1000, atomic_load(&c.turns) >= i);
    }
    take_out(&l, &c);
    end(&l);
}

TEST(loop, the_signal_calls_who_asked_to_be_called_and_nobody_else)
{
    rl_loop l;
    counter c, other;
    begin(&l);
    count(&c, -1);
    count(&other, -1);
    c.watcher.called = true;
    EXPECT(rl_loop_add(&l, &other.watcher));
    EXPECT(rl_loop_add(&l, &c.watcher));
    EVENTUALLY(1000,
               atomic_load(&c.turns) > 0 && atomic_load(&other.turns) > 0);
    int before = atomic_load(&c.turns);
    rl_signal_raise(&l.signal);
    EVENTUALLY(1000, atomic_load(&c.turns) > before);
    EXPECT_INT(atomic_load(&other.turns), 1);
    take_out(&l, &c);
    take_out(&l, &other);
    end(&l);
}

TEST(loop, who_has_left_may_come_back)
{
    rl_loop l;
    counter c;
    begin(&l);
    count(&c, -1);
    for (int i = 0; i < 20; i++) {
        atomic_store(&c.next_us, RL_NEVER);
        EXPECT(rl_loop_add(&l, &c.watcher));
        take_out(&l, &c);
        rl_loop_await_end(&l, &c.watcher); /* it is not in */
    }
    end(&l);
}

enum { MANY = 100 };

/* A watcher of so many descriptors, which it did not say before. */
typedef struct crowd {
    rl_watcher watcher;
    int pipes[MANY][2];
    atomic_int came[MANY];
    atomic_bool over;
    atomic_size_t n; /* of them that it looks at */
} crowd;

static int64_t turn_of_crowd(rl_watcher *w, int64_t now_us)
{
    crowd *c = RL_CONTAINER(w, crowd, watcher);
    char byte;
    (void)now_us;
    for (size_t i = 0; i < w->n; i++) {
        if (!w->polled[i].revents)
            continue;
        EXPECT_INT(read(c->pipes[i][0], &byte, 1), 1);
        atomic_fetch_add(&c->came[i], 1);
    }
    return atomic_load(&c->over) ? RL_LOOP_LEAVE : RL_NEVER;
}

static size_t look_at_crowd(rl_watcher *w, struct pollfd *p, size_t room)
{
    const crowd *c = RL_CONTAINER(w, crowd, watcher);
    size_t n = atomic_load(&c->n);
    for (size_t i = 0; i < n && i < room; i++)
        p[i] = (struct pollfd){.fd = c->pipes[i][0], .events = POLLIN};
    return n;
}

TEST(loop, room_is_made_for_who_cannot_say_before_how_much_it_needs)
{
    rl_loop l;
    static crowd c;
    counter other;
    begin(&l);
    count(&other, -1);
    c.watcher = (rl_watcher){.turn = turn_of_crowd, .look = look_at_crowd};
    for (size_t i = 0; i < MANY; i++)
        EXPECT_INT(pipe(c.pipes[i]), 0);
    EXPECT(rl_loop_add(&l, &c.watcher));
    EXPECT(rl_loop_add(&l, &other.watcher)); /* comes later, is polled first */
    for (int round = 1; round <= 3; round++) {
        atomic_store(&c.n, MANY);
        rl_loop_nudge(&l, &c.watcher);
        for (size_t i = 0; i < MANY; i++)
            EXPECT_INT(write(c.pipes[i][1], "x", 1), 1);
        for (size_t i = 0; i < MANY; i++)
            EVENTUALLY(1000, atomic_load(&c.came[i]) == round);
        atomic_store(&c.n, 1);
    }
    atomic_store(&c.over, true);
    rl_loop_nudge(&l, &c.watcher);
    rl_loop_await_end(&l, &c.watcher);
    take_out(&l, &other);
    end(&l);
    for (size_t i = 0; i < MANY; i++) {
        close(c.pipes[i][0]);
        close(c.pipes[i][1]);
    }
}

/* Memory for their descriptors is made while the loop polls. */
TEST(loop, many_come_while_it_sleeps_and_each_is_polled)
{
    rl_loop l;
    counter c[MANY];
    int pipes[MANY][2];
    begin(&l);
    for (int i = 0; i < MANY; i++) {
        EXPECT_INT(pipe(pipes[i]), 0);
        count(&c[i], pipes[i][0]);
        EXPECT(rl_loop_add(&l, &c[i].watcher));
    }
    for (int i = 0; i < MANY; i++)
        EXPECT_INT(write(pipes[i][1], "x", 1), 1);
    for (int i = 0; i < MANY; i++)
        EVENTUALLY(1000, atomic_load(&c[i].came) == 1);
    for (int i = 0; i < MANY; i++) {
        take_out(&l, &c[i]);
        close(pipes[i][0]);
        close(pipes[i][1]);
    }
    end(&l);
}
